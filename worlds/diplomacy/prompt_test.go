package diplomacy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

var (
	unitHead    = regexp.MustCompile(`^([AF] \S+), (?:inland|coast|sea)`)
	retreatLine = regexp.MustCompile(`(?m)^([AF] \S+): can retreat to (\w+)`)
	builtUnit   = regexp.MustCompile(`[AF] [A-Z/]{3,6} [BD]\b`)
)

// scripted answers every kind of question in few words, and moves. It does not use the stand-in, so
// that prompts do not change with it.
func scripted() answerer {
	n := 0
	return func(c world.Call) world.Reply {
		n++
		if c.Ask.Schema.Name == "diplomacy_promises" {
			return reply(map[string]any{"promises": []any{}})
		}
		last := c.Ask.Messages[len(c.Ask.Messages)-1].Text()
		orders := []string{}
		for _, m := range retreatLine.FindAllStringSubmatch(last, -1) {
			orders = append(orders, m[1]+" R "+m[2])
		}
		if c.Label == "builds" {
			orders = builtUnit.FindAllString(last, -1)
		}
		unit := ""
		for line := range strings.Lines(last) {
			if m := unitHead.FindStringSubmatch(line); m != nil {
				unit = m[1]
			} else if moves, ok := strings.CutPrefix(line, " moves: "); ok {
				list := strings.Split(moves, ", ")
				to, _, _ := strings.Cut(list[(n+len(orders))%len(list)], " ")
				orders = append(orders, unit+" - "+strings.FieldsFunc(to, func(r rune) bool { return strings.ContainsRune("*[\n", r) })[0])
			}
		}
		if n%10 == 0 && c.Label == "orders" {
			orders = append([]string{"A PAR - NOWHERE"}, orders[1:]...)
		}
		to := rules.PowerNames()[n%7]
		return reply(map[string]any{
			"reason": "Forward.", "orders": orders, "vote": voteContinue, "text": "Go on as before.", "diary": "All as planned.", "goals": []string{"Grow.", "Survive."},
			"relations": []map[string]string{{"power": to, "relation": "friendly"}}, "messages": []map[string]string{{"to": to, "text": fmt.Sprintf("Shall we agree on point %d?", n)}},
		})
	}
}

// TestPrompts compares the first prompt of every kind with testdata/prompts.golden. A change of a
// prompt changes the game: increase promptVersion.
func TestPrompts(t *testing.T) {
	t.Parallel()
	p := playDiplomacy(t, 1, world.Lineup{}, scripted(), func(p *Params) {
		p.MaxYear, p.Rounds, p.Planning, p.Judge, p.DrawFrom = 1903, 2, true, true, 1902
	})
	retreats := playDiplomacy(t, 1, world.Lineup{}, scripted(), func(p *Params) { p.Position, p.EndPhase = beaten(), "S1902R" })
	p.calls = append(p.calls, retreats.calls...)
	seen := map[string]bool{}
	var b strings.Builder
	fmt.Fprintf(&b, "version %d\n", promptVersion)
	for _, c := range p.calls {
		form := c.Label
		if c.Ask.Schema != nil {
			form += " as " + c.Ask.Schema.Name
		}
		if round := strings.Contains(c.Ask.Messages[len(c.Ask.Messages)-1].Text(), "Round 2"); round {
			form += ", second round"
		}
		if seen[form] {
			continue
		}
		seen[form] = true
		fmt.Fprintf(&b, "\n======== %s of %s\n", form, c.Seat)
		for _, m := range c.Ask.Messages {
			fmt.Fprintf(&b, "---- %s\n%s\n", m.Role, m.Text())
		}
		fmt.Fprintf(&b, "---- schema\n%s\n", c.Ask.Schema.JSON)
	}
	for _, label := range []string{"start", "plan", "message", "orders", "again", "retreats", "builds", "results", "years", "promises"} {
		if count(p)[label] == 0 {
			t.Errorf("the game has no call %s: choose another deal", label)
		}
	}
	testkit.Compare(t, "testdata/prompts.golden", b.String())
}
