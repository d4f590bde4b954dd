package viewer

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
)

// TestPairs checks which runs a site without a server compares.
func TestPairs(t *testing.T) {
	t.Parallel()
	played := runfile.Outline{Episodes: journal.EpisodeCounts{Ended: 1}}
	all := []*runEntry{
		{Name: "c", Kind: "duel", Outline: played}, {Name: "a", Kind: "duel", Outline: played}, {Name: "b", Kind: "auction", Outline: played},
		{Name: "d", Kind: "duel"}, {Name: "e", Kind: "duel", Outline: played, Problem: "it cannot be read"},
	}
	if got := fmt.Sprint(pairs(all)); got != "[{a c /compare?a=a&b=c}]" {
		t.Error(got)
	}
	for i := range 12 {
		all = append(all, &runEntry{Name: fmt.Sprintf("m%02d", i), Kind: "market", Outline: played})
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

// plainLines reads "0 hello|1.0/0 there".
func plainLines(text string) (out []results.Line) {
	for part := range strings.SplitSeq(text, "|") {
		if turn, said, ok := strings.Cut(part, " "); ok {
			out = append(out, results.Line{Turn: turn, Seat: "a", Said: results.LineAnswer, Text: said})
		}
	}
	return out
}

func TestAlign(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ a, b, want string }{
		"nothing":         {"", "", "-1"},
		"equal":           {"0 hello|1 you", "0 hello|1 you", "-1 0= 1="},
		"a word":          {"0 hello|1 you are kind", "0 hello|1 you are cruel", "1 0= 1(you are /kind,cruel)"},
		"a letter":        {"0 né", "0 nè", "0 0(n/é,è)"},
		"longer":          {"0 a b", "0 a b c", "0 0(a /b,b c)"},
		"one more turn":   {"0 hello", "0 hello|1 more", "1 0= 1b"},
		"another strand":  {"0 x|1.0/0 y|2 z", "0 x|1.1/0 y|2 z", "1 0= 1.0/0a 1.1/0b 2="},
		"one more line":   {"0 x|0 y", "0 x", "0 0"},
		"ten comes later": {"9 x|10 y", "9 x|10 y", "-1 9= 10="},
	} {
		rows, first := align(plainLines(c.a), plainLines(c.b))
		got := fmt.Sprint(first)
		for _, r := range rows {
			got += " " + r.Turn
			switch {
			case r.Same:
				got += "="
			case r.B == nil:
				got += "a"
			case r.A == nil:
				got += "b"
			case r.First && r.A[0].Rest != "":
				got += fmt.Sprintf("(%s/%s,%s)", r.A[0].Text, r.A[0].Rest, r.B[0].Rest)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
