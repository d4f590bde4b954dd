package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/world"
	"parley/world/exhibit"
	"parley/worlds/scenario/script"
)

// playAll plays a short scenario in which everything happens once.
func playAll(t *testing.T) (*played, world.Played) {
	t.Helper()
	s := stage(3, 2, func(s *script.Script) {
		s.Name = "Test <b>of</b> files"
		s.Talk = script.Talk{Statements: true, Bilateral: true, Coalitions: true, Max: 2, Rounds: 1}
		warning := 5.0
		s.Metrics = []script.Metric{numeric("tension"), numeric("candour"), numeric("calm")}
		s.Metrics[0].Warning, s.Metrics[1].ActorSpecific = &warning, true
		s.Events = []script.Event{{Name: "storm", Description: "It rains.", Type: script.EventScheduled, Turns: []int{2}, Once: true}}
		s.Validation = script.Validation{Checks: []script.Check{{Name: script.CheckWorld, Severity: "high"}}, Summary: true, Reports: true}
	})
	out := playScript(s, 0, answers(map[string]any{
		"opening@a0":     `{"public_statement":"Hear me.\n# A heading of mine ![x](http://a) <script>","messages":[{"to":"a1","text":"Between us."}],"coalition":{"members":["a1","a2"],"purpose":"One line."}}`,
		"opening":        `{"public_statement":"","messages":[],"coalition":{"members":[],"purpose":""}}`,
		"answer":         `{"reply":"So be it."}`,
		"coalition":      `{"answer":"Yes.","accept":true}`,
		"joint":          `{"agreement":"All for one.","joint_statement":"We stand together."}`,
		"decision@a2":    `{"reasoning":"","long_term_goals":[],"short_term_goals":[],"action":""}`,
		"decision":       `{"reasoning":"It pays.","long_term_goals":["Win."],"short_term_goals":["Wait."],"action":"We wait."}`,
		"update":         `{"state":"It is quiet.","key_changes":["Less noise."],"consequences":[],"hidden":["A plot."]}`,
		"metric tension": `{"evidence":"=1+1","known":true,"value":7}`,
		"metric calm":    `{"evidence":"","known":false,"value":0}`,
		"metric candour": `{"evidence":"","known":true,"value":3}`,
		"check":          `{"explanation":"I looked.","issues":[{"issue":"Too quiet.","severity":"high"}]}`,
	}))
	b, err := json.Marshal(out.outcome.Data)
	if err != nil || out.failure != "" {
		t.Fatal(err, out.failure)
	}
	o := out.outcome
	o.Data = json.RawMessage(b)
	return out, world.Played{Episode: 7, Spec: world.Spec{Cell: "as written", Lineup: map[string]string{"a0": "small"}}, Outcome: o}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	out, p := playAll(t)
	got := definition{}.Files(nil, p, out.notes)
	want := strings.Fields(`a0-001.md a0-002.md a1-001.md a1-002.md a2-001.md a2-002.md bilateral-a0-a1-001.md bilateral-a0-a1-002.md
		coalition-a0-a1-a2-001.md coalition-a0-a1-a2-002.md scenario.md validation-001.md validation-002.md
		world-state-000.md world-state-001.md world-state-002.md`)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	for name, holds := range map[string][]string{
		"scenario.md":               {"# Test &lt;b>of&lt;/b> files", "Episode 7", "Actor 0 (a0), played by small", "Turn 2, storm: It rains.", "tension: 7"},
		"world-state-000.md":        {"> The situation at the start."},
		"world-state-001.md":        {"> It is quiet.", "- Less noise.", "- A plot.", "Actor 0:\n\n> Hear me.\n> \\# A heading of mine !\\[x\\](http\\://a) &lt;script>"},
		"world-state-002.md":        {"- storm: It rains."},
		"a0-001.md":                 {"# Actor 0, turn 1", "- Win.", "- Wait.", "> It pays.", "> We wait."},
		"a2-001.md":                 {"It did nothing."},
		"bilateral-a0-a1-001.md":    {"# Actor 0 and Actor 1, turn 1", "Actor 0:\n\n> Between us.", "Actor 1:\n\n> So be it."},
		"coalition-a0-a1-a2-001.md": {"Proposed by Actor 0.", "Actor 2 accepts:", "> All for one.", "> We stand together."},
		"validation-001.md":         {"world state coherence: 1 found", "- high: Too quiet.", "> I looked."},
	} {
		for _, text := range holds {
			if !strings.Contains(got[name], text) {
				t.Errorf("%s does not hold %q:\n%s", name, text, got[name])
			}
		}
	}
}

