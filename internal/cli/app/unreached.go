package app

import (
	"fmt"
	"math"

	"parley/internal/run/planfile"
	"parley/internal/run/results"
)

// unreached names the cells of a run whose score is less precise than plan.until asks.
func unreached(r *results.Run, plan *planfile.Plan) (out []string) {
	u := plan.Until
	by := func(g results.Group) results.Group {
		if u.Agent != "" {
			return results.Group{Score: g.Score, Cell: g.Cell, Agent: g.Agent}
		}
		return results.Group{Score: g.Score, Cell: g.Cell, Seat: g.Seat}
	}
	for _, s := range r.Scores(by) {
		q := s.Sample.Estimate(u.Confidence)
		if s.Score != u.Score || s.Agent != u.Agent || u.Agent == "" && s.Seat != u.Seat || q.Half() <= u.Width {
			continue
		}
		known := fmt.Sprintf("known to ±%.3g", q.Half())
		if math.IsInf(q.Half(), 0) {
			known = "not known"
		}
		text := fmt.Sprintf("%s is %s after %d episodes, and plan.until asks for ±%g", s.Score, known, s.Sample.Episodes(), u.Width)
		if s.Cell != "" {
			text = s.Cell + ": " + text
		}
		out = append(out, text)
	}
	return out
}
