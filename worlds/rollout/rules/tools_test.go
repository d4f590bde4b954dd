package rules

import (
	"slices"
	"strings"
	"testing"

	"parley/llm"
)

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
	mine := ProtocolTools{{Name: "price", Parameters: []byte(`{"type":"object"}`)}}
	s := &script{steps: []Result{pay(1), ends(2)}, calling: map[int][]llm.ToolCall{0: {look}, 1: {look, price}, 4: {price}}, prompts: func(step int) Prompt {
		p := chat(step)
		p[Default] = Question{Messages: p[Default].Messages, Tools: mine}
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
