package viewer

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/read/report"
	"parley/internal/run/results"
)

// TestNew checks that turns that were played at once are in one row, each strand has its column, and a column that is
// free is used again.
func TestNew(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range maxColumns + 2 {
		many += fmt.Sprintf(" 0.%d/0", i)
	}
	for turns, want := range map[string]string{
		"":                                    "0",
		"0 1 2":                               "0 | 0:0 | 0:1 | 0:2",
		"0 0 1":                               "0 | 0:0+0 | 0:1",
		"0 1.0/0 1.1/0 1.0/1 1.1/1 2":         "2 | 0:0 | 1:1.0/0 2:1.1/0 | 1:1.0/1 2:1.1/1 | 0:2",
		"1.1/0 1.0/0 1.1/1":                   "2 | 1:1.0/0 2:1.1/0 | 2:1.1/1",
		"1.0/0 1.0/1 1.1/0 1.0/2":             "2 | 1:1.0/0 | 1:1.0/1 2:1.1/0 | 1:1.0/2",
		"1.0/0 1.1/0 2 3.0/0 3.1/0 3.1/0.0/0": "2 | 1:1.0/0 2:1.1/0 | 0:2 | 1:3.0/0 2:3.1/0 | 1:3.1/0.0/0",
	} {
		if got := saidText(turns); got != want {
			t.Errorf("%q: %s, want %s", turns, got, want)
		}
	}
	if got := newLayout(lines(many)); got.Columns != maxColumns {
		t.Errorf("%+v", got)
	}
}

func lines(turns string) (out []Line) {
	for turn := range strings.FieldsSeq(turns) {
		out = append(out, Line{TranscriptLine: report.TranscriptLine{Line: results.Line{Turn: turn}}})
	}
	return out
}

func saidText(turns string) string {
	l := newLayout(lines(turns))
	out := []string{fmt.Sprint(l.Columns)}
	for _, r := range l.Rows {
		var cells []string
		for _, c := range r.Cells {
			var names []string
			for _, line := range c.Lines {
				names = append(names, line.Turn)
			}
			cells = append(cells, fmt.Sprintf("%d:%s", c.Column, strings.Join(names, "+")))
		}
		out = append(out, strings.Join(cells, " "))
	}
	return strings.Join(out, " | ")
}
