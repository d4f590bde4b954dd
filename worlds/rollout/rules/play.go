package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/rubric"
)

// try is one attempt at an episode, from a reset.
type try struct {
	*rollout
	opening Opening
	past    Past
	rewards *rewardLedger
	asks    *int // in the episode, over all tries

	record   rubric.Record // for judges
	verdicts []Verdict
	ratings  []rubric.Rating

	tools  ToolList // of a server that is not the environment
	aside  aside
	rounds int // of calls of these tools

	steps       int
	rejected    int    // steps whose action the environment did not accept
	rejectedWhy string // the last reason
	info        json.RawMessage
	stop        Stop
	failed      string // why, if stop is StopFailed
	lost        bool   // it failed, and another try may succeed
}

// play opens an environment, then asks and steps until the episode ends.
func (p *try) play(t *world.Table) {
	var opened Opened
	if !p.act(t, ActOpen, p.opening, &opened) || p.raised(t, ActOpen, opened.Fault) {
		return
	}
	p.info = opened.Info
	if !p.listTools(t) {
		p.leave(t, p.stop)
		return
	}
	for delta := opened.Prompt; p.stop == ""; {
		prompt, ok := p.prompted(delta)
		if !ok || len(prompt) == 0 {
			p.leave(t, StopEmpty)
			return
		}
		action := p.ask(t, prompt)
		if p.stop != "" {
			p.leave(t, p.stop)
			return
		}
		var stepped Stepped
		what := Stepping{Try: p.opening.Try, Step: p.steps + 1, Action: action, Last: p.steps+1 == p.MaxSteps}
		if !p.act(t, ActStep, what, &stepped) || p.raised(t, ActStep, stepped.Fault) {
			return
		}
		p.stepped(t, stepped)
		delta = stepped.Prompt
	}
}

// leave ends the episode and closes the environment before its own end. At all other ends the actor does.
func (p *try) leave(t *world.Table, why Stop) {
	p.stop = cmp.Or(p.stop, why)
	body := fmt.Appendf(nil, `{"try":%d}`, p.opening.Try)
	t.One(world.Call{Seat: p.Seats[0], Label: ActClose, Act: &world.Act{Name: ActClose, Body: body}})
}

// act performs an act and reads its result. It returns false if the act failed, which ends the try.
func (p *try) act(t *world.Table, name string, what, into any) bool {
	body, err := json.Marshal(what)
	if err != nil {
		p.fail("%s: %v", p.where(name), err)
		return false
	}
	call := world.Call{Seat: p.Seats[0], Label: name, Act: &world.Act{Name: name, Body: body}}
	reply := t.One(call)
	p.heard(call, reply)
	if !reply.OK() {
		p.fail("%s: %s", p.where(name), reply.Failed)
		p.lost = reply.Failed.Retryable() || reply.Failed == llm.KindInvalid // one wrong answer may be an accident
		return false
	}
	if err := json.Unmarshal(reply.JSON, into); err != nil {
		p.fail("%s: not an answer to it", p.where(name))
		p.lost = true
		return false
	}
	return true
}

// heard adds a call to what judges read.
func (p *try) heard(c world.Call, reply world.Reply) {
	if p.Judge.enabled() {
		p.record.Call("", &c, &reply)
	}
}

// where names an act, for errors.
func (p *try) where(name string) string {
	switch name {
	case ActStep:
		return fmt.Sprintf("environment: step %d", p.steps+1)
	case ActList, ActCall:
		return "tools: " + name
	default:
		return "environment: " + name
	}
}

// raised fails the episode if the code of its environment raised an error. Another try would do the same.
func (p *try) raised(t *world.Table, name string, f *CodeError) bool {
	if f != nil {
		p.fail("%s: %s", p.where(name), f.Text)
		t.Note("error", "", f)
	}
	return f != nil
}

func (p *try) fail(format string, args ...any) {
	p.stop, p.failed = StopFailed, fmt.Sprintf(format, args...)
}

