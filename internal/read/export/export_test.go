package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/internal/run/label"
	"parley/internal/run/runfile"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile is text that is hard on readers: quotes, commas, line ends of every kind, what
// is no text, codes, NUL, text turned around, other scripts.
const hostile = "a \"b\", 'c'\r\nd\re\n\tf\x1b[31m \x00 \u202e\u2028\u0085\u007f \xff\xfe 世界 🜚 \\u0041"

func noon(minutes int) time.Time {
	return time.Date(2026, 11, 15, 12, minutes, 0, 123_456_789, time.UTC)
}

// exportSample returns a run with one of everything: answers, tools, thoughts, images, failures, acts, bots,
// copies, strands, several attempts, and episodes in every state.
func exportSample() []journal.Entry {
	half := 0.5
	spec := func(deal int, cell string) world.Spec {
		return world.Spec{Kind: "crowd", Params: json.RawMessage(`{"turns":2}`), Lineup: map[string]string{"a": "bold", "b": "polly"}, Deal: deal, Cell: cell}
	}
	at := func(episode, attempt int, strand string, turn int) journal.Turn {
		return journal.Turn{Episode: episode, Attempt: attempt, Strand: strand, Turn: turn}
	}
	ask := func(t journal.Turn, place int, text string) *journal.Replied {
		return &journal.Replied{
			Turn: t, Index: place, Seat: "a", Label: "word", Agent: "bold", At: noon(2),
			Request: &llm.Request{Model: "lab/large", Temperature: &half, Sample: 7, Messages: []llm.Message{llm.System("Be bold."), llm.User("Go on:\nwhat now?")}},
			Response: &llm.Response{
				Text: text, Finish: llm.FinishStop, Provider: "lab", Model: "large-1", ID: "r1", RequestID: "q1", Tier: "flex",
				Usage:    llm.Usage{Input: 1200, Cached: 1000, CacheWrite: 3, CacheWriteLong: 4, Output: 30, Reasoning: 10},
				Metadata: llm.Metadata{Attempts: 2, Cost: 12_000_001, Latency: 1500 * time.Millisecond, FirstByte: 200 * time.Millisecond, Waited: time.Second, Parsed: "native"},
			},
		}
	}
	failed := ask(at(0, 0, "", 2), 1, "")
	failed.Response = nil
	failed.Error = &llm.Error{Kind: llm.KindRateLimited, Status: 429, Code: "slow_down", Provider: "lab", Model: "large", Message: "Please\nwait.", Usage: llm.Usage{Input: 9}, Metadata: llm.Metadata{Attempts: 5, Cost: 5}}
	rich := ask(at(0, 0, "", 2), 0, "")
	rich.Request.Messages = append(rich.Request.Messages,
		llm.Message{Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "hm"}}, ToolCalls: []llm.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":1}`}}},
		llm.ToolResult("c1", "a cat"),
		llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "see"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte{1, 2}}}}})
	rich.Response.ToolCalls = []llm.ToolCall{{ID: "c2", Name: "look", Arguments: `{"at":2}`}}
	rich.Response.Thoughts = []llm.Thought{{Text: "Let me see."}}
	rich.Response.Refusal, rich.Response.JSON, rich.Response.TokenIDs = "No.", json.RawMessage(`{"a": [1]}`), []int{5, 6}
	rich.Response.Metadata.Cached = true
	act := &journal.Replied{Turn: at(0, 0, "", 3), Seat: "a", Label: "step", Agent: "bold", At: noon(3), Act: &world.Act{Name: "step", Body: json.RawMessage(`{"go":1}`)}, Response: &llm.Response{JSON: json.RawMessage(`{"reward":1}`)}}
	bot := &journal.Replied{Turn: at(0, 0, "1.0/", 0), Seat: "b", Label: "word", Agent: "polly", Response: &llm.Response{Text: "squawk"}}
	copied := ask(at(0, 0, "1.1/", 0), 0, "=1+1")
	copied.Copied = true
	return []journal.Entry{
		&journal.Begun{Version: 1, Run: "00ff", Kind: "crowd", Agents: []world.Agent{{Name: "bold", Model: "lab/large"}, {Name: "polly", Bot: "parrot"}}, Plan: json.RawMessage(`{}`)},
		&journal.Opened{At: noon(1)},
		&journal.Staged{Specs: world.List(spec(0, "long: a=bold"), spec(1, ""))}, &journal.Staged{Stage: 1, First: 2, Specs: world.List(spec(2, ""), spec(3, hostile))},
		&journal.Turned{Turn: at(0, 0, "", 0), Calls: 1}, ask(at(0, 0, "", 0), 0, hostile),
		&journal.Turned{Turn: at(0, 0, "1.1/", 0), Calls: 1}, &journal.Turned{Turn: at(0, 0, "1.0/", 0), Calls: 1}, copied, bot,
		&journal.Turned{Turn: at(0, 0, "", 2), Calls: 2}, failed, rich, &journal.Turned{Turn: at(0, 0, "", 3), Calls: 1}, act,
		&journal.Ended{At: noon(4), Outcome: world.Outcome{
			Scores: []world.Score{{Seat: "a", Name: "points", Value: 3}, {Seat: "b", Name: "points", Value: math.Inf(1)}, {Seat: "a", Name: "share", Value: math.NaN()}, {Name: "length", Value: -0.25}},
			Data:   json.RawMessage(`{"winner": "a"}`),
		}},
		&journal.Ended{Episode: 1, At: noon(4), Outcome: world.Outcome{Failed: "-panic: nil map", Scores: []world.Score{{Name: "length", Value: 1e300}}}},
		&journal.Turned{Turn: at(2, 0, "", 0), Calls: 1}, ask(at(2, 0, "", 0), 0, "given up"),
		&journal.Turned{Turn: at(2, 1, "", 0), Calls: 2}, ask(at(2, 1, "", 0), 1, "'quoted'"),
	}
}

