package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/read/report"
	"parley/internal/run/results"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/worldtest"
)

const episodes = 12

// hostile is text that attacks the reader of a page.
func hostile() string {
	return `<script>window.owned=1</script><img src=x onerror="window.owned=2"></div></body>{{.}} javascript:window.owned=3` +
		"\x1b[2J \u202egnp.exe \x00\x07 " + strings.Repeat("W", 5000) + " שלום عليكم"
}

// hostilePage returns a report of a run in which all text is hostile.
func hostilePage(t *testing.T) string {
	t.Helper()
	return pageOf(t, func() exhibit.Exhibitor { return &everyExhibit{} })
}

// pageOf returns a report with these exhibits.
func pageOf(t *testing.T, exhibitor func() exhibit.Exhibitor) string {
	t.Helper()
	j := &journal.Memory{}
	if err := j.Append(t.Context(), entries()...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "run.parley")
	if err != nil {
		t.Fatal(err)
	}
	kind := world.Define(duel{worldtest.Simple[struct{}]{Kind: world.About{Name: "duel"}}, exhibitor})
	d, err := report.Build(t.Context(), []report.Source{{Run: r, Journal: j, Kind: kind}}, report.Options{Tool: "parley test", Episodes: 100, Transcripts: 5})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := d.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func entries() []journal.Entry {
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	note, _ := json.Marshal(map[string]string{"board": hostile()})
	specs := make([]world.Spec, episodes)
	for i := range specs {
		specs[i] = world.Spec{Kind: "duel", Lineup: map[string]string{"left": hostile(), "right": "bob"}, Deal: i}
	}
	all := []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "duel", KindVersion: 1, At: at, Plan: json.RawMessage(`{}`), Agents: []world.Agent{{Name: hostile(), Model: "lab/a"}, {Name: "bob", Model: "lab/b"}}},
		&journal.Opened{At: at}, &journal.Staged{Specs: world.List(specs...)},
	}
	for i := range episodes {
		at = at.Add(time.Second)
		turn := journal.Turn{Episode: i}
		reply := &journal.Replied{Turn: turn, Seat: "left", Label: "word", Agent: hostile(), At: at, Request: &llm.Request{Model: "lab/a"}, Response: &llm.Response{Text: hostile(), Metadata: llm.Metadata{Attempts: 1, Cost: 1e7, Latency: time.Duration(i+1) * time.Second}}}
		failed := &journal.Replied{Turn: turn, Index: 1, Seat: "right", Label: "word", Agent: "bob", At: at, Request: &llm.Request{Model: "lab/b"}, Error: &llm.Error{Kind: llm.KindServer, Message: hostile()}}
		end := &journal.Ended{Episode: i, At: at, Outcome: world.Outcome{Scores: []world.Score{{Seat: "left", Name: "points", Value: float64(i)}}}}
		if i == 3 {
			end.Outcome = world.Outcome{Failed: hostile()}
		}
		all = append(all, &journal.Turned{Turn: turn, Calls: 2, Notes: []world.Note{{Kind: "board", Data: note}}}, reply, failed, end)
	}
	return append(all, &journal.Closed{At: at, State: journal.Complete})
}

// everyExhibit has one exhibit of each kind.
type everyExhibit struct{ points world.Sample }

func (g *everyExhibit) Add(p world.Played) {
	for _, s := range p.Outcome.Scores {
		g.points.Add(p.Unit, s.Value)
	}
}

