package export

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/kit/testkit"
	"parley/internal/run/runfile/runfiletest"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

// trajectoriesIn returns the trajectories of entries, by the names of their files, after checking each against the rules of the format.
func trajectoriesIn(t *testing.T, entries []journal.Entry) map[string]*atifTrajectory {
	t.Helper()
	out := map[string]*atifTrajectory{}
	done, err := WriteATIF(t.Context(), runfiletest.Open(t, entries...), world.Kind{}, 0, func(name string, write func(io.Writer) error) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		d := json.NewDecoder(&b)
		d.DisallowUnknownFields()
		tr := &atifTrajectory{}
		if err := d.Decode(tr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if out[name] != nil || exhibit.FileName(name) != name {
			t.Errorf("a file has the name %q", name)
		}
		out[name] = tr
		checkATIF(t, name, tr)
		return nil
	})
	if err != nil || done.Count != len(out) {
		t.Fatalf("%+v, %v", done, err)
	}
	return out
}

// checkATIF checks the rules of ATIF-v1.8: see harbor/models/trajectories of Harbor.
func checkATIF(t *testing.T, name string, tr *atifTrajectory) {
	t.Helper()
	if tr.Schema != "ATIF-v1.8" || tr.Agent.Name == "" || tr.Agent.Version == "" || len(tr.Steps) == 0 || tr.ID == "" {
		t.Errorf("%s: %+v", name, tr)
	}
	for i, s := range tr.Steps {
		if s.ID != i+1 {
			t.Errorf("%s: step %d has the number %d", name, i+1, s.ID)
		}
		agent := s.Source == "agent"
		if !agent && (s.Source != "user" && s.Source != "system" || s.Model != "" || s.Effort != "" || s.Reasoning != "" || s.Calls != nil || s.Metrics != nil) {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Asked != nil && *s.Asked == 0 && (s.Metrics != nil || s.Reasoning != "") {
			t.Errorf("%s: nobody was asked: %+v", name, s)
		}
		if _, err := time.Parse(time.RFC3339, s.Timestamp); s.Timestamp != "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m := s.Metrics; m != nil && len(m.Logprobs) > 0 && len(m.IDs) > 0 && len(m.IDs) != len(m.Logprobs) {
			t.Errorf("%s: %+v", name, m)
		}
		var ids []string
		for _, c := range s.Calls {
			if ids = append(ids, c.ID); c.ID == "" || c.Arguments == nil {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if s.Observation != nil {
			for _, r := range s.Observation.Results {
				if !slices.Contains(ids, r.Call) {
					t.Errorf("%s: the result of %q is with the calls %q", name, r.Call, ids)
				}
			}
		}
	}
}

// session returns the entries of a session with these calls.
func session(calls ...*journal.Replied) []journal.Entry {
	entries := []journal.Entry{
		&journal.Begun{Version: 1, Run: "r", Kind: "crowd", KindVersion: 1, Tool: "parley test", Agents: []world.Agent{{Name: "bold", Model: "lab/large"}}},
		&journal.Opened{}, &journal.Staged{Specs: world.List(world.Spec{Kind: "crowd", Lineup: map[string]string{"a": "bold", "A": "bold"}, Cell: "c"})},
	}
	for i, c := range calls {
		c.Turn = journal.Turn{Turn: i}
		c.Agent = "bold"
		if c.Seat == "" {
			c.Seat = "a"
		}
		if c.Request != nil {
			c.Request.Model = "lab/large"
		}
		entries = append(entries, &journal.Turned{Turn: c.Turn, Calls: 1}, c)
	}
	return append(entries, &journal.Ended{Outcome: world.Outcome{Scores: []world.Score{{Seat: "a", Name: "reward", Value: 1}, {Seat: "b", Name: "reward"}}}}, &journal.Closed{State: journal.Complete})
}

// TestATIF: a conversation with tools is a list of steps without repetitions, in which results are with their calls.
func TestATIF(t *testing.T) {
	t.Parallel()
	call := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "I look. "}}, ToolCalls: []llm.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":2}`}, {ID: "c2", Name: "rm", Arguments: `{"pa`}}}
	result, late := llm.ToolResult("c1", "A cat."), llm.ToolResult("gone", "?")
	begin := []llm.Message{llm.System("Be."), llm.User("Go on.")}
	said := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "I look."}}, ToolCalls: call.ToolCalls} // as the program sends it back
	second := slices.Concat(begin, []llm.Message{said, result})
	third := slices.Concat(second, []llm.Message{llm.Assistant("Done."), llm.User("Go on."), late})
	other := []llm.Message{llm.System("Sum up."), llm.User("Go on."), llm.Assistant("An example.")}
	ask := func(ms []llm.Message, r llm.Response) *journal.Replied {
		r.Usage, r.Metadata.Cost = llm.Usage{Input: 10, Cached: 4, Output: 2, Reasoning: 1}, 2_000_000
		return &journal.Replied{Request: &llm.Request{Messages: ms, Tools: []llm.Tool{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}, Effort: llm.EffortLow}, Response: &r}
	}
	first := ask(begin, llm.Response{Text: "I look. ", ToolCalls: call.ToolCalls, Thoughts: []llm.Thought{{Text: "Hm."}}, Finish: llm.FinishTools, Model: "large-1", TokenIDs: []int{7, 8}, PromptTokenIDs: []int{1}, Logprobs: []llm.Logprob{{Logprob: -0.5}, {Logprob: -0.25}}})
	cached := ask(third, llm.Response{Text: "So."})
	cached.Response.Metadata = llm.Metadata{Cached: true}
	all := trajectoriesIn(t, session(
		first, ask(second, llm.Response{Text: "Done."}), cached, ask(other, llm.Response{Text: "Sum."}),
		&journal.Replied{Request: &llm.Request{Messages: begin}, Error: &llm.Error{Kind: llm.KindServer, Message: "no"}},
		&journal.Replied{Seat: "A", Response: &llm.Response{Text: "squawk"}},
		&journal.Replied{Seat: "../x", Response: &llm.Response{Text: "squawk"}},
	))
	names := make([]string, 0, len(all))
	var got []string
	for name, tr := range all {
		names = append(names, name)
		if tr.seat = tr.Extra["seat"].(string); tr.seat == "a" {
			for _, s := range tr.Steps {
				got = append(got, s.Source+":"+s.Message.(string))
			}
			checkSteps(t, tr)
		} else if *tr.Steps[0].Asked != 0 || tr.Steps[0].Message != "squawk" {
			t.Errorf("%+v", tr.Steps[0])
		}
	}
	if len(names) != 3 {
		t.Errorf("%q", names)
	}
	want := []string{"system:Be.", "user:Go on.", "agent:I look. ", "agent:Done.", "user:Go on.", "user:?", "agent:So.", "system:Sum up.", "agent:An example.", "agent:Sum."}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func checkSteps(t *testing.T, tr *atifTrajectory) {
	t.Helper()
	s := tr.Steps[2]
	if len(s.Calls) != 2 || s.Calls[0].Arguments["at"] != 2.0 || s.Calls[1].Extra["malformed_arguments"] != `{"pa` || s.Observation == nil || len(s.Observation.Results) != 1 || s.Observation.Results[0].Content != "A cat." {
		t.Errorf("%+v", s)
	}
	if m := s.Metrics; s.Reasoning != "Hm." || s.Model != "large-1" || s.Effort != "low" || s.Copied || len(m.IDs) != 2 || m.Logprobs[1] != -0.25 || m.Cost != 0.002 || m.Prompt != 10 || m.Cached != 4 {
		t.Errorf("%+v %+v", s, m)
	}
	if m := tr.Steps[6].Metrics; m.Cost != 0 || m.Extra["unpaid"] != true {
		t.Errorf("%+v", m)
	}
	if !tr.Steps[8].Copied || tr.Steps[9].Copied {
		t.Errorf("%+v", tr.Steps[8])
	}
	if f := tr.Final; f.Prompt != 30 || f.Completion != 6 || f.Cached != 12 || f.Cost < 0.0059 || f.Cost > 0.0061 || f.Steps != 10 {
		t.Errorf("%+v", f)
	}
	if scores, _ := tr.Extra["scores"].(map[string]any); scores["reward"] != 1.0 || tr.Extra["failed_calls"] != 1.0 || len(tr.Agent.Tools) != 1 || tr.Agent.Tools[0].Function.Name != "look" {
		t.Errorf("%+v %+v", tr.Extra, tr.Agent)
	}
}