// prompted returns the prompts by seat.
func (p *try) prompted(delta Delta) (Prompt, bool) {
	agents, err := p.past.Apply(delta)
	if err != nil {
		p.fail("environment: %v", err)
		return nil, false
	}
	prompt := Prompt{}
	for _, agent := range slices.Sorted(maps.Keys(agents)) {
		seat := p.seatOf(agent)
		if seat == "" {
			p.fail("environment: it asks agent %.40q: params.seats are %s", agent, strings.Join(p.Seats, ", "))
			return nil, false
		}
		prompt[seat] = agents[agent]
		p.aside.keep(seat, delta[agent].Keep)
	}
	return prompt, true
}

// seatOf returns the seat of an agent of the environment, or "".
func (p *try) seatOf(agent string) string {
	switch {
	case slices.Contains(p.Seats, agent):
		return agent
	case agent == DefaultAgent && len(p.Seats) == 1:
		return p.Seats[0]
	default:
		return ""
	}
}

// agentOf returns the environment's name of a seat.
func (p *try) agentOf(seat string) string {
	if _, ok := p.past[seat]; !ok && len(p.Seats) == 1 {
		return DefaultAgent
	}
	return seat
}

// ask asks all seats of a prompt at once and returns their action. Those that call tools of a server get the results and
// are asked again.
func (p *try) ask(t *world.Table, prompt Prompt) Action {
	action := Action{}
	for seats := p.Seats; len(seats) > 0 && p.stop == ""; {
		seats = p.round(t, prompt, seats, action)
		p.checkStale()
	}
	return action
}

// round asks seats once. It adds answers to action, and returns the seats that are to be asked again.
func (p *try) round(t *world.Table, prompt Prompt, seats []string, action Action) (again []string) {
	var calls []world.Call
	for _, seat := range seats {
		if ms := cutMessages(p.aside.in(seat, prompt[seat].Messages), p.MessageCut); len(ms) > 0 {
			calls = append(calls, world.Call{Seat: seat, Label: "action", Ask: llm.Request{
				Messages: ms, Tools: p.offer(prompt[seat].Tools), TokenIDs: p.Tokens, Logprobs: p.Tokens,
			}})
		}
	}
	using := map[string]llm.Message{} // answers that call tools of a server, by seat
	for i, reply := range t.Ask(calls...) {
		p.heard(calls[i], reply)
		seat, row := calls[i].Seat, Row{Ask: *p.asks, Step: p.steps + 1, Seat: calls[i].Seat, Weights: reply.Weights}
		*p.asks++
		answer := llm.Assistant(reply.Text)
		if len(calls[i].Ask.Tools) > 0 {
			answer.ToolCalls = reply.ToolCalls
		}
		switch {
		case reply.Failed == llm.KindTooLong && !p.rewards.empty():
			p.end(StopTooLong, "")
			continue
		case !reply.OK():
			p.end(StopFailed, fmt.Sprintf("%s: %s", seat, reply.Failed))
			continue
		case reply.Finish == llm.FinishLength:
			p.rewards.addAnswer(row, true)
			p.end(StopLength, "")
		case p.callsServerTool(answer, prompt[seat].Tools):
			p.rewards.addToolAnswer(row)
			using[seat] = answer
		default:
			p.rewards.addAnswer(row, false)
			action[p.agentOf(seat)] = answer
		}
	}
	return p.callServerTools(t, prompt, using)
}

// checkStale ends the try if the weights that answered are too far apart. A version that is not a number does not count.
func (p *try) checkStale() {
	if p.MaxStaleness < 0 || p.stop == StopFailed {
		return
	}
	if oldest, newest := p.rewards.versions(p.trains); newest-oldest > p.MaxStaleness {
		p.end(StopFailed, fmt.Sprintf("weights: versions %d to %d answered: params.max_staleness is %d", oldest, newest, p.MaxStaleness))
		p.lost = p.Stale == StaleRestart
	}
}

