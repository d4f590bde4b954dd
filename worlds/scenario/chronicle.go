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
	openingNote
	chapters []*chapter // by turn, from 0, the situation at the start
	dropped  *droppedNote
	end      *endNote
}

// chapter is a turn.
type chapter struct {
	number     int
	statements []fromSeat[statementNote]
	messages   []fromSeat[messageNote]
	coalitions []fromSeat[coalitionNote]
	decisions  []fromSeat[decisionNote]
	silent     []fromSeat[silenceNote]
	events     []eventNote
	world      *worldNote
	metrics    []fromSeat[metricNote]
	thresholds []fromSeat[thresholdNote]
	checks     []fromSeat[checkNote]
	summaries  []fromSeat[summaryNote]
}

// fromSeat is a note with the short name of its actor, which may be empty.
type fromSeat[T any] struct {
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
		_ = json.Unmarshal(n.Data, &c.openingNote)
		if at := c.at(0); at != nil && at.world == nil {
			at.world = &worldNote{State: c.State}
		}
	case "statement":
		keep(c, n, func(v statementNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[statementNote] { return &at.statements })
	case "message":
		keep(c, n, func(v messageNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[messageNote] { return &at.messages })
	case "coalition":
		keep(c, n, func(v coalitionNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[coalitionNote] { return &at.coalitions })
	case "decision":
		keep(c, n, func(v decisionNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[decisionNote] { return &at.decisions })
	case "silence":
		keep(c, n, func(v silenceNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[silenceNote] { return &at.silent })
	case "metric":
		keep(c, n, func(v metricNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[metricNote] { return &at.metrics })
	case "threshold":
		keep(c, n, func(v thresholdNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[thresholdNote] { return &at.thresholds })
	case "check":
		keep(c, n, func(v checkNote) int { return v.Turn }, func(at *chapter) *[]fromSeat[checkNote] { return &at.checks })
	case "summary":
		keep(c, n, func(v summaryNote) int { return v.Turns }, func(at *chapter) *[]fromSeat[summaryNote] { return &at.summaries })
	default:
		c.takeOne(n)
	}
}

// takeOne takes a note that occurs once in a turn or in an episode, or has no actor.
func (c *chronicle) takeOne(n world.Note) {
	switch n.Kind {
	case "event":
		var e eventNote
		if at := c.decode(n, &e, &e.Turn); at != nil {
			at.events = append(at.events, e)
		}
	case "world":
		var w worldNote
		if at := c.decode(n, &w, &w.Turn); at != nil {
			at.world = &w
		}
	case "dropped":
		c.dropped = &droppedNote{}
		_ = json.Unmarshal(n.Data, c.dropped)
	case "end":
		c.end = &endNote{}
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
func keep[T any](c *chronicle, n world.Note, turn func(T) int, list func(*chapter) *[]fromSeat[T]) {
	var v T
	if json.Unmarshal(n.Data, &v) != nil {
		return
	}
	if at := c.at(turn(v)); at != nil {
		to := list(at)
		*to = append(*to, fromSeat[T]{n.Seat, v})
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

// metricText formats a metric.
func metricText(m metricNote) string {
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
