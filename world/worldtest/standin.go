package worldtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/answer"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// StandIn plays a kind's worlds with its stand-in, so that a reworded prompt cannot break it unnoticed. It checks that
// the stand-in
//
//   - recognises everything that the worlds ask, and nothing else;
//   - answers a call with a schema by a value that follows the schema;
//   - is a pure function, and does not change the request;
//   - gives answers that Options.Understood accepts.
//
// labels are the labels of all asks of the kind's worlds. The plays together must ask for each of them, and for nothing
// else, so a new prompt that is never tried is found too. Options.Answer answers acts. Without plays, one with the zero
// Options is played:
//
//	worldtest.StandIn(t, Kind(), []string{"bid"})
func StandIn(t testing.TB, kind world.Kind, labels []string, plays ...Options) {
	t.Helper()
	for _, err := range standsIn(kind, labels, plays) {
		t.Error(err)
	}
}

// standsIn returns the errors in a kind's stand-in.
func standsIn(kind world.Kind, labels []string, plays []Options) (bad []error) {
	player, ok := world.As[part.StandIn](kind)
	if !ok {
		return []error{errors.New("the kind has no stand-in: see part.StandIn")}
	}
	for _, req := range []*llm.Request{{}, {Messages: []llm.Message{llm.System("You are helpful."), llm.User("Hi.")}}} {
		if text, ok := player.StandIn("model", req, 1); ok {
			bad = append(bad, fmt.Errorf("the stand-in answers what no world of its kind asks: %q", text))
		}
	}
	if len(plays) == 0 {
		plays = []Options{{}}
	}
	asked := map[string]bool{}
	for _, o := range plays {
		p := &understudy{exercise: exercise{kind: kind, Options: o.resolved()}, player: player, asked: asked, faults: map[string]bool{}}
		bad = append(bad, p.play()...)
	}
	for _, label := range labels {
		if !asked[label] {
			bad = append(bad, fmt.Errorf("no play asks for %q: add one that does", label))
		}
		delete(asked, label)
	}
	for _, label := range slices.Sorted(maps.Keys(asked)) {
		bad = append(bad, fmt.Errorf("a play asks for %q, which is not one of the labels %q: add it", label, labels))
	}
	return bad
}

// understudy plays the seats of a kind with its stand-in.
type understudy struct {
	exercise
	player part.StandIn
	asked  map[string]bool // labels
	faults map[string]bool // labels with a fault in this play
	bad    []error
}

// play plays every deal.
func (u *understudy) play() []error {
	_, seats, err := u.params()
	if err != nil {
		return []error{err}
	}
	lineup := u.lineup(seats)
	for deal := range u.Deals {
		_, err := u.played(deal, func(p callID, c world.Call) world.Reply {
			if c.Act != nil {
				return u.good(deal)(p, c)
			}
			if bot := u.kind.Bots()[lineup[c.Seat].Bot]; bot != nil {
				return bot(c)
			}
			u.asked[c.Label] = true
			reply, err := standIn(u.player, lineup[c.Seat].Request(c.Ask), p.rand(deal).Uint64())
			if err == nil && u.Understood != nil {
				err = u.Understood(c, reply)
			}
			if err != nil && !u.faults[c.Label] { // one fault per label is enough
				u.faults[c.Label] = true
				u.bad = append(u.bad, fmt.Errorf("deal %d, %v, %q of %s: %w", deal, p, c.Label, c.Seat, err))
			}
			return reply
		})
		if err != nil {
			u.bad = append(u.bad, err)
		}
	}
	return u.bad
}

// standIn returns a stand-in's answer to a request.
func standIn(player part.StandIn, req llm.Request, seed uint64) (world.Reply, error) {
	_, model := llm.SplitModel(req.Model)
	before := req.Digest()
	if caller, ok := player.(part.ToolCaller); ok && len(req.Tools) > 0 {
		if reply, ok := called(caller, model, &req, seed); ok {
			return reply, nil
		}
	}
	text, ok := player.StandIn(model, &req, seed)
	again, _ := player.StandIn(model, &req, seed)
	switch {
	case !ok:
		return failed(llm.KindInvalid), fmt.Errorf("the stand-in does not recognise the prompt: %.500s", prompted(&req))
	case text != again:
		return failed(llm.KindInvalid), fmt.Errorf("the stand-in answers %q, and then %q", text, again)
	case req.Digest() != before:
		return failed(llm.KindInvalid), errors.New("the stand-in wrote to the request")
	}
	reply := world.Reply{Text: text, Finish: llm.FinishStop}
	if req.Schema == nil {
		return reply, nil
	}
	schema, err := answer.Compile(req.Schema.JSON)
	if err == nil {
		reply.JSON, _, err = schema.Read(text)
	}
	if err != nil {
		return failed(llm.KindInvalid), fmt.Errorf("the stand-in's answer %.500q does not follow the schema %s: %w", text, req.Schema.Name, err)
	}
	return reply, nil
}

// called returns a stand-in's calls of tools, with ids.
func called(caller part.ToolCaller, model string, req *llm.Request, seed uint64) (world.Reply, bool) {
	calls, ok := caller.StandInCalls(model, req, seed)
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i)
	}
	return world.Reply{ToolCalls: calls, Finish: llm.FinishTools}, ok
}

// prompted returns the end of a prompt, where the question is.
func prompted(req *llm.Request) string {
	var texts []string
	for _, m := range req.Messages {
		texts = append(texts, m.Text())
	}
	text := strings.Join(texts, "\n")
	return "…" + strings.ToValidUTF8(text[max(0, len(text)-400):], "")
}