// end sets why the episode ends without a step. A failure overrides other reasons.
func (p *try) end(why Stop, failed string) {
	if p.stop == "" || why == StopFailed && p.stop != StopFailed {
		p.stop, p.failed = why, failed
	}
}

// stepped handles the result of a step.
func (p *try) stepped(t *world.Table, s Stepped) {
	p.steps++
	if len(s.Info) > 0 {
		p.info = s.Info
	}
	rewards := map[string]float64{}
	for agent, reward := range s.Reward {
		if seat := p.seatOf(agent); seat != "" {
			rewards[seat] = reward
		} else if reward != 0 {
			p.rewards.unmatched++
		}
	}
	if _, paid := rewards[p.Seats[0]]; !paid && len(p.Seats) == 1 {
		rewards[p.Seats[0]] = 0 // a single agent waits for no other
	}
	if s.Rejected != "" {
		p.rejected++
		p.rejectedWhy = s.Rejected
	}
	p.rewards.pay(rewards, s.Terminated, s.Truncated)
	t.Note("step", "", StepNote{p.steps, rewards, s.Terminated, s.Truncated})
	switch {
	case s.Terminated:
		p.stop = StopTerminated
	case s.Truncated:
		p.stop = StopTruncated
	case p.steps == p.MaxSteps:
		p.stop = StopMaxSteps
	}
}

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

// listTools asks for the tools of the server, once for each try. It reports whether the try can continue.
func (p *try) listTools(t *world.Table) bool {
	if p.Tools.MCP == "" {
		return true
	}
	var listed Listed
	if !p.act(t, ActList, Listing{Try: p.opening.Try}, &listed) {
		return false
	}
	p.tools = listed.Tools
	return true
}

// offer returns the tools of a question: those of the environment, and those of the server with other names.
func (p *try) offer(of ToolList) []llm.Tool {
	if len(p.tools) == 0 {
		return of
	}
	all := slices.Clone(of)
	for _, tool := range p.tools {
		if !hasTool(of, tool.Name) {
			all = append(all, tool)
		}
	}
	return all
}

func hasTool(tools ToolList, name string) bool {
	return slices.ContainsFunc(tools, func(t llm.Tool) bool { return t.Name == name })
}

// ofServer reports whether a call is one of a tool of the server.
func (p *try) ofServer(c llm.ToolCall, environment ToolList) bool {
	return hasTool(p.tools, c.Name) && !hasTool(environment, c.Name)
}

// callsServerTool reports whether an answer calls a tool of the server.
func (p *try) callsServerTool(answer llm.Message, environment ToolList) bool {
	return slices.ContainsFunc(answer.ToolCalls, func(c llm.ToolCall) bool { return p.ofServer(c, environment) })
}

// callServerTools calls the tools of the server that answers call, and returns the seats that are to be asked again. Such an answer is
// no action: calls of the environment's tools in it are not carried out.
func (p *try) callServerTools(t *world.Table, prompt Prompt, answers map[string]llm.Message) (again []string) {
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
			if p.ofServer(c, q.Tools) {
				what.Calls = append(what.Calls, c)
			}
		}
		var called Called
		if !p.act(t, ActCall, what, &called) {
			return nil
		}
		if len(called.Results) != len(what.Calls) {
			p.fail("tools: call: %d results of %d calls", len(called.Results), len(what.Calls))
			return nil
		}
		results := make([]llm.Message, 0, len(answer.ToolCalls))
		for _, c := range answer.ToolCalls {
			if p.ofServer(c, q.Tools) {
				results = append(results, called.Results[0])
				called.Results = called.Results[1:]
				continue
			}
			m := llm.ToolResult(c.ID, fmt.Sprintf("%.80s was not called: call it in an answer of its own.", c.Name))
			m.ToolFailed = true
			results = append(results, m)
		}
		p.aside.add(seat, len(q.Messages), append([]llm.Message{answer}, results...))
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
