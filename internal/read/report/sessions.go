package report

import (
	"context"
	"fmt"

	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/world"
)

// maxTerminal is the maximum number of sessions that the terminal lists.
const maxTerminal = 30

// sessions returns the first limit sessions of a record.
func sessions(ctx context.Context, from Source, recorded world.Recorded, limit int) (Section, error) {
	r, s := from.Run, Section{ID: "kind", Title: "Sessions"}
	t := &Table{Name: "sessions", Title: "Sessions", Track: -1, Filter: true, Columns: []Column{
		Key("session"), Number("episode"), pageWords("state"), Number("calls"), Number("tokens"), Number("cost"), pageWords("closed"),
	}}
	for e := range r.All() {
		if len(t.Rows) == limit {
			s.Text = fmt.Sprintf("The first %s of %s sessions.", text.GroupDigits(limit), text.GroupDigits(r.Episodes.Total))
			break
		}
		state, why := "open", ""
		end, err := r.Head.Ended.Outcome(ctx, from.Journal, e.Number)
		if err != nil {
			return s, err
		}
		if end != nil {
			state = "closed"
			from.problems.note(results.Call(from.Kind, "Closed", func() error { why = recorded.Closed(end.Outcome); return nil }))
		}
		t.Rows = append(t.Rows, []Cell{
			Word(e.Cell), whole(e.Number), Word(state), whole(e.Calls), whole(e.Tokens), money(e.Cost), Word(text.Excerpt(why, 300)),
		})
	}
	t.Quiet = len(t.Rows) > maxTerminal
	s.Blocks = []Block{{Table: t}}
	return s, nil
}
