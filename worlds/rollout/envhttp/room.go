package envhttp

import (
	"math"
	"time"

	"parley/llm"
)

// room is how many things a host has at a time: sessions, or sessions being made. It is a plain value.
//
// If the user has chosen a number, that is the room. Otherwise it is found by trying: while more are wanted, every
// answer adds one, as long as the host keeps up. A host that says it is full sets the room to what it has, and a few
// more are tried a little later.
type room struct {
	limit, first, max int
	mean, lowest      float64 // latency of its answers, in seconds
}

const (
	firstStartup = 16
	maxRoom      = 10_000 // if the user has chosen nothing
	meanStep     = 0.05
	keepsUp      = 2 // times the lowest mean latency: answers that take longer wait for each other
	tryShare     = 8 // a full host is tried with an eighth more
)

func newRoom(chosen, first int) room {
	if chosen > 0 {
		return room{limit: chosen, first: chosen, max: chosen}
	}
	return room{limit: first, first: first, max: max(first, maxRoom)}
}

// answered notes the latency of an answer. If more are wanted, and things spend little of their time waiting for the
// host or the host does not slow down, it adds one.
func (r *room) answered(latency time.Duration, wanted, spare bool) (grown bool) {
	s := math.Max(latency.Seconds(), 1e-6)
	if r.mean == 0 {
		r.mean, r.lowest = s, s
	}
	r.mean += meanStep * (s - r.mean)
	r.lowest = math.Min(r.lowest, r.mean)
	if !wanted || r.limit >= r.max || !spare && r.mean > keepsUp*r.lowest {
		return false
	}
	r.limit++
	return true
}

// refused notes that the host has so many and refused another.
func (r *room) refused(has int) { r.limit = max(1, min(r.limit, has)) }

// try adds some after a refusal.
func (r *room) try() { r.limit = min(r.max, r.limit+max(1, r.limit/tryShare)) }

// restart begins again as at first: the host went down, maybe because it had too much to do.
func (r *room) restart() { r.limit = min(r.limit, r.first) }

// acts notes that a session of h sends a request.
func (p *envPool) acts(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.acting++
}

// acted notes how a request of a session of h ended. More sessions are worth having if they wait for h less than half of
// their time: then they wait for the models.
func (p *envPool) acted(h *host, latency time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && h.room.answered(latency, p.queue.Len() > 0 && h.load >= h.room.limit, 2*h.acting <= h.load) {
		p.countRoom()
		p.serve()
	}
	h.acting--
}

// started notes how the making of a session ended, and lets another begin, or two.
func (p *envPool) started(latency time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if llm.KindOf(err) == "" && p.startup.answered(latency, len(p.places) == 0, false) {
		p.places <- struct{}{}
	}
	p.places <- struct{}{}
}

// countRoom updates Capacity. Pool.mu is held.
func (p *envPool) countRoom() {
	sum := 0
	for _, h := range p.hosts {
		r := h.room
		sum += min(r.max, r.limit+max(firstStartup, r.limit/tryShare))
	}
	p.room.Store(int64(sum))
}

// Capacity returns how many episodes can be played at the moment: as many as the hosts have room for, and where that may grow
// some that wait, which shows whether more room is wanted.
func (p *envPool) Capacity() int { return int(p.room.Load()) }
