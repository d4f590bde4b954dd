package scenario

import (
	"encoding/json"
	"slices"

	"parley/world"
	"parley/worlds/scenario/script"
)

// chronicle is an episode put together again from its notes, for readers. Notes that are
// not what they should be are passed over: a run file may come from anywhere.
type chronicle struct {
	Opening
	chapters []*chapter // by turn, from 0, the situation at the start
	dropped  *Dropped
	end      *Ended
}

// chapter is a turn.
type chapter struct {
	number     int
	statements []by[Statement]
	messages   []by[Message]
	coalitions []by[Coalition]
	decisions  []by[Decision]
	silent     []by[Silence]
	events     []Fired
	world      *World
	metrics    []by[Metric]
	thresholds []by[Threshold]
	checks     []by[Finding]
	summaries  []by[Summary]
}

// by is something and whose it is: a short name, or nobody's in particular.
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
			at.world = &World{State: c.State}
		}
	case "statement":
		keep(c, n, func(v Statement) int { return v.Turn }, func(at *chapter) *[]by[Statement] { return &at.statements })
	case "message":
		keep(c, n, func(v Message) int { return v.Turn }, func(at *chapter) *[]by[Message] { return &at.messages })
	case "coalition":
		keep(c, n, func(v Coalition) int { return v.Turn }, func(at *chapter) *[]by[Coalition] { return &at.coalitions })
	case "decision":
		keep(c, n, func(v Decision) int { return v.Turn }, func(at *chapter) *[]by[Decision] { return &at.decisions })
	case "silence":
		keep(c, n, func(v Silence) int { return v.Turn }, func(at *chapter) *[]by[Silence] { return &at.silent })
	case "metric":
		keep(c, n, func(v Metric) int { return v.Turn }, func(at *chapter) *[]by[Metric] { return &at.metrics })
	case "threshold":
		keep(c, n, func(v Threshold) int { return v.Turn }, func(at *chapter) *[]by[Threshold] { return &at.thresholds })
	case "check":
		keep(c, n, func(v Finding) int { return v.Turn }, func(at *chapter) *[]by[Finding] { return &at.checks })
	case "summary":
		keep(c, n, func(v Summary) int { return v.Turns }, func(at *chapter) *[]by[Summary] { return &at.summaries })
	default:
		c.takeOne(n)
	}
}

// takeOne takes in what there is one of in a turn, or in an episode.
func (c *chronicle) takeOne(n world.Note) {
	switch n.Kind {
	case "event":
		var e Fired
		if at := c.decode(n, &e, &e.Turn); at != nil {
			at.events = append(at.events, e)
		}
	case "world":
		var w World
		if at := c.decode(n, &w, &w.Turn); at != nil {
			at.world = &w
		}
	case "dropped":
		c.dropped = &Dropped{}
		_ = json.Unmarshal(n.Data, c.dropped)
	case "end":
		c.end = &Ended{}
		_ = json.Unmarshal(n.Data, c.end)
	}
}

// decode reads a note into v, and returns the chapter of the turn that it then says.
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

// at returns the chapter of a turn, or nil if there can be none.
func (c *chronicle) at(turn int) *chapter {
	if turn < 0 || turn > script.MaxTurns {
		return nil
	}
	for len(c.chapters) <= turn {
		c.chapters = append(c.chapters, &chapter{number: len(c.chapters)})
	}
	return c.chapters[turn]
}

// name is what people call an actor.
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

// shown is a metric as people read it.
func (m Metric) shown() string {
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
