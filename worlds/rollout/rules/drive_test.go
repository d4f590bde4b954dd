package rules

import (
	"encoding/json"
	"fmt"
	"testing"

	"parley/llm"
	"parley/world"
)

// script is a scripted environment: step i returns steps[i], and prompts grow by two messages a step.
type script struct {
	steps   []Result
	prompts func(step int) Prompt // default: one agent
	finish  map[int]llm.Finish    // of the ask with this number
	weights map[int]string        // that answered the ask with this number
	failAsk map[int]llm.Kind
	failAct map[string]llm.Kind // "open 0", "step 0/2": try, step

	calls   []llm.ToolCall         // of every answer
	verdict string                 // of a judge
	calling map[int][]llm.ToolCall // of the ask with this number
	sent    *Action                // the last one, if it is wanted

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
		if c.Seat == "judge" {
			return world.Reply{JSON: json.RawMessage(s.verdict), Finish: llm.FinishStop}
		}
		finish := s.finish[n]
		if finish == "" {
			finish = llm.FinishStop
		}
		return world.Reply{Text: fmt.Sprint("do ", n), Finish: finish, Weights: s.weights[n], ToolCalls: append(s.calls, s.calling[n]...)}
	}
	switch c.Act.Name {
	case Open:
		var o Opening
		mustRead(c.Act.Body, &o)
		s.acts = append(s.acts, fmt.Sprint("open ", o.Try))
		s.past, s.at = Past{}, 0
		return s.answer(s.acts[len(s.acts)-1], Opened{Prompt: s.past.Delta(s.prompt(1))})
	case List:
		s.acts = append(s.acts, "list")
		return s.answer("list", Listed{Tools: ProtocolTools{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "price", Parameters: json.RawMessage(`{"type":"object"}`)}}})
	case Call:
		var calling Calling
		mustRead(c.Act.Body, &calling)
		var called Called
		for _, one := range calling.Calls {
			s.acts = append(s.acts, "call "+one.Name)
			called.Results = append(called.Results, llm.ToolResult(one.ID, "seen "+one.Arguments))
		}
		return s.answer("call", called)
	case Step:
		var st Stepping
		mustRead(c.Act.Body, &st)
		s.acts = append(s.acts, fmt.Sprintf("step %d/%d", st.Try, st.Step))
		if s.sent != nil {
			*s.sent = st.Action
		}
		r := s.steps[s.at]
		s.at++
		out := ProtocolStepped{Reward: r.Rewarded(), Terminated: r.Terminated, Truncated: r.Truncated, Info: r.Info, Rejected: r.Rejected}
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
