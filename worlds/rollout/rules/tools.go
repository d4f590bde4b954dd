package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
)

// Tools says where agents get tools that the environment does not have.
type Tools struct {
	MCP string `json:"mcp" doc:"Address of an MCP server (streamable HTTP), whose tools agents may call beside those of the environment. Empty: none."`
}

func (p *Params) checkTools(c *world.ParamErrors) {
	switch s := p.Tools.MCP; {
	case s == "":
	case !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"):
		c.Addf("tools.mcp", "%.80q: want an address that begins with http:// or https://, such as http://127.0.0.1:8000/mcp", s)
	case strings.ContainsAny(s, "@?# \t\n"):
		c.Addf("tools.mcp", "want a plain address: a user, a key or a query would be kept in the run file")
	}
}

// list asks for the tools of the server, once for each try. It reports whether the try can continue.
func (p *try) list(t *world.Table) bool {
	if p.Tools.MCP == "" {
		return true
	}
	var listed Listed
	if !p.act(t, List, Listing{Try: p.opening.Try}, &listed) {
		return false
	}
	p.tools = listed.Tools
	return true
}

// offer returns the tools of a question: those of the environment, and those of the server with other names.
func (p *try) offer(of ProtocolTools) []llm.Tool {
	if len(p.tools) == 0 {
		return of
	}
	all := slices.Clone(of)
	for _, tool := range p.tools {
		if !has(of, tool.Name) {
			all = append(all, tool)
		}
	}
	return all
}

func has(tools ProtocolTools, name string) bool {
	return slices.ContainsFunc(tools, func(t llm.Tool) bool { return t.Name == name })
}

// outside reports whether a call is one of a tool of the server.
func (p *try) outside(c llm.ToolCall, environment ProtocolTools) bool {
	return has(p.tools, c.Name) && !has(environment, c.Name)
}

// uses reports whether an answer calls a tool of the server.
func (p *try) uses(answer llm.Message, environment ProtocolTools) bool {
	return slices.ContainsFunc(answer.ToolCalls, func(c llm.ToolCall) bool { return p.outside(c, environment) })
}

// use calls the tools of the server that answers call, and returns the seats that are to be asked again. Such an answer is
// no action: calls of the environment's tools in it are not carried out.
func (p *try) use(t *world.Table, prompt Prompt, answers map[string]llm.Message) (again []string) {
	if len(answers) == 0 || p.stop != "" {
		return nil
	}
	if p.rounds++; p.steps+p.rounds >= p.MaxSteps {
		p.end(StopMaxSteps, "")
		return nil
	}
	for _, seat := range slices.Sorted(maps.Keys(answers)) {
		answer, q := answers[seat], prompt[seat]
		what := Calling{Try: p.opening.Try, Seat: seat}
		for _, c := range answer.ToolCalls {
			if p.outside(c, q.Tools) {
				what.Calls = append(what.Calls, c)
			}
		}
		var called Called
		if !p.act(t, Call, what, &called) {
			return nil
		}
		if len(called.Results) != len(what.Calls) {
			p.fail("tools: call: %d results of %d calls", len(called.Results), len(what.Calls))
			return nil
		}
		results := make([]llm.Message, 0, len(answer.ToolCalls))
		for _, c := range answer.ToolCalls {
			if p.outside(c, q.Tools) {
				results = append(results, called.Results[0])
				called.Results = called.Results[1:]
				continue
			}
			m := llm.ToolResult(c.ID, fmt.Sprintf("%.80s was not called: call it in an answer of its own.", c.Name))
			m.ToolFailed = true
			results = append(results, m)
		}
		p.aside.add(seat, len(q.Messages), append([]llm.Message{answer}, results...))
		if p.Judge.On() {
			p.record.Showed(seat, results)
		}
		again = append(again, seat)
	}
	return again
}

// aside is what agents and tools of a server said to each other, by seat. The environment does not know of it, so it is put
// into the environment's prompts at the place where it was said. The zero value is empty.
type aside map[string][]exchange

type exchange struct {
	after    int // messages of the environment
	messages []llm.Message
}

func (a *aside) add(seat string, after int, messages []llm.Message) {
	if *a == nil {
		*a = aside{}
	}
	(*a)[seat] = append((*a)[seat], exchange{after, messages})
}

// keep forgets what was said after more messages than the environment keeps of a prompt.
func (a aside) keep(seat string, messages int) {
	if len(a[seat]) > 0 {
		a[seat] = slices.DeleteFunc(a[seat], func(e exchange) bool { return e.after > messages })
	}
}

// in returns messages of the environment with what was said between them.
func (a aside) in(seat string, of []llm.Message) []llm.Message {
	if len(a[seat]) == 0 || len(of) == 0 { // of a seat that is not asked
		return of
	}
	var all []llm.Message
	from := 0
	for _, e := range a[seat] {
		all = append(append(all, of[from:e.after]...), e.messages...)
		from = e.after
	}
	return append(all, of[from:]...)
}
