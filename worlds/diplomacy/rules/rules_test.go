package rules

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// positionWith returns a position of units, written like "France A PAR".
func positionWith(t *testing.T, r *Rules, phase string, units ...string) Position {
	t.Helper()
	var p Position
	var err error
	if p.Phase, err = ParsePhase(phase); err != nil {
		t.Fatal(err)
	}
	for _, text := range units {
		name, unit, _ := strings.Cut(text, " ")
		w, ok := ParsePower(name)
		if !ok {
			t.Fatal(text)
		}
		if err := r.Put(&p, w, unit); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// ordersOf returns orders, written like "France A PAR - BUR".
func ordersOf(t *testing.T, r *Rules, texts ...string) *Orders {
	t.Helper()
	var orders Orders
	for _, text := range texts {
		name, rest, _ := strings.Cut(text, " ")
		w, ok := ParsePower(name)
		if !ok {
			t.Fatal(text)
		}
		o, err := Parse(r.Board, rest)
		if err != nil {
			t.Fatal(err)
		}
		orders[w] = append(orders[w], o)
	}
	return &orders
}

func TestPhases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"S1901M", "S1901R", "F1910M", "F1910R", "W1899A"} {
		if p, err := ParsePhase(name); err != nil || p.String() != name {
			t.Errorf("%s is parsed as %s, %v", name, p, err)
		}
	}
	for _, name := range []string{"", "S", "SM", "S1901A", "W1901M", "X1901M", "S1901X", "S-1M", "S+1901M", "S01901M", "COMPLETED"} {
		if p, err := ParsePhase(name); err == nil {
			t.Errorf("%q is parsed as %s", name, p)
		}
	}
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	r := New()
	austria := []string{"Austria F TRI", "Italy A VEN", "Italy A TYR"}
	attack := []string{"Italy A VEN - TRI", "Italy A TYR S A VEN - TRI"}
	for _, c := range []struct {
		name, phase   string
		units, orders []string
		centres       map[string][]string
		want          string
		owner         Power // of Trieste after the phase
	}{
		{"spring to fall", "S1901M", austria, nil, nil, "F1901M", None},
		{"a retreat in spring", "S1901M", austria, attack, nil, "S1901R", None},
		{"a retreat in fall holds centres back", "F1901M", austria, attack, nil, "F1901R", None},
		{"a lost unit has no retreat", "F1901M", append([]string{"Italy F ADR", "Italy A ALB"}, austria...), attack, nil, "W1901A", Italy},
		{"builds", "F1901M", []string{"France A BUR"}, nil, map[string][]string{"France": {"PAR", "MAR"}}, "W1901A", None},
		{"no room to build", "F1901M", []string{"France A PAR"}, nil, map[string][]string{"France": {"PAR", "BEL"}}, "S1902M", None},
		{"nothing to adjust", "F1901M", []string{"France A BUR"}, nil, map[string][]string{"France": {"PAR"}}, "S1902M", None},
		{"removals", "F1901M", []string{"France A BUR"}, nil, nil, "W1901A", None},
		{"winter to spring", "W1901A", []string{"France A PAR"}, nil, map[string][]string{"France": {"PAR"}}, "S1902M", None},
	} {
		p := positionWith(t, r, c.phase, c.units...)
		if err := r.Fill(&p, nil, c.centres); err != nil {
			t.Fatal(err)
		}
		out := r.Adjudicate(&p, ordersOf(t, r, c.orders...))
		next := r.Advance(&out.After)
		tri, _ := r.Board.ByCode("TRI")
		if next.Phase.String() != c.want || next.Owners[tri] != c.owner {
			t.Errorf("%s: the next phase is %s, and Trieste belongs to %s", c.name, next.Phase, next.Owners[tri])
		}
	}
}

// TestBuilds checks which units can be built, and that a waived build is not used for another unit.
func TestBuilds(t *testing.T) {
	t.Parallel()
	r := New()
	p := positionWith(t, r, "W1905A", "France A BUR")
	if err := r.Fill(&p, nil, map[string][]string{"France": {"PAR", "MAR", "BRE", "BEL"}}); err != nil {
		t.Fatal(err)
	}
	out := r.Adjudicate(&p, ordersOf(t, r, "France F BRE B", "France WAIVE", "France MAR B", "France PAR B", "France A MAR B"))
	var codes []Code
	for _, res := range out.Results[France] {
		codes = append(codes, res.Code)
	}
	if !reflect.DeepEqual(codes, []Code{Success, Success, Illegal, Success, Illegal}) {
		t.Errorf("%v", codes)
	}
	if got := r.UnitTexts(&out.After, France); !reflect.DeepEqual(got, []string{"A BUR", "A PAR", "F BRE"}) {
		t.Errorf("%v", got)
	}
}

