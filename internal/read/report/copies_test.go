package report

import (
	"fmt"
	"strings"
	"testing"

	"parley/journal"
	"parley/journal/journaltest"
)

// TestCopiesAreNamed checks that a report says which episodes are copies, and shows the number of independent
// observations beside the number of episodes.
func TestCopiesAreNamed(t *testing.T) {
	t.Parallel()
	if d, _ := built(t, Options{}, played(t, "x.parley", 20)); strings.Contains(fmt.Sprint(d.Sections), "exact cop") {
		t.Error("there are no copies")
	}
	s := played(t, "x.parley", 20)
	for i, e := range journaltest.Ends(t, s.Journal) {
		e.Play = journal.Digest{byte(i%5 + 1)}
		s.Run.Head.Ended.Put(3+3*(i+1), &e) // it stays the same entry
	}
	d, tables := built(t, Options{}, s)
	if text := fmt.Sprint(d.Sections[0].Blocks); !strings.Contains(text, "Of 20 episodes, 15 are exact copies of others and do not count.") {
		t.Error(text)
	}
	for name, want := range map[string]string{"scores": "20 5", "rates": "20 5", "curves": "20 5", "spots": "20 5"} {
		table := tables[name]
		n := len(table.Columns)
		if row := table.Rows[0]; table.Columns[n-2].Name != "episodes" || table.Columns[n-1].Name != "independent" || row[n-2].Text+" "+row[n-1].Text != want {
			t.Errorf("%s: %+v %+v, want %s", name, table.Columns, row, want)
		}
	}
	for i, c := range tables["runs"].Columns {
		if cell := tables["runs"].Rows[0][i]; c.Name == "distinct plays" && cell.Value != 5 || c.Name == "copies" && !strings.HasPrefix(cell.Text, "Of 20 episodes, 15") {
			t.Errorf("%s: %+v", c.Name, cell)
		}
	}
}
