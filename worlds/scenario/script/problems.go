package script

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is something wrong with a Script, at a key such as metrics[2].range.
type Problem struct {
	Key  string
	What string
}

// The bounds of a script.
const (
	MaxTurns   = 1000
	maxActors  = 50
	maxMetrics = 100
	maxEvents  = 500
	maxRounds  = 20
	maxWindow  = 1000
	minState   = 10
	// maxText bounds the text that is part of every question.
	maxText = 400_000
)

var (
	duration   = regexp.MustCompile(`^\d+\s+(second|minute|hour|day|week|month|quarter|year)s?$`)
	shortName  = regexp.MustCompile(`^[a-z0-9-]+$`)
	metricName = regexp.MustCompile(`^[a-z0-9_]+$`)
)

// problems collects what is wrong.
type problems struct {
	script *Script
	all    []Problem
}

func (p *problems) add(key, format string, args ...any) {
	p.all = append(p.all, Problem{key, fmt.Sprintf(format, args...)})
}

// Problems returns what prevents s from being played.
func (s *Script) Problems() []Problem {
	p := &problems{script: s}
	p.situation()
	p.actors()
	for i := range s.Metrics {
		p.metric(i)
	}
	p.validation()
	for i := range s.Events {
		p.event(i)
	}
	return p.all
}

func (p *problems) situation() {
	s := p.script
	if strings.TrimSpace(s.Name) == "" {
		p.add("name", "is missing: the name of the scenario")
	}
	if n := utf8.RuneCountInString(strings.TrimSpace(s.State)); n == 0 {
		p.add("initial_world_state", "is missing: the situation before the first turn")
	} else if n < minState {
		p.add("initial_world_state", "wants the situation before the first turn, at least %d characters, found %d", minState, n)
	}
	if s.TurnDuration == "" {
		p.add("turn_duration", "is missing: how long a turn is, as 3 months")
	} else if !duration.MatchString(s.TurnDuration) {
		p.add("turn_duration", "wants a number and a unit, as 3 months, found %q; units: second, minute, hour, day, week, month, quarter, year", s.TurnDuration)
	}
	if s.Turns < 1 || s.Turns > MaxTurns {
		p.add("turns", "wants 1 to %d, found %d", MaxTurns, s.Turns)
	}
	if s.Window < 1 || s.Window > maxWindow {
		p.add("context_window_size", "wants 1 to %d turns, found %d", maxWindow, s.Window)
	}
	if !(s.BlackSwan >= 0 && s.BlackSwan <= 1) {
		p.add("black_swan_probability", "wants 0 to 1, found %v", s.BlackSwan)
	}
	if s.Talk.Bilateral || s.Talk.Coalitions {
		p.between("max_communications_per_turn", s.Talk.Max, 1, maxActors)
		p.between("bilateral_rounds", s.Talk.Rounds, 1, maxRounds)
	}
	size := len(s.State) + len(s.Description) + len(s.System)
	for _, d := range s.Background {
		size += len(d.Text)
	}
	if size > maxText {
		p.add("background", "the situation and its documents have %d bytes: at most %d, because all of it is part of every question", size, maxText)
	}
	for _, c := range s.End {
		if why := c.wrong(s); why != "" {
			p.add("end", "%s: %s", c, why)
		}
	}
}

func (p *problems) between(key string, n, low, high int) {
	if n < low || n > high {
		p.add(key, "wants %d to %d, found %d", low, high, n)
	}
}

func (p *problems) actors() {
	s := p.script
	if len(s.Actors) == 0 || len(s.Actors) > maxActors {
		p.add("actors", "wants 1 to %d actors, found %d", maxActors, len(s.Actors))
	}
	if s.Talk.Coalitions && len(s.Actors) < 3 {
		p.add("enable_coalition_formation", "wants 3 actors or more: a coalition is a proposer and two others; there are %d", len(s.Actors))
	}
	seen := map[string]bool{}
	for i, a := range s.Actors {
		key := func(k string) string { return fmt.Sprintf("actors[%d].%s", i, k) }
		switch {
		case !shortName.MatchString(a.ShortName):
			p.add(key("short_name"), "wants lower-case letters, digits and -, as north-port, found %q", a.ShortName)
		case a.ShortName == Narrator, a.ShortName == Analyst, a.ShortName == Validator:
			p.add(key("short_name"), "%s is the seat of the narrator, analyst or validator: choose another", a.ShortName)
		case seen[a.ShortName]:
			p.add(key("short_name"), "two actors are called %s", a.ShortName)
		}
		seen[a.ShortName] = true
		if strings.TrimSpace(a.Name) == "" {
			p.add(key("name"), "is missing: the name of the actor")
		}
	}
	for i, a := range s.Actors {
		for _, other := range a.Coalitions {
			if s.Actor(other) < 0 {
				p.add(fmt.Sprintf("actors[%d].preferred_coalitions", i), "unknown actor %q%s", other, among(other, "actors", s.shortNames()))
			}
		}
	}
}

