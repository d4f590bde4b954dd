package script

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/world/part"
)

// Condition compares a metric with a value. It holds only if the metric is known.
type Condition struct {
	Metric string `json:"metric"`
	Actor  string `json:"actor,omitempty"` // for a metric that each actor has
	Op     string `json:"op"`
	Value  string `json:"value"`
}

// String formats c as ParseConditions reads it.
func (c Condition) String() string { return c.key() + " " + c.Op + " " + c.Value }

func (c Condition) key() string {
	if c.Actor != "" {
		return c.Actor + "." + c.Metric
	}
	return c.Metric
}

// ops returns the comparison operators; a longer one is before its own prefix.
func ops() []string { return []string{">=", "<=", "==", "!=", ">", "<"} }

var (
	comparisonRE = regexp.MustCompile(`^\s*(>=|<=|==|!=|>|<)\s*(\S.*?)\s*$`)
	clauseRE     = regexp.MustCompile(`^\s*([a-z0-9_.-]+)\s*(>=|<=|==|!=|>|<)\s*(\S.*?)\s*$`)
	andRE        = regexp.MustCompile(`(?i)\s+and(?:\s+|$)|\s*&&\s*`)
)

// Compare returns the condition of a metric, written metric or actor.metric, and a
// comparison such as ">= 7". A bare value means ==.
func Compare(metric, with string) (Condition, error) {
	c := Condition{Metric: metric, Op: "==", Value: strings.TrimSpace(with)}
	if actor, name, ok := strings.Cut(metric, "."); ok {
		c.Actor, c.Metric = actor, name
	}
	if m := comparisonRE.FindStringSubmatch(with); m != nil {
		c.Op, c.Value = m[1], m[2]
	}
	c.Value = strings.Trim(c.Value, `"'`)
	if c.Value == "" || strings.ContainsAny(c.Value, "<>=!") {
		return c, fmt.Errorf("wants a comparison such as \">= 7\", found %q; it begins with one of %s", with, strings.Join(ops(), " "))
	}
	return c, nil
}

// ParseConditions reads "tension >= 7 and trust < 3".
func ParseConditions(text string) ([]Condition, error) {
	var all []Condition
	for _, part := range andRE.Split(text, -1) {
		m := clauseRE.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("wants METRIC OP VALUE, as tension >= 7, found %q; join several with and; OP is one of %s", part, strings.Join(ops(), " "))
		}
		c, err := Compare(m[1], m[2]+" "+m[3])
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// Value is a value of a metric.
type Value struct {
	Known  bool
	Number float64 // for a category its index, for true 1
	Text   string  // for people
}

// Holds reports whether a value meets c. An unknown value meets nothing.
func (c Condition) Holds(v Value) bool {
	if !v.Known {
		return false
	}
	want, err := strconv.ParseFloat(c.Value, 64)
	if err != nil {
		same := strings.EqualFold(v.Text, c.Value)
		return c.Op == "==" && same || c.Op == "!=" && !same
	}
	switch c.Op {
	case ">=":
		return v.Number >= want
	case "<=":
		return v.Number <= want
	case "==":
		return v.Number == want
	case "!=":
		return v.Number != want
	case ">":
		return v.Number > want
	case "<":
		return v.Number < want
	}
	return false
}

// wrong returns what is wrong with a condition, or "".
func (c Condition) wrong(s *Script) string {
	m := s.Metric(c.Metric)
	_, err := strconv.ParseFloat(c.Value, 64)
	switch {
	case m == nil:
		return fmt.Sprintf("unknown metric %q%s", c.Metric, among(c.Metric, "metrics", s.metricNames()))
	case m.ActorSpecific && c.Actor == "":
		return fmt.Sprintf("%s is measured for each actor: write ACTOR.%s%s", c.Metric, c.Metric, among("", "actors", s.shortNames()))
	case !m.ActorSpecific && c.Actor != "":
		return fmt.Sprintf("%s is a metric of the whole world: write it without %s", c.Metric, c.Actor)
	case c.Actor != "" && s.Actor(c.Actor) < 0:
		return fmt.Sprintf("unknown actor %q%s", c.Actor, among(c.Actor, "actors", s.shortNames()))
	case err != nil && m.Type == Continuous:
		return fmt.Sprintf("%q is not a number, but %s is one", c.Value, c.Metric)
	case err != nil && c.Op != "==" && c.Op != "!=":
		return fmt.Sprintf("%s of a word: use == or !=", c.Op)
	case err != nil && m.Type == Categorical && !contains(m.Categories, c.Value):
		return fmt.Sprintf("%q is not a category of %s%s", c.Value, c.Metric, among(c.Value, "categories", m.Categories))
	case err != nil && m.Type == Boolean && !contains([]string{"true", "false"}, c.Value):
		return fmt.Sprintf("%q is neither true nor false", c.Value)
	}
	return ""
}

func contains(words []string, word string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}

// didYouMean suggests the nearest of names, if there is one.
func didYouMean(name string, names ...string) string {
	if n := part.Nearest(name, names); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// among suggests the nearest of names, and lists them all.
func among(name, what string, names []string) string {
	text := "; "
	if n := part.Nearest(name, names); n != "" {
		text = "; did you mean " + n + "? "
	}
	if len(names) == 0 {
		return text + what + ": none"
	}
	return text + what + ": " + strings.Join(names, ", ")
}

func (s *Script) metricNames() []string {
	var names []string
	for _, m := range s.Metrics {
		names = append(names, m.Name)
	}
	return names
}

func (s *Script) shortNames() []string {
	var names []string
	for _, a := range s.Actors {
		names = append(names, a.ShortName)
	}
	return names
}
