package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/internal/serve/gateway"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/worldtest"
)

const hostile = "<script>alert(1)</script>\x1b \u202e end"

// played returns a run of n episodes between two agents, in which ann wins every third.
func played(t *testing.T, file string, n int) Source {
	t.Helper()
	j := &journal.Memory{}
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	specs := make([]world.Spec, n)
	for i := range specs {
		specs[i] = world.Spec{Kind: "duel", Lineup: map[string]string{"left": "ann", "right": "bob"}, Deal: i}
	}
	entries := []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "duel", KindVersion: 1, At: at, Plan: json.RawMessage(`{"kind":"duel"}`), Agents: []world.Agent{{Name: "ann", Model: "lab/a"}, {Name: "bob", Model: "lab/b"}}},
		&journal.Opened{At: at}, &journal.Staged{Specs: world.List(specs...)},
	}
	for i := range n {
		at = at.Add(time.Second)
		turn := journal.Turn{Episode: i}
		entries = append(entries,
			&journal.Turned{Turn: turn, Calls: 1, Notes: []world.Note{{Kind: "deal", Data: json.RawMessage(`"ace"`)}}},
			&journal.Replied{Turn: turn, Seat: "left", Label: "word", Agent: "ann", At: at, Request: &llm.Request{Model: "lab/a"}, Response: &llm.Response{Text: hostile, Usage: llm.Usage{Input: 10, Output: 5}, Metadata: llm.Metadata{Attempts: 1, Cost: llm.Dollar / 100, Latency: time.Second}}},
			&journal.Ended{Episode: i, At: at, Outcome: world.Outcome{
				Scores: []world.Score{{Seat: "left", Name: "won", Value: float64((i%3 + 1) / 3)}, {Seat: "right", Name: "won", Value: 1 - float64((i%3+1)/3)}},
				Data:   json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)),
			}})
	}
	if err := j.Append(t.Context(), append(entries, &journal.Closed{At: at, State: journal.Complete})...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, file)
	if err != nil {
		t.Fatal(err)
	}
	return Source{Run: r, Journal: j, Kind: world.Define(showing{worldtest.Simple[struct{}]{Kind: world.About{Name: "duel"}}})}
}

// everything is an Exhibitor with one exhibit of every form.
type everything struct {
	all      world.Sample
	episodes []int
}

func (g *everything) Add(p world.Played) {
	var d struct{ N int }
	raw, _ := p.Outcome.Data.(json.RawMessage)
	if json.Unmarshal(raw, &d) == nil {
		g.episodes = append(g.episodes, d.N)
		g.all.Add(p.Unit, float64(d.N%2))
	}
}

func (g *everything) Exhibits() []exhibit.Exhibit {
	s := &g.all
	return []exhibit.Exhibit{
		{Name: "rates", Title: "rates", Show: exhibit.Estimates{By: []string{"what", "who"}, What: "share", Share: true, Rows: []exhibit.Estimated{{Labels: []string{"odd", "ann"}, Sample: s}, {Labels: []string{"odd"}}}}},
		{Name: "map", Title: "map", Show: exhibit.HeatMap{Row: "r", Column: "c", Rows: []string{"x", "y"}, Columns: []string{"z"}, Cells: [][]*world.Sample{{s}}}},
		{Name: "curves", Title: "curves", Show: exhibit.Curves{X: "x", Y: "y", Curves: []exhibit.Curve{{Name: "ann", Points: []exhibit.CurvePoint{{X: 1, Sample: s}, {X: 2}}}}}},
		{Name: "spots", Title: "spots", Show: exhibit.Scatter{X: "x", Y: "y", Points: []exhibit.ScatterPoint{{Name: hostile, X: s, Y: s}, {Name: "none"}}}},
		{Name: "bars", Title: "bars", Show: exhibit.Bars{X: "x", Y: "y", Labels: []string{"a", "b"}, Series: []exhibit.BarSeries{{Values: []float64{1}}}}},
		{Name: "grid", Title: "grid", Show: exhibit.Grid{Columns: []string{"a", "b", "c"}, Rows: [][]any{{"x", 1, s}, {nil, 2.5}}}},
		{Name: "text", Title: "text", Show: exhibit.Text{Body: hostile}},
		{Name: "figure", Title: "figure", Show: exhibit.Figure{SVG: `<svg onload="x"><text>hi</text></svg>`, Alt: "hi"}},
		{Name: "broken", Title: "broken", Show: exhibit.Figure{SVG: "none", Alt: "words instead"}},
		{Name: "nothing", Title: "nothing"},
	}
}

