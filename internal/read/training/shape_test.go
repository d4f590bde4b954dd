package training

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
	"parley/worlds/rollout/rules"
)

// talks writes a run with one group of two episodes of three answers. In the first, every prompt begins with all
// that came before; in the second, the third prompt has other tokens for the same messages.
func talks(t *testing.T) *memory {
	t.Helper()
	j := &memory{}
	write := func(e journal.Entry) {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	spec := world.Spec{Kind: "rollout", Params: json.RawMessage(`{"env":"maze"}`)}
	write(&journal.Begun{Run: "r1", Kind: "rollout"})
	write(&journal.Staged{Specs: world.List(spec, spec)})
	prompts := [][][]int{{{1}, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}}, {{1}, {1, 2, 3, 4}, {1, 23, 4, 5, 6}}}
	said := [][]int{{2, 3}, {5}, {7}}
	versions := []string{"0", "0", "1"}
	for n := range prompts {
		messages := []llm.Message{llm.User("where?")}
		rows := []rules.Row{}
		for i, prompt := range prompts[n] {
			r := &llm.Response{Text: "left", PromptTokenIDs: prompt, TokenIDs: said[i], WeightVersion: versions[i]}
			for _, id := range said[i] {
				r.Logprobs = append(r.Logprobs, llm.Logprob{Logprob: -float64(id)})
			}
			write(&journal.Replied{
				Turn: journal.Turn{Episode: n, Turn: i}, Seat: "agent", Agent: "x",
				Request: &llm.Request{Model: "lab/m", Messages: slices.Clone(messages)}, Response: r,
			})
			messages = append(messages, llm.Assistant("left"), llm.User("and now?"))
			last := i == 2
			rows = append(rows, rules.Row{Ask: i, Step: i + 1, Seat: "agent", StepReward: float64(n), Weights: versions[i], Completed: last, Trainable: last})
		}
		d, err := json.Marshal(rules.Data{Env: "maze", Stop: rules.StopTerminated, Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		write(&journal.Ended{Episode: n, Outcome: world.Outcome{
			Data: json.RawMessage(d), Scores: []world.Score{{Seat: "agent", Name: "reward", Value: float64(3 * n)}},
		}})
	}
	return j
}

// TestShapes: each shape has the names and types that its program wants.
func TestShapes(t *testing.T) {
	t.Parallel()
	const (
		said  = `{"role":"assistant","content":"left"}`
		again = `,{"role":"user","content":"and now?"},`
		old   = `{"role":"assistant","content":"left","weight":0}`
		where = `{"role":"user","content":"where?"}`
	)
	for _, c := range []struct {
		as   Shape
		want []string
	}{
		{Sequences, []string{
			`{"run":"r1","group":"maze:1","episode":0,"attempt":0,"agent":"agent","policy":"x","part":0,"reward":0,"advantage":-0.7071064478533713,"status":"completed","tokens":[1,2,3,4,5,6,7],"loss_mask":[0,1,1,0,1,0,1],"logprobs":[0,-2,-3,0,-5,0,-7],"answer_starts":[1,4,6],"weight_versions":["0","0","1"],"step_rewards":[0,0,0]}`,
			`{"run":"r1","group":"maze:1","episode":1,"attempt":0,"agent":"agent","policy":"x","part":0,"reward":3,"advantage":0.7071064478533713,"status":"completed","tokens":[1,2,3,4,5],"loss_mask":[0,1,1,0,1],"logprobs":[0,-2,-3,0,-5],"answer_starts":[1,4],"weight_versions":["0","0"],"step_rewards":[1,1]}`,
			`{"run":"r1","group":"maze:1","episode":1,"attempt":0,"agent":"agent","policy":"x","part":1,"reward":3,"advantage":0.7071064478533713,"status":"completed","tokens":[1,23,4,5,6,7],"loss_mask":[0,0,0,0,0,1],"logprobs":[0,0,0,0,0,-7],"answer_starts":[5],"weight_versions":["1"],"step_rewards":[1]}`,
		}},
		{TRLSFT, []string{
			`{"completion":[` + said + again + said + again + said + `],"prompt":[` + where + `]}`,
			`{"completion":[` + said + again + said + `],"prompt":[` + where + `]}`,
			`{"completion":[` + said + `],"prompt":[` + where + `,` + said + again + said + again[:len(again)-1] + `]}`,
		}},
		{OpenAIFT, []string{
			`{"messages":[` + where + `,` + said + again + said + again + said + `]}`,
			`{"messages":[` + where + `,` + said + again + said + `]}`,
			`{"messages":[` + where + `,` + old + again + old + again + said + `]}`,
		}},
		{TRLGRPO, []string{`{"agent":"agent","env":"maze","group":"maze:1","prompt":[{"role":"user","content":"where?"}]}`}},
		{Slime, []string{
			`{"group_index":0,"index":0,"loss_mask":[1,1,0,1,0,1],"metadata":{"advantage":-0.7071064478533713,"agent":"agent","episode":0,"group":"maze:1/agent","part":0,"run":"r1"},"response_length":6,"reward":0,"rollout_id":0,"rollout_log_probs":[-2,-3,0,-5,0,-7],"status":"completed","tokens":[1,2,3,4,5,6,7],"weight_versions":["0","0","1"]}`,
		}},
		{VeRL, []string{
			`{"extra_fields":{"advantage":-0.7071064478533713,"agent":"agent","episode":0,"part":0,"run":"r1","weight_versions":["0","0","1"]},"metrics":{"compute_score":0,"generate_sequences":0,"tool_calls":0},"num_turns":6,"prompt_ids":[1],"response_ids":[2,3,4,5,6,7],"response_logprobs":[-2,-3,0,-5,0,-7],"response_mask":[1,1,0,1,0,1],"reward_score":0,"uid":"maze:1/agent"}`,
		}},
		{AReaL, []string{
			`{"advantage":-0.7071064478533713,"agent":"agent","attention_mask":[1,1,1,1,1,1,1],"episode":0,"group":"maze:1/agent","input_ids":[1,2,3,4,5,6,7],"logprobs":[0,-2,-3,0,-5,0,-7],"loss_mask":[0,1,1,0,1,0,1],"part":0,"rewards":0,"versions":[-1,0,0,-1,0,-1,1]}`,
		}},
	} {
		var out bytes.Buffer
		a, err := Write(t.Context(), &out, talks(t), rollouts(), Filter{}, c.as, JSONL)
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if err != nil || a.Rows != len(got) || len(got) < len(c.want) || !slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%s: %+v %v\n%s\nwant\n%s", c.as, a, err, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if a.Joins.Whole != 3 || a.Joins.Drift != 1 || a.Joins.History != 0 {
			t.Errorf("%s: %+v", c.as, a.Joins)
		}
	}
}

// TestTrainedOnce: each of the six answers of talks is trained on once, in every shape that trains on answers. Masks and
// messages say which those are.
func TestTrainedOnce(t *testing.T) {
	t.Parallel()
	ones := func(mask any) (n int) {
		list, _ := mask.([]any)
		for i, one := range list {
			if one == 1.0 && (i == 0 || list[i-1] == 0.0) {
				n++
			}
		}
		return n
	}
	answers := func(messages any) (n int) {
		list, _ := messages.([]any)
		for _, m := range list {
			m, _ := m.(map[string]any)
			if m["role"] == "assistant" && m["weight"] != 0.0 {
				n++
			}
		}
		return n
	}
	for as, trained := range map[Shape]func(record map[string]any) int{
		Rows:      func(r map[string]any) int { return ones(r["loss_mask"]) },
		Sequences: func(r map[string]any) int { return ones(r["loss_mask"]) },
		Slime:     func(r map[string]any) int { return ones(r["loss_mask"]) },
		VeRL:      func(r map[string]any) int { return ones(r["response_mask"]) },
		AReaL:     func(r map[string]any) int { return ones(r["loss_mask"]) },
		TRLSFT:    func(r map[string]any) int { return answers(r["completion"]) },
		OpenAIFT:  func(r map[string]any) int { return answers(r["messages"]) },
	} {
		n := 0
		for _, record := range recordsOf(t, talks(t), Filter{}, as) {
			n += trained(record)
		}
		if n != 6 {
			t.Errorf("%s: %d answers are trained on, want 6", as, n)
		}
	}
}

// recordsOf returns the records of a shape.
func recordsOf(t *testing.T, j Source, f Filter, as Shape) (all []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	if _, err := Write(t.Context(), &out, j, rollouts(), f, as, JSONL); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(&out); d.More(); {
		var one map[string]any
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestAdvantage: an episode is compared with the same seat in the group's other episodes, and counts once. Seat a always gets 1.25, so that
// it learns nothing. Seat b gets 3 in an episode of three parts, and 0 in two others.
func TestAdvantage(t *testing.T) {
	t.Parallel()
	j := &memory{}
	write := func(e journal.Entry) {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	spec := world.Spec{Kind: "rollout", Params: json.RawMessage(`{"env":"maze"}`)}
	write(&journal.Begun{Run: "r1", Kind: "rollout"})
	write(&journal.Staged{Specs: world.List(spec, spec, spec)})
	for n, reward := range []float64{3, 0, 0} {
		rows := []rules.Row{}
		for turn := range 4 { // seat a answers once, seat b one or three times, each time to another prompt
			seat := "b"
			if turn == 0 {
				seat = "a"
			} else if turn > 1 && n > 0 {
				break
			}
			last := turn == 0 || turn == 3 || n > 0
			write(&journal.Replied{
				Turn: journal.Turn{Episode: n, Turn: turn}, Seat: seat, Agent: "x", Request: &llm.Request{Messages: []llm.Message{llm.User(fmt.Sprint("turn ", turn))}},
				Response: &llm.Response{Text: "left", PromptTokenIDs: []int{turn}, TokenIDs: []int{9}},
			})
			rows = append(rows, rules.Row{Ask: turn, Step: turn + 1, Seat: seat, Completed: last, Trainable: last})
		}
		d, err := json.Marshal(rules.Data{Env: "maze", Stop: rules.StopTerminated, Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		write(&journal.Ended{Episode: n, Outcome: world.Outcome{
			Data: json.RawMessage(d), Scores: []world.Score{{Seat: "a", Name: "reward", Value: 1.25}, {Seat: "b", Name: "reward", Value: reward}},
		}})
	}
	// The returns of b are 3, 0 and 0: their mean is 1 and their standard deviation the square root of 3.
	want := map[string]string{"a 0": "0.000", "a 1": "0.000", "a 2": "0.000", "b 0": "1.155", "b 1": "-0.577", "b 2": "-0.577"}
	for _, as := range []Shape{Rows, Sequences, Slime, VeRL, AReaL} {
		for _, f := range []Filter{{}, {MinReward: new(float64)}} { // what is left out does not change it
			records := recordsOf(t, j, f, as)
			peers := map[any]string{}
			for _, r := range records {
				from, group := r, any(nil)
				switch as {
				case Slime:
					from, group = r["metadata"].(map[string]any), r["group_index"]
				case VeRL:
					from, group = r["extra_fields"].(map[string]any), r["uid"]
				case AReaL:
					group = r["group"]
				}
				seat := fmt.Sprint(cmp.Or(from["agent"], from["agent_id"]))
				if got := fmt.Sprintf("%.3f", from["advantage"]); got != want[fmt.Sprint(seat, " ", from["episode"])] {
					t.Errorf("%s: seat %s in episode %v: %s", as, seat, from["episode"], got)
				}
				if other := peers[group]; group != nil && other != "" && other != seat {
					t.Errorf("%s: seats %s and %s are in group %v", as, seat, other, group)
				}
				peers[group] = seat
			}
			if len(records) != 8 {
				t.Errorf("%s: %d records, want 8", as, len(records))
			}
		}
	}
	if slime := recordsOf(t, j, Filter{}, Slime); slime[1]["rollout_id"] != slime[3]["rollout_id"] || slime[0]["rollout_id"] == slime[1]["rollout_id"] || slime[1]["index"] == slime[3]["index"] {
		t.Errorf("parts of a seat in an episode are one rollout: %v", slime)
	}
}

// TestToolShapes: calls of tools and their results are in rows and records, and the tools are named.
func TestToolShapes(t *testing.T) {
	t.Parallel()
	const (
		tools = `[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`
		head  = `{"role":"user","content":"where?"},`
		call  = `[{"id":"1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]`
		parts = `[{"id":"1","type":"function","function":{"name":"look","arguments":{"at":1}}}]`
		tail  = `{"role":"assistant","content":"left"}`
	)
	prompt := []llm.Message{
		llm.User("where?"), {Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "hm"}}, ToolCalls: []llm.ToolCall{{ID: "1", Name: "look", Arguments: `{"at":1}`}}},
		{Role: llm.RoleTool, ToolCallID: "1", ToolFailed: true, Parts: []llm.Part{{Text: "dark"}}},
	}
	var r Row
	_, err := r.read(rules.Row{Seat: "agent"}, &journal.Replied{
		Seat: "agent", Request: &llm.Request{Messages: prompt, Tools: []llm.Tool{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}}, Response: &llm.Response{Text: "left"},
	})
	if err != nil || string(r.Tools) != tools {
		t.Fatalf("%s %v", r.Tools, err)
	}
	r.IsTrainable = true
	text, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	for as, want := range map[Shape]string{
		OpenAIFT: `{"messages":[` + head + `{"role":"assistant","tool_calls":` + call + `,"weight":0},{"role":"tool","content":"dark","tool_call_id":"1"},` + tail + `],"tools":` + tools + `}`,
		TRLSFT:   `{"completion":[` + tail + `],"prompt":[` + head + `{"role":"assistant","content":"","tool_calls":` + parts + `},{"role":"tool","content":"dark","tool_call_id":"1"}],"tools":` + string(text) + `}`,
	} {
		all, err := shaped(&Group{Members: []*Trajectory{{Rows: []Row{r}}}}, as, &written{}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(all[0]); err != nil || string(got) != want {
			t.Errorf("%s: %s %v\nwant %s", as, got, err, want)
		}
	}
}

// TestOutside: rows have the info of their step, the row of the dataset and the parameters, all of the last try.
func TestOutside(t *testing.T) {
	t.Parallel()
	warm := 0.7
	acted := func(turn int, name, body, reply string) *journal.Replied {
		return &journal.Replied{Turn: journal.Turn{Turn: turn}, Seat: "agent", Act: &world.Act{Name: name, Body: json.RawMessage(body)}, Response: &llm.Response{JSON: json.RawMessage(reply)}}
	}
	asked := &journal.Replied{Turn: journal.Turn{Turn: 3}, Seat: "agent", Request: &llm.Request{Temperature: &warm, MaxTokens: 9}, Response: &llm.Response{Text: "left"}}
	entries := []journal.Entry{
		acted(0, "open", `{"params":{"dataset":"old"}}`, `{}`), acted(1, "step", `{"step":1}`, `{"info":{"old":1}}`),
		acted(2, "open", `{"try":1,"params":{"dataset":{"q":1}}}`, `{}`), asked, acted(4, "step", `{"try":1,"step":1}`, `{"info":{"score":2}}`), acted(5, "step", `{"try":1,"step":2}`, `{"info":{}}`),
	}
	tr := &Trajectory{byStep: true, outcome: world.Outcome{Data: json.RawMessage(`{"tries":2}`)}, rewards: part.Rewards{Answers: []part.Answer{{Step: 1, Seat: "agent"}}}}
	shared := newAbout(&journal.Begun{}, rollouts())
	if err := (&stamp{about: &shared}).rows(tr, entries, Filter{}); err != nil {
		t.Fatal(err)
	}
	if r := tr.Rows[0]; string(r.Info) != `{"score":2}` || string(r.Dataset) != `{"q":1}` || string(r.Sampling) != `{"temperature":0.7,"max_tokens":9}` {
		t.Errorf("%s %s %s", r.Info, r.Dataset, r.Sampling)
	}
}

// TestPairs: the best and the worst of a group answer the same prompt.
func TestPairs(t *testing.T) {
	t.Parallel()
	row := func(reward float64, prompt, said string, part int) *Trajectory {
		b, err := marshalConversation([]llm.Message{llm.User(prompt)}, &llm.Response{Text: said})
		if err != nil {
			t.Fatal(err)
		}
		return &Trajectory{Rows: []Row{{AgentID: "a", Return: reward, Messages: b, Part: part, IsTrainable: true, prompt: 1}}}
	}
	split := row(9, "p", "in two parts", 0)
	split.Rows = append(split.Rows, row(9, "p", "in two parts", 1).Rows...)
	good, bad := row(1, "p", "good", 0), row(0, "p", "bad", 0)
	for _, c := range []struct {
		members    []*Trajectory
		want, left string
	}{
		{[]*Trajectory{good, bad, row(0.5, "p", "fair", 0), split}, `[{"chosen":[{"role":"assistant","content":"good"}],"prompt":[{"role":"user","content":"p"}],"rejected":[{"role":"assistant","content":"bad"}]}]`, "[]"},
		{[]*Trajectory{good, good}, "null", "[equal reward]"},
		{[]*Trajectory{good, row(0, "q", "y", 0)}, "null", "[different prompts]"},
		{[]*Trajectory{good, split}, "null", "[several parts]"},
		{[]*Trajectory{good}, "null", "[one episode]"},
		{nil, "null", "[]"},
	} {
		left := []string{}
		all, err := shaped(&Group{Members: c.members}, TRLDPO, &written{}, func(why string) { left = append(left, why) })
		got, _ := json.Marshal(all)
		if err != nil || string(got) != c.want || fmt.Sprint(left) != c.left {
			t.Errorf("%s %v %v, want %s %s", got, left, err, c.want, c.left)
		}
	}
	left := []string{}
	if all, err := shaped(&Group{Members: []*Trajectory{split}}, TRLGRPO, &written{}, func(why string) { left = append(left, why) }); err != nil || len(all) > 0 || fmt.Sprint(left) != "[several parts]" {
		t.Errorf("prompts: %v %v %v", all, left, err)
	}
}

// TestSequenceColumns: Parquet has the same sequences as JSON lines.
func TestSequenceColumns(t *testing.T) {
	t.Parallel()
	var table, text bytes.Buffer
	for in, out := range map[Format]*bytes.Buffer{Parquet: &table, JSONL: &text} {
		if _, err := Write(t.Context(), out, talks(t), rollouts(), Filter{}, Sequences, in); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := parquet.Read[Sequence](bytes.NewReader(table.Bytes()), int64(table.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	e := json.NewEncoder(&again)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if again.String() != text.String() {
		t.Errorf("%s\nwant\n%s", again.String(), text.String())
	}
	if _, err := Write(t.Context(), &table, talks(t), rollouts(), Filter{}, Slime, Parquet); err == nil || !strings.Contains(err.Error(), "jsonl only") {
		t.Error(err)
	}
	if _, err := Write(t.Context(), &table, talks(t), rollouts(), Filter{}, "lines", JSONL); err == nil || !strings.Contains(err.Error(), "want one of [rows sequences") {
		t.Error(err)
	}
}

// TestLagOfEveryTurn: one old answer makes a group old, and version 0 is a version.
func TestLagOfEveryTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version, lag int
		want         string
	}{{1, 1, ""}, {1, 0, leftLag}, {0, 0, ""}, {2, 1, leftLag}} {
		a, err := Each(t.Context(), talks(t), rollouts(), Filter{Version: &c.version, Lag: c.lag, Trainable: true}, func(*Group) error { return nil })
		if err != nil || (c.want == "") != (a.Kept == 1) || c.want != "" && a.Left[c.want] != 1 {
			t.Errorf("%+v: %+v %v", c, a, err)
		}
	}
}
