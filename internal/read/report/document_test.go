package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"parley/internal/kit/statmath"
	"parley/internal/run/results"
	"parley/llm"
	"parley/world/exhibit"
)

const pageHostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[5m\u202eexe\x00 end\xff"

func interval(value, low, high float64) statmath.Quantity {
	return statmath.Quantity{Value: value, Interval: statmath.Interval{Low: low, High: high}, N: 80, Method: "wilson"}
}

// table has one of every cell.
func table(name string) *Table {
	return &Table{
		Name: name, Title: pageHostile, Track: 2, Grouped: true, Filter: true,
		Columns: []Column{KeyColumn("score"), KeyColumn("agent"), NumberColumn("mean"), NumberColumn("cost"), textColumn("said"), NumberColumn("idle")},
		Rows: [][]Cell{
			{Word("won"), Word(pageHostile), Quantity(interval(0.42, 0.35, 0.49)), money(llm.Dollar / 8), Word("a,b"), countOrDash(0)},
			{Word("won"), Word("b"), Quantity(statmath.Unknown(1, "t")), money(0), Word(pageHostile), countOrDash(0)},
			{Word("points"), Word("b"), Quantity(interval(-3, -5, math.Inf(1))), money(5 * llm.Dollar), Word(""), countOrDash(0)},
		},
	}
}

func document() *Document {
	transcript := Transcript{ID: "e-0", Title: "Episode 0", State: "ended", Scores: pageHostile, Lines: []TranscriptLine{{Line: results.Line{Seat: pageHostile, Agent: pageHostile, Label: pageHostile, Said: results.LineAnswer, Text: pageHostile}, Class: "s0", Cut: true}}}
	return &Document{Title: pageHostile, Made: pageHostile, Sections: []Section{{
		ID: "one", Title: pageHostile, Text: pageHostile, Blocks: []Block{
			{Title: pageHostile, Caption: pageHostile, Table: table("first"), Folded: true},
			{Facts: []Fact{{pageHostile, pageHostile, pageHostile}}},
			{Text: pageHostile, Pre: true}, {Text: pageHostile}, {List: []string{pageHostile}},
			{Heat: &Heat{Row: pageHostile, Column: pageHostile, Columns: []string{pageHostile}, Rows: []HeatRow{{Name: pageHostile, Cells: []HeatCell{{Text: pageHostile, Tip: pageHostile, Level: 3}}}}}},
			{Replay: &Replay{Frames: []ReplayFrame{{Title: pageHostile, Lines: []exhibit.FrameLine{{Who: pageHostile, To: pageHostile, Text: pageHostile}}}}}},
			{Transcripts: []Transcript{transcript}},
			{OffPage: true, Text: "not on the page", Table: table("hidden")},
		},
	}}}
}

// TestHTML checks that hostile text stays text, and that the page fetches nothing.
func TestHTML(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := document().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	for _, bad := range []string{"<img", "\x1b", "\x00", "\u202e", "http://", "https://", "@import", "not on the page", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is on the page", bad)
		}
	}
	if !strings.Contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the text is missing")
	}
	_, script, _ := strings.Cut(page, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	for _, text := range []string{script, style} {
		if name := strings.ReplaceAll(PolicyHash(text), "'", "&#39;"); !strings.Contains(strings.ReplaceAll(page, "&#43;", "+"), name) {
			t.Errorf("the policy does not allow %s", name)
		}
	}
	if strings.Contains(page, ">idle<") {
		t.Error("an empty column is shown")
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := table("x").WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"score", "agent", "mean", "mean_low", "mean_high", "mean_n", "cost", "said", "idle"},
		{"won", pageHostile, "0.42", "0.35", "0.49", "80", "0.125", "a,b", "0"},
		{"won", "b", "", "", "", "1", "0", pageHostile, "0"},
		{"points", "b", "-3", "-5", "", "80", "5", "", "0"},
	}
	for i := range want {
		if strings.Join(rows[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("row %d: %q\nwant %q", i, rows[i], want[i])
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(document())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tables []struct {
			Name    string
			Columns []string
			Rows    []map[string]any
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tables) != 2 || got.Tables[1].Name != "hidden" || len(got.Tables[0].Columns) != 6 {
		t.Fatalf("%+v", got)
	}
	mean := got.Tables[0].Rows[0]["mean"].(map[string]any)
	if mean["value"] != 0.42 || mean["low"] != 0.35 || mean["n"] != 80.0 || got.Tables[0].Rows[2]["mean"].(map[string]any)["high"] != nil {
		t.Errorf("%v", got.Tables[0].Rows)
	}
}

// TestJoin puts runs side by side: a column names the run, and groups stay together.
func TestJoin(t *testing.T) {
	t.Parallel()
	d := &Document{}
	for _, run := range []string{"a", "b"} {
		s := Section{ID: "s", Blocks: []Block{{Table: table("t")}, {Title: "drawn", Drawing: "<svg></svg>"}}}
		s.Label(run)
		d.Join([]Section{s})
	}
	blocks := d.Sections[0].Blocks
	if len(d.Sections) != 1 || len(blocks) != 3 || blocks[1].Title != "drawn · a" || blocks[2].Title != "drawn · b" {
		t.Fatalf("%+v", blocks)
	}
	got := blocks[0].Table
	var rows []string
	for _, r := range got.Rows {
		rows = append(rows, r[0].Text+" "+r[1].Text)
	}
	if strings.Join(rows, ",") != "won a,won a,won b,won b,points a,points b" || got.Track != 3 || got.Columns[1].Name != "run" {
		t.Errorf("%v, track %d", rows, got.Track)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Interval(interval(0.421, 0.354, 0.486)):    "0.42 [0.35, 0.49]",
		Interval(interval(0.0012, 0.0010, 0.0014)): "0.0012 [0.0010, 0.0014]",
		Interval(interval(1e300, 9e299, 2e300)):    "1e+300 [9e+299, 2e+300]",
		Interval(interval(1234.5, 1000, 1500)):     "1235 [1000, 1500]",
		Interval(interval(0.5, math.Inf(-1), 1)):   "0.5 [unknown]",
		Interval(statmath.Unknown(0, "")):          "–",
		Interval(interval(1, 1, 1)):                "1.00 [1.00, 1.00]",
		Dollars(0):                                 "$0.00",
		Dollars(llm.Dollar * 12345):                "$12,345",
		Dollars(llm.Dollar / 800):                  "$0.0013",
		Duration(1520 * time.Millisecond):          "1.52 s",
		Duration(3*time.Hour + 5*time.Minute):      "3 h 05 min",
		Duration(260 * time.Second):                "4 min 20 s",
		Duration(-1):                               "–",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