// recorded writes entries and labels to files and opens the run for reading.
func recorded(t testing.TB, entries ...journal.Entry) *runfile.Store {
	t.Helper()
	s := runfiletest.Open(t, entries...)
	for range max(0, min(3, len(entries)-5)) { // an empty run has none
		l := label.Label{Run: entries[0].(*journal.Begun).Run, Episode: 1, Call: "0:0", Tag: "odd", Verdict: label.Fail, By: "eva", Note: strings.ToValidUTF8(hostile, "")}
		if err := label.Add(s.Path(), l); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func written(t testing.TB, s *runfile.Store, table Table, f Format) []byte {
	t.Helper()
	var b bytes.Buffer
	rows, err := Write(t.Context(), &b, []Run{{Store: s}}, table, f, 0)
	if err != nil {
		t.Fatalf("%s as %s: %v", table, f, err)
	}
	if lines := bytes.Count(b.Bytes(), []byte("\n")); f == JSONL && rows != lines {
		t.Errorf("%d rows, %d lines", rows, lines)
	}
	return b.Bytes()
}

// objects reads JSON lines.
func objects(t testing.TB, text []byte) (out []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var row map[string]any
		err := d.Decode(&row)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
}

// TestFailedActs: a failed act is not among the failed calls.
func TestFailedActs(t *testing.T) {
	t.Parallel()
	entries := exportSample()
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Act != nil {
			r.Response, r.Error = nil, &llm.Error{Kind: llm.KindServer}
		}
	}
	row := objects(t, written(t, recorded(t, entries...), Episodes, JSONL))[0]
	if row["failed_calls"] != 1. || row["failed_acts"] != 1. {
		t.Errorf("failed calls %v, failed acts %v, want 1 and 1", row["failed_calls"], row["failed_acts"])
	}
}

// TestRows checks the contents of the tables.
func TestRows(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	said := strings.ToValidUTF8(hostile, "\ufffd")
	for table, rows := range map[Table][]map[string]any{
		Calls: {
			{"run": "00ff", "call": 6., "episode": 0., "turn": 0., "kind": "ask", "asked": "lab/large", "sample": 7., "text": said, "finish": "stop", "error": nil, "json": nil, "written_tokens": 7., "dollars": 0.012000001, "seconds": 1.5, "copied": false, "settings": `{"model":"lab/large","temperature":0.5}`, "replied_at": "2026-11-15T12:02:00.123456Z", "tier": "flex"},
			{"strand": "1.1/", "text": "=1+1", "copied": true, "dollars": 0.},
			{"kind": "bot", "seat": "b", "text": "squawk", "asked": nil, "input_tokens": nil, "dollars": nil, "from_cache": nil, "replied_at": nil, "settings": nil},
			{"text": nil, "error": "rate_limited", "error_message": "Please\nwait.", "error_status": 429., "error_code": "slow_down", "model": "large", "tries": 5., "finish": nil},
			{"text": "", "refusal": "No.", "json": `{"a": [1]}`, "thoughts": `[{"text":"Let me see."}]`, "tool_calls": `[{"id":"c2","name":"look","arguments":"{\"at\":2}"}]`, "token_ids": "[5,6]", "from_cache": true},
			{"kind": "act", "act": "step", "body": `{"go":1}`, "json": `{"reward":1}`, "text": "", "tries": nil},
			{"episode": 2., "attempt": 0., "text": "given up"},
			{"episode": 2., "attempt": 1., "place": 1., "text": "'quoted'"},
		},
		Episodes: {
			{"episode": 0., "stage": 0., "state": "ended", "cell": "long: a=bold", "lineup": `{"a":"bold","b":"polly"}`, "calls": 4., "acts": 1., "failed_calls": 1., "failed_acts": 0., "dollars": 0.024000007, "input_tokens": 1209., "data": `{"winner": "a"}`, "ended_at": "2026-11-15T12:04:00.123456Z", "scores": `[{"seat":"a","name":"points","value":3},{"seat":"b","name":"points","value":"Infinity"},{"seat":"a","name":"share","value":"NaN"},{"name":"length","value":-0.25}]`},
			{"episode": 1., "state": "failed", "failed": "-panic: nil map", "cell": nil, "data": nil, "calls": 0.},
			{"episode": 2., "stage": 1., "state": "playing", "attempt": 1., "calls": 2., "scores": nil, "ended_at": nil},
			{"episode": 3., "stage": 1., "state": "waiting", "attempt": nil, "cell": said, "deal": 3.},
		},
		Scores: {
			{"episode": 0., "cell": "long: a=bold", "deal": 0., "seat": "a", "agent": "bold", "model": "lab/large", "name": "points", "value": 3.},
			{"seat": "b", "agent": "polly", "model": nil, "value": "Infinity"},
			{"name": "share", "value": "NaN"},
			{"seat": nil, "agent": nil, "name": "length", "value": -0.25, "state": "ended"},
			{"episode": 1., "state": "failed", "value": 1e300},
		},
		Labels: {{"episode": 1., "call": "0:0", "tag": "odd", "verdict": "fail", "by": "eva", "note": strings.TrimSpace(strings.ToValidUTF8(hostile, ""))}, {}, {}},
	} {
		got := objects(t, written(t, s, table, JSONL))
		if len(got) != len(rows) {
			t.Fatalf("%s: %d rows, want %d", table, len(got), len(rows))
		}
		for i, want := range rows {
			for name, v := range want {
				if is, ok := got[i][name]; !ok || is != v {
					t.Errorf("%s: row %d: %s is %#v, want %#v", table, i, name, is, v)
				}
			}
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	calls := map[any]map[string]any{}
	for _, c := range objects(t, written(t, s, Calls, JSONL)) {
		calls[c["call"]] = c
	}
	rows := objects(t, written(t, s, Messages, JSONL))
	var rich []string
	for _, m := range rows {
		c := calls[m["call"]]
		for _, name := range []string{"run", "episode", "attempt", "strand", "turn", "place", "seat", "label"} {
			if c[name] != m[name] {
				t.Errorf("%s of a message is %v, of its call %v", name, m[name], c[name])
			}
		}
		if c["refusal"] == "No." {
			whole, _ := m["whole"].(string)
			rich = append(rich, m["role"].(string)+" "+m["text"].(string)+" "+whole)
		}
	}
	want := []string{
		"system Be bold. ", "user Go on:\nwhat now? ",
		`assistant  {"role":"assistant","thoughts":[{"text":"hm"}],"tool_calls":[{"id":"c1",`, `tool a cat {"role":"tool","content":"a cat","tool_call_id":"c1"}`, `user see {"role":"user","content":[`,
	}
	if len(rows) != 5*2+5 || !slices.EqualFunc(rich, want, strings.HasPrefix) {
		t.Errorf("%d rows, %q", len(rows), rich)
	}
}

// TestEveryColumn: a line has the columns of Columns, in order.
func TestEveryColumn(t *testing.T) {
	t.Parallel()
	s := recorded(t, exportSample()...)
	for _, table := range tables() {
		line, _, _ := bytes.Cut(written(t, s, table, JSONL), []byte("\n"))
		d := json.NewDecoder(bytes.NewReader(line))
		var names []string
		for d.More() || len(names) == 0 {
			token, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			if name, ok := token.(string); ok {
				names = append(names, name)
				if _, err := d.Token(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if want := columnNames(table); !slices.Equal(names, want) {
			t.Errorf("%s: %v, want %v", table, names, want)
		}
	}
}

func columnNames(t Table) (out []string) {
	for _, c := range Columns(t) {
		out = append(out, c.Name)
	}
	return out
}

// TestParts: List and Spent agree with reading the whole run file, even while it is written.
func TestParts(t *testing.T) {
	t.Parallel()
	store := recorded(t, exportSample()...)
	r, err := runfile.OpenRead(store.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ends []runfile.End
	n := 0
	err = store.Read(t.Context(), journal.Whole(), func(e journal.Entry) error {
		n++
		if e, ok := e.(*journal.Ended); ok {
			ends = append(ends, runfile.End{Entry: n, Episode: e.Episode})
		}
		return nil
	})
	if err != nil || len(ends) == 0 {
		t.Fatal(ends, err)
	}
	for since := range 30 {
		want := slices.DeleteFunc(slices.Clone(ends), func(e runfile.End) bool { return e.Entry < since })
		if got, err := r.Ends(t.Context(), since); err != nil || !slices.Equal(got, want) {
			t.Errorf("since %d: %v, %v; want %v", since, got, err, want)
		}
	}
	var planned []runfile.Listed
	for _, stage := range head.Stages {
		for i, spec := range stage.Specs.All() {
			planned = append(planned, runfile.Listed{Episode: stage.First + i, Stage: stage.Stage, Spec: spec})
		}
	}
	for from := range 6 {
		want := planned[min(from, len(planned)):min(from+2, len(planned))]
		got, err := r.List(t.Context(), runfile.Listing{From: from, Limit: 2, Lost: true})
		if err != nil || len(got) != len(want) {
			t.Fatalf("from %d: %v, %v; want %v", from, got, err, want)
		}
		for i := range want {
			if got[i].Episode != want[i].Episode || got[i].Stage != want[i].Stage || (got[i].Ended != nil) != head.Ended.Has(got[i].Episode) || got[i].Spec.Deal != want[i].Spec.Deal {
				t.Errorf("%+v, want %+v", got[i], want[i])
			}
		}
	}
	for after := range 4 {
		begun, stages, err := r.Plan(t.Context(), after)
		want := head.Stages[min(after, len(head.Stages)):]
		if err != nil || (begun == nil) != (after > 0) || after == 0 && begun.Run != "00ff" || !reflect.DeepEqual(stages, want) && len(stages)+len(want) > 0 {
			t.Errorf("%+v %+v, want %+v: %v", begun, stages, want, err)
		}
	}
}
