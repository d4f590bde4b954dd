package agreement

import (
	"strings"
	"testing"

	"parley/internal/label"
	"parley/internal/view"
	"parley/journal"
	"parley/world"
)

// TestBlock checks that only scores of 0 and 1 are compared, and only with clear verdicts, or a choice with the tag of its name.
func TestBlock(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	entries := []journal.Entry{&journal.Begun{Version: 1, Run: "r", Kind: "duel", KindVersion: 1}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, 6)}}
	for i := range 6 {
		entries = append(entries, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Name: "honest", Value: float64(i % 2)}, {Name: "points", Seat: "left", Value: float64(i)}, {Name: "trust.tone: rude", Value: float64(i % 2)}}}})
	}
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	r, err := view.Fold(t.Context(), j, "run.parley")
	if err != nil {
		t.Fatal(err)
	}
	r.Know(world.Kind{})
	if _, ok := Block(r); ok {
		t.Error("there is agreement without people")
	}
	labels := &label.Set{}
	for i, verdict := range []label.Verdict{label.Fail, label.Pass, label.Pass, label.Pass, label.Pass} { // nobody looked at the last one
		labels.Add(label.Label{Episode: i, Verdict: verdict, Tag: []string{"rude", "kind"}[min(i, 1)]})
	}
	labels.Add(label.Label{Episode: 4, Verdict: label.Fail}) // people disagree
	Attach(r, labels)
	b, ok := Block(r)
	if !ok || len(b.Table.Rows) != 2 {
		t.Fatalf("%+v", b.Table)
	}
	var rows [2]string
	for i, row := range b.Table.Rows {
		for _, c := range row {
			rows[i] += c.Text + " | "
		}
	}
	if want := "trust.tone: rude |  | 5 | 0 | 2 | 1 | 2 | "; !strings.HasPrefix(rows[1], want) {
		t.Errorf("the tag: %s, want %s", rows[1], want)
	}
	got := rows[0]
	if want := "honest |  | 4 | 2 | 0 | 1 | 1 | 0.75 [0.30, 0.95] | 0.50 [-0.23, 1.00] | "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