func (g *everyExhibit) Exhibits() []exhibit.Exhibit {
	s, bad := &g.points, hostile()
	return []exhibit.Exhibit{
		{Name: "estimates", Title: bad, Caption: bad, Show: exhibit.Estimates{By: []string{bad, bad}, What: bad, Rows: []exhibit.Estimated{{Labels: []string{bad, bad}, Sample: s}}}},
		{Name: "heat", Title: bad, Show: exhibit.HeatMap{Row: bad, Column: bad, Rows: []string{bad}, Columns: []string{bad}, Cells: [][]*world.Sample{{s}}}},
		{Name: "curves", Title: bad, Show: exhibit.Curves{X: bad, Y: bad, Curves: []exhibit.Curve{{Name: bad, Points: []exhibit.CurvePoint{{X: 1, Sample: s}, {X: 2, Sample: s}}}}}},
		{Name: "scatter", Title: bad, Show: exhibit.Scatter{X: bad, Y: bad, Points: []exhibit.ScatterPoint{{Name: bad, X: s, Y: s}}}},
		{Name: "bars", Title: bad, Show: exhibit.Bars{X: bad, Y: bad, Labels: []string{bad, "b"}, Series: []exhibit.BarSeries{{Name: bad, Values: []float64{1, 2}}}}},
		{Name: "grid", Title: bad, Show: exhibit.Grid{Columns: []string{bad}, Rows: [][]any{{bad}}}},
		{Name: "text", Title: bad, Show: exhibit.Text{Body: bad, Pre: true}},
		{Name: "figure", Title: bad, Show: exhibit.Figure{SVG: `<svg onload="window.owned=4" viewBox="0 0 9 9"><script>window.owned=5</script><style>.r{fill:red}</style><rect class="r" width="9" height="9"/></svg>`}},
	}
}

// duel is a kind with these exhibits and a story.
type duel struct {
	worldtest.Simple[struct{}]
	exhibitor func() exhibit.Exhibitor
}

func (d duel) Exhibitor() exhibit.Exhibitor { return d.exhibitor() }

func (duel) Story(world.Played, []world.TranscriptEntry) []exhibit.Exhibit {
	frame := func(title string) exhibit.Frame {
		return exhibit.Frame{Title: title, SVG: `<svg viewBox="0 0 9 9"><circle r="3"/></svg>`, Lines: []exhibit.FrameLine{{Who: hostile(), To: hostile(), Text: hostile()}}}
	}
	return []exhibit.Exhibit{{Name: "replay", Title: "replay", Show: exhibit.Replay{Base: `<svg viewBox="0 0 9 9"><rect width="9" height="9"/></svg>`, Frames: []exhibit.Frame{frame("spring"), frame("autumn")}}}}
}

// crowd shows twelve agents with ordinary, long names that did nearly the same.
type crowd struct{ everyExhibit }

func (c *crowd) Exhibits() []exhibit.Exhibit {
	var spots []exhibit.ScatterPoint
	var curves []exhibit.Curve
	var bars []exhibit.BarSeries
	var names []string
	wide := exhibit.Grid{Columns: []string{"agent"}}
	for i := range 12 {
		name := fmt.Sprintf("provider-%d-large-instruct", i)
		s := func(shift int) *world.Sample {
			out := &world.Sample{Bounds: world.Share()}
			for j := range 20 {
				out.Add(world.Unit{}, float64((i+j*shift)%20)/20)
			}
			return out
		}
		names = append(names, name)
		spots = append(spots, exhibit.ScatterPoint{Name: name, X: s(1), Y: s(3)})
		curves = append(curves, exhibit.Curve{Name: name, Points: []exhibit.CurvePoint{{X: 1901, Sample: s(1)}, {X: 1902, Sample: s(3)}}})
		bars = append(bars, exhibit.BarSeries{Name: name, Values: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}})
	}
	row := []any{"agent"}
	for i := range 9 {
		wide.Columns = append(wide.Columns, fmt.Sprintf("measure %d", i))
		row = append(row, spots[i].X)
	}
	wide.Rows = [][]any{row, row}
	return []exhibit.Exhibit{
		{Name: "spots", Title: "spots", Show: exhibit.Scatter{X: "x", Y: "y", Share: true, Points: spots}},
		{Name: "curves", Title: "curves", Show: exhibit.Curves{X: "year", Y: "y", Curves: append(curves, exhibit.Curve{Name: "low", Level: true, Points: curves[0].Points[:1]}, exhibit.Curve{Name: "lower", Level: true, Points: curves[0].Points[:1]})}},
		{Name: "bars", Title: "bars", Show: exhibit.Bars{X: "x", Y: "y", Labels: names, Series: bars}},
		{Name: "wide", Title: "wide", Show: wide},
	}
}
