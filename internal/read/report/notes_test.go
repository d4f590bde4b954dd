package report

import (
	"strings"
	"testing"

	"parley/internal/run/results"
)

// TestNoteBlocks: numbers in the notes of any world are charts over its turns, and names by key are tables.
func TestNoteBlocks(t *testing.T) {
	t.Parallel()
	note := func(turn, kind, seat, data string) results.Line {
		return results.Line{Turn: turn, Label: kind, Seat: seat, Said: results.LineNote, Text: data}
	}
	lines := []results.Line{
		note("0", "bank", "", `{"money": {"ann": 3, "bob": 3}, "always": 1}`),
		note("0", "votes", "", `{"ann": "bob", "bob": "<b>ann"}`),
		{Turn: "0", Label: "say", Said: results.LineAnswer, Text: `{"money": 9}`},
		note("1", "bank", "", `{"money": {"ann": 4, "bob": 1}, "always": 1}`),
		note("1", "health", "ann", `7`),
		note("1", "hostile", "", `{"deep": {"deeper": {"deepest": 1}}}`),
		note("2", "health", "ann", `5`),
		note("2", "broken", "", `{`),
	}
	var got []string
	for _, b := range noteBlocks(lines, &Palette{}) {
		what := b.Title
		for _, l := range b.Legend {
			what += " " + l.Name
		}
		if b.Table != nil {
			for _, row := range b.Table.Rows {
				what += " | " + row[0].Text + " " + row[1].Text + " " + row[2].Text
			}
		} else if !strings.Contains(string(b.Drawing), `class="line`) {
			t.Errorf("%s is not drawn: %s", b.Title, b.Drawing)
		}
		got = append(got, what)
	}
	if want := "bank money ann bob; health ann; votes | 0 ann bob | 0 bob <b>ann"; strings.Join(got, "; ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "; "), want)
	}
	if noteBlocks(nil, &Palette{}) != nil {
		t.Error("there is a chart of nothing")
	}
}
