package diplomacy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/world"
)

// writing answers as the simulated provider does, but its diary entries have the phase in which they
// were written.
func writing(c world.Call) world.Reply {
	last := c.Ask.Messages[len(c.Ask.Messages)-1].Text()
	switch c.Label {
	case "orders", aboutResults:
		_, phase, _ := strings.Cut(c.Ask.Messages[0].Text(), "It is ")
		return reply(map[string]any{"diary": fmt.Sprintf("entry with %s in %s", c.Label, phase[:6]), "goals": []string{}, "relations": []any{}, "orders": []string{}})
	case "years":
		return reply(map[string]any{"text": fmt.Sprintf("account of %d bytes", len(last))})
	}
	return simulated(c)
}

// TestDiary checks that a prompt has the entries of this year and the last and a summary of the
// others, and that the prompt for a summary does not grow.
func TestDiary(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, writing, func(p *Params) { p.MaxYear, p.Rounds = 1908, 1 })
	var sizes []int
	for _, c := range p.calls {
		if c.Seat != "FRANCE" {
			continue
		}
		own := c.Ask.Messages[len(c.Ask.Messages)-1].Text()
		if c.Label == "years" {
			sizes = append(sizes, len(own))
			continue
		}
		if c.Label == "orders" && strings.Contains(c.Ask.Messages[0].Text(), "It is F1906M") {
			if strings.Contains(own, "[F1904M]") || !strings.Contains(own, "[S1905M] entry") || !strings.Contains(own, "[S1906M] entry with results") || !strings.Contains(own, "[earlier] account of") {
				t.Errorf("wrong entries in the diary of 1906:\n%s", own)
			}
		}
	}
	if len(sizes) < 4 || slices.Max(sizes[1:]) > sizes[1]+200 {
		t.Errorf("sizes of the prompts for a summary: %v", sizes)
	}
}

// TestReviewSeesTheTalks checks that the prompt for a review has the messages and the orders of the
// phase.
func TestReviewSeesTheTalks(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, marked(), func(p *Params) { p.EndPhase, p.Rounds = "F1901M", 2 })
	reviews := 0
	for _, c := range p.calls {
		if c.Label != aboutResults {
			continue
		}
		reviews++
		if !strings.Contains(c.Ask.Messages[0].Text(), "Orders of S1901M") || !marker.MatchString(c.Ask.Messages[1].Text()) || !strings.Contains(c.Ask.Messages[1].Text(), "Said before the orders of S1901M:") {
			t.Errorf("the review of %s has no messages or no orders:\n%s", c.Seat, c.Ask.Messages[1].Text())
		}
	}
	if reviews != 7 {
		t.Errorf("%d reviews, want 7: the last movement phase has no review", reviews)
	}
}

// TestRelations checks that a power changes only the relations and goals in its answer, and that
// unknown powers and relations are refused.
func TestRelations(t *testing.T) {
	t.Parallel()
	p := playGame(t, 1, world.Lineup{}, func(c world.Call) world.Reply {
		if c.Label == aboutStart && c.Seat == "FRANCE" {
			return reply(map[string]any{"goals": []string{"", " win\n ", strings.Repeat("x", 999)}, "relations": []map[string]string{
				{"power": "german", "relation": "ALLY"}, {"power": "FRANCE", "relation": "enemy"}, {"power": "Mars", "relation": "ally"}, {"power": "ITALY", "relation": "meh"},
			}})
		}
		return simulated(c)
	}, func(p *Params) { p.EndPhase, p.Rounds = "S1901M", 0 })
	g := readGame(p.notes)
	got := g.Phases[0].Relations["FRANCE"]
	if len(got) != 6 || got["GERMANY"] != "ally" || got["ITALY"] != "neutral" {
		t.Errorf("relations %v", got)
	}
	goals := g.Phases[0].Goals["FRANCE"]
	if len(goals) != 2 || goals[0] != "win" || len(goals[1]) > maxGoal+3 {
		t.Errorf("goals %q", goals)
	}
	if n := summary(t, p).Powers["FRANCE"].Refused["relation: unknown"]; n != 3 {
		t.Errorf("%d relations refused, want 3", n)
	}
}
