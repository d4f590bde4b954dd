// Package script has scenarios as plain data: the situation, actors, metrics, checks and events.
//
// A Script without Problems can be played. Its JSON is recorded with a run. folder.go reads a Script from
// a scenario folder, change.go changes keys of it, and problems.go finds what is wrong with it. answer.go has
// the schemas of what models are asked in a scenario, and reads their answers; measure.go and condition.go
// evaluate metrics and conditions.
package script

import (
	"cmp"
	"slices"
)

// Script is a scenario. Its keys are those of the files, in the preferred spelling.
type Script struct {
	// From is the folder of the script, as the plan names it.
	From string `json:"from,omitempty"`

	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Author      string   `json:"author,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	// System is put before the description of the scenario.
	System string `json:"system_prompt,omitempty"`
	// State is the world before the first turn.
	State string `json:"initial_world_state"`
	// Background is what everybody can read besides the state.
	Background []Document `json:"background,omitempty"`

	Turns        int    `json:"turns"`
	TurnDuration string `json:"turn_duration"`
	// End ends the scenario before its last turn, once all conditions hold.
	End []Condition `json:"end,omitempty"`
	// Window is the number of turns that actors remember in full.
	Window int `json:"context_window_size"`

	Talk Talk `json:"talk,omitzero"`
	// BlackSwan is the probability of an unforeseen event in each turn.
	BlackSwan float64 `json:"black_swan_probability,omitempty"`
	// Reflect lets actors keep private thoughts from turn to turn.
	Reflect bool `json:"allow_actor_reflection,omitempty"`
	// Parallel makes all actions of a turn happen at the same moment; otherwise in a plausible order.
	Parallel bool `json:"parallel_action_resolution,omitempty"`

	Actors     []Actor    `json:"actors"`
	Metrics    []Metric   `json:"metrics,omitempty"`
	Validation Validation `json:"validation,omitzero"`
	Events     []Event    `json:"events,omitempty"`

	// NarratorModel is the model of the narrator, if the files name one.
	NarratorModel string `json:"world_state_model,omitempty"`
}

// Document is a text with a name.
type Document struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Talk describes how actors can speak to each other.
type Talk struct {
	Statements bool `json:"public_statements,omitempty"`
	Bilateral  bool `json:"bilateral,omitempty"`
	Coalitions bool `json:"coalitions,omitempty"`
	// Most is how many others an actor can turn to in a turn, and Rounds how many answers
	// an exchange between two has.
	Max    int `json:"max_communications_per_turn,omitempty"`
	Rounds int `json:"bilateral_rounds,omitempty"`
}

// The default limits of private talk.
const (
	defaultMax    = 2
	defaultRounds = 1
)

// Actor is an actor of a scenario.
type Actor struct {
	ShortName string `json:"short_name"`
	Name      string `json:"name"`
	Model     string `json:"model,omitempty"`

	// What everybody knows.
	Role        string `json:"role,omitempty"`
	Description string `json:"description,omitempty"`

	// What only the actor knows.
	System             string   `json:"system_prompt,omitempty"`
	Goals              []string `json:"goals,omitempty"`
	Constraints        []string `json:"constraints,omitempty"`
	Expertise          []string `json:"expertise,omitempty"`
	ExpertiseLevel     string   `json:"expertise_level,omitempty"`
	DecisionStyle      string   `json:"decision_style,omitempty"`
	CommunicationStyle string   `json:"communication_style,omitempty"`
	Traits             []string `json:"personality_traits,omitempty"`
	Coalitions         []string `json:"preferred_coalitions,omitempty"`
	Private            []string `json:"private_information,omitempty"`
	Public             []string `json:"public_information,omitempty"`
	// Deaf actors do not see public statements.
	Deaf bool `json:"deaf,omitempty"`
}

// The types of metrics.
const (
	Continuous  = "continuous"
	Categorical = "categorical"
	Boolean     = "boolean"
)

// The ways to measure.
const (
	ByModel   = "llm"
	ByKeyword = "keyword"
	ByPattern = "pattern"
	byHand    = "manual"
)

// Metric is what is measured after each turn: of the world, or of each actor's decision.
type Metric struct {
	Name          string     `json:"name"`
	Description   string     `json:"description"`
	Type          string     `json:"type"`
	Range         []float64  `json:"range,omitempty"`
	Categories    []string   `json:"categories,omitempty"`
	Extraction    Extraction `json:"extraction"`
	Unit          string     `json:"unit,omitempty"`
	ActorSpecific bool       `json:"actor_specific,omitempty"`
	Warning       *float64   `json:"warning_threshold,omitempty"`
	Critical      *float64   `json:"critical_threshold,omitempty"`
}

// Extraction is how a metric is measured.
type Extraction struct {
	Type     string   `json:"type"`
	Prompt   string   `json:"prompt,omitempty"`
	Model    string   `json:"model,omitempty"`
	Keywords []string `json:"keywords,omitempty"`
	Scoring  string   `json:"scoring,omitempty"` // count, presence or density
	Pattern  string   `json:"pattern,omitempty"`
	// Values has the values given by hand, as texts, from turn 1.
	Values []string `json:"values,omitempty"`
}

// Validation has the checks after each turn.
type Validation struct {
	Model  string   `json:"validation_model,omitempty"`
	Checks []Check  `json:"checks,omitempty"`
	Rules  []string `json:"scenario_specific_rules,omitempty"`
	// LastOnly checks only the last turn.
	LastOnly bool `json:"last_turn_only,omitempty"`
	// Reports notes every check of every turn; without it, only those with issues.
	Reports bool `json:"generate_turn_reports,omitempty"`
	// Summary puts the findings into the outcome.
	Summary        bool `json:"generate_summary,omitempty"`
	HaltOnCritical bool `json:"halt_on_critical,omitempty"`
	// MaxIssues halts the scenario at that many issues, or never if it is 0.
	MaxIssues int `json:"max_issues_before_halt,omitempty"`
}

// The checks there are.
const (
	CheckDecisions   = "actor_decision_consistency"
	CheckWorld       = "world_state_coherence"
	CheckInformation = "information_access_consistency"
	CheckGoals       = "goal_progress_tracking"
	CheckRules       = "scenario_specific_rules"
)

// Check is a check of a turn.
type Check struct {
	Name        string `json:"name"`
	Severity    string `json:"severity"`
	Description string `json:"description,omitempty"`
}

// The types of events.
const (
	EventTrend       = "trend"
	EventRandom      = "random"
	EventConditional = "conditional"
	EventScheduled   = "scheduled"
)

// Event is an exogenous event.
type Event struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"`
	// Range is the first and the last turn in which it can happen. If it is empty, it can happen in any.
	Range     []int `json:"turn_range,omitempty"`
	Frequency int   `json:"frequency,omitempty"`
	// Probability is its probability in a turn in which it can happen. Nil means certain.
	Probability *float64    `json:"probability,omitempty"`
	Conditions  []Condition `json:"conditions,omitempty"`
	Turns       []int       `json:"turns,omitempty"`
	Once        bool        `json:"once,omitempty"`
}

