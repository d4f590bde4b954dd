package diplomacy

import (
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/worlds/diplomacy/rules"
)

// france plays one phase without press. France gives the orders first, and the orders again if it is
// asked again. All other powers hold.
func france(t *testing.T, phase string, position rules.State, first, again []string) *played {
	t.Helper()
	return playGame(t, 1, world.Lineup{}, func(c world.Call) world.Reply {
		orders := []string{}
		if c.Seat == "FRANCE" {
			orders = first
			if c.Label == "again" {
				orders = again
			}
		}
		return reply(map[string]any{"reason": "because", "orders": orders})
	}, func(p *Params) { p.EndPhase, p.Rounds, p.Diary, p.Position = phase, 0, false, position })
}

func ordersOf(t *testing.T, p *played, seat string) string {
	t.Helper()
	g := readGame(p.notes)
	var texts []string
	for _, o := range g.Phases[0].Orders[seat] {
		text := o.Order
		if o.Missing {
			text += "?"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// TestAskedAgain checks that a power is asked again once, with the reason, for the units with illegal
// orders only. Then these units hold.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name         string
		first, again []string
		want         string
		refused      map[string]int
		mended       int
		texts        []string // of the second question
		absent       []string
	}{
		{"all legal", []string{"A PAR - BUR", "army Marseilles supports Paris to Burgundy", "F BRE - MAO"}, nil,
			"A PAR - BUR; A MAR S A PAR - BUR; F BRE - MAO", nil, 0, nil, nil},
		{"one is mended", []string{"A PAR - BUR", "A MAR - MUN", "F BRE - MAO"}, []string{"A MAR - SPA", "A PAR - PIC"},
			"A PAR - BUR; F BRE - MAO; A MAR - SPA", map[string]int{"order: illegal move": 1, "order: too many": 1}, 1,
			[]string{"A MAR - MUN", "does not touch MUN", "\nA MAR, coast"}, []string{"\nA PAR, inland", "\nF BRE, coast"}},
		{"never legal", []string{"A PAR - MOS", "dance"}, []string{"A PAR - TUN"},
			"F BRE H?; A MAR H?; A PAR H?", map[string]int{"order: illegal move": 2, "order: unreadable": 1}, 0, []string{"\nA MAR, coast"}, nil},
		{"left out is no mistake", []string{"A PAR - BUR"}, nil, "A PAR - BUR; F BRE H?; A MAR H?", nil, 0, nil, nil},
		{"of others", []string{"A MUN - BUR", "A PAR H", "A MAR H", "F BRE H"}, nil, "A PAR H; A MAR H; F BRE H", map[string]int{"order: illegal move": 1}, 0, nil, nil},
		{"two for one unit", []string{"A PAR - BUR", "A PAR - PIC", "A MAR H", "F BRE H"}, nil, "A PAR - BUR; A MAR H; F BRE H", map[string]int{"order: too many": 1}, 0, nil, nil},
	}
	for _, c := range cases {
		p := france(t, "S1901M", rules.State{}, c.first, c.again)
		if got := ordersOf(t, p, "FRANCE"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		st := summary(t, p).Powers["FRANCE"]
		for reason, n := range c.refused {
			if st.Refused[reason] != n {
				t.Errorf("%s: refused %v, want %v", c.name, st.Refused, c.refused)
			}
		}
		if len(st.Refused) != len(c.refused) || st.Mended != c.mended {
			t.Errorf("%s: refused %v, mended %d; want %v and %d", c.name, st.Refused, st.Mended, c.refused, c.mended)
		}
		second := ""
		for _, call := range p.calls {
			if call.Label == "again" {
				second += call.Ask.Messages[len(call.Ask.Messages)-1].Text()
				if n := len(call.Ask.Messages); n != 4 || call.Ask.Messages[2].Role != llm.RoleAssistant {
					t.Errorf("%s: asked again with %d messages", c.name, n)
				}
			}
		}
		if (second != "") != (c.texts != nil) {
			t.Errorf("%s: the second question is %q", c.name, second)
		}
		for _, text := range c.texts {
			if !strings.Contains(second, text) {
				t.Errorf("%s: %q is missing in the second question %q", c.name, text, second)
			}
		}
		for _, text := range c.absent {
			if strings.Contains(second, text) {
				t.Errorf("%s: the second question has %q", c.name, text)
			}
		}
	}
}

// winter returns a position in which France may build two units and Germany must remove one.
func winter() rules.State {
	return rules.State{
		Name:  "W1901A",
		Units: map[string][]string{"FRANCE": {"A SPA", "F POR", "A BUR"}, "GERMANY": {"A MUN", "F KIE"}, "RUSSIA": {"A MOS"}},
		Centers: map[string][]string{
			"FRANCE": {"SPA", "POR", "PAR", "BRE", "MAR"}, "GERMANY": {"MUN"}, "RUSSIA": {"MOS"},
		},
	}
}

// TestAdjustments checks that a waive counts, that nobody builds more than allowed, and that the rules
// decide without an order.
func TestAdjustments(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		orders []string
		want   string
		units  int // of France after the phase
	}{
		{"two built", []string{"A PAR B", "F BRE B"}, "A PAR B; F BRE B", 5},
		{"one waived", []string{"A PAR B", "WAIVE"}, "A PAR B; WAIVE", 4},
		{"all waived", []string{"WAIVE", "waive"}, "WAIVE; WAIVE", 3},
		{"too many", []string{"A PAR B", "F BRE B", "A MAR B"}, "A PAR B; F BRE B", 5},
		{"nothing said", []string{}, "", 3},
	}
	for _, c := range cases {
		p := france(t, "W1901A", winter(), c.orders, nil)
		if got := ordersOf(t, p, "FRANCE"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		g := readGame(p.notes)
		if n := len(g.End.State.Units["FRANCE"]); n != c.units {
			t.Errorf("%s: %d units, want %d", c.name, n, c.units)
		}
		if len(g.End.State.Units["GERMANY"]) != 1 || len(g.Phases[0].Removed) != 1 {
			t.Errorf("%s: Germany has %v, removed %v", c.name, g.End.State.Units["GERMANY"], g.Phases[0].Removed)
		}
		if n := callsByLabel(p)["again"]; n != 0 {
			t.Errorf("%s: asked again %d times, want never", c.name, n)
		}
	}
	if p := france(t, "W1901A", winter(), []string{"A SPA B"}, []string{"A MAR B"}); ordersOf(t, p, "FRANCE") != "A MAR B" || callsByLabel(p)["again"] != 1 {
		t.Errorf("orders after an illegal build: %q, want a second question", ordersOf(t, p, "FRANCE"))
	}
}

// beaten returns a position in which France must retreat.
func beaten() rules.State {
	return rules.State{
		Name: "S1902R", Units: map[string][]string{"FRANCE": {"A PAR", "*A BUR"}, "GERMANY": {"A BUR", "A MUN"}},
		Retreats: map[string]map[string][]string{"FRANCE": {"A BUR": {"GAS", "MAR"}}},
		Centers:  map[string][]string{"FRANCE": {"PAR", "MAR"}, "GERMANY": {"MUN", "BER"}},
	}
}

func TestRetreats(t *testing.T) {
	t.Parallel()
	for want, orders := range map[string][]string{
		"A BUR R GAS": {"A BUR - GAS"},
		"A BUR D":     {"A BUR D"},
		"":            {},
	} {
		p := france(t, "S1902R", beaten(), orders, nil)
		if got := ordersOf(t, p, "FRANCE"); got != want {
			t.Errorf("%q: %q, want %q", orders, got, want)
		}
		for _, c := range p.calls {
			if c.Seat != "FRANCE" || c.Label != "retreats" || !strings.Contains(c.Ask.Messages[1].Text(), "A BUR: can retreat to GAS, MAR*Fra") {
				t.Errorf("%s %s: %s", c.Seat, c.Label, c.Ask.Messages[1].Text())
			}
		}
	}
}
