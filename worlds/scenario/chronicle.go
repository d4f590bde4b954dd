package scenario

import (
	"encoding/json"
	"slices"

	"parley/world"
	"parley/worlds/scenario/script"
)

// chronicle is an episode rebuilt from its notes. Invalid notes are skipped, because
// a run file may come from anywhere.
type chronicle struct {
	Opening
	chapters []*chapter // by turn, from 0, the situation at the start
	dropped  *recordDropped
	end      *recordEnded
}

// chapter is a turn.
type chapter struct {
	number     int
	statements []by[recordStatement]
	messages   []by[recordMessage]
	coalitions []by[coalition]
	decisions  []by[recordDecision]
	silent     []by[silence]
	events     []recordEvent
	world      *recordWorld
	metrics    []by[recordMetric]
	thresholds []by[threshold]
	checks     []by[recordFinding]
	summaries  []by[recordSummary]
}

// by is a note with the short name of its actor, which may be empty.
type by[T any] struct {
	seat string
	note T
}

func readChronicle(notes []world.Note) *chronicle {
	c := &chronicle{}
	for _, n := range notes {
		c.take(n)
	}
	return c
}

func (c *chronicle) take(n world.Note) {
	switch n.Kind {
	case "scenario":
		_ = json.Unmarshal(n.Data, &c.Opening)
		if at := c.at(0); at != nil && at.world == nil {
			at.world = &recordWorld{State: c.State}
		}
	case "statement":
		keep(c, n, func(v recordStatement) int { return v.Turn }, func(at *chapter) *[]by[recordStatement] { return &at.statements })
	case "message":
		keep(c, n, func(v recordMessage) int { return v.Turn }, func(at *chapter) *[]by[recordMessage] { return &at.messages })
	case "coalition":
		keep(c, n, func(v coalition) int { return v.Turn }, func(at *chapter) *[]by[coalition] { return &at.coalitions })
	case "decision":
		keep(c, n, func(v recordDecision) int { return v.Turn }, func(at *chapter) *[]by[recordDecision] { return &at.decisions })
	case "silence":
		keep(c, n, func(v silence) int { return v.Turn }, func(at *chapter) *[]by[silence] { return &at.silent })
	case "metric":
		keep(c, n, func(v recordMetric) int { return v.Turn }, func(at *chapter) *[]by[recordMetric] { return &at.metrics })
	case "threshold":
		keep(c, n, func(v threshold) int { return v.Turn }, func(at *chapter) *[]by[threshold] { return &at.thresholds })
	case "check":
		keep(c, n, func(v recordFinding) int { return v.Turn }, func(at *chapter) *[]by[recordFinding] { return &at.checks })
	case "summary":
		keep(c, n, func(v recordSummary) int { return v.Turns }, func(at *chapter) *[]by[recordSummary] { return &at.summaries })
	default:
		c.takeOne(n)
	}
}

// takeOne takes a note that occurs once in a turn or in an episode, or has no actor.
func (c *chronicle) takeOne(n world.Note) {
	switch n.Kind {
	case "event":
		var e recordEvent
		if at := c.decode(n, &e, &e.Turn); at != nil {
			at.events = append(at.events, e)
		}
	case "world":
		var w recordWorld
		if at := c.decode(n, &w, &w.Turn); at != nil {
			at.world = &w
		}
	case "dropped":
		c.dropped = &recordDropped{}
		_ = json.Unmarshal(n.Data, c.dropped)
	case "end":
		c.end = &recordEnded{}
		_ = json.Unmarshal(n.Data, c.end)
	}
}

// decode reads a note into v, and returns the chapter of its turn.
func (c *chronicle) decode(n world.Note, v any, turn *int) *chapter {
	if json.Unmarshal(n.Data, v) != nil {
		return nil
	}
	return c.at(*turn)
}

// keep reads a note and adds it to a list of its chapter.
func keep[T any](c *chronicle, n world.Note, turn func(T) int, list func(*chapter) *[]by[T]) {
	var v T
	if json.Unmarshal(n.Data, &v) != nil {
		return
	}
	if at := c.at(turn(v)); at != nil {
		to := list(at)
		*to = append(*to, by[T]{n.Seat, v})
	}
}

// at returns the chapter of a turn, or nil if the turn is out of range.
func (c *chronicle) at(turn int) *chapter {
	if turn < 0 || turn > script.MaxTurns {
		return nil
	}
	for len(c.chapters) <= turn {
		c.chapters = append(c.chapters, &chapter{number: len(c.chapters)})
	}
	return c.chapters[turn]
}

// name returns the name of an actor for people.
func (c *chronicle) name(short string) string {
	if i := slices.Index(c.Actors, short); i >= 0 && i < len(c.Names) {
		return c.Names[i]
	}
	return short
}

func (c *chronicle) names(shorts []string) []string {
	out := make([]string, len(shorts))
	for i, s := range shorts {
		out[i] = c.name(s)
	}
	return out
}

// shown formats a metric.
func shown(m recordMetric) string {
	switch {
	case m.Value == nil && m.Unknown != "":
		return "unknown: " + m.Unknown
	case m.Value == nil:
		return "unknown"
	case m.Unit != "":
		return m.Text + " " + m.Unit
	}
	return m.Text
}