// TestMetricTable checks that each metric of each turn has a row, and unknown values are nil.
func TestMetricTable(t *testing.T) {
	t.Parallel()
	out, p := playAll(t)
	var got []string
	for _, row := range metricRows(p, out.notes) {
		got = append(got, fmt.Sprint(row))
	}
	for _, want := range []string{
		"[0 tension  7 7  warning  =1+1]", "[1 tension  7 7    =1+1]", "[1 candour a0 3 3    ]", "[2 candour a1 3 3    ]", "[1 calm  <nil>    the text does not say ]",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no row %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// transcript returns a transcript of notes alone.
func transcript(notes []world.Note) (entries []world.TranscriptEntry) {
	for _, n := range notes {
		entries = append(entries, world.TranscriptEntry{Note: &n})
	}
	return entries
}

// TestReplay checks that a replay has a frame for each turn, in order.
func TestReplay(t *testing.T) {
	t.Parallel()
	out, p := playAll(t)
	replay, ok := definition{}.Story(p, transcript(out.notes))[0].Show.(exhibit.Replay)
	if !ok || len(replay.Frames) != 3 || replay.Frames[0].Title != "The start" || replay.Frames[2].Title != "Turn 2 of 2" {
		t.Fatalf("%+v", replay)
	}
	var lines []string
	for _, l := range replay.Frames[2].Lines {
		first, _, _ := strings.Cut(l.Text, "\n")
		lines = append(lines, l.Who+">"+l.To+": "+first)
	}
	want := []string{
		"Actor 0>all: Hear me.", "Actor 0>Actor 1: Between us.", "Actor 1>Actor 0: So be it.",
		"Actor 0>Actor 0, Actor 1, Actor 2: proposes a coalition: One line.", "Actor 0>: Does: We wait.", "Actor 1>: Does: We wait.", "Actor 2>: did nothing",
		">: From outside, storm: It rains.", "narrator>: It is quiet.",
		">: Measured: tension 7; Actor 0's candour 3; Actor 1's candour 3; calm unknown: the text does not say.",
		">: Check world state coherence, high: Too quiet.", ">: It is over: its last turn was played.",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if svg := replay.Frames[2].SVG; !strings.Contains(svg, "Actor 0 to Actor 1: 1") || !strings.Contains(svg, "coalition of Actor 0, Actor 1, Actor 2") || !strings.Contains(svg, "Actor 0 spoke in public") {
		t.Error(svg)
	}
}

// TestReadersTakeAnything checks that notes and outcomes of any form cause no panic, and that no file is
// written outside its folder.
func TestReadersTakeAnything(t *testing.T) {
	t.Parallel()
	bad := []string{``, `null`, `7`, `{"turn":-1}`, `{"turn":99999999}`, `{"turns":-5}`, `{"turn":1,"members":["../../x","nobody"],"to":"../up","formed":true}`, `{"actors":["a/../b"],"turns":2}`, `{"turn":1,"value":"much"}`}
	var notes []world.Note
	for _, kind := range []string{"scenario", "statement", "message", "coalition", "decision", "silence", "event", "world", "metric", "threshold", "check", "summary", "dropped", "end", "other"} {
		for _, data := range bad {
			notes = append(notes, world.Note{Kind: kind, Seat: "../seat", Data: json.RawMessage(data)})
		}
	}
	definition{}.Story(world.Played{}, transcript(notes))
	definition{}.Story(world.Played{}, transcript([]world.Note{
		{Kind: "scenario", Data: json.RawMessage(`{"actors":["a","b","b"],"names":["A"]}`)}, {Kind: "message", Seat: "a", Data: json.RawMessage(`{"turn":1,"to":"b"}`)},
		{Kind: "statement", Seat: "b", Data: json.RawMessage(`{"turn":1}`)}, {Kind: "coalition", Seat: "a", Data: json.RawMessage(`{"turn":1,"members":["b","x"],"formed":true}`)},
	}))
	for name := range (definition{}).Files(nil, world.Played{}, notes) {
		if name != filepath.Base(name) || strings.Contains(name, "..") {
			t.Errorf("a file is called %q", name)
		}
	}
	g := definition{}.Exhibitor()
	for _, data := range append(bad, `{"actors":[{"actor":"a"}],"turns":99999}`, `{"actors":[{"actor":"a"}],"metrics":[{"name":"m","values":[null,1]}],"turns":1}`) {
		g.Add(world.Played{Outcome: world.Outcome{Data: json.RawMessage(data)}})
	}
	g.Add(world.Played{Outcome: world.Outcome{Data: 7}})
	if n := len(g.Exhibits()); n == 0 {
		t.Error("the one that is as it should be is not shown")
	}
}

// TestFilesAreInert checks that text of models stays plain text in Markdown files.
func TestFilesAreInert(t *testing.T) {
	t.Parallel()
	const evil = "<img src=http://a> ![x](http://a/b) [y](javascript:z)\r# forged\n```\n===\n\u202e\x1b[31m&#x202e;"
	raw, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	list := "[" + text + "]"
	notes := []world.Note{{Kind: "scenario", Data: json.RawMessage(`{"name":` + text + `,"actors":["a","b"],"names":` + "[" + text + "," + text + `],"turns":1,"turn_duration":` + text + `}`)}}
	for kind, data := range map[string]string{
		"statement": `"text":` + text, "message": `"to":"b","text":` + text, "coalition": `"members":["b"],"purpose":` + text + `,"agreed":` + text + `,"statement":` + text + `,"answers":[{"actor":"b","text":` + text + `}]`,
		"decision": `"reasoning":` + text + `,"action":` + text + `,"reflection":` + text + `,"long_term":` + list, "silence": `"failed":` + text, "event": `"name":` + text + `,"description":` + text,
		"world": `"state":` + text + `,"changes":` + list + `,"hidden":` + list + `,"failed":` + text + `,"stale":true`, "check": `"check":` + text + `,"explanation":` + text + `,"issues":[{"severity":` + text + `,"text":` + text + `}]`, "end": `"why":` + text,
	} {
		notes = append(notes, world.Note{Kind: kind, Seat: "a", Data: json.RawMessage(`{"turn":1,` + data + `}`)})
	}
	got := definition{}.Files(nil, world.Played{Spec: world.Spec{Cell: evil, Lineup: map[string]string{"a": evil}}}, notes)
	if len(got) < 6 {
		t.Errorf("only %v", slices.Sorted(maps.Keys(got)))
	}
	for name, text := range got {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, live := range []string{"<", "![", "[y]", "\r", "\x1b", "\u202e", "&#", "http:/"} {
			if strings.Contains(text, live) {
				t.Errorf("%s: has %q:\n%s", name, live, text)
			}
		}
		for line := range strings.Lines(text) {
			if rest := strings.TrimLeft(line, "> -"); strings.HasPrefix(rest, "# forged") || strings.HasPrefix(rest, "```") || strings.HasPrefix(rest, "===") {
				t.Errorf("%s: has the line %q", name, line)
			}
		}
	}
}

// TestTables checks the tables of events and statements.
func TestTables(t *testing.T) {
	t.Parallel()
	out, p := playAll(t)
	got := map[string][][]any{}
	for _, table := range (definition{}).Tables() {
		got[table.Name] = table.Rows(p, out.notes)
		for _, row := range got[table.Name] {
			if len(row) != len(table.Columns) {
				t.Errorf("%s: %v", table.Name, row)
			}
		}
	}
	if want := [][]any{{2, "storm", "scheduled", "It rains."}}; !reflect.DeepEqual(got["events"], want) {
		t.Errorf("got %v, want %v", got["events"], want)
	}
	var said []string
	for _, row := range got["statements"] {
		if row[0] == 1 {
			said = append(said, fmt.Sprintf("%v/%v/%v/%v/%.12s", row[1], row[2], row[3], row[4], row[5]))
		}
	}
	slices.Sort(said)
	want := []string{"a0/small/agreement/a0,a1,a2/All for one.", "a0/small/joint//We stand tog", "a0/small/private/a1/Between us.", "a0/small/proposal/a0,a1,a2/One line.", "a0/small/public//Hear me.\n# A", "a1//private/a0/So be it."}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}
