package envhttp

import (
	"strconv"
	"strings"
	"time"

	"parley/world"
)

// Capacities returns how full each host is. Where the user has not chosen how many sessions it has, each process finds out how
// many the host has room for, and nothing is shared.
func (p *envPool) Capacities() (all []world.Capacity) {
	if p.PerHost == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		all = append(all, world.Capacity{Name: h.Name(), Max: p.PerHost, Used: h.load, Waiting: p.queue.Len()})
	}
	return all
}

// ShareCapacity sets the part of each host, by name, that the pool may use until then. Sessions that are there stay.
func (p *envPool) ShareCapacity(parts map[string]float64, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		if part, ok := parts[h.Name()]; ok {
			h.share, h.until = 0, until
			if part > 0 { // and a number
				h.share = min(part, 1)
			}
		}
	}
	p.serve()
}

// slots returns how many of a host's sessions may be ours.
func (h *host) slots(perHost int, now time.Time) int {
	switch {
	case h.share == 1 && h.until.IsZero():
		return h.room.limit
	case !now.Before(h.until):
		return 0
	default:
		return min(h.room.limit, int(h.share*float64(perHost)+1e-6)) // shares are fractions of whole sessions
	}
}

// Resume notes that the pool plays an episode that began elsewhere. What was left behind of earlier attempts is closed.
func (p *envPool) Resume(episode, attempt int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Run == "" {
		return // nobody else plays: everything unknown is left behind
	}
	p.resumed[episode] = attempt
	for _, h := range p.hosts {
		h.checked = time.Time{}
	}
}

// stray reports whether a session was left behind. If nobody else plays the run, that is every one that is not known.
// Otherwise it is one of ours, or of an earlier attempt at an episode that is ours by now.
func (p *envPool) stray(id string) bool {
	owner, name, _ := strings.Cut(id, "-")
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.known[id]:
		return false
	case owner == p.Owner, p.Run == "" && strings.HasPrefix(owner, p.Owner+"_"):
		return true
	case p.Run == "" || owner != p.Run && !strings.HasPrefix(owner, p.Run+"_"):
		return false
	}
	first, rest, _ := strings.Cut(name, "-")
	second, _, _ := strings.Cut(rest, "-")
	episode, err := strconv.Atoi(first)
	attempt, attemptErr := strconv.Atoi(second)
	ours, ok := p.resumed[episode]
	return err == nil && attemptErr == nil && ok && attempt < ours
}
