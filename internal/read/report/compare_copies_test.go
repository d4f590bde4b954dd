package report

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/journal"
)

// TestCopies checks that exact copies count once and that the result names them and says what to do, also for two runs
// that have the same plays.
func TestCopies(t *testing.T) {
	t.Parallel()
	played := func(first byte, plays ...byte) *results.Run {
		var all []episode
		for d, p := range plays {
			all = append(all, episode{"", d, "a", "b", float64(p), 0})
		}
		r := run(t, 1, all)
		for i, p := range plays {
			e, _ := r.Head.Ended.Of(i)
			e.Play = journal.Digest{first, p}
			r.Head.Ended.Put(0, &e)
		}
		return r
	}
	text := func(runs []*results.Run, names ...string) string {
		res, err := Runs(runs, names, Config{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.Document("").Sections)
	}
	same := played(1, 1, 2, 1, 2, 1)
	for _, want := range []string{"x: Of 5 episodes, 3 are exact copies of others and do not count.", ": to get new plays, ", "5 deals are 2 distinct plays"} {
		if got := text([]*results.Run{same}, "x"); !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
	const alike = "deals were played word for word alike on both sides"
	if got := strings.ToLower(text([]*results.Run{played(1, 1, 2, 3, 4), played(1, 1, 2, 5, 6)}, "x", "y")); !strings.Contains(got, "2 of 4 "+alike) {
		t.Error(got)
	}
	if got := text([]*results.Run{played(1, 1, 2, 3, 4), played(2, 1, 2, 5, 6)}, "x", "y"); strings.Contains(got, alike) {
		t.Error(got)
	}
}
