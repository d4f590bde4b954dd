package scenario

import (
	"parley/world"
	"parley/worlds/scenario/script"
)

// outcome scores a scenario: each metric after the last turn if it is known, or each of its categories, the number of
// turns, and the number of issues if every check is known. A failed scenario has no scores.
func (g *game) outcome() world.Outcome {
	rec := recordOutcome{
		Name: g.Name, Turns: g.now(), Ended: g.ended, State: g.turns[g.now()].state, Events: g.events, Goals: map[string][]string{},
		Actors: g.conduct, Coalitions: g.proposals, Checks: g.checks,
	}
	if g.Validation.Summary {
		rec.Issues = g.issues
	}
	rec.NotNarrated, rec.Unanswered = g.unknowns()
	for _, a := range g.cast {
		rec.Goals[a.ShortName] = a.long
	}
	o := world.Outcome{Failed: g.failed}
	for i := range g.series {
		c := g.curve(&g.series[i])
		rec.Metrics = append(rec.Metrics, c)
		if last := c.Values[g.now()]; last != nil {
			o.Scores = append(o.Scores, c.Scores(*last)...)
		}
	}
	o.Scores = append(o.Scores, world.Score{Name: "turns", Value: float64(g.now())})
	if g.checked() {
		o.Scores = append(o.Scores, world.Score{Name: "issues", Value: float64(len(g.issues))})
	}
	if o.Data = rec; g.failed != "" {
		o.Scores = nil
	}
	return o
}

// checked reports whether checks were made and all of them have a result. Otherwise the number of issues is unknown.
func (g *game) checked() bool {
	made, unknown := 0, 0
	for _, c := range g.checks {
		made += c.Made
		unknown += c.Unknown
	}
	return made > 0 && unknown == 0
}

// unknowns counts turns that the narrator failed to tell, and questions for metrics without an answer.
func (g *game) unknowns() (untold, unanswered int) {
	for _, t := range g.turns {
		if t.stale {
			untold++
		}
	}
	for _, s := range g.series {
		for _, v := range s.values {
			if v.Unknown == script.NoAnswer {
				unanswered++
			}
		}
	}
	return untold, unanswered
}

// curve returns a metric over the turns that were played.
func (g *game) curve(s *series) recordCurve {
	m := s.metric
	c := recordCurve{
		Name: m.Name, Unit: m.Unit, Values: make([]*float64, len(g.turns)), Range: m.Range, Categories: m.Categories,
		Boolean: m.Type == script.Boolean, Warning: m.Warning, Critical: m.Critical,
	}
	if s.actor >= 0 {
		c.Actor = g.cast[s.actor].ShortName
	}
	for _, v := range s.values {
		if v.Value.Known {
			c.Values[v.turn] = &v.Value.Number
		}
	}
	return c
}
