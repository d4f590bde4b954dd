package diplomacy

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"parley/worlds/diplomacy/rules"
)

// positions plays random orders and calls look with each position.
func positions(t *testing.T, phases int, look func(r *rules.Rules, p *rules.Position)) {
	t.Helper()
	r := rules.New()
	p := r.Start()
	chance := rand.New(rand.NewPCG(7, 7))
	for range phases {
		look(r, &p)
		var orders rules.Orders
		for _, c := range r.Choices(&p) {
			orders[c.Power] = append(orders[c.Power], c.Orders[chance.IntN(len(c.Orders))])
		}
		out := r.Adjudicate(&p, &orders)
		p = r.Advance(&out.After)
	}
}

var (
	unitHeadRE = regexp.MustCompile(`^([AF] \S+), (?:inland|coast|sea)`)
	helperRE   = regexp.MustCompile(`\+([AF] [A-Z]{3}(?:/[A-Z]C)?)`)
)

// TestOptionsAreLegal checks that the options of a power have only legal moves and supports, and all
// of its moves.
func TestOptionsAreLegal(t *testing.T) {
	t.Parallel()
	checked := 0
	positions(t, 60, func(r *rules.Rules, p *rules.Position) {
		if p.Phase.Step != rules.Movement {
			return
		}
		b := newBriefing(r, p)
		for _, w := range rules.Powers() {
			legal := map[string]bool{}
			moves := 0
			for _, c := range b.choicesOf(w) {
				for _, o := range c.Orders {
					legal[o.Text(r.Board)] = true
					if o.Kind == rules.Move && !o.Via {
						moves++
					}
				}
			}
			listed := ordersIn(b.options(w, rules.Set[rules.Province]{}))
			for _, o := range listed {
				if !legal[o] {
					t.Errorf("%s %s: the options have %q, which is not legal", p.Phase, w.Name(), o)
				}
				if strings.Count(o, " ") == 3 {
					moves--
				}
			}
			if moves != 0 {
				t.Errorf("%s %s: %d legal moves are missing", p.Phase, w.Name(), moves)
			}
			checked += len(listed)
		}
	})
	if checked < 1000 {
		t.Errorf("only %d orders were checked", checked)
	}
}

// ordersIn returns the moves and supports in a text of options.
func ordersIn(text string) []string {
	var orders []string
	unit := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := unitHeadRE.FindStringSubmatch(line); m != nil {
			unit = m[1]
			for _, h := range helperRE.FindAllStringSubmatch(line, -1) {
				orders = append(orders, h[1]+" S "+unit)
			}
		}
		list, ok := strings.CutPrefix(line, " moves: ")
		if !ok {
			continue
		}
		for item := range strings.SplitSeq(list, ", ") {
			to := regexp.MustCompile(`^[A-Z]{3}(/[A-Z]C)?`).FindString(item)
			orders = append(orders, unit+" - "+to)
			for _, h := range helperRE.FindAllStringSubmatch(item, -1) {
				orders = append(orders, h[1]+" S "+unit+" - "+to[:3])
			}
		}
	}
	return orders
}

// TestBoardIsComplete checks that the text of the board has every unit, and shows which centres are
// not owned.
func TestBoardIsComplete(t *testing.T) {
	t.Parallel()
	positions(t, 60, func(r *rules.Rules, p *rules.Position) {
		text := newBriefing(r, p).board
		centres := 0
		for _, w := range rules.Powers() {
			for _, u := range r.UnitTexts(p, w) {
				if n := strings.Count(text, u); n == 0 {
					t.Errorf("%s: %s is missing in\n%s", p.Phase, u, text)
				}
			}
			centres += p.Centres(w)
		}
		if (centres < rules.Centres) != strings.Contains(text, "Nobody's: ") {
			t.Errorf("%s: %d centres are owned, and the text differs:\n%s", p.Phase, centres, text)
		}
		for i := range p.Dislodged {
			if d := p.Dislodged[i]; d.Unit.Power != rules.None && !strings.Contains(text, r.Board.UnitText(d.Unit)+" (dislodged)") {
				t.Errorf("%s: %s is dislodged, and the text does not say so:\n%s", p.Phase, r.Board.UnitText(d.Unit), text)
			}
		}
	})
}

func TestOtherPhases(t *testing.T) {
	t.Parallel()
	r := rules.New()
	p, err := r.FromState(rules.State{Name: "F1902R", Units: map[string][]string{"FRANCE": {"A PAR"}, "GERMANY": {"A BUR"}},
		Centers: map[string][]string{"FRANCE": {"PAR", "BRE", "MAR"}, "GERMANY": {"MUN"}}, Retreats: map[string]map[string][]string{"FRANCE": {"A BUR": {"GAS", "MAR"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := newBriefing(r, &p).options(rules.France, rules.Set[rules.Province]{}); got != "A BUR: can retreat to GAS, MAR*Fra" {
		t.Errorf("%q", got)
	}
	p.Phase = rules.Phase{Year: 1902, Season: rules.Winter, Step: rules.Adjustments}
	got := newBriefing(r, &p).options(rules.France, rules.Set[rules.Province]{})
	if want := "You may build 2, one in a place: A BRE B or F BRE B; A MAR B or F MAR B. WAIVE leaves one out."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := errors.Join(r.Put(&p, rules.Germany, "A MUN"), r.Put(&p, rules.Germany, "F KIE")); err != nil {
		t.Fatal(err)
	}
	if got := newBriefing(r, &p).options(rules.Germany, rules.Set[rules.Province]{}); !strings.HasPrefix(got, "You have to remove 2 of your units: A BUR D, ") {
		t.Errorf("%q", got)
	}
}
