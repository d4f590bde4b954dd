package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/llm"
	"parley/world"
	"parley/world/rubric"
	"parley/world/worldtest"
)

func pay(x float64) Result {
	return Result{Reward: Rewards{DefaultAgent: x}}
}

func ends(x float64) Result { r := pay(x); r.Terminated = true; return r }

func cutsOff(x float64) Result { r := pay(x); r.Truncated = true; return r }

// flags writes a row as: step reward/total, then T(erminal), U (truncated), C(ompleted), L(earned from).
func flags(r Row) string {
	s := fmt.Sprintf("%v/%v ", r.StepReward, r.Reward)
	for _, f := range []struct {
		on   bool
		name string
	}{{r.Terminal, "T"}, {r.Truncated, "U"}, {r.Completed, "C"}, {r.Trainable, "L"}} {
		if f.on {
			s += f.name
		}
	}
	return strings.TrimSpace(s)
}

// TestRows checks which rows an episode has and which are trainable: the rules of v1 trainers, and a completed
// last row also after max_steps and an empty prompt.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, params string
		script       script
		stop         Stop
		rows         []string
		acts         string
	}{
		{"all shown: only the last row", `{"message_cut":-1}`, script{steps: []Result{pay(1), pay(0), ends(2)}},
			StopTerminated, []string{"1/1", "0/1", "2/3 TCL"}, "open 0, step 0/1, step 0/2, step 0/3"},
		{"less is all shown too", `{"message_cut":-2}`, script{steps: []Result{pay(1), ends(2)}},
			StopTerminated, []string{"1/1", "2/3 TCL"}, "open 0, step 0/1, step 0/2"},
		{"0 is all shown too", `{"message_cut":0}`, script{steps: []Result{pay(1), cutsOff(2)}},
			StopTruncated, []string{"1/1", "2/3 UCL"}, "open 0, step 0/1, step 0/2"},
		{"cut: every row", `{"message_cut":2}`, script{steps: []Result{pay(1), pay(0), ends(2)}},
			StopTerminated, []string{"1/1 L", "0/1 L", "2/3 TCL"}, "open 0, step 0/1, step 0/2, step 0/3"},
		{"length: a row of nothing, and no step", `{}`, script{steps: []Result{pay(1)}, finish: map[int]llm.Finish{1: llm.FinishLength}},
			StopLength, []string{"1/1", "0/1 TUCL"}, "open 0, step 0/1, close"},
		{"max_steps leaves a last row", `{"max_steps":2}`, script{steps: []Result{pay(1), pay(1)}},
			StopMaxSteps, []string{"1/1", "1/2 UCL"}, "open 0, step 0/1, step 0/2"},
		{"max_steps, cut", `{"max_steps":2,"message_cut":1}`, script{steps: []Result{pay(1), pay(1)}},
			StopMaxSteps, []string{"1/1 L", "1/2 UCL"}, "open 0, step 0/1, step 0/2"},
		{"an end at max_steps is the environment's", `{"max_steps":1}`, script{steps: []Result{ends(1)}},
			StopTerminated, []string{"1/1 TCL"}, "open 0, step 0/1"},
		{"an empty prompt ends it", `{}`, script{steps: []Result{pay(1)}, prompts: func(step int) Prompt {
			if step == 1 {
				return chat(1)
			}
			return nil
		}}, StopEmpty, []string{"1/1 CL"}, "open 0, step 0/1, close"},
		{"an empty prompt at once", `{}`, script{prompts: func(int) Prompt { return nil }}, StopEmpty, nil, "open 0, close"},
		{"a prompt that fits no more", `{}`, script{steps: []Result{pay(1)}, failAsk: map[int]llm.Kind{1: llm.KindTooLong}},
			StopTooLong, []string{"1/1 UCL"}, "open 0, step 0/1, close"},
		{"a step without a reward", `{}`, script{steps: []Result{{Terminated: true}}}, StopTerminated, []string{"0/0 TCL"}, "open 0, step 0/1"},
	} {
		o, d := play(t, c.params, nil, &c.script)
		var rows []string
		for i, r := range d.Rows {
			rows = append(rows, flags(r))
			if r.Ask != i || r.Step != i+1 || r.Seat != "agent" || r.NoReward && d.Stop != StopTooLong {
				t.Errorf("%s: row %d is %+v", c.name, i, r)
			}
		}
		if d.Stop != c.stop || !slices.Equal(rows, c.rows) || strings.Join(c.script.acts, ", ") != c.acts || o.Failed != "" {
			t.Errorf("%s: %s %q after %v %s", c.name, d.Stop, rows, c.script.acts, o.Failed)
		}
	}
}

