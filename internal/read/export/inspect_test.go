package export

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/kit/testkit"
	"parley/internal/run/runfile/runfiletest"
	"parley/internal/serve/gateway"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// played is a run with one of everything: answers, tools, thoughts, images, failures, acts, bots,
// notes, an attempt that was given up, and episodes in every state.
func played() []journal.Entry {
	half := 0.5
	noon := func(seconds int) time.Time { return time.Date(2026, 11, 15, 12, 0, seconds, 0, time.UTC) }
	at := func(episode, attempt, turn int) journal.Turn {
		return journal.Turn{Episode: episode, Attempt: attempt, Turn: turn}
	}
	ask := func(t journal.Turn, seconds int, text string) *journal.Replied {
		return &journal.Replied{
			Turn: t, Seat: "a", Label: "word", Agent: "bold", At: noon(seconds),
			Request: &llm.Request{Model: "lab/large", Temperature: &half, MaxTokens: 50, Messages: []llm.Message{llm.System("Be bold."), llm.User("What now?")}},
			Response: &llm.Response{
				Text: text, Finish: llm.FinishStop, Provider: "lab", Model: "large-1", Usage: llm.Usage{Input: 1200, Cached: 1000, CacheWrite: 3, Output: 30, Reasoning: 10},
				Metadata: llm.Metadata{Attempts: 2, Cost: 12_000_000, Latency: time.Second},
			},
		}
	}
	rich := ask(at(0, 1, 1), 20, "")
	rich.Request.Messages = append(rich.Request.Messages, llm.Assistant("<b>\x1b[31m \xff </script>"),
		llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Text: "see"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte{1, 2}}}, {File: &llm.File{Name: "a.pdf", MediaType: llm.MediaPDF, Data: []byte("%PDF-")}}, {File: &llm.File{MediaType: llm.MediaMP3, Data: []byte("ID3")}}}})
	rich.Response.ToolCalls = []llm.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":2}`}, {ID: "c2", Name: "rm", Arguments: `{"path":`}}
	rich.Response.Thoughts, rich.Response.Finish = []llm.Thought{{Text: "Let me see."}}, llm.FinishTools
	failed := ask(at(0, 1, 2), 30, "")
	failed.Response, failed.Error = nil, &llm.Error{Kind: llm.KindTooLong, Provider: "lab", Model: "large", Message: "context of 512 tokens", Usage: llm.Usage{Input: 9}}
	act := &journal.Replied{Turn: at(0, 1, 3), Seat: "a", Label: "step", Agent: "bold", At: noon(31), Act: &world.Act{Name: "step", Body: json.RawMessage(`{"go":1}`)}, Response: &llm.Response{JSON: json.RawMessage(`{"reward":1}`)}}
	bot := &journal.Replied{Turn: at(0, 1, 4), Seat: "b", Label: "word", Agent: "polly", Response: &llm.Response{Text: "squawk"}}
	spec := world.Spec{Kind: "crowd", Params: json.RawMessage(`{"turns":2}`), Lineup: map[string]string{"a": "bold", "b": "polly"}, Cell: "long"}
	return []journal.Entry{
		&journal.Begun{
			Version: 1, Run: "00ff", Kind: "crowd", KindVersion: 3, Seed: 7, Tool: "parley test", At: noon(0), Plan: json.RawMessage(`{}`),
			Agents: []world.Agent{{Name: "bold", Model: "lab/large", Temperature: &half}, {Name: "polly", Bot: "parrot"}},
		},
		&journal.Opened{At: noon(1)},
		&journal.Staged{Specs: world.List(spec, spec, spec, spec)},
		&journal.Turned{Turn: at(0, 0, 0), Calls: 1}, ask(at(0, 0, 0), 2, "given up"),
		&journal.Turned{Turn: at(0, 1, 0), Calls: 1, Notes: []world.Note{{Kind: "secret", Seat: "a", Data: json.RawMessage(`"opal"`)}}}, ask(at(0, 1, 0), 10, "<b>\x1b[31m \xff </script>"),
		&journal.Turned{Turn: at(0, 1, 1), Calls: 1}, rich, &journal.Turned{Turn: at(0, 1, 2), Calls: 1}, failed,
		&journal.Turned{Turn: at(0, 1, 3), Calls: 1}, act, &journal.Turned{Turn: at(0, 1, 4), Calls: 1}, bot,
		&journal.Ended{Attempt: 1, At: noon(40), Outcome: world.Outcome{
			Scores: []world.Score{{Seat: "a", Name: "points", Value: 3}, {Seat: "b", Name: "points", Value: math.Inf(1)}, {Name: "length", Value: -0.25}},
			Data:   json.RawMessage(`{"winner":"a"}`),
		}},
		&journal.Ended{Episode: 1, At: noon(41), Outcome: world.Outcome{Failed: "panic: nil map"}, Stack: "goroutine 1"},
		&journal.Ended{Episode: 2, At: noon(42), Outcome: world.Outcome{Scores: []world.Score{{Seat: "a", Name: "points", Value: 1}}}},
		&journal.Closed{State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByBudget, Detail: "$1.00 is spent"}, At: noon(50)},
	}
}

