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
	number int
	notes  []world.Note
}

// fromSeat is a note with the short name of its actor, which may be empty.
type fromSeat[T any] struct {
	seat string
	note T
}

// notesOf returns the notes of a kind in a turn.
func notesOf[T any](at *chapter, kind string) (all []fromSeat[T]) {
	for _, n := range at.notes {
		var v T
		if n.Kind == kind && json.Unmarshal(n.Data, &v) == nil {
			all = append(all, fromSeat[T]{n.Seat, v})
		}
	}
	return all
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
		c.at(0)
	case "dropped":
		c.dropped = &droppedNote{}
		_ = json.Unmarshal(n.Data, c.dropped)
	case "end":
		c.end = &endNote{}
		_ = json.Unmarshal(n.Data, c.end)
	default:
		var in struct{ Turn int }
		if json.Unmarshal(n.Data, &in) != nil {
			return
		}
		if at := c.at(in.Turn); at != nil {
			at.notes = append(at.notes, n)
		}
	}
}

// world returns the situation after a turn, or nil if nobody told it.
func (c *chronicle) world(at *chapter) *worldNote {
	notes := notesOf[worldNote](at, "world")
	switch {
	case len(notes) > 0:
		return &notes[len(notes)-1].note
	case at.number == 0 && c.State != "":
		return &worldNote{State: c.State}
	}
	return nil
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
