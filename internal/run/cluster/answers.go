package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"parley/internal/ask/cache"
	"parley/internal/run/cluster/hub"
)

// Workers share the cache of a run: its folder is where the coordinator is, which answers what they ask at hub.CacheSubject. A message is the key
// of an answer, to ask for it, or the key and the answer, to save it.

const keySize = 32

// answers is the cache of a run at the coordinator.
type answers struct{ store *cache.Store }

// receive answers what a worker asks, or saves what it sends. The worker may be somebody else's program.
func (a *answers) receive(m *nats.Msg) {
	if len(m.Data) < keySize {
		return
	}
	key := [keySize]byte(m.Data)
	if framed := m.Data[keySize:]; len(framed) > 0 {
		if value, err := cache.Unframe(key, framed); err == nil {
			_ = a.store.Save(key, value) // without it the next asks again
		}
		return
	}
	var framed []byte
	if value, ok := a.store.Load(context.Background(), key); ok { // it is on the disk here
		framed = cache.Frame(key, value)
	}
	_ = m.Respond(framed) // without an answer, the worker asks its provider
}

// Answers is the cache of a run at a worker. It implements cache.Remote.
type Answers struct {
	Conn *nats.Conn
	Run  string
}

// Load returns an answer, or nil: also while the coordinator is away.
func (a Answers) Load(ctx context.Context, key [keySize]byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*hub.BeatInterval)
	defer cancel()
	m, err := a.Conn.RequestWithContext(ctx, hub.CacheSubject(a.Run), key[:])
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the cache of the run: %w", err)
	case len(m.Data) == 0:
		return nil, nil
	default:
		return m.Data, nil
	}
}

// Save stores an answer. It is not waited for: a worker that is killed at once may lose it.
func (a Answers) Save(key [keySize]byte, framed []byte) error {
	data := append(key[:], framed...)
	if limit := a.Conn.MaxPayload(); int64(len(data)) > limit {
		return fmt.Errorf("an answer of %d bytes is too large for the hub, which takes %d", len(framed), limit)
	}
	return a.Conn.Publish(hub.CacheSubject(a.Run), data)
}