// inspectWritten returns a log of entries, and its files.
func inspectWritten(t *testing.T, entries []journal.Entry) (whole []byte, members map[string][]byte) {
	t.Helper()
	s := runfiletest.Open(t, entries...)
	var b bytes.Buffer
	var kind world.Kind
	if begun, ok := entries[0].(*journal.Begun); ok && begun.Kind == gateway.KindName {
		kind = gateway.Kind()
	}
	got, err := WriteInspect(t.Context(), &b, s, kind, 0)
	if err != nil {
		t.Fatal(err)
	}
	members, found := opened(t, b.Bytes()), 0
	for name := range members {
		if strings.HasPrefix(name, "samples/") {
			found++
		}
	}
	if staged := specs(entries); found != got.Count || got.Count+got.LeftOut != staged {
		t.Errorf("%d samples of %d episodes, and %+v is said", found, staged, got)
	}
	return b.Bytes(), members
}

// specs counts the episodes of a run.
func specs(entries []journal.Entry) (n int) {
	for _, e := range entries {
		if s, ok := e.(*journal.Staged); ok {
			n += s.Specs.Len()
		}
	}
	return n
}

// TestSessions: every session of a gateway is a sample. One that was not closed has its calls and no
// scores, and is not complete.
func TestSessions(t *testing.T) {
	t.Parallel()
	entries := played()
	begun := *entries[0].(*journal.Begun)
	begun.Kind = gateway.KindName
	entries[0] = &begun
	entries = slices.DeleteFunc(entries, func(e journal.Entry) bool {
		ended, ok := e.(*journal.Ended)
		return ok && ended.Episode == 0
	})
	_, members := inspectWritten(t, entries)
	var all []sampleSummary
	if err := json.Unmarshal(members["summaries.json"], &all); err != nil || len(all) != 3 {
		t.Fatalf("%v: %+v", err, all)
	}
	if open, closed := all[0], all[2]; open.Done || len(open.Scores) > 0 || open.Messages == 0 || open.Time == 0 || !closed.Done || len(closed.Scores) != 1 {
		t.Errorf("%+v\n%+v", open, closed)
	}
	var h struct {
		Results struct {
			Completed int `json:"completed_samples"`
		}
	}
	if err := json.Unmarshal(members["header.json"], &h); err != nil || h.Results.Completed != 1 {
		t.Errorf("%v: %+v", err, h.Results)
	}
}

// opened returns the files of an archive.
func opened(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	members := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if members[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return members
}

// TestGolden compares every file of a log with what inspect_ai has read.
func TestGolden(t *testing.T) {
	t.Parallel()
	whole, members := inspectWritten(t, played())
	if again, _ := inspectWritten(t, played()); !bytes.Equal(whole, again) {
		t.Error("the same run gives other bytes")
	}
	if len(members) != 6 {
		t.Errorf("%d members, want the start, three samples, the summaries and the header", len(members))
	}
	rich := filepath.Join("testdata", "rich.eval") // for test/sdk, which reads it with inspect_ai
	if testkit.Update() {
		if err := os.WriteFile(rich, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(rich)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(members, opened(t, b), bytes.Equal) {
		t.Errorf("%s is not what is written now", rich)
	}
	for _, name := range []string{"header.json", "summaries.json", "samples/0_epoch_1.json", "samples/1_epoch_1.json"} {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, members[name], "", " "); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		testkit.Compare(t, filepath.Join("testdata", filepath.Base(name)+".golden"), pretty.String())
	}
}

// TestStatus: the status of a run in Inspect's words; a run without samples is a log too.
func TestStatus(t *testing.T) {
	t.Parallel()
	begun := []journal.Entry{&journal.Begun{Version: 1, Run: "00ff", Kind: "crowd"}, &journal.Opened{}}
	for want, last := range map[string][]journal.Entry{
		`"status":"started"`:   nil,
		`"status":"success"`:   {&journal.Closed{State: journal.Complete}},
		`"status":"cancelled"`: {&journal.Closed{State: journal.Stopped}},
		`"status":"error"`:     {&journal.Closed{State: journal.Failed, Reason: journal.Reason{Kind: journal.ByError, Detail: "the world diverged"}}},
	} {
		_, members := inspectWritten(t, append(begun[:2:2], last...))
		if !bytes.Contains(members["header.json"], []byte(want)) || string(members["summaries.json"]) != "[]\n" {
			t.Errorf("want %s: %s", want, members["header.json"])
		}
	}
}

// TestMean checks values whose mean and standard error are known.
func TestMean(t *testing.T) {
	t.Parallel()
	mean, stderr := meanOf([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if mean != 5 || math.Abs(stderr-math.Sqrt(32.0/7/8)) > 1e-12 {
		t.Errorf("%v, %v", mean, stderr)
	}
	if mean, stderr := meanOf(slices.Repeat([]float64{1}, 6)); mean != 1 || stderr != 0 {
		t.Errorf("%v, %v", mean, stderr)
	}
}
