package seat

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley/internal/store/sqlite"
	"parley/internal/view/transcript"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Place is a seat that a person takes.
type Place struct{ Seat, Agent string }

// maxListed is how many episodes of a run are searched for seats of people.
const maxListed = 1000

// Places lists the seats of a run that people take, in order. It looks at the first episodes.
func Places(ctx context.Context, store *sqlite.Store, begun *journal.Begun) ([]Place, error) {
	if !slices.ContainsFunc(begun.Agents, world.Agent.Human) {
		return nil, nil
	}
	episodes, err := store.List(ctx, sqlite.Listing{Limit: maxListed})
	if err != nil {
		return nil, err
	}
	var all []Place
	seen := map[Place]bool{}
	for i := range episodes {
		for seat, agent := range episodes[i].Spec.Lineup {
			p := Place{seat, agent}
			if !seen[p] && slices.ContainsFunc(begun.Agents, func(a world.Agent) bool { return a.Name == agent && a.Human() }) {
				all = append(all, p)
			}
			seen[p] = true
		}
	}
	slices.SortFunc(all, func(a, b Place) int { return strings.Compare(a.Seat+"\x00"+a.Agent, b.Seat+"\x00"+b.Agent) })
	return all, nil
}

// Exchange is a question to a seat that has an answer.
type Exchange struct {
	Label string
	// New is what was new in the question. Its text may be hostile, and so may Answer.
	New    []Message
	Answer string
	// By is the model that answered for the person, who did not in time. Empty: the person answered, or nobody did.
	By string
	// Failed is why there is no answer.
	Failed string
	At     time.Time
}

// Past is what a seat was asked in an episode, and what it answered. Nobody else's questions are in it.
type Past struct {
	Exchanges []Exchange
	seen      transcript.MessageDiff
}

// ReadPast reads what a seat was asked in an episode.
func ReadPast(ctx context.Context, j journal.Journal, episode int, seat string) (*Past, error) {
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, err
	}
	attempt := 0
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok {
			attempt = max(attempt, r.Attempt)
		}
	}
	p := &Past{}
	for _, t := range transcript.Turns(entries, attempt) {
		for _, r := range t.Replies {
			if r.Seat == seat && r.Request != nil {
				p.add(r)
			}
		}
	}
	slices.SortStableFunc(p.Exchanges, func(a, b Exchange) int { return a.At.Compare(b.At) })
	return p, nil
}

func (p *Past) add(r *journal.Replied) {
	x := Exchange{Label: r.Label, At: r.At, New: p.fresh(messagesOf(r.Request), r.Response)}
	switch {
	case r.Error != nil:
		x.Failed = r.Error.Message
	case r.Response != nil:
		x.Answer = transcript.AnswerText(r.Response)
	}
	if r.Request.Model != world.Human {
		x.By = r.Request.Model
	}
	p.Exchanges = append(p.Exchanges, x)
}

// Fresh returns the messages of a question that the seat has not seen yet.
func (p *Past) Fresh(q Question) []Message { return p.fresh(q.Messages, nil) }

func (p *Past) fresh(messages []Message, answer *llm.Response) (out []Message) {
	req := &llm.Request{}
	for _, m := range messages {
		req.Messages = append(req.Messages, llm.Message{Role: m.Role, Parts: []llm.Part{{Text: m.Text}}})
	}
	for _, m := range p.seen.New(req, answer) {
		out = append(out, Message{m.Role, m.Text()})
	}
	return out
}

// messagesOf returns the messages of a request as text.
func messagesOf(req *llm.Request) []Message {
	out := make([]Message, len(req.Messages))
	for i := range req.Messages {
		m := &req.Messages[i]
		out[i] = Message{m.Role, transcript.MessageText(m)}
	}
	return out
}

// Latest returns the last episode that has begun in which a person takes a seat, or -1.
func Latest(ctx context.Context, store *sqlite.Store, begun *journal.Begun, seat string) (int, error) {
	episodes, err := store.List(ctx, sqlite.Listing{Limit: maxListed})
	if err != nil {
		return -1, err
	}
	for i := range slices.Backward(episodes) {
		e := &episodes[i]
		if e.Begun && slices.ContainsFunc(begun.Agents, func(a world.Agent) bool { return a.Human() && a.Name == e.Spec.Lineup[seat] }) {
			return e.Episode, nil
		}
	}
	return -1, nil
}
