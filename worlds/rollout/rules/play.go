package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules/protocol"
)

// try is one way through an episode, from a reset on.
type try struct {
	*rollout
	opening protocol.Opening
	past    protocol.Past
	ledger  *ledger
	asks    *int // made in the episode, all tries together

	steps  int
	info   json.RawMessage
	stop   Stop
	failed string // why, where stop is StopFailed
	lost   bool   // it failed, and another try may fare better
}

// play opens an environment, and asks and steps until something ends it.
func (p *try) play(t *world.Table) {
	var opened protocol.Opened
	if !p.act(t, protocol.Open, p.opening, &opened) {
		return
	}
	p.info = opened.Info
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
		var stepped protocol.Stepped
		what := protocol.Stepping{Try: p.opening.Try, Step: p.steps + 1, Action: action, Last: p.steps+1 == p.MaxSteps}
		if !p.act(t, protocol.Step, what, &stepped) {
			return
		}
		p.stepped(t, stepped)
		delta = stepped.Prompt
	}
}

// leave ends the episode for a reason of its own, unless it has one, and gives the
// environment back before its time. Whoever carries acts out knows of all other ends.
func (p *try) leave(t *world.Table, why Stop) {
	if p.stop == "" {
		p.stop = why
	}
	body := fmt.Appendf(nil, `{"try":%d}`, p.opening.Try)
	t.One(world.Call{Seat: p.Seats[0], Label: protocol.Close, Act: &world.Act{Name: protocol.Close, Body: body}})
}

// act has something done and reads what came of it. False: it failed, and the episode with it.
func (p *try) act(t *world.Table, name string, what, into any) bool {
	body, err := json.Marshal(what)
	if err != nil {
		p.fail("environment: %s: %v", name, err)
		return false
	}
	reply := t.One(world.Call{Seat: p.Seats[0], Label: name, Act: &world.Act{Name: name, Body: body}})
	where := name
	if name == protocol.Step {
		where = fmt.Sprintf("step %d", p.steps+1)
	}
	if !reply.OK() {
		p.fail("environment: %s: %s", where, reply.Failed)
		p.lost = reply.Failed.Retryable()
		return false
	}
	if err := json.Unmarshal(reply.JSON, into); err != nil {
		p.fail("environment: %s: not an answer to it", where)
		p.lost = true
		return false
	}
	return true
}

func (p *try) fail(format string, args ...any) {
	p.stop, p.failed = StopFailed, fmt.Sprintf(format, args...)
}

// prompted returns who is asked what, by seat.
func (p *try) prompted(delta protocol.Delta) (protocol.Prompt, bool) {
	agents, err := p.past.Apply(delta)
	if err != nil {
		p.fail("environment: %v", err)
		return nil, false
	}
	prompt := protocol.Prompt{}
	for agent, ms := range agents {
		seat := p.seatOf(agent)
		if seat == "" {
			p.fail("environment: it asks agent %.40q: params.seats are %s", smallest(agents, p.seatOf), strings.Join(p.Seats, ", "))
			return nil, false
		}
		prompt[seat] = ms
	}
	return prompt, true
}

// smallest is the first of the agents that have no seat, whatever the order of the map.
func smallest(agents protocol.Prompt, seatOf func(string) string) string {
	var without []string
	for agent := range agents {
		if seatOf(agent) == "" {
			without = append(without, agent)
		}
	}
	return slices.Min(without)
}

// seatOf is the seat of an agent of the environment, or "".
func (p *try) seatOf(agent string) string {
	switch {
	case slices.Contains(p.Seats, agent):
		return agent
	case agent == protocol.Default && len(p.Seats) == 1:
		return p.Seats[0]
	default:
		return ""
	}
}

// agentOf is what the environment calls a seat.
func (p *try) agentOf(seat string) string {
	if _, ok := p.past[seat]; !ok && len(p.Seats) == 1 {
		return protocol.Default
	}
	return seat
}

// ask asks all seats of a prompt at once and returns what they do together.
func (p *try) ask(t *world.Table, prompt protocol.Prompt) protocol.Action {
	var calls []world.Call
	for _, seat := range p.Seats {
		if ms := cut(prompt[seat], p.MessageCut); len(ms) > 0 {
			if p.trains[seat] {
				ms = p.Experience.tell(ms)
			}
			calls = append(calls, world.Call{Seat: seat, Label: "action", Ask: llm.Request{
				Messages: ms, TokenIDs: p.Tokens, Logprobs: p.Tokens,
			}})
		}
	}
	action := protocol.Action{}
	for i, reply := range t.Ask(calls...) {
		seat, number := calls[i].Seat, *p.asks
		*p.asks++
		switch {
		case reply.Failed == llm.KindTooLong && len(p.ledger.rows) > 0:
			p.end(StopTooLong, "")
		case !reply.OK():
			p.end(StopFailed, fmt.Sprintf("%s: %s", seat, reply.Failed))
		default:
			p.ledger.did(Row{Ask: number, Step: p.steps + 1, Seat: seat, Weights: reply.Weights}, reply.Finish == llm.FinishLength)
			action[p.agentOf(seat)] = reply.Text
			if reply.Finish == llm.FinishLength {
				p.end(StopLength, "")
			}
		}
	}
	return action
}

// end notes why the episode ends without a step. A failure counts before everything else.
func (p *try) end(why Stop, failed string) {
	if p.stop == "" || why == StopFailed && p.stop != StopFailed {
		p.stop, p.failed = why, failed
	}
}

// stepped takes in what the environment said of a step.
func (p *try) stepped(t *world.Table, s protocol.Stepped) {
	p.steps++
	if len(s.Info) > 0 {
		p.info = s.Info
	}
	rewards := map[string]float64{}
	for agent, reward := range s.Reward {
		if seat := p.seatOf(agent); seat != "" {
			rewards[seat] = reward
		} else if reward != 0 {
			p.ledger.unmatched++
		}
	}
	if _, paid := rewards[p.Seats[0]]; !paid && len(p.Seats) == 1 {
		rewards[p.Seats[0]] = 0 // a single agent waits for nobody else
	}
	p.ledger.pay(rewards, s.Terminated, s.Truncated)
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

// cut keeps of a conversation its leading system message and the last 2n-1 others, or all
// of it where n is not above 0.
func cut(ms []llm.Message, n int) []llm.Message {
	if n <= 0 {
		return ms
	}
	var kept []llm.Message
	rest := ms
	if len(ms) > 0 && ms[0].Role == llm.RoleSystem {
		kept, rest = append(kept, ms[0]), ms[1:]
	}
	return append(kept, rest[max(0, len(rest)-(2*n-1)):]...)
}