// TestNoActionAccepted checks that an episode has failed if the environment accepted none of its actions, however it
// ended, and that one accepted action is enough.
func TestNoActionAccepted(t *testing.T) {
	t.Parallel()
	refused := func(r Result) Result { r.Rejected = "message: field required"; return r }
	for _, c := range []struct {
		name   string
		script script
		failed string
	}{
		{"all, to max_steps", script{steps: []Result{refused(pay(0)), refused(pay(0))}}, "environment: it accepted no action: message: field required"},
		{"all, to the end", script{steps: []Result{refused(ends(0))}}, "environment: it accepted no action: message: field required"},
		{"all, to an answer that was cut off", script{steps: []Result{refused(pay(0))}, finish: map[int]llm.Finish{1: llm.FinishLength}}, "environment: it accepted no action: message: field required"},
		{"the first", script{steps: []Result{refused(pay(0)), pay(0)}}, ""},
		{"the last", script{steps: []Result{pay(0), refused(pay(0))}}, ""},
		{"no step was taken", script{finish: map[int]llm.Finish{0: llm.FinishLength}}, ""},
	} {
		o, d := play(t, `{"max_steps":2}`, nil, &c.script)
		trainable := slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Trainable })
		if o.Failed != c.failed || (d.Stop == StopFailed) != (c.failed != "") || trainable == (c.failed != "") {
			t.Errorf("%s: %q, %s, %+v", c.name, o.Failed, d.Stop, d.Rows)
		}
	}
}