// TestATIFRich writes the run that has one of everything, and keeps it for Harbor's own models: see test/sdk.
func TestATIFRich(t *testing.T) {
	t.Parallel()
	var written []byte
	_, err := WriteATIF(t.Context(), runfiletest.Open(t, played()...), world.Kind{}, 0, func(name string, write func(io.Writer) error) error {
		var b bytes.Buffer
		defer func() { written = append(written, b.Bytes()...) }()
		return write(&b)
	})
	if err != nil {
		t.Fatal(err)
	}
	trajectoriesIn(t, played())
	testkit.Compare(t, filepath.Join("testdata", "rich.atif.jsonl"), string(written))
	if !strings.Contains(string(written), `"media_type":"audio/mpeg"`) {
		t.Error("the sound is missing")
	}
}

// FuzzATIF writes a conversation of any texts and arguments: no rule is broken.
func FuzzATIF(f *testing.F) {
	f.Add("a", "b", "c1", `{"x":`, true)
	f.Add("\xff", "", "", "null", false)
	f.Fuzz(func(t *testing.T, text, answer, id, arguments string, back bool) {
		ms := []llm.Message{llm.System(text), llm.User(text), llm.ToolResult(id, text)}
		r := llm.Response{Text: answer, ToolCalls: []llm.ToolCall{{ID: id, Name: text, Arguments: arguments}, {ID: id, Arguments: arguments}}, Usage: llm.Usage{Input: 1 << 62, Output: 1 << 62}}
		more := slices.Clone(ms)
		if back {
			more = append(more, llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: answer}}, ToolCalls: r.ToolCalls}, llm.ToolResult(id, arguments))
		}
		trajectoriesIn(t, session(&journal.Replied{Request: &llm.Request{Messages: ms}, Response: &r}, &journal.Replied{Request: &llm.Request{Messages: more}, Response: &r, Seat: text}, &journal.Replied{Request: &llm.Request{Messages: more}, Response: &r}))
	})
}
