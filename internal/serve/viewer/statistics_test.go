package viewer

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/kit/statmath"
	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/label"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

// TestAddedScores: scores of scorers are on the page of an episode and in the list, which can be sorted by them. They go with their file.
func TestAddedScores(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	run := filepath.Join(folder, "a.parley")
	record(t, run)
	file := score.File(run, "trust")
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	store, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	what := results.NewScored(run, []int{7, 8}, nil)
	var specs []world.Spec
	var params json.RawMessage
	for _, what.Episode = range []int{7, 8} {
		if params, err = json.Marshal(map[string]any{results.ScoredParam: what}); err != nil {
			t.Fatal(err)
		}
		specs = append(specs, world.Spec{Kind: "rubric", Params: params, Lineup: map[string]string{"j": "one"}, Deal: what.Episode})
	}
	ended := func(n int, value float64) *journal.Ended {
		return &journal.Ended{Episode: n, Outcome: world.Outcome{Scores: []world.Score{{Seat: "first", Name: "kind", Value: value}}}}
	}
	last := ended(1, 0.875)
	last.Outcome.Data = json.RawMessage(`{"ratings":[{"question":"why","seat":"first","judge":"j","text":"<b>It was kind."},{"question":"kind","judge":"j","text":"no text"}]}`)
	plan := `{"params":{"questions":{"why":{"text":true},"kind":{}},` + strings.TrimPrefix(string(params), "{") + `}`
	err = store.Append(t.Context(), &journal.Begun{
		Version: journal.Version, Run: "s", Kind: "rubric", KindVersion: 1, Plan: json.RawMessage(plan), Agents: []world.Agent{{Name: "one", Model: "sim/a"}},
	}, &journal.Staged{Specs: world.List(specs...)}, ended(0, 0.125), last)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, run)
	for { // sorted lists come from the index
		if _, body, _ := s.get("/run/a.parley/episodes?sort=cost"); !strings.Contains(body, "data-again") {
			break
		}
	}
	for path, want := range map[string]string{
		"/run/a.parley/episodes/7": "<dt>first trust.kind</dt><dd><strong>0.125", "/run/a.parley/episodes": `data-name="trust.kind"><span title="first 0.125">0.125`,
		"/run/a.parley/episodes?sort=score:trust.kind:first&desc=1": `data-name="trust.kind"><span title="first 0.875">0.875`,
		"/run/a.parley/episodes/8":                                  `<bdi>trust, why</bdi></b> <bdi>by one (sim/a), about first</bdi></p><div class="words" dir="auto">&lt;b&gt;It was kind.`,
	} {
		if _, body, _ := s.get(path); !strings.Contains(body, want) {
			t.Errorf("%s has no %s:\n%s", path, want, body)
		}
	}
	_, body, _ := s.get("/run/a.parley/episodes?sort=score:trust.kind:first&desc=1")
	if high, low := strings.Index(body, ">0.875"), strings.Index(body, ">0.125"); high < 0 || low < high {
		t.Errorf("0.875 is at %d, 0.125 at %d", high, low)
	}
	for query, want := range map[string][2]bool{
		"trust.kind@first>=0": {true, true}, "trust.kind>0.5": {false, true}, "trust.kind@first<0.5": {true, false}, "trust.kind=0.125": {true, false}, "trust.kind>=1": {false, false},
	} {
		_, body, _ := s.get("/run/a.parley/episodes?q=" + url.QueryEscape(query))
		if got := [2]bool{strings.Contains(body, ">0.125<"), strings.Contains(body, ">0.875<")}; got != want || strings.Contains(body, `episodes/6"`) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if status, body, _ := s.get("/run/a.parley/episodes?q=trust.kind<x"); status != 200 || !strings.Contains(body, "want a number") {
		t.Errorf("%d: %s", status, body)
	}
	if err := os.WriteFile(file, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, body, _ := serve(t, run).get("/run/a.parley/episodes/7"); status != 200 || strings.Contains(body, "trust.kind") {
		t.Errorf("with a damaged file: %d", status)
	}
	if err := label.Add(run, label.Label{Run: run, Episode: 7, Verdict: label.Pass}); err != nil {
		t.Fatal(err)
	}
	status, body, _ := serve(t, run).get("/run/a.parley/report")
	for _, want := range []string{"Added scores are left out: score: trust.parley", "Scores by single judges are left out: score: trust.parley"} {
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("with a damaged file: %d, no %s: %.300s", status, want, body)
		}
	}
	if err := os.RemoveAll(score.Folder(run)); err != nil {
		t.Fatal(err)
	}
	if _, body, _ := serve(t, run).get("/run/a.parley/episodes"); strings.Contains(body, "trust.kind") {
		t.Error("scores stay without their file")
	}
}

// TestBrief checks that the statistics of a run of any size fit on a page, what matters first, and that the report keeps
// everything.
func TestBrief(t *testing.T) {
	t.Parallel()
	table := func(rows int) *report.Table {
		out := &report.Table{Name: "scores", Title: "scores", Columns: []report.Column{report.KeyColumn("agent"), report.NumberColumn("mean")}, Track: 1}
		for range rows {
			out.Rows = append(out.Rows, []report.Cell{report.Word("a"), report.Quantity(statmath.Quantity{Value: 1, Interval: statmath.Interval{Low: 0, High: 2}})})
		}
		return out
	}
	for _, c := range []struct {
		rows, blocks int
		short        bool
	}{{5, 2, false}, {40, 1, false}, {500, 1, true}, {500, 60, true}, {3, 600, true}} {
		d := &report.Document{Sections: []report.Section{{ID: "overview", Title: "Overview", Blocks: []report.Block{{Facts: []report.Fact{{Name: "state"}}}}}, {ID: "scores"}, {ID: "episodes", Blocks: []report.Block{{Table: table(9)}}}}}
		for range c.blocks {
			d.Sections[1].Blocks = append(d.Sections[1].Blocks, report.Block{Title: "folded", Table: table(c.rows), Folded: true}, report.Block{Title: "open", Table: table(c.rows)})
		}
		got, short, err := shortSections(d)
		if err != nil || short != c.short || len(got) != 2 || len(got[0].Blocks) != 0 || got[0].Title != "" {
			t.Fatalf("%+v: %v %v %d sections", c, short, err, len(got))
		}
		templates, err := report.Templates()
		if err != nil {
			t.Fatal(err)
		}
		elements, rows, folded := 0, 0, 0
		for _, b := range got[1].Blocks {
			n, err := report.BlockSize(templates, b)
			if err != nil {
				t.Fatal(err)
			}
			elements += n
			if rows = max(rows, len(b.Table.Rows)); b.Folded {
				folded++
			}
			if cut := strings.Contains(b.Caption, "The first "); cut != (len(b.Table.Rows) < c.rows) || strings.Count(b.Caption, "first") > 1 {
				t.Errorf("%+v: %d rows, %q", c, len(b.Table.Rows), b.Caption)
			}
		}
		if elements > maxElements+maxElements/20 || rows > maxRows || elements == 0 || len(got[1].Blocks) < 2*c.blocks && folded > 0 {
			t.Errorf("%+v: %d elements, %d rows, %d folded of %d blocks", c, elements, rows, folded, len(got[1].Blocks))
		}
		if all := d.Sections[1].Blocks; len(all) != 2*c.blocks || len(all[0].Table.Rows) != c.rows || all[0].OffPage {
			t.Errorf("%+v: the report was cut", c)
		}
	}
}
