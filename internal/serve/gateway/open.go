package gateway

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// open returns a session for a name: of its last episode, or of a new one.
func (a *sessionSet) open(id Name, begin bool) (*Session, error) {
	episodes := a.found.Sessions[id]
	if len(episodes) > 0 {
		return a.at(id, episodes[len(episodes)-1]), nil
	}
	if !begin || a.ledger == nil {
		return nil, errUnknown
	}
	return a.begin(id)
}

// begin returns a session for a new episode.
func (a *sessionSet) begin(id Name) (*Session, error) {
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

// at returns a session for an episode.
func (a *sessionSet) at(id Name, episode int) *Session {
	now := time.Now()
	s := &Session{Name: id, Episode: episode, Header: []string{strconv.Itoa(episode)}, state: sessionOpen, active: map[int]context.CancelCauseFunc{}, steps: map[string]int{}}
	s.info = Status{Session: id.ID, Episode: episode, FirstSeen: now, LastSeen: now, MaxSteps: a.cfg.MaxSteps}
	if a.cfg.Draws && id.ID != sessionDefault {
		s.seen = map[[16]byte]int{}
	}
	return s
}

// revive restores the state of a recorded session.
func (a *sessionSet) revive(ctx context.Context, s *Session) error {
	episodes := a.found.Sessions[s.Name]
	if !slices.Contains(episodes, s.Episode) {
		return nil
	}
	if !a.cfg.Replay && !a.cfg.Resume {
		episodes = []int{s.Episode} // the others are read when needed
	}
	var all []Call
	for _, episode := range episodes {
		calls, err := LedgerPast(context.WithoutCancel(ctx), a.cfg.Journal, episode)
		if err != nil {
			return err
		}
		all = append(all, calls...)
		if episode == s.Episode {
			a.recall(s, calls)
		}
	}
	end, err := a.found.Ended.Outcome(context.WithoutCancel(ctx), a.cfg.Journal, s.Episode)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.cfg.Replay || a.cfg.Resume {
		s.past = newPast(all, &a.cfg)
	}
	if end != nil && !a.cfg.Replay {
		s.ended(end)
	}
	if a.cfg.Replay || s.state != sessionOpen || len(all) == 0 {
		s.placed.Store(s) // it takes no calls, or has none that a new one could be mixed with
		return nil
	}
	s.prior = all
	return nil
}

// recall counts the recorded calls of the session.
func (a *sessionSet) recall(s *Session, calls []Call) {
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

func (a *sessionSet) tell(text string, args ...any) {
	if a.cfg.Tell != nil {
		a.cfg.Tell(fmt.Sprintf(text, args...))
	}
}