// showing is a kind whose Exhibitor is everything.
type showing struct{ worldtest.Simple[struct{}] }

func (showing) Exhibitor() exhibit.Exhibitor { return &everything{} }

func (showing) Story(p world.Played, entries []world.TranscriptEntry) []exhibit.Exhibit {
	notes := world.NotesOf(entries)
	return []exhibit.Exhibit{{Name: "replay", Title: "replay", Show: exhibit.Replay{Base: "<svg></svg>", Frames: []exhibit.Frame{{Title: fmt.Sprintf("of %d, %s", p.Episode, notes[0].Data), SVG: "<svg><style>.x{fill:red}</style></svg>", Lines: []exhibit.FrameLine{{Who: "left", Text: hostile}}}}}}}
}

func built(t *testing.T, o Options, sources ...Source) (*Document, map[string]*Table) {
	t.Helper()
	d, err := Build(t.Context(), sources, o)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]*Table{}
	for _, table := range d.Tables() {
		tables[table.Name] = table
	}
	return d, tables
}

func TestBuild(t *testing.T) {
	t.Parallel()
	d, tables := built(t, Options{Tool: "test", Episodes: 5, Transcripts: 2}, played(t, "x.parley", 30))
	won := tables["scores"].Rows[0]
	if got, want := won[3].Value.(statmath.Quantity), statmath.Share(10, 30, 0.95); won[1].Text != "ann" || won[2].Text != "lab/a" || got.Interval != want.Interval {
		t.Errorf("%v: %v, want %v", won, got, want)
	}
	if got := tables["rates"].Rows[0][2].Value.(statmath.Quantity); got.Interval != statmath.Wilson(15, 30, 0.95) {
		t.Errorf("the kind's own: %v", got)
	}
	if n := len(tables["episodes"].Rows); n != 5 || tables["episodes"].Rows[1][0].Link == "" || tables["episodes"].Rows[2][0].Link != "" {
		t.Errorf("%d episodes: %+v", n, tables["episodes"].Rows)
	}
	if c := tables["calls"].Rows[0]; c[2].Value != 30 || c[8].Value != 30*llm.Dollar/100 {
		t.Errorf("%+v", c)
	}
	if tables["calls-by-seat"] != nil {
		t.Error("a table with one seat repeats the total")
	}
	for _, name := range []string{"map", "curves", "spots", "bars", "grid", "answers", "latency", "timeline", "latency-distribution", "runs"} {
		if tables[name] == nil || len(tables[name].Rows) == 0 {
			t.Errorf("there is no table %s", name)
		}
		for _, r := range tables[name].Rows {
			if len(r) != len(tables[name].Columns) {
				t.Errorf("%s: a row of %d cells under %d heads", name, len(r), len(tables[name].Columns))
			}
		}
	}
	text := html(t, d)
	for _, want := range []string{"The first 5 of 30", "The first 2 of 30 episodes", "of 1, &#34;ace&#34;", "words instead", "<style>.pic-x{fill:red}</style>", `class="picture"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "onload") || strings.Count(text, ".pic-x{fill:red}") != 1 {
		t.Error("hostile text is on the page unescaped, or a style sheet is there twice")
	}
}

func html(t *testing.T, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSideBySide puts two runs into one report, also if their files have the same name.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	d, tables := built(t, Options{Episodes: 3, Transcripts: 1}, played(t, "a/x.parley", 6), played(t, "b/x.parley", 9))
	if rows := tables["runs"].Rows; len(rows) != 2 || rows[0][0].Text != "a/x.parley" || rows[1][3].Value != 9 {
		t.Errorf("%+v", rows)
	}
	rows := tables["scores"].Rows // ann, ben and all of them, for each run
	if len(rows) != 6 || rows[3][1].Text != "b/x.parley" {
		t.Fatalf("%+v", rows)
	}
	columns := tables["scores"].Columns
	at := func(row []Cell, name string) any {
		return row[slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })].Value
	}
	for i, row := range rows {
		share := at(row, "mean").(statmath.Quantity).Value
		if got, want := at(row, "total").(float64), share*float64(at(row, "values").(int)); math.Abs(got-want) > 1e-9 {
			t.Errorf("row %d: total %v, want %v", i, got, want)
		}
	}
	if all := rows[2]; at(all, "agent") != "(all)" || at(all, "total").(float64) != at(rows[0], "total").(float64)+at(rows[1], "total").(float64) ||
		at(all, "values") != 12 || at(all, "episodes") != 6 {
		t.Errorf("%+v", all)
	}
	text := html(t, d)
	for _, id := range []string{`id="e-a-x-parley-0"`, `id="e-b-x-parley-0"`, "Throughput · a/x.parley"} {
		if !strings.Contains(text, id) {
			t.Errorf("the page does not have %s", id)
		}
	}
}

// TestLongRun checks that the number of waiting episodes does not matter.
func TestLongRun(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	if err := j.Append(t.Context(), &journal.Begun{Version: 1, Kind: "duel"}, &journal.Staged{Specs: world.Repeat(world.Spec{}, world.MaxEpisodes)}, &journal.Ended{Episode: 0}); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	_, tables := built(t, Options{Episodes: 3, Transcripts: 3}, Source{Run: r, Journal: j})
	if rows := len(tables["episodes"].Rows); rows != 3 {
		t.Errorf("%d episodes", rows)
	}
}

// TestCosts checks that the costs by seat and by purpose add up to the total.
func TestCosts(t *testing.T) {
	t.Parallel()
	reply := func(seat, label, agent string, dollars int, cached bool) journal.Entry {
		return &journal.Replied{Turn: journal.Turn{Episode: 0}, Seat: seat, Label: label, Agent: agent, Request: &llm.Request{Model: "lab/" + agent}, Response: &llm.Response{Usage: llm.Usage{Input: 10, Output: 5}, Metadata: llm.Metadata{Cost: llm.Money(dollars) * llm.Dollar, Cached: cached}}}
	}
	j := &journal.Memory{}
	if err := j.Append(t.Context(), &journal.Begun{Version: 1, Kind: "duel"}, &journal.Staged{Specs: world.List(make([]world.Spec, 1)...)},
		reply("left", "plan", "ann", 1, false), reply("left", "move", "bob", 5, false), reply("right", "move", "ann", 2, false), reply("right", "move", "ann", 0, true)); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "x")
	if err != nil {
		t.Fatal(err)
	}
	_, tables := built(t, Options{}, Source{Run: r, Journal: j})
	for name, want := range map[string]string{
		"calls":                   "ann lab/ann 3 $3 37.5%; bob lab/bob 1 $5 62.5%; ",
		"calls-by-seat":           "left 2 $6 75.0%; right 2 $2 25.0%; ",
		"calls-by-label":          "move 3 $7 87.5%; plan 1 $1 12.5%; ",
		"calls-by-seat-and-label": "left move 1 $5 62.5%; left plan 1 $1 12.5%; right move 2 $2 25.0%; ",
	} {
		got, table := "", tables[name]
		for _, row := range table.Rows {
			for i, c := range table.Columns {
				if c.Key || c.Name == "calls" || c.Name == "cost" || c.Name == "share" {
					got += row[i].Text + " "
				}
			}
			got = strings.TrimSpace(got) + "; "
		}
		if strings.ReplaceAll(got, ".00", "") != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestSameAgain checks that the same run gives the same page, byte for byte.
func TestSameAgain(t *testing.T) {
	t.Parallel()
	one, _ := built(t, Options{Episodes: 10, Transcripts: 10}, played(t, "x", 12))
	two, _ := built(t, Options{Episodes: 10, Transcripts: 10}, played(t, "x", 12))
	if html(t, one) != html(t, two) {
		t.Error("two pages of one run differ")
	}
}

func TestLittle(t *testing.T) {
	t.Parallel()
	s := played(t, "x", 0)
	d, tables := built(t, Options{Episodes: 10, Transcripts: 10}, s)
	if tables["scores"] != nil || !strings.Contains(html(t, d), "No episode has a score yet.") {
		t.Error("a run without episodes")
	}
	s.Kind = world.Kind{}
	built(t, Options{}, s)
}

// TestCuts checks that long transcripts are cut and that the page says so.
func TestCuts(t *testing.T) {
	t.Parallel()
	read := &results.Transcript{}
	for range maxLines + 5 {
		read.Lines = append(read.Lines, results.Line{Seat: "left", Said: results.LineAnswer, Text: strings.Repeat("é", maxLine+1)})
	}
	left := 3 * maxLine
	got := newTranscript(results.Episode{}, read, read.Lines, &left, &Palette{})
	if len(got.Lines) != 3 || !got.Lines[0].Cut || !strings.HasPrefix(got.Cut, "402 more") || left > 0 {
		t.Errorf("%d lines, %q, %d left", len(got.Lines), got.Cut, left)
	}
	doc, err := os.ReadFile("../../../docs/how-to/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, say := range []string{text.GroupDigits(maxLines) + " lines", text.GroupDigits(maxLine) + " characters", "beyond four million"} {
		if !strings.Contains(strings.Join(strings.Fields(string(doc)), " "), say) {
			t.Errorf("docs/how-to/results.md does not say %q", say)
		}
	}
	left = maxReportWords
	if got := newTranscript(results.Episode{}, read, read.Lines, &left, &Palette{}); len(got.Lines) != maxLines {
		t.Errorf("%d lines", len(got.Lines))
	}
}

// TestByFactors checks that a report by factors has means, effects and charts, whatever
// the names of the levels are.
func TestByFactors(t *testing.T) {
	t.Parallel()
	s := played(t, "x.parley", 12)
	for i := range s.Run.Head.Begun.Agents {
		s.Run.Head.Begun.Agents[i].Tags = map[string]string{"style": []string{hostile, "plain"}[i]}
	}
	d, err := Build(t.Context(), []Source{s}, Options{By: []string{"style", "seat"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name":"scores-by-factor"`, `"name":"effects"`, `"factor":"style × seat"`, `style=plain, seat=left"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("it has no %s", want)
		}
	}
	var page bytes.Buffer
	if err := d.WriteHTML(&page); err != nil || strings.Contains(page.String(), "<script>alert") || !strings.Contains(page.String(), "cannot be estimated") {
		t.Errorf("%v", err)
	}
	if _, err := Build(t.Context(), []Source{s}, Options{By: []string{"stile"}}); err == nil || !strings.Contains(err.Error(), `did you mean style?`) {
		t.Errorf("%v", err)
	}
}

// TestStoriesAreLimited: a report of a kind without a story of its own tells each episode turn by turn, and stories count as
// words of transcripts: a run that says very much has a page that is hardly larger.
func TestStoriesAreLimited(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	const episodes, calls = 14, 60
	entries := []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "duel", KindVersion: 1, Plan: json.RawMessage(`{"kind":"duel"}`)},
		&journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, episodes)},
	}
	long := strings.Repeat("a", 5900)
	for i := range episodes {
		for k := range calls {
			turn := journal.Turn{Episode: i, Turn: k}
			entries = append(entries, &journal.Turned{Turn: turn, Calls: 1}, &journal.Replied{Turn: turn, Seat: "left", Request: &llm.Request{Model: "lab/a"}, Response: &llm.Response{Text: long}})
		}
		entries = append(entries, &journal.Ended{Episode: i, Outcome: world.Outcome{Failed: strings.Repeat("b", 5000)}})
	}
	if err := j.Append(t.Context(), append(entries, &journal.Closed{State: journal.Complete})...); err != nil {
		t.Fatal(err)
	}
	r, err := results.Fold(t.Context(), j, "a.parley")
	if err != nil {
		t.Fatal(err)
	}
	talk, err := transcripts(t.Context(), Source{Run: r, Journal: j, problems: &problems{}}, episodes, "a", NewPalette(r, world.Kind{}))
	if err != nil {
		t.Fatal(err)
	}
	all, size := talk.Blocks[0].Transcripts, 0
	for _, one := range all {
		size += one.StoryWords()
		for _, l := range one.Lines {
			size += len(l.Text)
		}
		if len(one.Replays) != 1 || one.Replays[0].Replay == nil {
			t.Errorf("%s has no story", one.Title)
		}
	}
	if size > maxReportWords+1<<19 || len(all) < 5 || len(all) == episodes || !strings.Contains(talk.Text, fmt.Sprintf("The first %d of %d episodes", len(all), episodes)) {
		t.Errorf("%d transcripts with %d characters: %s", len(all), size, talk.Text)
	}
}

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

// TestForkNote checks that the overview of a fork says what counts once, and that of another run does not.
func TestForkNote(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from *journal.Origin
		want string
	}{
		{nil, ""},
		{&journal.Origin{File: "dir/old.parley", Episode: 3}, "a fork of episode 3 of old.parley from its beginning"},
		{&journal.Origin{File: "dir/old.parley", Episode: 3, Turn: 4}, "a fork of episode 3 of old.parley at turn 4: the turns before are copies"},
	} {
		s := played(t, "x", 2)
		s.Run.Head.Begun.Fork = test.from
		s.Run.Each(func(p world.Played) {
			if test.from != nil && p.Past != test.from.Turn || test.from == nil && p.Past != 0 {
				t.Errorf("%+v: the kind gets %d past turns", test.from, p.Past)
			}
		})
		for _, several := range []bool{false, true} {
			text := ""
			for _, b := range headline(s, several).Blocks {
				text += b.Text
			}
			if !strings.Contains(text, test.want) || test.want == "" && text != "" {
				t.Errorf("%+v: %q", test.from, text)
			}
		}
	}
}

// TestSessions checks that a report lists the sessions of a gateway's record, and does not say that the kind is
// unknown.
func TestSessions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	j := &journal.Memory{}
	entries := []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "gateway", KindVersion: 1, At: at, Plan: json.RawMessage(`{}`), Agents: []world.Agent{{Name: "client"}}},
		&journal.Opened{At: at},
	}
	names := []string{"one", hostile, "three", "four"}
	for i, name := range names {
		params, err := json.Marshal(map[string]string{"condition": "plain", "session": name})
		if err != nil {
			t.Fatal(err)
		}
		turn := journal.Turn{Episode: i}
		entries = append(entries,
			&journal.Staged{Stage: i, First: i, Specs: world.List(world.Spec{Kind: "gateway", Cell: "plain", Params: params, Lineup: map[string]string{"client": "client"}})},
			&journal.Turned{Turn: turn, Calls: 1},
			&journal.Replied{
				Turn: turn, Seat: "client", Agent: "client", Label: "chat", At: at,
				Request:  &llm.Request{Model: "lab/a", Messages: []llm.Message{llm.User(strings.Repeat("why ", maxAsked))}},
				Response: &llm.Response{Text: "so", Usage: llm.Usage{Input: 10, Output: 5}},
			})
	}
	entries = append(entries,
		&journal.Ended{Episode: 0, At: at, Outcome: world.Outcome{Data: json.RawMessage(`{"reason":"solved","mode":"complete","truncated":true}`)}},
		&journal.Ended{Episode: 1, At: at, Outcome: world.Outcome{Failed: "aborted: enough", Data: json.RawMessage(`{"reason":"enough","mode":"abort"}`)}},
		&journal.Ended{Episode: 2, At: at, Outcome: world.Outcome{Failed: "lost"}})
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	run, err := results.Fold(t.Context(), j, "run.parley")
	if err != nil {
		t.Fatal(err)
	}
	run.Know(gateway.Kind())
	d, tables := built(t, Options{Episodes: 10, Transcripts: 1}, Source{Run: run, Journal: j})
	var got []string
	for i, row := range tables["sessions"].Rows {
		if row[0].Text != names[i] {
			t.Errorf("session %d is called %q", i, row[0].Text)
		}
		got = append(got, row[2].Text+" "+row[3].Text+" "+row[4].Text+" "+row[6].Text)
	}
	want := "closed 1 15 complete: solved (it had reached its step limit)|closed 1 15 abort: enough|closed 1 15 lost|open 1 15 "
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	if text := html(t, d); strings.Contains(text, "does not know version") || strings.Count(text, "why why") == 0 || strings.Contains(text, strings.Repeat("why ", maxAsked/4+1)) {
		t.Error("the page says that the kind is unknown, or the request is missing or too long")
	}
	if _, tables = built(t, Options{Episodes: 2}, Source{Run: run, Journal: j}); len(tables["sessions"].Rows) != 2 {
		t.Errorf("%d sessions, want the first 2", len(tables["sessions"].Rows))
	}
}

// TestRatings rates agents by the score that seats compete for. Copies of a play count once,
// and there is no table for two agents.
func TestRatings(t *testing.T) {
	t.Parallel()
	duel := worldtest.Simple[struct{}]{Kind: world.About{Name: "duel"}}
	unscored := world.Define(duel)
	duel.Scores = []world.Measure{{Name: "style", Seats: []string{"left", "right"}}, {Name: "points", Seats: []string{"left", "right"}, Rivals: true}}
	kind := world.Define(duel)
	of := func(kind world.Kind, agents ...string) Block {
		head := &journal.Head{Begun: &journal.Begun{Kind: "duel"}}
		for _, a := range agents {
			head.Begun.Agents = append(head.Begun.Agents, world.Agent{Name: a})
		}
		var specs []world.Spec
		for i := range 60 {
			left, right := agents[i%len(agents)], agents[(i+1)%len(agents)]
			points := []float64{float64(len(left)), float64(len(right))}
			if i%4 == 3 {
				slices.Reverse(points) // the weaker wins one in four
			}
			e := journal.Ended{Episode: i, Outcome: world.Outcome{Scores: []world.Score{
				{Seat: "left", Name: "points", Value: points[0]}, {Seat: "right", Name: "points", Value: points[1]},
				{Seat: "left", Name: "style", Value: 1}, {Seat: "right", Name: "style", Value: 0},
			}}}
			e.Play = journal.Digest{byte(i % 30), 1}
			head.Ended.Put(0, &e)
			specs = append(specs, world.Spec{Kind: "duel", Params: json.RawMessage("{}"), Lineup: map[string]string{"left": left, "right": right}, Deal: i})
		}
		head.Stages = []journal.Staged{{Specs: world.List(specs...)}}
		r := results.Outcomes(head, kind)
		return ratings(Source{Run: r, Kind: kind}, NewPalette(r, kind))
	}
	b := of(kind, "weakest", "strongest", "stronger")
	if b.Table == nil || len(b.Table.Rows) != 3 {
		t.Fatalf("%+v", b)
	}
	meetings := 0
	for i, want := range []string{"strongest", "stronger", "weakest"} {
		row := b.Table.Rows[i]
		meetings += row[3].Value.(int)
		if row[0].Text != want {
			t.Errorf("rank %d: %s, want %s", i, row[0].Text, want)
		}
	}
	if meetings != 2*30 {
		t.Errorf("%d meetings, want 60: the second half are copies", meetings)
	}
	if b := of(kind, "weak", "strong"); b.Table != nil {
		t.Error("two agents are rated")
	}
	if b := of(unscored, "weak", "strong", "stronger"); b.Table != nil {
		t.Error("agents are rated without a score")
	}
}

// TestAllEqual: values that are all equal have no interval that the possible values alone make. The cell says what follows from the number
// of deals.
func TestAllEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value    float64
		episodes int
		want     string
	}{{3, 30, "3 [all equal; ≤9.5% differ]"}, {0, 5, "0 [all equal; ≤45% differ]"}, {1, 80, "1 [all equal; ≤3.7% differ]"}, {1, 1, "1 [unknown]"}} {
		var all []drawn
		for i := range c.episodes {
			all = append(all, drawn{deal: i, value: c.value})
		}
		if got := Interval(estimated(scored(world.Bounds{High: 1000}, 1, all...))); got != c.want {
			t.Errorf("%d times %g: %s, want %s", c.episodes, c.value, got, c.want)
		}
	}
}

// TestMoments: a cell that names a frame of an episode has its title, and leads to it where episodes have pages.
func TestMoments(t *testing.T) {
	t.Parallel()
	b, ok := ExhibitBlock(exhibit.Exhibit{Name: "m", Show: exhibit.Grid{Columns: []string{"phase"}, Rows: [][]any{{exhibit.Moment{Episode: 7, Frame: "day 1#<b>"}}}}}, &Palette{})
	if !ok || b.Table.Rows[0][0].Text != "day 1#<b>" {
		t.Fatalf("%+v", b.Table)
	}
	cell := Linked([]Section{{Blocks: []Block{b}}}, func(episode int) string { return fmt.Sprint("/e/", episode) })[0].Blocks[0].Table.Rows[0][0]
	if want := []string{"/e/7#frame=day%201%23%3Cb%3E"}; !slices.Equal(cell.Links, want) {
		t.Errorf("%q, want %q", cell.Links, want)
	}
}
