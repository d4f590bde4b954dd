package rules

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for _, c := range []struct{ text, want string }{
		{"A PAR H", "A PAR H"},
		{"a par h", "A PAR H"},
		{"Army Paris holds", "A PAR H"},
		{"hold A Paris", "A PAR H"},
		{"PAR H", "PAR H"},
		{"A PAR - BUR", "A PAR - BUR"},
		{"A PAR-BUR", "A PAR - BUR"},
		{"A PAR -> BUR", "A PAR - BUR"},
		{"A PAR → BUR", "A PAR - BUR"},
		{"A PAR – BUR.", "A PAR - BUR"},
		{"1. A PAR - BUR", "A PAR - BUR"},
		{"- A PAR - BUR", "A PAR - BUR"},
		{"Paris to Burgundy", "PAR - BUR"},
		{"The French army in Paris moves to Burgundy", "A PAR - BUR"},
		{"A Paris to Burgundy via convoy", "A PAR - BUR VIA"},
		{"A LON - NWY VIA", "A LON - NWY VIA"},
		{"A LON - NTH - NWY", "A LON - NWY VIA"},
		{"A London convoys to Norway", "A LON - NWY VIA"},
		{"A LON - NWY via the North Sea", "A LON - NWY VIA"},
		{"A LON - NWY (convoyed)", "A LON - NWY VIA"},
		{"F STP/SC - BOT", "F STP/SC - BOT"},
		{"F STP(SC) - BOT", "F STP/SC - BOT"},
		{"F STP (south coast) - BOT", "F STP/SC - BOT"},
		{"F Saint Petersburg south coast to the Gulf of Bothnia", "F STP/SC - BOT"},
		{"F St. Petersburg/SC - Gulf of Bothnia", "F STP/SC - BOT"},
		{"F stp-sc - bot", "F STP/SC - BOT"},
		{"F MAO - SPA/n", "F MAO - SPA/NC"},
		{"F MAO - the north coast of Spain", "F MAO - SPA/NC"},
		{"F Mid-Atlantic Ocean - Spain(NC)", "F MAO - SPA/NC"},
		{"F Mid-Atlantic-Ocean-Spain(NC)", "F MAO - SPA/NC"},
		{"F LON/EC - NTH", "F LON - NTH"},
		{"F SPA S A GAS - MAR", "F SPA S A GAS - MAR"},
		{"A MAR S A PAR - BUR", "A MAR S A PAR - BUR"},
		{"A MAR S PAR - BUR", "A MAR S PAR - BUR"},
		{"A MAR supports the army in Paris moving to Burgundy", "A MAR S A PAR - BUR"},
		{"A MAR supports A PAR to hold", "A MAR S A PAR"},
		{"A MAR S A PAR H", "A MAR S A PAR"},
		{"A MAR S A PAR", "A MAR S A PAR"},
		{"F NTH S A LON - NWY VIA", "F NTH S A LON - NWY"},
		{"F NTH C A LON - NWY", "F NTH C A LON - NWY"},
		{"F North Sea convoys A London to Norway", "F NTH C A LON - NWY"},
		{"F NTH C A LON - NWY VIA", "F NTH C A LON - NWY"},
		{"A PAR R GAS", "A PAR R GAS"},
		{"A PAR retreats to Gascony", "A PAR R GAS"},
		{"retreat A PAR to GAS", "A PAR R GAS"},
		{"A PAR D", "A PAR D"},
		{"disband the fleet in Brest", "F BRE D"},
		{"remove F BRE", "F BRE D"},
		{"A PAR B", "A PAR B"},
		{"Build a fleet in St. Petersburg (north coast)", "F STP/NC B"},
		{"F STP/NC B", "F STP/NC B"},
		{"WAIVE", "WAIVE"},
		{"waive the build", "WAIVE"},
		{"A MÜNCHEN - Bohémia", "A MUN - BOH"},
		{"A Mu\u0308nchen H", "A MUN H"},
		{"F Helgoland Bright - Kiell", "F HEL - KIE"},
		{"A Burgandy - Marsielles", "A BUR - MAR"},
		{"F Skaggerrak H", "F SKA H"},
		{"F Nrth Sea H", "F NTH H"},
		{"F Tyrrenian Sea - Tunis", "F TYS - TUN"},
		{"A Constantinopel H", "A CON H"},
		{"A Liverp - York", "A LVP - YOR"},
		{"F ECH - MID", "F ENG - MAO"},
	} {
		o, err := Parse(b, c.text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got := o.Text(b); got != c.want {
			t.Errorf("%q is parsed as %q, want %q", c.text, got, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for _, c := range []struct{ text, want string }{
		{"", "which unit"},
		{"A", "which unit"},
		{"A PAR", "what the unit is to do"},
		{"A PAR -", "where to"},
		{"A PAR S", "which unit is supported"},
		{"F NTH C A", "which army"},
		{"F NTH C A LON", "where to"},
		{"A PAR - BUR - ", "where to"},
		{"A PAR - BUR because of Germany", `"because"`},
		{"A PAR - BUR MUN", `"MUN" is too much`},
		{"A Atlantis H", `"Atlantis"`},
		{"A LIV - YOR", `"LIV"`},
		{"F North - NWY", "may be any of NAF (North Africa), NAO (North Atlantic Ocean)"},
		{"A PAR - ✨", "where to"},
		{"south coast", "of which place"},
		{strings.Repeat("A PAR ", 100), "longer than"},
	} {
		o, err := Parse(b, c.text)
		if err == nil {
			t.Errorf("%q is parsed as %s", c.text, o.Text(b))
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "order: ") {
			t.Errorf("%q: %v: want %q in the error", c.text, err, c.want)
		}
	}
}

// TestDATCNotation checks that every order of the test cases is parsed and written back unchanged.
func TestDATCNotation(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	n := 0
	for _, text := range datcOrders(t) {
		n++
		o, err := Parse(b, text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := o.Text(b); got != text {
			t.Errorf("%q is written back as %q", text, got)
		}
	}
	if n < 500 {
		t.Errorf("only %d orders were checked", n)
	}
}

func datcOrders(tb testing.TB) []string {
	tb.Helper()
	f, err := os.Open("testdata/datc.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var texts []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct{ Orders map[string][]string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			tb.Fatal(err)
		}
		for _, list := range c.Orders {
			texts = append(texts, list...)
		}
	}
	return texts
}

func TestParseUnitAndLocation(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	kind, at, err := ParseUnit(b, "fleet St Petersburg (sc)")
	if err != nil || kind != Fleet || b.Code(at) != "STP/SC" {
		t.Error(kind, b.Code(at), err)
	}
	for _, text := range []string{"PAR", "A", "A PAR H", "A PAR BUR", strings.Repeat("x", 300)} {
		if _, _, err := ParseUnit(b, text); err == nil {
			t.Errorf("%q is parsed as a unit", text)
		}
	}
	if at, err := ParseLocation(b, "Spain, north coast"); err != nil || b.Code(at) != "SPA/NC" {
		t.Error(b.Code(at), err)
	}
	for _, text := range []string{"", "A PAR", "PAR BUR", "nowhere", strings.Repeat("x", 300)} {
		if _, err := ParseLocation(b, text); err == nil {
			t.Errorf("%q is parsed as a location", text)
		}
	}
}

// FuzzParse checks that Parse does not panic, and that a parsed order is parsed again from its text.
func FuzzParse(f *testing.F) {
	for _, text := range datcOrders(f)[:40] {
		f.Add(text)
	}
	for _, text := range []string{"", "A PAR - BUR via convoy", "F STP (south coast) -> BOT", "north coast of", "()/-", "A\u0308 \xff", "build F stp/nc", "waive"} {
		f.Add(text)
	}
	b := NewBoard()
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(b, text)
		if err != nil {
			return
		}
		written := o.Text(b)
		again, err := Parse(b, written)
		if err != nil || again != o && o.Kind != Waive {
			t.Errorf("%q is parsed as %q, and that as %+v, %v", text, written, again, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	m := NewBoard()
	for b.Loop() {
		_, _ = Parse(m, "F NTH C A LON - NWY")
	}
}

// written is a location in one of its spellings.
type written struct {
	at   Location
	text string
}

// spelledLocations lists every location in every spelling of its name and its coast.
func spelledLocations(b *Board) []written {
	coasts := map[string][]string{
		"NC": {"/NC", "(nc)", " NC", " (north coast)", " north coast", "/n", "-nc", " Northern Coast", " [NC]"},
		"SC": {"/SC", "(sc)", " SC", " (south coast)", " south coast", "/s", "-sc", " Southern Coast", " [SC]"},
		"EC": {"/EC", "(ec)", " EC", " (east coast)", " east coast", "/e", "-ec", " Eastern Coast", " [EC]"},
	}
	var all []written
	for at := range Location(Locations) {
		names := b.Spellings(b.Province(at))
		_, coast, has := strings.Cut(b.Code(at), "/")
		for _, name := range names {
			if !has {
				all = append(all, written{at, name})
				continue
			}
			for _, c := range coasts[coast] {
				all = append(all, written{at, name + c})
			}
		}
	}
	return all
}

// codedLocations lists every location by its code.
func codedLocations(b *Board) []written {
	var all []written
	for at := range Location(Locations) {
		all = append(all, written{at, b.Code(at)})
	}
	return all
}

// checkParse checks that a text is parsed as an order, also in lower and upper case.
func checkParse(t *testing.T, b *Board, text string, want Order) {
	t.Helper()
	for _, text := range []string{text, strings.ToLower(text), strings.ToUpper(text)} {
		if got, err := Parse(b, text); err != nil || got != want {
			t.Errorf("%q is parsed as %q, want %q: %v", text, got.Text(b), want.Text(b), err)
		}
	}
}

// units lists the ways to write a unit of a type.
func units(kind Type) []string {
	return map[Type][]string{
		AnyType: {""}, Army: {"A ", "army ", "the army in "}, Fleet: {"F ", "fleet ", "the fleet at "},
	}[kind]
}

// TestEveryOrderIsReadAsWritten writes and parses every order of one or two locations, and supports
// and convoys with every pair of locations.
func TestEveryOrderIsReadAsWritten(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	bur, _ := b.ByCode("BUR")
	same := func(o Order) {
		if got, err := Parse(b, o.Text(b)); err != nil || got != o {
			t.Errorf("%q is parsed as %q: %v", o.Text(b), got.Text(b), err)
		}
	}
	for _, kind := range []Type{AnyType, Army, Fleet} {
		for _, at := range codedLocations(b) {
			for _, k := range []Kind{Hold, Disband, Build} {
				same(NewOrder(k, kind, at.at))
			}
			for _, to := range codedLocations(b) {
				for _, o := range []Order{
					{Kind: Move, At: at.at, Of: Nowhere, To: to.at},
					{Kind: Move, Via: true, At: at.at, Of: Nowhere, To: to.at},
					{Kind: Retreat, At: at.at, Of: Nowhere, To: to.at},
					{Kind: Support, At: at.at, Of: to.at, To: Nowhere},
					{Kind: Support, At: bur, Of: at.at, To: to.at},
					{Kind: Support, At: at.at, Of: to.at, To: bur},
					{Kind: Support, At: at.at, Of: bur, To: to.at},
					{Kind: Convoy, At: bur, Of: at.at, To: to.at},
					{Kind: Convoy, At: at.at, Of: to.at, To: bur},
				} {
					o.Type = kind
					if o.Of != Nowhere {
						o.OfType = kind
					}
					same(o)
				}
			}
		}
	}
	same(NewOrder(Waive, AnyType, Nowhere))
}

// TestEveryRetreatIsRead checks retreats between all locations, with one of the two in every spelling: a quarter of the pairs, or with
// PARLEY_SWEEP, which .ci/run kills sets, all.
func TestEveryRetreatIsRead(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for i, at := range spelledLocations(b) {
		for j, to := range codedLocations(b) {
			if (i+j)%4 > 0 && os.Getenv("PARLEY_SWEEP") == "" {
				continue
			}
			kind := []Type{AnyType, Army, Fleet}[(i+j)%3]
			unit := units(kind)[(i+j)/3%len(units(kind))]
			away := Order{Kind: Retreat, Type: kind, At: at.at, Of: Nowhere, To: to.at}
			checkParse(t, b, unit+at.text+" R "+to.text, away)
			back := Order{Kind: Retreat, Type: kind, At: to.at, Of: Nowhere, To: at.at}
			checkParse(t, b, unit+to.text+" R "+at.text, back)
		}
	}
}

// TestEveryWordBehindEveryName checks that no name is joined with the word of the order after it. Each spelling has one type
// of unit, or with PARLEY_SWEEP, which .ci/run kills sets, all.
func TestEveryWordBehindEveryName(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	mun, _ := b.ByCode("MUN")
	alone := map[Kind][]string{
		Hold: {"H", "HLD", "holds", "stands", "stay"}, Disband: {"D", "DSB", "REM", "disbands", "removed"}, Build: {"B", "BLD", "builds"},
	}
	first := map[Kind][]string{
		Hold: {"hold"}, Disband: {"disband", "remove", "D"}, Build: {"build", "B"}, Retreat: {"retreat", "withdraw", "R"},
	}
	to := map[Kind][]string{
		Move:    {" - ", "-", "->", " → ", " – ", " to ", " M ", " moves to ", " attacks ", " MTO "},
		Retreat: {" R ", " r - ", " RTO ", " retreats to ", " R -> ", " withdraws to "},
	}
	of := map[Kind][]string{Support: {" S ", " SPT ", " supports the "}, Convoy: {" C ", " CVY ", " convoys the "}}
	for i, at := range spelledLocations(b) {
		for n, kind := range []Type{AnyType, Army, Fleet} {
			if n != i%3 && os.Getenv("PARLEY_SWEEP") == "" {
				continue
			}
			unit := units(kind)[i/3%len(units(kind))]
			for k, words := range alone {
				for _, word := range words {
					checkParse(t, b, unit+at.text+" "+word, NewOrder(k, kind, at.at))
				}
			}
			for k, words := range first {
				o, end := NewOrder(k, kind, at.at), ""
				if k == Retreat {
					o.To, end = mun, " to Munich"
				}
				for _, word := range words {
					checkParse(t, b, word+" "+unit+at.text+end, o)
				}
			}
			for k, words := range to {
				for _, word := range words {
					checkParse(t, b, unit+at.text+word+"MUN", Order{Kind: k, Type: kind, At: at.at, Of: Nowhere, To: mun})
					checkParse(t, b, unit+"MUN"+word+at.text, Order{Kind: k, Type: kind, At: mun, Of: Nowhere, To: at.at})
				}
			}
			for k, words := range of {
				for _, word := range words {
					o := Order{Kind: k, Type: kind, At: at.at, OfType: Army, Of: mun, To: mun}
					checkParse(t, b, unit+at.text+word+"A MUN - MUN", o)
					o.At, o.Of, o.OfType = mun, at.at, kind
					checkParse(t, b, unit+"MUN"+word+unit+at.text+" - MUN", o)
					o.Of, o.OfType, o.To = mun, Army, at.at
					checkParse(t, b, unit+"MUN"+word+"A MUN - "+at.text, o)
					if k == Support {
						o.Of, o.OfType, o.To = at.at, kind, Nowhere
						checkParse(t, b, unit+"MUN"+word+unit+at.text+" H", o)
						checkParse(t, b, unit+"MUN"+word+unit+at.text, o)
					}
				}
			}
		}
	}
}

// TestNamesThatEndInALetter checks names that are another name together with the letter of an order.
func TestNamesThatEndInALetter(t *testing.T) {
	t.Parallel()
	b := NewBoard()
	for text, want := range map[string]string{
		"A RUH R MUN": "A RUH R MUN", "A Edinburg H": "A EDI H", "F Lyon S A MAR": "F LYO S A MAR", "F Gulf of Lyon S A MAR - SPA": "F LYO S A MAR - SPA",
		"A Marseille S A PAR": "A MAR S A PAR", "A St Pete S A MOS": "A STP S A MOS",
	} {
		o, err := Parse(b, text)
		if err != nil || o.Text(b) != want {
			t.Errorf("%q is parsed as %q, want %q: %v", text, o.Text(b), want, err)
		}
	}
	if names := b.Spellings(b.Province(0)); !slices.Contains(names, "ADR") || !slices.Contains(names, "Adriatic Sea") || !slices.Contains(names, "Adriatic") {
		t.Error(names)
	}
}
