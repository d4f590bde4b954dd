package terminal

import (
	"strings"
	"testing"
)

// TestTable: a terminal that is too narrow leaves out columns in the order that their headings say, then continues the last column below
// itself, and cuts only what is still too long.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]Cell{
		{{Text: "N", Number: true}, {Text: "COST", Number: true, Drop: 2}, {Text: "CALLS", Number: true, Drop: 1}, {Text: "NAME"}, {Text: "SCORES"}},
		{{Text: "7", Number: true}, {Text: "$1.25", Number: true}, {Text: "30", Number: true}, {Text: "anna"}, {Text: "one two three four five six seven eight nine ten"}},
	}
	for width, want := range map[int]string{
		0:  "N   COST  CALLS  NAME  SCORES\n7  $1.25     30  anna  one two three four five six seven eight nine ten\n",
		70: "N   COST  CALLS  NAME  SCORES\n7  $1.25     30  anna  one two three four five six seven eight nine\n                       ten\n",
		60: "N  CALLS  NAME  SCORES\n7     30  anna  one two three four five six seven eight nine\n                ten\n(left out: cost; a wider terminal has them)\n",
		30: "N  NAME  SCORES\n7  anna  one two three four\n         five six seven eight\n         nine ten\n(left out: cost, calls; a\nwider terminal has them)\n",
		18: "N  NAME  SCORES\n7  anna  one two\n         three\n         four five\n         six seve…\n",
	} {
		var b strings.Builder
		s := &Stream{w: &b, Width: func() int { return width }}
		p := NewPage(s)
		p.Table(rows)
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, got, want)
		}
	}
	if rows[1][4].Text == "" || len(rows[0]) != 5 {
		t.Error("the table changed the rows that it was given")
	}
}

// TestBroken: lines are broken between words, and a word that is too long stays whole.
func TestBroken(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"short":                     "short",
		"a question? [y/N] ":        "a question?\n[y/N] ",
		"one\ntwo three four":       "one\ntwo three\nfour",
		"http://long.example/a b c": "http://long.example/a\nb c",
	} {
		if got := Broken(in, 11); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := Broken(in, 0); got != in {
			t.Errorf("not a terminal: %q: %q", in, got)
		}
	}
}
