package dispatch

import (
	"time"

	"parley/llm"
)

// refusedAll notes that the server refused a call because it is busy. It reports whether it refuses every call.
func (r *Guard) refusedAll(e *llm.Error, probe bool) bool {
	now := time.Now()
	r.mu.Lock()
	if r.down && !probe {
		r.mu.Unlock()
		return true
	}
	if r.refused == 0 {
		r.first = now
		r.trouble.Store(true)
	}
	r.refused++
	all := r.refused >= minRefused && now.Sub(r.first) >= outageRefusedTime
	r.refuses = r.refuses || all
	r.mu.Unlock()
	if all {
		r.missed(e, probe)
	}
	return all
}

// refusing reports whether the server refuses every call.
func (r *Guard) refusing() bool {
	if !r.trouble.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down && r.refuses
}
