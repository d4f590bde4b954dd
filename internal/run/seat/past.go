package seat

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// Place is a seat that a person takes.
type Place struct{ Seat, Agent string }

// Places lists the seats of a run that people take, in order.
func Places(ctx context.Context, store *runfile.Store, begun *journal.Begun) ([]Place, error) {
	people := peopleOf(begun)
	if len(people) == 0 {
		return nil, nil
	}
	lineups, err := store.Lineups(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[Place]bool{}
	for _, l := range lineups {
		for seat, agent := range l.Seats {
			if people[agent] {
				seen[Place{seat, agent}] = true
			}
		}
	}
	all := slices.Collect(maps.Keys(seen))
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
	seen      results.MessageDiff
	last      *llm.Request // nil: there was none
	lastAt    time.Time
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
	for _, t := range results.Turns(entries, attempt) {
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
		x.Answer = r.Response.Words()
	}
	if r.Request.Model != world.Human {
		x.By = r.Request.Model
	}
	p.Exchanges = append(p.Exchanges, x)
	if p.last == nil || !r.At.Before(p.lastAt) {
		p.last, p.lastAt = asText(messagesOf(r.Request)), r.At
	}
}

// Since returns the lines of a question that are neither in the one before nor in shown, under the line above them that ends with a colon
// or is a heading. It is empty if this is the first question.
func (p *Past) Since(q Question, shown string) string {
	if p.last == nil {
		return ""
	}
	known := map[string]bool{}
	know := func(text string) {
		for line := range strings.Lines(text) {
			known[strings.TrimSpace(line)] = true
		}
	}
	know(shown)
	for i := range p.last.Messages {
		know(p.last.Messages[i].Text())
	}
	fresh, _, _ := asText(q.Messages).Since(p.last)
	var out strings.Builder
	for _, m := range fresh {
		heading := ""
		for line := range strings.Lines(m.Text()) {
			words := strings.TrimSpace(line)
			switch old := known[words]; {
			case words == "":
				heading = ""
			case old && (strings.HasSuffix(words, ":") || strings.HasPrefix(words, "#")):
				heading = words
			case !old:
				if heading != "" {
					out.WriteString(heading + "\n")
					heading = ""
				}
				out.WriteString(strings.TrimRight(line, "\r\n ") + "\n")
			}
		}
	}
	return strings.TrimRight(out.String(), "\n")
}

// asText returns a request with these messages.
func asText(messages []Message) *llm.Request {
	req := &llm.Request{}
	for _, m := range messages {
		req.Messages = append(req.Messages, llm.Message{Role: m.Role, Parts: []llm.Part{{Text: m.Text}}})
	}
	return req
}

// Fresh returns the messages of a question that the seat has not seen yet.
func (p *Past) Fresh(q Question) []Message { return p.fresh(q.Messages, nil) }

func (p *Past) fresh(messages []Message, answer *llm.Response) (out []Message) {
	for _, m := range p.seen.New(asText(messages), answer) {
		out = append(out, Message{m.Role, m.Text()})
	}
	return out
}

// messagesOf returns the messages of a request as text.
func messagesOf(req *llm.Request) []Message {
	out := make([]Message, len(req.Messages))
	for i := range req.Messages {
		m := &req.Messages[i]
		out[i] = Message{m.Role, m.Words()}
	}
	return out
}

// LatestEpisode returns the last episode that has begun in which a person takes a seat, or -1.
func LatestEpisode(ctx context.Context, store *runfile.Store, begun *journal.Begun, seat string) (int, error) {
	lineups, err := store.Lineups(ctx)
	last, people := -1, peopleOf(begun)
	for _, l := range lineups {
		if people[l.Seats[seat]] {
			last = max(last, l.LastBegun)
		}
	}
	return last, err
}

// peopleOf returns the names of the agents that are people.
func peopleOf(begun *journal.Begun) map[string]bool {
	people := map[string]bool{}
	for _, a := range begun.Agents {
		if a.Human() {
			people[a.Name] = true
		}
	}
	return people
}
