package viewer

import (
	"fmt"
	"testing"

	"parley/internal/run/runfile"
)

// TestPairs checks which runs a site without a server compares.
func TestPairs(t *testing.T) {
	t.Parallel()
	played := runfile.Outline{Ended: 1}
	all := []*Entry{
		{Name: "c", Kind: "duel", Outline: played}, {Name: "a", Kind: "duel", Outline: played}, {Name: "b", Kind: "auction", Outline: played},
		{Name: "d", Kind: "duel"}, {Name: "e", Kind: "duel", Outline: played, Problem: "it cannot be read"},
	}
	if got := fmt.Sprint(pairs(all)); got != "[{a c /compare?a=a&b=c}]" {
		t.Error(got)
	}
	for i := range 12 {
		all = append(all, &Entry{Name: fmt.Sprintf("m%02d", i), Kind: "market", Outline: played})
	}
	var d comparePage
	if d.offer(pairs(all)); len(d.Pairs) != maxPairs || d.More != 1+12*11/2-maxPairs {
		t.Errorf("%d pairs, and %d more", len(d.Pairs), d.More)
	}
	if d.Problem != "" {
		t.Error(d.Problem)
	}
	if d.offer(nil); d.Problem == "" {
		t.Error("a page without pairs says nothing")
	}
}
