package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/world"
	"parley/world/worldtest"
	"parley/worlds/scenario/script"
)

// TestStandIn: the stand-in understands what everybody in a scenario is asked, and finds in it who it is, what it
// wants, what was done and what is measured.
func TestStandIn(t *testing.T) {
	t.Parallel()
	s := stage(3, 5, func(s *script.Script) {
		own, yes, share := numeric("own"), numeric("yes"), numeric("share")
		own.ActorSpecific = true
		yes.Type, yes.Range = script.Boolean, nil
		share.Range, share.Unit = []float64{0, 100}, "percent"
		s.Metrics = []script.Metric{own, yes, share}
		for i := range s.Actors {
			s.Actors[i].Goals = []string{fmt.Sprintf("Keep bridge %d open", i)}
		}
		s.State = "The reservoir stands at 46 percent."
		s.Talk = script.Talk{Statements: true, Bilateral: true, Coalitions: true, Max: 2, Rounds: 2}
		s.Window, s.Reflect, s.BlackSwan = 1, true, 0.5
		s.Events = []script.Event{{Name: "storm", Description: "A storm floods the valley.", Type: script.Random, Probability: new(1.0)}}
		s.Validation = script.Validation{MaxIssues: 1000}
		for _, name := range []string{script.CheckDecisions, script.CheckWorld, script.CheckInformation, script.CheckGoals, script.CheckRules} {
			s.Validation.Checks = append(s.Validation.Checks, script.Check{Name: name, Severity: "low"})
		}
		s.Validation.Rules = []string{"Nobody leaves."}
	})
	params, err := json.Marshal(Params{Set: map[string]any{}, Script: s})
	if err != nil {
		t.Fatal(err)
	}
	worldtest.StandIn(t, Kind(), []string{
		"opening", "answer", "coalition", "joint statement", "decision", "private summary", "update", "summary", "metric own", "metric yes", "metric share",
		"check " + script.CheckDecisions, "check " + script.CheckWorld, "check " + script.CheckInformation, "check " + script.CheckGoals, "check " + script.CheckRules,
	}, worldtest.Options{Params: string(params), Deals: 10, Understood: func(c world.Call, r world.Reply) error { return understood(s, c, r) }})
}

// understood wants an answer to take up what the prompt says.
func understood(s *script.Script, c world.Call, r world.Reply) error {
	var a struct {
		Action, State, Summary string
		Long                   []string `json:"long_term_goals"`
		Value                  any
	}
	if err := json.Unmarshal(r.JSON, &a); err != nil {
		return err
	}
	switch prompt := c.Ask.Messages[1].Text(); {
	case c.Label == "decision":
		actor := s.Actors[s.Actor(c.Seat)]
		if !strings.HasPrefix(a.Action, actor.Name+" ") || len(a.Long) == 0 || a.Long[0] != actor.Goals[0] {
			return fmt.Errorf("%s decides %q with the goals %q", actor.Name, a.Action, a.Long)
		}
	case c.Label == "update":
		if !strings.Contains(a.State, "A storm floods the valley.") || !strings.Contains(a.State, " percent after turn ") || strings.Contains(a.State, "after turn 0") {
			return fmt.Errorf("the narrator leaves out the state: %q", a.State)
		}
	case strings.Contains(c.Label, "summary"):
		if (c.Label == "summary" || strings.Contains(prompt, "\n> ")) && !strings.HasPrefix(a.Summary, "In short: ") {
			return fmt.Errorf("sums up %q", a.Summary)
		}
	case c.Label == "metric share":
		if read := c.Ask.Messages[0].Text(); !strings.Contains(read, fmt.Sprintf("%v percent", a.Value)) {
			return fmt.Errorf("measures %v in %s", a.Value, read)
		}
	}
	return nil
}
