package report

import (
	"maps"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"parley/internal/read/chart"
	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/world/worldtest"
	"parley/worlds/diplomacy"
)

// luminance returns the relative luminance of WCAG 2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	if err != nil || len(colour) != 7 {
		t.Fatalf("%q is not a colour", colour)
	}
	linear := func(shift int) float64 {
		c := float64(n>>shift&255) / 255
		if c <= 0.03928 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

// TestContrast checks that every colour of a line has the contrast of 3 to 1 that WCAG requires, in light and
// dark mode.
func TestContrast(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("page.css")
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[string][2]string{}
	for _, m := range regexp.MustCompile(`\.(s\d)\{--c:light-dark\((#\w+),(#\w+)\)\}`).FindAllStringSubmatch(string(css), -1) {
		pairs[m[1]] = [2]string{m[2], m[3]}
	}
	if len(pairs) != 8 {
		t.Fatalf("%d colours of series", len(pairs))
	}
	painter, _ := world.As[part.Painter](diplomacy.Kind())
	maps.Copy(pairs, painter.Colours())
	paper := regexp.MustCompile(`--paper:light-dark\((#\w+),(#\w+)\)`).FindStringSubmatch(string(css))
	for name, c := range pairs {
		for i := range c {
			a, b := luminance(t, c[i])+0.05, luminance(t, paper[i+1])+0.05
			if ratio := max(a, b) / min(a, b); ratio < 3 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", name, c[i], paper[i+1], ratio)
			}
		}
	}
}

// painted is a kind with colours, some of them invalid.
type painted struct{ worldtest.Simple[struct{}] }

func (painted) Colours() map[string][2]string {
	return map[string][2]string{"left": {"#112233", "#445566"}, "bad": {"red}", "#445566"}}
}

// TestSeatColours checks that seats have the colours of the kind and agents those of the page, and that an invalid
// colour is not written into a style sheet.
func TestSeatColours(t *testing.T) {
	t.Parallel()
	r := &results.Run{Head: &journal.Head{Begun: &journal.Begun{Agents: []world.Agent{{Name: "ann"}}}}}
	kind := world.Define(painted{worldtest.Simple[struct{}]{Kind: world.About{Name: "duel"}}})
	p := NewPalette(r, kind)
	if got := p.Style(); got != ".duel-0{--c:light-dark(#112233,#445566)}" {
		t.Errorf("%s", got)
	}
	if p.Look("left").Class != "duel-0" || p.Seat("left", 3, nil) != "duel-0" || p.Look("ann") != chart.Series(0) || p.Look("bad") != chart.Series(1) || p.Look("") != chart.Series(-1) {
		t.Errorf("%+v", p)
	}
	one, two := map[string]string{"x": "bob", "y": "ann"}, map[string]string{"x": "ann", "y": "ann"}
	if y := p.Seat("y", 1, one); y != p.Look("ann").Class {
		t.Errorf("the seat of an agent has the colour %s", y)
	}
	if x, y := p.Seat("x", 0, two), p.Seat("y", 1, two); x == y {
		t.Errorf("two seats of one agent have the colour %s", x)
	}
	kind.Name = "a b"
	if p := NewPalette(r, kind); p.Style() != "" {
		t.Errorf("%s", p.Style())
	}
}

// TestHeatScale checks that colours cover the bounds of the numbers, not the numbers seen.
func TestHeatScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		bounds    world.Bounds
		share     bool
		low, high string
		level     int
		below     bool
	}{
		{"share", world.Bounds{}, true, "0", "1", 8, false},
		{"both ways", world.Bounds{Low: -2, High: 2}, false, "-2", "2", 4, false},
		{"from 0", world.AtLeast0(), false, "0", "1", 8, false},
		{"mostly below", world.Bounds{Low: -8, High: 2}, false, "-8", "2", 1, false},
	} {
		s := &world.Sample{Bounds: c.bounds}
		s.Add(world.Unit{}, 0.4)
		h := exhibit.HeatMap{Rows: []string{"r"}, Columns: []string{"c"}, Share: c.share, Cells: [][]*world.Sample{{s}}}
		m, _ := heat(h)
		got := m.Rows[0].Cells[0]
		if m.Low != c.low || m.High != c.high || got.Level != c.level || got.Below != c.below {
			t.Errorf("%s: %s to %s, %+v", c.name, m.Low, m.High, got)
		}
	}
	ramp := heatScale{-2, 2}.ramp()
	if !ramp[0].Below || ramp[0].Level != 20 || ramp[len(ramp)/2].Level != 0 || ramp[len(ramp)-1].Below || ramp[len(ramp)-1].Level != 20 {
		t.Errorf("%+v", ramp)
	}
}
