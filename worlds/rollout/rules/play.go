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
)

// try is one attempt at an episode, from a reset.
type try struct {
	*rollout
	opening Opening
	past    Past
	rewards *rewardLedger
	asks    *int // in the episode, over all tries

	record   Record // if there is a judge
	verdicts []Verdict

	tools  ProtocolTools // of a server that is not the environment
	aside  aside
	rounds int // of calls of these tools

	steps  int
	wrong  int    // steps whose action the environment did not accept
	why    string // the last reason
	info   json.RawMessage
	stop   Stop
	failed string // why, if stop is StopFailed
	lost   bool   // it failed, and another try may succeed
}

// play opens an environment, then asks and steps until the episode ends.
func (p *try) play(t *world.Table) {
	var opened Opened
	if !p.act(t, Open, p.opening, &opened) || p.raised(t, Open, opened.Fault) {
		return
	}
	p.info = opened.Info
	if !p.list(t) {
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
		var stepped ProtocolStepped
		what := Stepping{Try: p.opening.Try, Step: p.steps + 1, Action: action, Last: p.steps+1 == p.MaxSteps}
		if !p.act(t, Step, what, &stepped) || p.raised(t, Step, stepped.Fault) {
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
	t.One(world.Call{Seat: p.Seats[0], Label: Close, Act: &world.Act{Name: Close, Body: body}})
}

// act performs an act and reads its result. It returns false if the act failed, which ends the try.
func (p *try) act(t *world.Table, name string, what, into any) bool {
	body, err := json.Marshal(what)
	if err != nil {
		p.fail("%s: %v", p.where(name), err)
		return false
	}
	reply := t.One(world.Call{Seat: p.Seats[0], Label: name, Act: &world.Act{Name: name, Body: body}})
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

// where names an act, for errors.
func (p *try) where(name string) string {
	switch name {
	case Step:
		return fmt.Sprintf("environment: step %d", p.steps+1)
	case List, Call:
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
		if p.Judge.On() {
			p.record.Showed(seat, delta[agent].Add)
		}
	}
	return prompt, true
}

// seatOf returns the seat of an agent of the environment, or "".
func (p *try) seatOf(agent string) string {
	switch {
	case slices.Contains(p.Seats, agent):
		return agent
	case agent == Default && len(p.Seats) == 1:
		return p.Seats[0]
	default:
		return ""
	}
}

// agentOf returns the environment's name of a seat.
func (p *try) agentOf(seat string) string {
	if _, ok := p.past[seat]; !ok && len(p.Seats) == 1 {
		return Default
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
		if ms := protocolCut(p.aside.in(seat, prompt[seat].Messages), p.MessageCut); len(ms) > 0 {
			if p.trains[seat] {
				ms = p.Experience.tell(ms)
			}
			calls = append(calls, world.Call{Seat: seat, Label: "action", Ask: llm.Request{
				Messages: ms, Tools: p.offer(prompt[seat].Tools), TokenIDs: p.Tokens, Logprobs: p.Tokens,
			}})
		}
	}
	using := map[string]llm.Message{} // answers that call tools of a server, by seat
	for i, reply := range t.Ask(calls...) {
		seat, row := calls[i].Seat, Row{Ask: *p.asks, Step: p.steps + 1, Seat: calls[i].Seat, Weights: reply.Weights}
		*p.asks++
		answer := llm.Assistant(reply.Text)
		if len(calls[i].Ask.Tools) > 0 {
			answer.ToolCalls = reply.ToolCalls
		}
		switch {
		case reply.Failed == llm.KindTooLong && !p.rewards.Empty():
			p.end(StopTooLong, "")
			continue
		case !reply.OK():
			p.end(StopFailed, fmt.Sprintf("%s: %s", seat, reply.Failed))
			continue
		case reply.Finish == llm.FinishLength:
			p.rewards.Answered(row, true)
			p.end(StopLength, "")
		case p.uses(answer, prompt[seat].Tools):
			p.rewards.Used(row)
			using[seat] = answer
		default:
			p.rewards.Answered(row, false)
			action[p.agentOf(seat)] = answer
		}
		if p.Judge.On() {
			p.record.Said(seat, answer)
		}
	}
	return p.use(t, prompt, using)
}

// checkStale ends the try if the weights that answered are too far apart. A version that is not a number does not count.
func (p *try) checkStale() {
	if p.MaxStaleness < 0 || p.stop == StopFailed {
		return
	}
	if oldest, newest := p.rewards.Versions(p.trains); newest-oldest > p.MaxStaleness {
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
func (p *try) stepped(t *world.Table, s ProtocolStepped) {
	p.steps++
	if len(s.Info) > 0 {
		p.info = s.Info
	}
	rewards := map[string]float64{}
	for agent, reward := range s.Reward {
		if seat := p.seatOf(agent); seat != "" {
			rewards[seat] = reward
		} else if reward != 0 {
			p.rewards.Unmatched++
		}
	}
	if _, paid := rewards[p.Seats[0]]; !paid && len(p.Seats) == 1 {
		rewards[p.Seats[0]] = 0 // a single agent waits for no other
	}
	if s.Rejected != "" {
		p.wrong++
		p.why = s.Rejected
	}
	p.rewards.Pay(rewards, s.Terminated, s.Truncated)
	t.Note("step", "", Stepped{p.steps, rewards, s.Terminated, s.Truncated})
	switch {
	case s.Terminated:
		p.stop = StopTerminated
	case s.Truncated:
		p.stop = StopTruncated
	case p.steps == p.MaxSteps:
		p.stop = StopMaxSteps
	}
}