func (p *problems) metric(i int) {
	m := p.script.Metrics[i]
	key := func(k string) string { return fmt.Sprintf("metrics[%d].%s", i, k) }
	switch {
	case i >= maxMetrics:
		p.add(key("name"), "is one too many: at most %d metrics", maxMetrics)
	case !metricName.MatchString(m.Name):
		p.add(key("name"), "wants lower-case letters, digits and _, as public_trust, found %q", m.Name)
	case m.Name == "turns" || m.Name == "issues":
		p.add(key("name"), "%s is a score that every scenario has: choose another", m.Name)
	case p.script.Metric(m.Name) != &p.script.Metrics[i]:
		p.add(key("name"), "two metrics are called %s", m.Name)
	}
	if strings.TrimSpace(m.Description) == "" {
		p.add(key("description"), "is missing: what it measures")
	}
	switch m.Type {
	case Continuous:
		p.bounds(m, key)
	case Categorical:
		if len(m.Categories) < 2 {
			p.add(key("categories"), "wants two or more in ascending order, found %d", len(m.Categories))
		}
	case Boolean:
	case "":
		p.add(key("type"), "is missing: one of continuous, categorical, boolean")
	default:
		p.add(key("type"), "wants one of continuous, categorical, boolean, found %q", m.Type)
	}
	p.extraction(m, key)
	p.manual(m, key)
}

func (p *problems) bounds(m Metric, key func(string) string) {
	switch {
	case len(m.Range) == 0:
		p.add(key("range"), "is missing: the smallest and the largest value, as [0, 10]")
	case len(m.Range) != 2 || !(m.Range[0] < m.Range[1]) || math.IsInf(m.Range[0], 0) || math.IsInf(m.Range[1], 0):
		p.add(key("range"), "wants two numbers, the smaller first, as [0, 10]")
	}
}

func (p *problems) extraction(m Metric, key func(string) string) {
	e := m.Extraction
	switch e.Type {
	case ByModel, byHand:
	case ByKeyword:
		if len(e.Keywords) == 0 {
			p.add(key("extraction.keywords"), "is missing: the words to look for")
		}
		if slices.ContainsFunc(e.Keywords, func(k string) bool { return strings.TrimSpace(k) == "" }) {
			p.add(key("extraction.keywords"), "an empty word matches everywhere: leave it out")
		}
		if !slices.Contains([]string{"count", "presence", "density"}, e.Scoring) {
			p.add(key("extraction.scoring"), "wants one of count, presence, density, found %q", e.Scoring)
		}
	case ByPattern:
		if _, err := regexp.Compile(e.Pattern); err != nil || e.Pattern == "" {
			p.add(key("extraction.pattern"), "wants a regular expression, found %q%s", e.Pattern, patternAdvice(e.Pattern, err))
		}
	case "":
		p.add(key("extraction.type"), "is missing: how it is measured, one of llm, keyword, pattern, manual")
	default:
		p.add(key("extraction.type"), "wants one of llm, keyword, pattern, manual, found %q", e.Type)
	}
}

