package report

import (
	"fmt"
	"math"

	"parley/internal/run/results"
	"parley/world"
)

// maxStanding is how many agents standing compares: each with each.
const maxStanding = 12

// standing says which agent has the highest mean of a score, how far it is above the next one, and how sure that is, by the tests of
// Compare. It is empty if there are not two agents to compare.
func standing(r *results.Run, score string) string {
	agents := map[string]bool{}
	r.Each(func(p world.Played) {
		for _, s := range p.Outcome.Scores {
			if agent := p.Spec.Lineup[s.Seat]; agent != "" && s.Name == score {
				agents[agent] = true
			}
		}
	})
	if len(agents) < 2 || len(agents) > maxStanding {
		return ""
	}
	found, err := Compare([]*results.Run{r}, []string{r.File}, CompareConfig{By: ByAgent, Scores: []string{score}})
	if err != nil {
		return "" // nothing to compare
	}
	top := found.highest()
	var next *Comparison // of the highest with the one that is closest to it
	above, others := 0, 0
	for i := range found.Comparisons {
		c := found.Comparisons[i].from(top)
		if c == nil {
			continue
		}
		if others++; c.above() {
			above++
		}
		if next == nil || c.MeanB.Value > next.MeanB.Value {
			next = c
		}
	}
	if next == nil || next.MeanA.Value == next.MeanB.Value && !next.Differs() {
		return ""
	}
	text := next.standing(top)
	if n := len(found.Comparisons); n > 1 && !next.tooFew() {
		text += fmt.Sprintf(" (adjusted for %d pairs of agents)", n)
	}
	more, rest := above, others-1 // those besides next
	if next.above() {
		more--
	}
	if more > 0 {
		text += fmt.Sprintf("; %s is above %s", top, ofOthers(more, rest))
	} else if next.above() && rest > 0 {
		text += "; no difference from the others is shown yet"
	}
	text += next.needed()
	return text + next.caveat()
}

// ofOthers says how many of the other agents are meant.
func ofOthers(n, of int) string {
	switch {
	case n == of && of == 1:
		return "the other one"
	case n == of:
		return fmt.Sprintf("the other %d", of)
	default:
		return fmt.Sprintf("%d of the other %d", n, of)
	}
}

// highest returns the group with the highest mean.
func (r *CompareResult) highest() (group string) {
	high := math.Inf(-1)
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if c.MeanA.Value > high {
			group, high = c.A, c.MeanA.Value
		}
		if c.MeanB.Value > high {
			group, high = c.B, c.MeanB.Value
		}
	}
	return group
}

// above reports whether A is above B, for all that the test says.
func (c *Comparison) above() bool { return c.Differs() && c.Difference.Value > 0 }

// from returns the comparison with group as A; nil if it is of others.
func (c *Comparison) from(group string) *Comparison {
	switch group {
	case c.A:
		return c
	case c.B:
		out := *c
		out.A, out.B, out.MeanA, out.MeanB = c.B, c.A, c.MeanB, c.MeanA
		out.Difference.Value, out.Difference.Low, out.Difference.High = -c.Difference.Value, -c.Difference.High, -c.Difference.Low
		return &out
	default:
		return nil
	}
}

// standing says how A, which has the highest mean, and B differ, without the end of the sentence.
func (c *Comparison) standing(top string) string {
	switch {
	case c.tooFew():
		return fmt.Sprintf("%s has the highest %s, %s; %s is too few to compare it with %s", top, c.Score, short(c.MeanA.Value), plural(c.N, c.unit()), c.B)
	case c.above():
		return fmt.Sprintf("%s has the highest %s: %s above %s, p %s", top, c.Score, Interval(c.Difference), c.B, below(c.Adjusted))
	case c.Differs(): // the means are of all episodes, the test of those that both played alike
		return fmt.Sprintf("%s has the highest mean of %s, but where both played the same deals the difference from %s is %s, p %s", top, c.Score, c.B, Interval(c.Difference), below(c.Adjusted))
	}
	return fmt.Sprintf("No difference in %s between %s and %s is shown yet: %s so far, p %s", c.Score, top, c.B, Interval(c.Difference), below(c.Adjusted))
}

// needed says how many more episodes would show a difference that is as large as it looks.
func (c *Comparison) needed() string {
	if c.Differs() || c.tooFew() || c.More <= 0 {
		return ""
	}
	return fmt.Sprintf("; if the difference is as large as it looks, about %s (%s) would show it four times in five", several(c.More, "more "+c.unit()), several(c.Episodes, "episode"))
}
