package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley/internal/run/cluster/hub"
	"parley/internal/run/cluster/lease"
)

// link knows whether what a worker records arrives. While it does not, the worker sends no calls: nobody else can know of them, so they
// would be made again.
type link struct {
	mu      sync.Mutex
	heard   time.Time // when something last came from the hub or the coordinator
	writes  int
	pending map[int]time.Time // when each write that has not ended began, by number
	usual   time.Duration     // how long a write takes, about
}

const (
	slowWrite = 250 * time.Millisecond   // a write that takes longer, and much longer than usual, may not arrive
	unheard   = 3 * hub.BeatInterval / 2 // without a word for so long, the hub or the coordinator may be gone
	linkTick  = 50 * time.Millisecond    // how often that is looked at
)

func newLink() *link {
	return &link{heard: time.Now(), pending: map[int]time.Time{}}
}

// hear notes that something came.
func (l *link) hear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
}

// write notes that a write began. It ends when end is called.
func (l *link) write() (end func(error)) {
	began := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	number := l.writes
	l.pending[number] = began
	return func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pending, number)
		if now := time.Now(); err == nil {
			l.heard = now
			l.usual += (now.Sub(began) - l.usual) / 8
		}
	}
}

// works reports whether what is recorded arrives, as far as is known.
func (l *link) works(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.heard) > unheard {
		return false
	}
	for _, began := range l.pending {
		if now.Sub(began) > max(slowWrite, 4*l.usual) {
			return false
		}
	}
	return true
}

// watchLink lets the worker use its shares only while the link works, until ctx is done.
func (m *member) watchLink(ctx context.Context, s *lease.LimitsMember) {
	status := m.Conn.StatusChanged()
	defer m.Conn.RemoveStatusListener(status)
	lost := false // the connection was, and the lots are not checked since
	tick := time.NewTicker(linkTick)
	defer tick.Stop()
	for {
		lost = lost || m.Conn.Status() != nats.CONNECTED
		s.Hold(lost || !m.link.works(time.Now()))
		if lost && m.Conn.Status() == nats.CONNECTED {
			lost = !m.dropFenced(ctx) // a hub that is back may have another log
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case is := <-status:
			lost = lost || is != nats.CONNECTED
		}
	}
}