// The seats besides the actors.
const (
	Narrator  = "narrator"
	Analyst   = "analyst"
	Validator = "validator"
)

// Seats returns all seats: the actors, the narrator, and those that measure and check.
func (s *Script) Seats() []string {
	seats := append(s.shortNames(), Narrator)
	if slices.ContainsFunc(s.Metrics, func(m Metric) bool { return m.Seat() == Analyst }) {
		seats = append(seats, Analyst)
	}
	for _, m := range s.Metrics {
		if seat := m.Seat(); seat != "" && seat != Analyst {
			seats = append(seats, seat)
		}
	}
	if len(s.Validation.Checks) > 0 {
		seats = append(seats, Validator)
	}
	return seats
}

// Seat returns the seat that measures a metric: the analyst, or its own seat if the files give
// it its own model. It is empty if no model is asked.
func (m *Metric) Seat() string {
	switch {
	case m.Extraction.Type != ByModel:
		return ""
	case m.Extraction.Model != "":
		return "metric." + m.Name
	}
	return Analyst
}

// Models returns the models that the files name, by seat.
func (s *Script) Models() map[string]string {
	models := map[string]string{Narrator: s.NarratorModel, Validator: cmp.Or(s.Validation.Model, s.NarratorModel), Analyst: s.NarratorModel}
	for _, a := range s.Actors {
		models[a.ShortName] = a.Model
	}
	for _, m := range s.Metrics {
		if m.Extraction.Model != "" {
			models["metric."+m.Name] = m.Extraction.Model
		}
	}
	return models
}

// Actor returns the index of an actor by short name, or -1.
func (s *Script) Actor(short string) int {
	return slices.IndexFunc(s.Actors, func(a Actor) bool { return a.ShortName == short })
}

// Metric returns the metric of that name, or nil.
func (s *Script) Metric(name string) *Metric {
	if i := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return &s.Metrics[i]
	}
	return nil
}