// TestMessageCut checks that a shortened prompt has the system message and the last 2n-1 others.
func TestMessageCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cut, messages, want int }{
		{-1, 6, 6}, {0, 6, 6}, {1, 6, 2}, {2, 6, 4}, {2, 4, 4}, {2, 2, 2}, {3, 6, 6}, {50, 6, 6},
	} {
		ms := chat(c.messages / 2)[DefaultAgent].Messages
		got := cutMessages(ms, c.cut)
		if len(ms) != c.messages || len(got) != c.want || got[0].Role != llm.RoleSystem || !reflect.DeepEqual(got[len(got)-1], ms[len(ms)-1]) {
			t.Errorf("message_cut %d of %d: %d messages", c.cut, c.messages, len(got))
		}
	}
	if got := cutMessages(chat(3)[DefaultAgent].Messages[1:], 1); len(got) != 1 || got[0].Text() != "3?" {
		t.Errorf("without a system message: %v", got)
	}
	tools := []llm.Message{llm.System("s"), llm.User("?"), {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1"}, {ID: "2"}}}, llm.ToolResult("1", "x"), llm.ToolResult("2", "y")}
	if got := cutMessages(tools, 1); !reflect.DeepEqual(got, slices.Delete(slices.Clone(tools), 1, 2)) {
		t.Errorf("results of tools without their call: %v", got)
	}
	s := &script{steps: []Result{pay(0), pay(0), ends(0)}}
	play(t, `{"message_cut":2}`, nil, s)
	if n := len(s.asked[2].Ask.Messages); n != 4 {
		t.Errorf("the third ask shows %d messages", n)
	}
}

// TestLost checks that a step is never sent again; the episode begins again from a reset.
func TestLost(t *testing.T) {
	t.Parallel()
	steps := []Result{pay(1), ends(5)}
	for _, c := range []struct {
		name, params string
		failAct      map[string]llm.Kind
		acts, failed string
		tries        int
		first        int // the first row's ask
	}{
		{"a step of unknown outcome", `{}`, map[string]llm.Kind{"step 0/2": llm.KindTimeout},
			"open 0, step 0/1, step 0/2, open 1, step 1/1, step 1/2", "", 2, 2},
		{"twice", `{}`, map[string]llm.Kind{"step 0/1": llm.KindTransport, "open 1": llm.KindServer},
			"open 0, step 0/1, open 1, open 2, step 2/1, step 2/2", "", 3, 1},
		{"for ever", `{"retries":1}`, map[string]llm.Kind{"step 0/1": llm.KindMalformed, "step 1/2": llm.KindMalformed},
			"open 0, step 0/1, open 1, step 1/1, step 1/2", "environment: step 2: malformed (2 tries)", 2, 1},
		{"an answer in a wrong form", `{}`, map[string]llm.Kind{"step 0/2": llm.KindInvalid},
			"open 0, step 0/1, step 0/2, open 1, step 1/1, step 1/2", "", 2, 2},
		{"refused", `{}`, map[string]llm.Kind{"open 0": llm.KindBadRequest}, "open 0", "environment: open: bad_request", 1, 0},
	} {
		s := &script{steps: steps, failAct: c.failAct}
		o, d := play(t, c.params, nil, s)
		if got := strings.Join(s.acts, ", "); got != c.acts || o.Failed != c.failed || d.Tries != c.tries {
			t.Errorf("%s: %s; %q after %d tries", c.name, got, o.Failed, d.Tries)
		}
		for i, r := range d.Rows {
			if r.Ask != c.first+i || r.Trainable == (c.failed != "" || i == 0) {
				t.Errorf("%s: row %+v", c.name, r)
			}
		}
		if (c.failed == "") != (len(o.Scores) > 0) {
			t.Errorf("%s: scores %v", c.name, o.Scores)
		}
	}
}

// TestAskFails: a call that failed is never an action.
func TestAskFails(t *testing.T) {
	t.Parallel()
	s := &script{steps: []Result{pay(1), ends(1)}, failAsk: map[int]llm.Kind{1: llm.KindServer}}
	o, d := play(t, `{"message_cut":1}`, nil, s)
	if o.Failed != "agent: server" || d.Stop != StopFailed || strings.Join(s.acts, ", ") != "open 0, step 0/1, close" {
		t.Errorf("%q %v %v", o.Failed, d, s.acts)
	}
	if len(d.Rows) != 1 || d.Rows[0].Trainable || d.Rows[0].Completed {
		t.Errorf("rows %v", d.Rows)
	}
}

// TestSeveralAgents: the environment says who acts; what they do is one action; rewards
// may come late.
func TestSeveralAgents(t *testing.T) {
	t.Parallel()
	ask := func(agents ...string) Prompt {
		p := Prompt{}
		for _, a := range agents {
			p[a] = Question{Messages: []llm.Message{llm.User("you are " + a)}}
		}
		return p
	}
	s := &script{
		prompts: func(step int) Prompt {
			return []Prompt{ask("a", "b"), ask("a"), ask("b", "c")}[step-1]
		},
		steps: []Result{
			{Reward: Rewards{"b": 1}},
			{Reward: Rewards{DefaultAgent: 9}, Info: json.RawMessage(`{"reward_dict":{"a":2,"c":4}}`)},
			{Reward: Rewards{"a": 3, "b": 5}, Terminated: true},
		},
	}
	o, d := play(t, `{"seats":["a","b","c"]}`, world.Lineup{"a": {Trainable: true}, "c": {Trainable: true}}, s)
	var rows []string
	for _, r := range d.Rows {
		rows = append(rows, fmt.Sprintf("%d %d%s %s", r.Ask, r.Step, r.Seat, flags(r)))
	}
	want := []string{"0 1a 2/2", "1 1b 1/1", "2 2a 3/5 TCL", "3 3b 5/6 TC", "4 3c 0/4 TCL"}
	if !slices.Equal(rows, want) || d.Unmatched != 1 || !d.Rows[4].NoReward {
		t.Errorf("rows %q, unmatched %d", rows, d.Unmatched)
	}
	if got := fmt.Sprint(o.Scores); got != "[{a reward 5} {b reward 6} {c reward 4} { steps 3}]" {
		t.Error(got)
	}
	if s.asked[0].Seat != "a" || s.asked[1].Seat != "b" || len(s.asked) != 5 {
		t.Errorf("asked %v", s.asked)
	}
}

// TestRewardAtTheEnd: in a game that pays at its end, as those of TextArena do, the reward and the flags of the end are on the last answer of
// each agent, also of one that did not make the last move.
func TestRewardAtTheEnd(t *testing.T) {
	t.Parallel()
	turn := func(step int) string { return []string{"player0", "player1"}[(step-1)%2] }
	for _, c := range []struct {
		name string
		end  Result
		want []string
	}{
		{"an end", Result{Reward: Rewards{"player0": 1, "player1": -1}, Terminated: true},
			[]string{"player0 0/0", "player1 0/0", "player0 0/0", "player1 -1/-1 TCL", "player0 1/1 TCL"}},
		{"cut off", Result{Reward: Rewards{"player0": 0, "player1": 1}, Truncated: true},
			[]string{"player0 0/0", "player1 0/0", "player0 0/0", "player1 1/1 UCL", "player0 0/0 UCL"}},
	} {
		s := &script{steps: []Result{{}, {}, {}, {}, c.end}, prompts: func(step int) Prompt {
			return Prompt{turn(step): {Messages: []llm.Message{llm.User("move")}}}
		}}
		_, d := play(t, `{"seats":["player0","player1"]}`, nil, s)
		var rows []string
		for i, r := range d.Rows {
			rows = append(rows, r.Seat+" "+flags(r))
			if paid := i >= 3; r.NoReward == paid {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
		if !slices.Equal(rows, c.want) || d.Unmatched != 0 {
			t.Errorf("%s: %q, want %q; %d unmatched", c.name, rows, c.want, d.Unmatched)
		}
	}
}

func TestAgentWithoutASeat(t *testing.T) {
	t.Parallel()
	s := &script{prompts: func(int) Prompt {
		return Prompt{"z": {Messages: []llm.Message{llm.User("?")}}, "y": {Messages: []llm.Message{llm.User("?")}}, "a": {Messages: []llm.Message{llm.User("?")}}}
	}}
	o, _ := play(t, `{"seats":["a","b"]}`, nil, s)
	if want := `environment: it asks agent "y": params.seats are a, b`; o.Failed != want || strings.Join(s.acts, ",") != "open 0,close" {
		t.Errorf("%q after %v", o.Failed, s.acts)
	}
}

// TestRollout holds the kind to what every kind promises.
func TestRollout(t *testing.T) {
	t.Parallel()
	for _, params := range []string{`{"max_steps":6}`, `{"seats":["a","b"],"max_steps":5,"message_cut":2}`} {
		worldtest.Exercise(t, world.Define(Definition{}), worldtest.Options{Params: params, Answer: answer, EmptyIsAMove: true})
	}
}

// answer plays an environment without state, which asks any agents.
func answer(c world.Call, r *rand.Rand) world.Reply {
	if c.Act == nil {
		return worldtest.Prose(c, r)
	}
	agents := []string{DefaultAgent}
	if c.Seat == "a" {
		agents = []string{"a", "b"}
	}
	d := Delta{}
	for _, a := range agents {
		d[a] = PromptChange{Add: []llm.Message{llm.User(fmt.Sprint(r.IntN(10)))}}
	}
	var v any = Opened{Prompt: d}
	if c.Act.Name == ActStep {
		v = Stepped{Prompt: d, Reward: Rewards{agents[0]: float64(r.IntN(3))}, Terminated: r.IntN(4) == 0}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return world.Reply{JSON: b}
}

// TestTools checks that the tools of a prompt are offered, that calls of them reach the environment, and that calls of tools
// that nobody offered do not.
func TestTools(t *testing.T) {
	t.Parallel()
	look := ToolList{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}
	calls := []llm.ToolCall{{ID: "1", Name: "look", Arguments: "{}"}}
	for _, offered := range []ToolList{look, nil} {
		var sent Action
		s := &script{steps: []Result{pay(1), ends(1)}, calls: calls, sent: &sent, prompts: func(int) Prompt {
			return Prompt{DefaultAgent: {Messages: []llm.Message{llm.User("?")}, Tools: offered}}
		}}
		o, d := play(t, `{}`, nil, s)
		if o.Failed != "" || len(d.Rows) != 2 || len(s.asked[1].Ask.Tools) != len(offered) {
			t.Errorf("%+v, offered %v", d, s.asked[1].Ask.Tools)
		}
		if m := sent[DefaultAgent]; m.Text() != "do 1" || len(m.ToolCalls) != len(offered) {
			t.Errorf("sent %+v", sent)
		}
	}
}

// script is a scripted environment: step i returns steps[i], and prompts grow by two messages a step.
type script struct {
	steps   []Result
	prompts func(step int) Prompt // default: one agent
	finish  map[int]llm.Finish    // of the ask with this number
	weights map[int]string        // that answered the ask with this number
	failAsk map[int]llm.Kind
	failAct map[string]llm.Kind // "open 0", "step 0/2": try, step

	calls    []llm.ToolCall         // of every answer
	verdict  string                 // of a judge
	verdicts map[string]string      // of judges with other names
	calling  map[int][]llm.ToolCall // of the ask with this number
	sent     *Action                // the last one, if it is wanted

	past  Past
	at    int
	asked []world.Call
	acts  []string
}

// chat is the prompt of step n, from 1: a system message, and an exchange for each step.
func chat(n int) Prompt {
	ms := []llm.Message{llm.System("rules"), llm.User("1?")}
	for i := 2; i <= n; i++ {
		ms = append(ms, llm.Assistant("a"), llm.User(fmt.Sprint(i, "?")))
	}
	return Ask(ms...)
}

func (s *script) reply(c world.Call) world.Reply {
	if c.Act == nil {
		n := len(s.asked)
		s.asked = append(s.asked, c)
		if k := s.failAsk[n]; k != "" {
			return world.Reply{Failed: k}
		}
		if c.Label == rubric.Judge {
			return world.Reply{JSON: json.RawMessage(cmp.Or(s.verdicts[c.Seat], s.verdict)), Finish: llm.FinishStop}
		}
		finish := s.finish[n]
		if finish == "" {
			finish = llm.FinishStop
		}
		return world.Reply{Text: fmt.Sprint("do ", n), Finish: finish, Weights: s.weights[n], ToolCalls: append(s.calls, s.calling[n]...)}
	}
	switch c.Act.Name {
	case ActOpen:
		var o Opening
		mustRead(c.Act.Body, &o)
		s.acts = append(s.acts, fmt.Sprint("open ", o.Try))
		s.past, s.at = Past{}, 0
		return s.answer(s.acts[len(s.acts)-1], Opened{Prompt: s.past.Delta(s.prompt(1))})
	case ActList:
		s.acts = append(s.acts, "list")
		return s.answer("list", Listed{Tools: ToolList{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "price", Parameters: json.RawMessage(`{"type":"object"}`)}}})
	case ActCall:
		var calling Calling
		mustRead(c.Act.Body, &calling)
		var called Called
		for _, one := range calling.Calls {
			s.acts = append(s.acts, "call "+one.Name)
			called.Results = append(called.Results, llm.ToolResult(one.ID, "seen "+one.Arguments))
		}
		return s.answer("call", called)
	case ActStep:
		var st Stepping
		mustRead(c.Act.Body, &st)
		s.acts = append(s.acts, fmt.Sprintf("step %d/%d", st.Try, st.Step))
		if s.sent != nil {
			*s.sent = st.Action
		}
		r := s.steps[s.at]
		s.at++
		out := Stepped{Reward: r.Rewarded(), Terminated: r.Terminated, Truncated: r.Truncated, Info: r.Info, Rejected: r.Rejected}
		if !r.Done() && !st.Last {
			out.Prompt = s.past.Delta(s.prompt(st.Step + 1))
		}
		return s.answer(s.acts[len(s.acts)-1], out)
	}
	s.acts = append(s.acts, c.Act.Name)
	return world.Reply{JSON: json.RawMessage("null")}
}

func (s *script) prompt(step int) Prompt {
	if s.prompts == nil {
		return chat(step)
	}
	return s.prompts(step)
}

func (s *script) answer(act string, v any) world.Reply {
	if k := s.failAct[act]; k != "" {
		return world.Reply{Failed: k}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return world.Reply{JSON: b}
}

func mustRead(b []byte, v any) {
	if err := json.Unmarshal(b, v); err != nil {
		panic(err)
	}
}

// play plays an episode of params against s.
func play(t *testing.T, params string, lineup world.Lineup, s *script) (world.Outcome, Data) {
	t.Helper()
	p := Definition{}.Defaults()
	mustRead([]byte(params), p)
	w, err := Definition{}.World(p, lineup)
	if err != nil {
		t.Fatal(err)
	}
	strand := world.Begin(w, world.Deal{Seed: 1})
	var replies []world.Reply
	for range 1000 {
		turn := strand.Next(replies)
		if turn.Panic != "" {
			t.Fatal(turn.Panic, turn.Stack)
		}
		if turn.Done {
			return turn.Outcome, turn.Outcome.Data.(Data)
		}
		replies = nil
		for _, c := range turn.Calls {
			replies = append(replies, s.reply(c))
		}
	}
	t.Fatal("no end")
	return world.Outcome{}, Data{}
}

// TestStale checks what happens to an episode whose answers come from weights that are too far apart.
func TestStale(t *testing.T) {
	t.Parallel()
	versions := func(all ...string) map[int]string {
		out := map[int]string{}
		for i, v := range all {
			out[i] = v
		}
		return out
	}
	for _, c := range []struct {
		params  string
		weights map[int]string
		stop    Stop
		acts    string
	}{
		{`{}`, versions("1", "9", "20"), StopTerminated, "open 0 step 0/1 step 0/2 step 0/3"},
		{`{"max_staleness":1}`, versions("1", "2", "2"), StopTerminated, "open 0 step 0/1 step 0/2 step 0/3"},
		{`{"max_staleness":1}`, versions("1", "2", "3"), StopFailed, "open 0 step 0/1 step 0/2 close"},
		{`{"max_staleness":1}`, versions("3", "2", "1"), StopFailed, "open 0 step 0/1 step 0/2 close"},
		{`{"max_staleness":0}`, versions("a", "", "b"), StopTerminated, "open 0 step 0/1 step 0/2 step 0/3"},
		{`{"max_staleness":0,"stale":"restart"}`, versions("1", "2", "2", "2", "2"), StopTerminated, "open 0 step 0/1 close open 1 step 1/1 step 1/2 step 1/3"},
		{`{"max_staleness":0,"stale":"restart","retries":1}`, versions("1", "2", "3", "4"), StopFailed, "open 0 step 0/1 close open 1 step 1/1 close"},
	} {
		s := &script{steps: []Result{{}, {}, {Terminated: true}}, weights: c.weights}
		o, d := play(t, c.params, nil, s)
		if acts := strings.Join(s.acts, " "); d.Stop != c.stop || acts != c.acts {
			t.Errorf("%s %v: %s (%s): %s, want %s: %s", c.params, c.weights, d.Stop, o.Failed, acts, c.stop, c.acts)
		}
		trainable := slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Trainable })
		if failed := c.stop == StopFailed; failed != strings.Contains(o.Failed, "params.max_staleness") || failed == trainable {
			t.Errorf("%s: failed %q, trainable %t", c.params, o.Failed, trainable)
		}
	}
}

// roles writes messages as their roles, with the calls and the ids of results.
func roles(ms []llm.Message) string {
	var all []string
	for _, m := range ms {
		text := string(m.Role)
		for _, c := range m.ToolCalls {
			text += " " + c.Name
		}
		if m.ToolFailed {
			text += " failed"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestServerTools checks that calls of a server's tools go there and not to the environment, that their results stay in the
// conversation where they were said, and that rewards go to the answers that are actions.
func TestServerTools(t *testing.T) {
	t.Parallel()
	look, price := llm.ToolCall{ID: "1", Name: "look", Arguments: `{"at":1}`}, llm.ToolCall{ID: "2", Name: "price"}
	mine := ToolList{{Name: "price", Parameters: []byte(`{"type":"object"}`)}}
	s := &script{steps: []Result{pay(1), ends(2)}, calling: map[int][]llm.ToolCall{0: {look}, 1: {look, price}, 4: {price}}, prompts: func(step int) Prompt {
		p := chat(step)
		p[DefaultAgent] = Question{Messages: p[DefaultAgent].Messages, Tools: mine}
		return p
	}}
	sent := Action{}
	s.sent = &sent
	o, d := play(t, `{"tools":{"mcp":"http://127.0.0.1:1/mcp"}}`, nil, s)
	var rows []string
	for _, r := range d.Rows {
		rows = append(rows, flags(r))
	}
	if o.Failed != "" || strings.Join(s.acts, ", ") != "open 0, list, call look, call look, step 0/1, step 0/2" || !slices.Equal(rows, []string{"0/0", "0/0", "1/1", "2/3 TCL"}) {
		t.Errorf("%s %v %q", o.Failed, s.acts, rows)
	}
	for i, want := range []string{
		"system, user",
		"system, user, assistant look, tool",
		"system, user, assistant look, tool, assistant look price, tool, tool failed",
		"system, user, assistant look, tool, assistant look price, tool, tool failed, assistant, user",
	} {
		if got := roles(s.asked[i].Ask.Messages); got != want {
			t.Errorf("ask %d: %s, want %s", i, got, want)
		}
		if tools := s.asked[i].Ask.Tools; len(tools) != 2 || tools[0].Name != "price" || tools[1].Name != "look" {
			t.Errorf("ask %d: %+v", i, tools)
		}
	}
	if text := s.asked[1].Ask.Messages[3].Text(); text != `seen {"at":1}` {
		t.Error(text)
	}

	s = &script{steps: []Result{ends(1)}, calls: []llm.ToolCall{look}}
	if _, d := play(t, `{"max_steps":4,"tools":{"mcp":"http://127.0.0.1:1/mcp"}}`, nil, s); d.Stop != StopMaxSteps || strings.Join(s.acts, ", ") != "open 0, list, call look, call look, call look, close" {
		t.Errorf("an agent that only calls tools: %s %v", d.Stop, s.acts)
	}
	s = &script{steps: []Result{ends(1)}, calling: map[int][]llm.ToolCall{0: {look}}, failAct: map[string]llm.Kind{"call": llm.KindServer}}
	if o, d := play(t, `{"retries":1,"tools":{"mcp":"http://127.0.0.1:1/mcp"}}`, nil, s); o.Failed != "" || d.Tries != 2 || len(d.Rows) != 1 {
		t.Errorf("after a call whose result is unknown: %s %+v", o.Failed, d)
	}
	// An environment that rewrites its history takes what was said between with it.
	a := aside{}
	a.add("x", 2, []llm.Message{llm.Assistant("b")})
	a.keep("x", 1)
	if got := a.in("x", []llm.Message{llm.User("c")}); len(got) != 1 {
		t.Error(got)
	}
	for address, want := range map[string]string{"127.0.0.1": "begins with http://", "http://user@host/mcp": "want a plain address"} {
		p := Definition{}.Defaults()
		p.Tools.MCP = address
		if err := p.check(); err == nil || !strings.Contains(err.Error(), "params.tools.mcp: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestAsideOfOthers: a seat that used a tool is not asked in every step, and what it was told is kept for later.
func TestAsideOfOthers(t *testing.T) {
	t.Parallel()
	a := aside{"first": {{after: 1, messages: []llm.Message{llm.User("result")}}}}
	if got := a.in("first", nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := a.in("first", []llm.Message{llm.User("one"), llm.User("two")}); len(got) != 3 || got[1].Text() != "result" {
		t.Errorf("%v", got)
	}
}

// TestTaskName checks that environments and the tasks of files are distinguished, and that different env_params of
// one environment are not.
func TestTaskName(t *testing.T) {
	t.Parallel()
	seed := int64(5)
	small, large := json.RawMessage(`{"size":3}`), json.RawMessage(`{"size":9}`)
	for name, test := range map[string]struct {
		a, b Params
		same bool
	}{
		"other params":        {Params{Env: "maze", EnvParams: small}, Params{Env: "maze", EnvParams: large, MaxSteps: 9}, true},
		"another environment": {Params{Env: "maze"}, Params{Env: "count"}, false},
		"one task":            {Params{Env: "maze", EnvParams: small, Task: &Task{Group: "maze:1"}}, Params{Env: "maze", EnvParams: small, Task: &Task{Group: "maze:2"}}, true},
		"two tasks":           {Params{Env: "maze", EnvParams: small, Task: &Task{}}, Params{Env: "maze", EnvParams: large, Task: &Task{}}, false},
		"another seed":        {Params{Env: "maze"}, Params{Env: "maze", Seed: &seed}, false},
		"not JSON":            {Params{Env: "maze", EnvParams: json.RawMessage("{"), Task: &Task{}}, Params{Env: "maze"}, false},
	} {
		first, second := Definition{}.TaskName(&test.a), Definition{}.TaskName(&test.b)
		a, b, whole := first.Name, second.Name, first.Whole
		if a == "" || whole || (a == b) != test.same {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}
