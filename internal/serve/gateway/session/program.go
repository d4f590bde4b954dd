package session

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"maps"

	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// Client is the connection that a call came over.
type Client interface {
	// Hold has left called when the connection is closed. It is false where that is so already
	// for this key, or the connection is closed.
	Hold(key any, left func()) bool
}

// maxTalks is how many calls of a session are remembered to know what continues them.
const maxTalks = 1 << 16

// program is what is known of the program that uses a session, to notice another one that uses
// the same name. It is under the session's lock.
type program struct {
	calls   int                 // those of earlier processes included
	met     bool                // there was one in this process; Place decides about that
	first   [16]byte            // the digest of the first call
	loose   [sha256.Size]byte   // the same of what the rules leave of it
	more    bool                // another call than the first was made
	talks   map[uint64]struct{} // what was said in each call; nil once told
	clients int                 // open connections that calls came over
	told    bool                // somebody was told that there may be another program
	note    string              // for the record of the first call
}

// Meet returns the session that a call over a client's connection belongs to. That is s, unless
// another program has begun to use its name: the first call is asked again, nothing is in
// flight, and every connection of the first program is closed. Then an episode begins. Where
// only some of this is so, the call belongs to s, and the first time somebody is told. note is
// what was told, for the record.
func (a *Sessions) Meet(s *Session, c *format.Call, client Client) (_ *Session, note string, err error) {
	if a.ledger == nil || !c.API.Asks() {
		return s, "", nil
	}
	for {
		to, told, err := a.meet(s, c, client.Hold(s, s.left))
		if err != nil {
			return nil, "", err
		}
		if note = told; to == s {
			break
		}
		a.replace(s, to)
		s = to
	}
	if note != "" {
		a.tell("session %s: %s", s.ID, note)
	}
	return s, note, nil
}

// replace gives the name of s to the session that comes after it. Sweep still closes s.
func (a *Sessions) replace(s, to *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID[s.Name] != s {
		return
	}
	a.byID[s.Name] = to
	if a.cfg.Idle > 0 {
		to.before = s
	}
}

// left counts a connection out.
func (s *Session) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program.clients--
}

// meet returns s, or the session to ask next. connects says that the call is the first of s over its
// connection.
func (a *Sessions) meet(s *Session, c *format.Call, connects bool) (_ *Session, note string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.program
	quiet := p.met && len(s.active) == 0 && s.state == Open
	alone := quiet && connects && p.clients == 0
	if connects {
		p.clients++ // until left
	}
	again := quiet && p.more && (alone || !p.told) && a.isFirst(p, c.Turn(), string(c.API), &c.Request)
	switch {
	case s.next != nil:
		return s.next, "", nil
	case alone && again:
		s.next, err = a.renew(s)
		return s.next, "", err
	case p.note != "":
		note, p.note = p.note, ""
	case p.told:
	case again:
		note = fmt.Sprintf("the first call is asked again and goes to episode %d too; for another game, name another session", s.Episode)
	case alone && previous(c) == "" && !p.continues(a.talks(&c.Request)):
		note = fmt.Sprintf("a client connected anew; its call continues nothing and goes to episode %d too; for another program, name another session", s.Episode)
	}
	p.told = p.told || note != "" && p.met
	p.met = true
	a.remember(p, c.Turn(), string(c.API), &c.Request)
	return s, note, nil
}

// renew makes the session of the episode that comes after that of s.
func (a *Sessions) renew(s *Session) (*Session, error) {
	to, err := a.begin(s.Name)
	if err != nil {
		return nil, err
	}
	to.ready.Store(true)
	to.past = s.past
	to.steps = maps.Clone(s.steps) // a limit on steps is the session's, however many programs there are
	to.program.note = fmt.Sprintf("its first call is asked again, and the program that asked it is gone: episode %d begins, and episode %d is left as it was", to.Episode, s.Episode)
	return to, nil
}

// isFirst says whether a call asks what the first one of the program asked.
func (a *Sessions) isFirst(p *program, digest [16]byte, api string, q *llm.Request) bool {
	if digest == p.first || a.cfg.Rules == nil {
		return digest == p.first
	}
	sum, ok := a.cfg.Rules.Digest(api, q)
	return ok && sum == p.loose
}

// remember takes in a call.
func (a *Sessions) remember(p *program, digest [16]byte, api string, q *llm.Request) {
	if p.calls++; p.calls == 1 {
		p.first = digest
		if a.cfg.Rules != nil {
			p.loose, _ = a.cfg.Rules.Digest(api, q)
		}
	}
	p.more = p.more || !a.isFirst(p, digest, api, q)
	if p.told {
		p.talks = nil
		return
	}
	if p.talks == nil {
		p.talks = map[uint64]struct{}{}
	}
	if talks := a.talks(q); len(talks) > 0 && len(p.talks) < maxTalks {
		p.talks[talks[len(talks)-1]] = struct{}{}
	}
}

// continues says whether a call begins with all that was said in an earlier one.
func (p *program) continues(talks []uint64) bool {
	for _, t := range talks {
		if _, ok := p.talks[t]; ok {
			return true
		}
	}
	return false
}

// talks are hashes of the messages of a request: of the first, of the first two, and so on.
func (a *Sessions) talks(q *llm.Request) []uint64 {
	out := make([]uint64, len(q.Messages))
	var h maphash.Hash
	h.SetSeed(a.seed)
	add := func(s string) {
		_, _ = h.WriteString(s) // a hash takes everything
		_ = h.WriteByte(0)
	}
	for i := range q.Messages {
		m := &q.Messages[i]
		add(string(m.Role))
		for _, p := range m.Parts {
			add(p.Text)
			if p.Image != nil {
				add(p.Image.URL)
				_, _ = h.Write(p.Image.Data)
			}
		}
		for _, t := range m.ToolCalls {
			add(t.ID)
			add(t.Arguments)
		}
		add(m.ToolCallID)
		out[i] = h.Sum64()
	}
	return out
}
