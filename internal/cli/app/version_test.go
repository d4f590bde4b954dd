package app

import (
	"strings"
	"testing"

	"parley/internal/run/planfile"
	"parley/world"
)

// TestVersionNames: what a name says about the version of a model. Names that servers know stay as they are.
func TestVersionNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		base  string
		share float64
		past  bool
	}{
		"lab/p": {"lab/p", 0, false}, "lab/p@latest": {"lab/p", 0, false}, "lab/p@v12": {"lab/p@v12", 0, false}, "lab/p@20250514": {"lab/p@20250514", 0, false},
		"lab/p@past": {"lab/p", 1, true}, "lab/p@past:0.25": {"lab/p", 0.25, true}, "lab/p@past:2": {"lab/p@past:2", 0, false}, "lab/p@pasta": {"lab/p@pasta", 0, false},
	} {
		base, share, past := planfile.Version(name)
		if base != want.base || share != want.share || past != want.past {
			t.Errorf("%s: %s %v %v", name, base, share, past)
		}
	}
}

// TestPast: a share of the deals meets earlier versions, all that there are. All episodes of a deal and a cell meet the same one, also if
// there are more versions meanwhile, and further versions change few choices of another process.
func TestPast(t *testing.T) {
	t.Parallel()
	const deals = 2000
	of := func(deal int) world.Spec { return world.Spec{Deal: deal, Cell: "c"} }
	a := &App{versions: versions{seed: 3}}
	for deal := range 10 {
		if got := a.versions.model("lab/p@past", of(deal)); got != "lab/p" {
			t.Fatalf("without earlier versions, %s answers", got)
		}
	}
	a = &App{versions: versions{seed: 3}}
	a.SetPast([]int{0, 4, 9})
	met, first := map[string]int{}, map[int]string{}
	for deal := range deals {
		first[deal] = a.versions.model("lab/p@past:0.25", of(deal))
		met[first[deal]]++
	}
	if len(met) != 4 || met["lab/p"] < deals*7/10 || met["lab/p"] > deals*8/10 || met["lab/p@v0"] < deals/20 || met["lab/p@v9"] < deals/20 {
		t.Errorf("%v", met)
	}
	a.SetPast([]int{0, 4, 9, 12})
	other, changed := &App{versions: versions{seed: 3}}, 0
	other.SetPast([]int{0, 4, 9, 12})
	for deal := range deals {
		if got := a.versions.model("lab/p@past:0.25", of(deal)); got != first[deal] {
			t.Fatalf("deal %d: %s, then %s", deal, first[deal], got)
		}
		if got := other.versions.model("lab/p@past:0.25", of(deal)); got != first[deal] {
			changed++
			if !strings.HasSuffix(got, "@v12") {
				t.Fatalf("deal %d: %s becomes %s", deal, first[deal], got)
			}
		}
	}
	if changed == 0 || changed > deals/8 {
		t.Errorf("%d of %d choices changed", changed, deals)
	}
	if got := a.versions.model("lab/p@latest", of(0)); got != "lab/p" {
		t.Error(got)
	}
}
