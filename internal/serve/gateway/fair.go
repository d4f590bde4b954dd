package gateway

import "sync"

// fair gives calls their places in the queue so that sessions take turns: a call's place
// is after the last one of its own session, but never before what is being served now. So
// a session with a thousand calls waiting holds up nobody who has one.
type fair struct {
	mu  sync.Mutex
	now int64 // the place of the latest call that was let in
}

// place returns the place of a session's next call; next is the session's own.
func (f *fair) place(next *int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := max(f.now, *next)
	*next = at + 1
	return at
}

// admitted notes that a call was let in.
func (f *fair) admitted(place int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = max(f.now, place)
}
