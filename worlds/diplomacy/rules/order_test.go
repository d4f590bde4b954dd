package rules

import (
	"bufio"
	"encoding/json"
	"os"
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
