package replica

import (
	"context"
	"time"

	"parley/llm"
)

const (
	strikesMost = 3           // failures in a row after which a server rests
	restFirst   = time.Second // how long it rests at first
	restMost    = time.Minute // and at most: each rest is twice as long as the one before
)

// health is what is known of a server. It is a plain value of events and times.
type health struct {
	strikes  int       // failures since the last answer
	rests    int       // in a row
	until    time.Time // it rests until then; zero: it does not
	gone     time.Time // when it was last found not to be there, since the last answer
	checking bool      // somebody looks whether it is back
	trial    bool      // it is back, and takes one call at a time until that is answered
}

// resting says whether the server is out of service.
func (h *health) resting() bool { return !h.until.IsZero() }

// fit says whether m can be given another call.
func (m *member) fit() bool { return !m.resting() && !(m.trial && m.calls > 0) }

// due says whether a server that rests has rested long enough.
func (h *health) due(now time.Time) bool { return h.resting() && !h.checking && !now.Before(h.until) }

// judgement is what a call says of its server.
type judgement int

const (
	neither judgement = iota // nothing: it was called off, or our own limits spoke
	lives                    // it answered, be it a refusal
	failed                   // it did not, as it should have
	absent                   // it is not there: nothing was sent
)

// verdict says what the way in which a call ended says of its server.
func verdict(ctx context.Context, err error) judgement {
	e := llm.AsError(err)
	switch {
	case e == nil:
		return lives
	case ctx.Err() != nil:
		return neither
	case e.Unserved():
		return absent
	}
	switch e.Kind {
	case llm.KindTransport:
		if e.Uncertain {
			return failed
		}
		return absent
	case llm.KindTimeout, llm.KindServer, llm.KindMalformed, llm.KindOverloaded:
		return failed
	case llm.KindBadRequest, llm.KindRefused, llm.KindTooLong:
		return lives
	default:
		return neither
	}
}

// note takes in how a call ended, and says whether the server begins to rest for it.
func (h *health) note(v judgement, now time.Time) (rests bool) {
	switch v {
	case lives:
		*h = health{checking: h.checking}
		return false
	case failed:
		h.strikes++
	case absent:
		h.strikes, h.gone = strikesMost, now
	case neither:
		return false
	}
	if h.resting() {
		return false // a call that was on its way before
	}
	if h.strikes < strikesMost && !h.trial {
		return false
	}
	h.rest(now)
	return true
}

// rest takes the server out of service for a while.
func (h *health) rest(now time.Time) {
	h.until = now.Add(min(restMost, restFirst<<min(h.rests, 10)))
	h.rests++
	h.strikes, h.trial = 0, false
}

// checked takes in whether the server could be reached after its rest.
func (h *health) checked(alive bool, now time.Time) {
	h.checking = false
	switch {
	case !h.resting():
	case alive:
		h.until, h.trial = time.Time{}, true
	default:
		h.rest(now)
	}
}
