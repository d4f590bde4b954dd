package gateway

import "sync"

// fair gives calls their position in the queue so that sessions take turns, however many calls one has: after the last
// call of their own session, but not before the call that is served now.
type fair struct {
	mu  sync.Mutex
	now int64 // position of the latest call that was admitted
}

// position returns the position of a session's next call; next belongs to the session.
func (f *fair) position(next *int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := max(f.now, *next)
	*next = at + 1
	return at
}

// admitted records that a call left the queue.
func (f *fair) admitted(position int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = max(f.now, position)
}