// patternAdvice explains why an expression is invalid. Other languages allow more.
func patternAdvice(pattern string, err error) string {
	switch {
	case pattern == "":
		return ""
	case strings.Contains(pattern, "(?=") || strings.Contains(pattern, "(?!") || strings.Contains(pattern, "(?<"):
		return ": looking ahead or behind, (?= (?! (?<, is not possible: put what is wanted in a group ( ) instead"
	}
	return ": " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

func (p *problems) manual(m Metric, key func(string) string) {
	for i, text := range m.Extraction.Values {
		if _, ok := m.Read(text); text != "" && !ok {
			p.add(key(fmt.Sprintf("extraction.values[%d]", i)), "%q is not a value of %s", text, m.Name)
		}
	}
}

// Checks returns the names of all checks.
func Checks() []string {
	return []string{CheckDecisions, CheckWorld, CheckInformation, CheckGoals, CheckRules}
}

// Severities returns the severities of issues, from low to critical.
func Severities() []string { return []string{"low", "medium", "high", "critical"} }

func (p *problems) validation() {
	v := p.script.Validation
	for _, c := range v.Checks {
		key := "validation.checks." + c.Name
		if !slices.Contains(Checks(), c.Name) {
			p.add(key, "unknown check; want one of %s", strings.Join(Checks(), ", "))
		}
		if !slices.Contains(Severities(), c.Severity) {
			p.add(key+".severity", "wants one of %s, found %q", strings.Join(Severities(), ", "), c.Severity)
		}
	}
	if v.MaxIssues < 0 {
		p.add("validation.max_issues_before_halt", "wants 1 or more, found %d", v.MaxIssues)
	}
}

func (p *problems) event(i int) {
	s, e := p.script, p.script.Events[i]
	key := func(k string) string { return fmt.Sprintf("events[%d].%s", i, k) }
	switch {
	case i >= maxEvents:
		p.add(key("name"), "is one too many: at most %d events", maxEvents)
	case strings.TrimSpace(e.Name) == "":
		p.add(key("name"), "is missing: the name of the event")
	case slices.ContainsFunc(s.Events[:i], func(o Event) bool { return o.Name == e.Name }):
		p.add(key("name"), "two events are called %q", e.Name)
	}
	if strings.TrimSpace(e.Description) == "" {
		p.add(key("description"), "is missing: what happens")
	}
	if r := e.Range; r != nil && (len(r) != 2 || r[0] < 1 || r[1] < r[0]) {
		p.add(key("turn_range"), "wants the first turn and the last, as [2, 8]")
	}
	switch e.Type {
	case EventTrend:
		if len(e.Range) == 0 {
			p.add(key("turn_range"), "is missing: the first and the last turn of the trend, as [2, 8]")
		}
		if e.Frequency < 1 {
			p.add(key("frequency"), "is missing: every how many turns, 1 or more")
		}
	case EventRandom:
		if e.Probability == nil {
			p.add(key("probability"), "is missing: how likely it is in each turn, from 0 (never) to 1")
		}
	case EventConditional:
		if len(e.Conditions) == 0 {
			p.add(key("conditions"), "is missing: what has to hold, as {tension: \">= 7\"}")
		}
	case EventScheduled:
		if len(e.Turns) == 0 || slices.Min(e.Turns) < 1 {
			p.add(key("turn"), "wants the turn in which it happens, from 1 up")
		}
	case "":
		p.add(key("type"), "is missing: one of trend, random, conditional, scheduled")
	default:
		p.add(key("type"), "wants one of trend, random, conditional, scheduled, found %q%s", e.Type, didYouMean(e.Type, EventTrend, EventRandom, EventConditional, EventScheduled))
	}
	if c := e.Probability; c != nil && !(*c >= 0 && *c <= 1) {
		p.add(key("probability"), "wants 0 (never) to 1, found %v", *c)
	}
	for _, c := range e.Conditions {
		if why := c.wrong(s); why != "" {
			p.add(key("conditions"), "%s: %s", c, why)
		}
	}
}

// Read parses a value of m: a number within its range, a category, or true or
// false.
func (m *Metric) Read(text string) (Value, bool) {
	text = strings.TrimSpace(text)
	switch m.Type {
	case Categorical:
		for i, c := range m.Categories {
			if strings.EqualFold(c, text) {
				return Value{true, float64(i), c}, true
			}
		}
	case Boolean:
		switch strings.ToLower(text) {
		case "true", "yes", "1":
			return Value{true, 1, "true"}, true
		case "false", "no", "0":
			return Value{true, 0, "false"}, true
		}
	default:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return m.Number(f)
		}
	}
	return Value{}, false
}

// Number returns a number as a value of m, if it is within its range. For a category it is
// the index.
func (m *Metric) Number(f float64) (Value, bool) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return Value{}, false
	case m.Type == Categorical:
		if i := int(f); f == math.Trunc(f) && i >= 0 && i < len(m.Categories) {
			return Value{true, f, m.Categories[i]}, true
		}
		return Value{}, false
	case m.Type == Boolean:
		if f != 0 && f != 1 {
			return Value{}, false
		}
		return Value{true, f, strconv.FormatBool(f == 1)}, true
	case len(m.Range) == 2 && (f < m.Range[0] || f > m.Range[1]):
		return Value{}, false
	}
	return Value{true, f, strconv.FormatFloat(f, 'g', -1, 64)}, true
}
