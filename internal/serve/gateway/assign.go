package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// maxConversations is how many calls of a session are remembered to recognize calls that continue them.
const maxConversations = 1 << 16

// program describes the program that uses a session, to notice another one that uses the same name. Session.mu
// guards it.
type program struct {
	calls         int                 // calls of earlier processes included
	active        bool                // it made a call in this process
	first         fingerprint         // of the first call
	more          bool                // a different call than the first was made
	conversations map[uint64]struct{} // hashes of the conversations; nil once reported
	clients       int                 // open connections
	reported      bool                // a possible other program was reported
	note          string              // for the record of the first call
}

// Assign returns the session that a call belongs to. It begins the session of that name if necessary. client is
// the connection of the call, or nil if it is not known. note, if not empty, is for the record.
//
// The first call of a name that a process sees decides between the recorded episodes of the name: if it is in
// the record of one, or continues a conversation there, it belongs to that episode. Otherwise another program
// uses the name, and a new episode begins.
//
// Later, another program is noticed by its connections: the first call is made again, nothing is in flight, and
// every connection of the first program is closed. Then a new episode begins. If only some of this holds, the
// call belongs to the episode, and the first time that is reported.
func (a *sessionSet) Assign(ctx context.Context, id sessionName, c *format.Call, client *clientConn) (s *session, note string, err error) {
	if s, err = a.Find(ctx, id, true); err != nil {
		return nil, "", err
	}
	if s, err = a.place(ctx, s, c); err != nil || a.ledger == nil || client == nil || !c.API.Asks() {
		return s, "", err
	}
	for {
		to, text, err := a.join(s, c, client.Hold(s, s.left))
		if err != nil {
			return nil, "", err
		}
		if note = text; to == s {
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

// place returns the session of the episode that a call of the name of s belongs to.
func (a *sessionSet) place(ctx context.Context, s *session, c *format.Call) (*session, error) {
	if to := s.placed.Load(); to != nil {
		return to, nil
	}
	s.restoring.Lock()
	defer s.restoring.Unlock()
	if to := s.placed.Load(); to != nil {
		return to, nil
	}
	to, err := a.choose(ctx, s, c)
	if err != nil {
		return nil, err
	}
	s.prior = nil
	if to != s {
		to.ready.Store(true)
		to.placed.Store(to)
		a.mu.Lock()
		a.byID[s.sessionName] = to
		a.mu.Unlock()
	}
	s.placed.Store(to)
	return to, nil
}

// choose returns the session of the recorded episode that a call belongs to, or of a new one.
func (a *sessionSet) choose(ctx context.Context, s *session, c *format.Call) (*session, error) {
	episode, known := a.holds(s.prior, c)
	if !a.cfg.Resume {
		episodes := a.found.Sessions[s.sessionName]
		for i := len(episodes) - 2; i >= 0 && !known; i-- {
			calls, err := ReadCalls(context.WithoutCancel(ctx), a.cfg.Journal, episodes[i])
			if err != nil {
				return nil, err
			}
			episode, known = a.holds(calls, c)
		}
	}
	switch {
	case !known:
		to, err := a.begin(s.sessionName)
		if err == nil {
			to.past = s.Past() // recorded answers are served in the new episode too
			a.tell("session %s: its first call is not in the record and continues nothing there, so episode %d begins; episode %d stays as it was", s.ID, to.Episode, s.Episode)
		}
		return to, err
	case episode != s.Episode:
		to := a.newSession(s.sessionName, episode)
		if err := a.restore(ctx, to); err != nil {
			return nil, err
		}
		to.prior, to.past = nil, s.Past()
		s = to
	}
	if !a.cfg.Resume {
		a.tell("session %s continues episode %d, which has %d calls from before; name another session for another program", s.ID, s.Episode, s.Status().Requests)
	}
	return s, nil
}

// holds returns the last episode of calls that c belongs to.
func (a *sessionSet) holds(calls []Call, c *format.Call) (episode int, ok bool) {
	f, after := a.fingerprint(c.Turn(), string(c.API), &c.Request), previous(c)
	for _, was := range slices.Backward(calls) {
		if was.Digest != f.exact && (was.Request == nil || was.Label != string(c.API)) {
			continue
		}
		if a.same(f, was.Digest, was.Label, was.Request) || a.cfg.Rules.Continues(&c.Request, was.Request) ||
			after != "" && was.Response != nil && was.Response.ID == after {
			return was.Episode, true
		}
	}
	return 0, false
}

// previous returns the id of the answer that a call continues, or "".
func previous(c *format.Call) (id string) {
	_ = json.Unmarshal(c.Request.Extra["previous_response_id"], &id) // anything else is no id
	return id
}

// replace gives the name of s to its successor. Sweep still closes s.
func (a *sessionSet) replace(s, to *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID[s.sessionName] != s {
		return
	}
	a.byID[s.sessionName] = to
	if a.cfg.Idle > 0 {
		to.before = s
	}
}

// left counts a closed connection.
func (s *session) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program.clients--
}

// join adds a call to the program of s. It returns s, or its successor. connects reports whether the call is the first of s over its connection.
func (a *sessionSet) join(s *session, c *format.Call, connects bool) (_ *session, note string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.program
	quiet := p.active && len(s.active) == 0 && s.state == stateOpen
	alone := quiet && connects && p.clients == 0
	if connects {
		p.clients++ // left subtracts it
	}
	again := quiet && p.more && (alone || !p.reported) && a.same(p.first, c.Turn(), string(c.API), &c.Request)
	switch {
	case s.next != nil:
		return s.next, "", nil
	case alone && again:
		s.next, err = a.beginNext(s)
		return s.next, "", err
	case p.note != "":
		note, p.note = p.note, ""
	case p.reported:
	case again:
		note = fmt.Sprintf("the first call is asked again and goes to episode %d too; for another game, name another session", s.Episode)
	case alone && previous(c) == "" && !p.continues(a.conversationHashes(&c.Request)):
		note = fmt.Sprintf("a client connected again; its call continues nothing and goes to episode %d too; for another program, name another session", s.Episode)
	}
	p.reported = p.reported || note != "" && p.active
	p.active = true
	a.remember(p, c.Turn(), string(c.API), &c.Request)
	return s, note, nil
}

// beginNext begins the episode after that of s.
func (a *sessionSet) beginNext(s *session) (*session, error) {
	to, err := a.begin(s.sessionName)
	if err != nil {
		return nil, err
	}
	to.ready.Store(true)
	to.past = s.past
	to.steps = maps.Clone(s.steps) // the limit on steps is for the name, whatever program uses it
	to.program.note = fmt.Sprintf("its first call is asked again, and the program that asked it is gone: episode %d begins, and episode %d is left as it was", to.Episode, s.Episode)
	return to, nil
}

// fingerprint identifies what a call asks: exactly, and by what the rules leave of it.
type fingerprint struct {
	exact [16]byte
	loose *[sha256.Size]byte // nil without rules, or if the request is too large for them
}

func (a *sessionSet) fingerprint(digest [16]byte, api string, q *llm.Request) fingerprint {
	f := fingerprint{exact: digest}
	if a.cfg.Rules != nil {
		if sum, ok := a.cfg.Rules.Digest(api, q); ok {
			f.loose = &sum
		}
	}
	return f
}

// equal reports whether two calls ask the same.
func (f fingerprint) equal(g fingerprint) bool {
	return f.exact == g.exact || f.loose != nil && g.loose != nil && *f.loose == *g.loose
}

// same reports whether a call asks the same as the one that f is of.
func (a *sessionSet) same(f fingerprint, digest [16]byte, api string, q *llm.Request) bool {
	if digest == f.exact || f.loose == nil {
		return digest == f.exact
	}
	sum, ok := a.cfg.Rules.Digest(api, q)
	return ok && sum == *f.loose
}

// remember adds a call.
func (a *sessionSet) remember(p *program, digest [16]byte, api string, q *llm.Request) {
	if p.calls++; p.calls == 1 {
		p.first = a.fingerprint(digest, api, q)
	}
	p.more = p.more || !a.same(p.first, digest, api, q)
	if p.reported {
		p.conversations = nil
		return
	}
	if p.conversations == nil {
		p.conversations = map[uint64]struct{}{}
	}
	if talks := a.conversationHashes(q); len(talks) > 0 && len(p.conversations) < maxConversations {
		p.conversations[talks[len(talks)-1]] = struct{}{}
	}
}

// continues reports whether a call begins with the whole conversation of an earlier one.
func (p *program) continues(talks []uint64) bool {
	for _, t := range talks {
		if _, ok := p.conversations[t]; ok {
			return true
		}
	}
	return false
}

// conversationHashes hashes the conversation of a request: its first message, its first two, and so on.
func (a *sessionSet) conversationHashes(q *llm.Request) []uint64 {
	out := make([]uint64, len(q.Messages))
	var h maphash.Hash
	h.SetSeed(a.seed)
	add := func(s string) {
		_, _ = h.WriteString(s) // a hash does not fail
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
			if p.File != nil {
				add(p.File.URL)
				_, _ = h.Write(p.File.Data)
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
