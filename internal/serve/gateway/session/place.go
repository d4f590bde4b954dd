package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"parley/internal/serve/gateway/format"
	"parley/internal/serve/gateway/ledger"
)

// open makes the session of that name: of its last episode, or of a new one.
func (a *Sessions) open(id ledger.Name, begin bool) (*Session, error) {
	episodes := a.found.Sessions[id]
	if len(episodes) > 0 {
		return a.at(id, episodes[len(episodes)-1]), nil
	}
	if !begin || a.ledger == nil {
		return nil, ErrUnknown
	}
	return a.begin(id)
}

// begin makes the session of a new episode.
func (a *Sessions) begin(id ledger.Name) (*Session, error) {
	episode, err := a.ledger.Begin(id)
	if err != nil {
		return nil, err
	}
	s := a.at(id, episode)
	s.placed.Store(s)
	if a.cfg.Resume {
		s.past = newPast(nil, &a.cfg)
	}
	return s, nil
}

// at makes the session of an episode.
func (a *Sessions) at(id ledger.Name, episode int) *Session {
	now := time.Now()
	s := &Session{Name: id, Episode: episode, Header: []string{strconv.Itoa(episode)}, state: Open, active: map[int]context.CancelCauseFunc{}, steps: map[string]int{}}
	s.info = Status{Session: id.ID, Episode: episode, FirstSeen: now, LastSeen: now, MaxSteps: a.cfg.MaxSteps}
	if a.cfg.Draws && id.ID != Default {
		s.seen = map[[16]byte]int{}
	}
	return s
}

// revive brings a session that is recorded to where it was.
func (a *Sessions) revive(ctx context.Context, s *Session) error {
	episodes := a.found.Sessions[s.Name]
	if !slices.Contains(episodes, s.Episode) {
		return nil
	}
	if !a.cfg.Replay && !a.cfg.Resume {
		episodes = []int{s.Episode} // the others are read when they are needed
	}
	var all []ledger.Call
	for _, episode := range episodes {
		calls, err := ledger.Past(context.WithoutCancel(ctx), a.cfg.Journal, episode)
		if err != nil {
			return err
		}
		all = append(all, calls...)
		if episode == s.Episode {
			a.recall(s, calls)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.cfg.Replay || a.cfg.Resume {
		s.past = newPast(all, &a.cfg)
	}
	if e, ended := a.found.Ended[s.Episode]; ended && !a.cfg.Replay {
		s.ended(&e)
	}
	if a.cfg.Replay || s.state != Open || len(all) == 0 {
		s.placed.Store(s) // it takes no calls, or nothing that a new one could be mixed with
		return nil
	}
	s.prior = all
	return nil
}

// recall counts what was recorded of the session.
func (a *Sessions) recall(s *Session, calls []ledger.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range calls {
		c := &calls[i]
		s.turn = max(s.turn, c.Turn+1)
		if i == 0 {
			s.info.FirstSeen = c.At
		}
		s.info.LastSeen = c.At
		s.info.Requests++
		s.count(c)
		if c.Request != nil && a.ledger != nil {
			a.remember(&s.program, c.Digest, c.Label, c.Request)
		}
		if s.seen != nil {
			s.seen[c.Digest]++
		}
	}
}

// Place returns the session that a call of the name of s belongs to. The first call that a
// process sees decides, for those after it: if it is in the record of an episode of the
// name, or continues a conversation there, it is that episode's. Otherwise it is of another
// program that uses the name again, and a new episode begins.
func (a *Sessions) Place(ctx context.Context, s *Session, c *format.Call) (*Session, error) {
	if to := s.placed.Load(); to != nil {
		return to, nil
	}
	s.revived.Lock()
	defer s.revived.Unlock()
	if to := s.placed.Load(); to != nil {
		return to, nil
	}
	to, err := a.place(ctx, s, c)
	if err != nil {
		return nil, err
	}
	s.prior = nil
	if to != s {
		to.ready.Store(true)
		to.placed.Store(to)
		a.mu.Lock()
		a.byID[s.Name] = to
		a.mu.Unlock()
	}
	s.placed.Store(to)
	return to, nil
}

func (a *Sessions) place(ctx context.Context, s *Session, c *format.Call) (*Session, error) {
	episode, known := a.cfg.holds(s.prior, c)
	if !a.cfg.Resume {
		episodes := a.found.Sessions[s.Name]
		for i := len(episodes) - 2; i >= 0 && !known; i-- {
			calls, err := ledger.Past(context.WithoutCancel(ctx), a.cfg.Journal, episodes[i])
			if err != nil {
				return nil, err
			}
			episode, known = a.cfg.holds(calls, c)
		}
	}
	switch {
	case !known:
		to, err := a.begin(s.Name)
		if err == nil {
			to.past = s.Past() // what was paid for is served all the same
			a.tell("session %s: its first call is not in the record and continues nothing there, so episode %d begins; episode %d is left as it was", s.ID, to.Episode, s.Episode)
		}
		return to, err
	case episode != s.Episode:
		to := a.at(s.Name, episode)
		if err := a.revive(ctx, to); err != nil {
			return nil, err
		}
		to.prior, to.past = nil, s.Past()
		s = to
	}
	if !a.cfg.Resume {
		a.tell("session %s goes on with episode %d, which has %d calls from before; name another session for another program", s.ID, s.Episode, s.Status().Requests)
	}
	return s, nil
}

func (a *Sessions) tell(text string, args ...any) {
	if a.cfg.Tell != nil {
		a.cfg.Tell(fmt.Sprintf(text, args...))
	}
}

// holds finds the last episode of calls that c belongs to.
func (c *Config) holds(calls []ledger.Call, call *format.Call) (episode int, ok bool) {
	sum, comparable := c.Rules.Digest(string(call.API), &call.Request)
	after := previous(call)
	for i := len(calls) - 1; i >= 0; i-- {
		was := &calls[i]
		switch {
		case was.Digest == call.Turn():
			return was.Episode, true
		case was.Request == nil || was.Label != string(call.API):
		case after != "" && was.Response != nil && was.Response.ID == after, c.Rules.Continues(&call.Request, was.Request):
			return was.Episode, true
		case c.Rules != nil && comparable:
			if old, ok := c.Rules.Digest(was.Label, was.Request); ok && old == sum {
				return was.Episode, true
			}
		}
	}
	return 0, false
}

// previous is the answer that a call continues, by its name for it, or "".
func previous(c *format.Call) (id string) {
	_ = json.Unmarshal(c.Request.Extra["previous_response_id"], &id) // anything else names none
	return id
}
