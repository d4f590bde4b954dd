package report

import (
	"slices"
	"strings"
	"testing"

	"parley/internal/read/score"
	"parley/internal/run/label"
	"parley/internal/run/results"
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
	r, err := results.Fold(t.Context(), j, "run.parley")
	if err != nil {
		t.Fatal(err)
	}
	r.Know(world.Kind{})
	if len(agreementBlocks(r, nil)) > 0 {
		t.Error("there is agreement without people")
	}
	labels := &label.Set{}
	for i, verdict := range []label.Verdict{label.Fail, label.Pass, label.Pass, label.Pass, label.Pass} { // nobody looked at the last one
		labels.Add(label.Label{Episode: i, Verdict: verdict, Tag: []string{"rude", "kind"}[min(i, 1)]})
	}
	labels.Add(label.Label{Episode: 4, Verdict: label.Fail}) // people disagree
	AttachLabels(r, labels)
	blocks := agreementBlocks(r, nil)
	if len(blocks) != 1 || len(blocks[0].Table.Rows) != 2 {
		t.Fatalf("%+v", blocks)
	}
	var rows [2]string
	for i, row := range blocks[0].Table.Rows {
		for _, c := range row {
			rows[i] += c.Text + " | "
		}
	}
	if want := "trust.tone: rude |  |  | 5 | 0 | 2 | 1 | 2 | "; !strings.HasPrefix(rows[1], want) {
		t.Errorf("the tag: %s, want %s", rows[1], want)
	}
	got := rows[0]
	if want := "honest |  |  | 4 | 2 | 0 | 1 | 1 | 0.75 [0.30, 0.95] | 0.50 [-0.23, 1.00] | "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestJudges: where several judges gave a score, each is compared with people. Their mean, and a scale, are correlated.
func TestJudges(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	entries := []journal.Entry{&journal.Begun{Version: 1, Run: "r", Kind: "duel", KindVersion: 1}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, 8)}}
	added, judged := map[int][]world.Score{}, score.Judged{}
	labels := &label.Set{}
	for i := range 8 {
		entries = append(entries, &journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{{Name: "points", Value: float64(i)}}}})
		good, parity, level := float64(i/4), float64(i%2), float64(1+i/2)
		labels.Add(label.Label{Episode: i, Verdict: []label.Verdict{label.Fail, label.Pass}[i/4]})
		added[i] = []world.Score{{Name: "trust.fair", Value: (good + parity) / 2}, {Name: "trust.kind", Seat: "a", Value: level}, {Name: "trust.low", Value: 1}, {Name: "trust.alone", Value: good}}
		for judge, value := range map[string]float64{"wise": good, "odd": parity} {
			judged[i] = append(judged[i], score.JudgeScore{Judge: judge, Score: world.Score{Name: "trust.fair", Value: value}})
		}
		slices.SortFunc(judged[i], func(a, b score.JudgeScore) int { return strings.Compare(a.Judge, b.Judge) })
		judged[i] = append(judged[i], score.JudgeScore{Judge: "wise", Score: world.Score{Name: "trust.alone", Value: good}})
	}
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	folded, err := results.Fold(t.Context(), j, "run.parley")
	if err != nil {
		t.Fatal(err)
	}
	folded.Know(world.Kind{})
	AttachLabels(folded, labels)
	folded.Added, folded.Bounds["trust.low"] = added, world.Bounds{Low: 1, High: 5}
	var rows []string
	for _, b := range agreementBlocks(folded, judged) {
		for _, row := range b.Table.Rows {
			text := b.Table.Name
			for _, c := range row {
				text += " | " + c.Text
			}
			rows = append(rows, text)
		}
	}
	want := []string{
		"agreement | trust.fair | odd |  | 8 | 2 | 2 | 2 | 2 | 0.50 [0.22, 0.78] | 0.00 [-0.69, 0.69]",
		"agreement | trust.fair | wise |  | 8 | 4 | 0 | 0 | 4 | 1.00 [0.68, 1.00] | 1.00 [0.35, 1.00]",
		"agreement | trust.alone |  |  | 8 | 4 | 0 | 0 | 4 | 1.00 [0.68, 1.00] | 1.00 [0.35, 1.00]",
		"correlation-with-people | trust.fair |  |  | 8 | 0.71 [-0.10, 0.95]",
		"correlation-with-people | trust.kind |  | a | 8 | 0.89 [0.39, 0.99]",
		"correlation-with-people | trust.low |  |  | 8 | –",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// TestAgreementByDeal: kappa and the correlation depend on the number of deals, as the share beside them does.
func TestAgreementByDeal(t *testing.T) {
	t.Parallel()
	halves := func(episodes int) (kappa, correlation float64) {
		var all rated
		for i := range episodes {
			deal := i % 12
			all.add(world.Unit{Deal: 1 + deal}, float64(deal%2), float64(min(deal%3, 1)))
		}
		return all.kappa().Half(), all.correlation().Half()
	}
	k1, c1 := halves(12)
	k20, c20 := halves(240)
	if k20 < k1 || c20 < c1 || k20 > 1.3*k1 || c20 > 1.3*c1 {
		t.Errorf("half an interval of 12 episodes: kappa %.2f, correlation %.2f; of 240 episodes of the same 12 deals: %.2f, %.2f", k1, c1, k20, c20)
	}
}