// TestReasons checks the reasons for illegal orders.
func TestReasons(t *testing.T) {
	t.Parallel()
	r := New()
	p := positionWith(t, r, "S1901M", "France A PAR", "France F BRE", "England F ENG", "France F POR", "Russia F STP/SC")
	for text, want := range map[string]string{
		"France A MAR H":              "there is no unit in MAR",
		"France F ENG H":              "F ENG is a unit of England",
		"France F PAR H":              "the unit there is A PAR",
		"France A PAR - PAR":          "where it is",
		"France A PAR - MUN":          "it touches BRE, BUR, GAS, PIC",
		"France A PAR - ENG":          "an army cannot stand in ENG",
		"France A PAR - BUR VIA":      "no fleets at sea could carry it",
		"France F BRE - PIC VIA":      "a fleet cannot be carried",
		"France F POR - SPA":          "say which coast: SPA/NC or SPA/SC",
		"France F BRE - PAR":          "it touches ENG, GAS, MAO, PIC",
		"Russia F STP/NC - BAR":       "it touches BOT, FIN, LVN",
		"France A PAR S F POR":        "could not go there",
		"France A PAR S F ENG - PIC":  "",
		"France A PAR S F BRE - BUR":  "F BRE cannot move to BUR",
		"France A PAR S A PAR":        "for itself",
		"France F BRE C A PAR - LON":  "only a fleet at sea",
		"England F ENG C F BRE - LON": "F BRE is not an army",
		"England F ENG C A PAR - LON": "on no route",
		"France A PAR B":              "build is no order of a movement phase",
		"France WAIVE":                "it names no unit",
	} {
		out := r.Adjudicate(&p, ordersOf(t, r, text))
		w, _ := ParsePower(strings.Fields(text)[0])
		res := out.Results[w][0]
		if want == "" && res.Err != nil || want != "" && (res.Err == nil || !strings.Contains(res.Err.Error(), want) || res.Code != Illegal) {
			t.Errorf("%s: %v, want %q", text, res.Err, want)
		}
	}
}

// TestFirstLegalCounts checks that the first legal order of several to a unit is carried out.
func TestFirstLegalCounts(t *testing.T) {
	t.Parallel()
	r := New()
	p := positionWith(t, r, "S1901M", "France A PAR")
	out := r.Adjudicate(&p, ordersOf(t, r, "France A PAR - LON", "France A PAR - BUR", "France A PAR - PIC"))
	got := r.UnitTexts(&out.After, France)
	if !reflect.DeepEqual(got, []string{"A BUR"}) || out.Results[France][2].Err == nil {
		t.Errorf("%v %+v", got, out.Results[France])
	}
}

func TestWinner(t *testing.T) {
	t.Parallel()
	r := New()
	p := r.Start()
	n := p.Centres(Turkey)
	for c := range r.Board.SupplyCentres().All() {
		if won := p.Winner() == Turkey; won != (n >= 18) {
			t.Fatalf("%d centres: winner %s", n, p.Winner())
		}
		if p.Owners[c] != Turkey {
			p.Owners[c] = Turkey
			n++
		}
	}
	if !p.Alive(Austria) || p.Centres(Austria) != 0 {
		t.Error("Austria has units and no centres, and does not count as alive")
	}
}

// TestState encodes positions of random games as JSON and decodes them.
func TestState(t *testing.T) {
	t.Parallel()
	r := New()
	rng := rand.New(rand.NewPCG(8, 8))
	p := r.Start()
	retreats := 0
	for range 400 {
		text, err := json.Marshal(r.State(&p))
		if err != nil {
			t.Fatal(err)
		}
		var s State
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		want := p
		for i := range want.Dislodged {
			if want.Dislodged[i].Unit.Power != None {
				want.Dislodged[i].Attacker = Nowhere // a State does not have it
				retreats++
			}
		}
		if got, err := r.FromState(s); err != nil || got != want {
			t.Fatalf("%s: %v", text, err)
		}
		orders := r.coherent(&p, rng)
		out := r.Adjudicate(&p, &orders)
		p = r.Advance(&out.After)
	}
	if retreats == 0 {
		t.Error("no position had retreats")
	}
}

func TestFromStateRefuses(t *testing.T) {
	t.Parallel()
	r := New()
	for _, c := range []struct {
		text, want string
	}{
		{`{"name":"1901"}`, "S1901M"},
		{`{"name":"S1901M","units":{"GAUL":[]}}`, "units: unknown power \"GAUL\""},
		{`{"name":"S1901M","units":{"FRANCE":["A NTH"]}}`, "units: France: unit"},
		{`{"name":"S1901M","centers":{"FRANCE":["BUR"]}}`, "centers: France"},
		{`{"name":"S1901R","retreats":{"FRANCE":{"A PAR":["MOS"]}}}`, "retreats: France"},
		{`{"name":"S1901R","retreats":{"X":{}}}`, "retreats: unknown power \"X\""},
	} {
		var s State
		if err := json.Unmarshal([]byte(c.text), &s); err != nil {
			t.Fatal(err)
		}
		if _, err := r.FromState(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	r := New()
	p := r.Start()
	show := func(ways []Way) (texts []string) {
		for _, w := range ways {
			text := r.Board.UnitText(w.Unit) + ":"
			for _, at := range w.Path {
				text += " " + r.Board.Code(at)
			}
			texts = append(texts, text)
		}
		return texts
	}
	par, _ := r.Board.ByCode("PAR")
	paris := p.Units[par]
	for _, c := range []struct{ got, want []string }{
		{show(r.NearestCentres(&p, paris, 3)), []string{"A PAR: PAR BUR BEL", "A PAR: PAR BUR MUN", "A PAR: PAR GAS SPA"}},
		{show(r.NearestThreats(&p, paris, 2)), []string{"A MUN: MUN BUR PAR", "A BER: BER MUN BUR PAR"}},
		{show(r.NearestThreats(&p, paris, 0)), nil},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}
