package chain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Retry calls do until it succeeds, or fails in a way that waiting does not change: not while the hub is away, has no
// leader, or is full.
func Retry[T any](ctx context.Context, do func(ctx context.Context) (T, error)) (out T, err error) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if err := context.Cause(ctx); err != nil {
			return out, err
		}
		try, cancel := context.WithTimeoutCause(ctx, attemptTimeout, errAgain)
		out, err = do(try)
		cancel()
		if err == nil || !temporary(err) {
			return out, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// attemptTimeout is how long a request may take before it is made again.
const attemptTimeout = 5 * time.Second

var errAgain = errors.New("try again")

// temporary reports whether an error may pass by waiting.
func temporary(err error) bool {
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		return isFull(err) || api.ErrorCode == errCodeNoPeers || api.ErrorCode == errCodeInProcess || api.Code >= 500 && api.ErrorCode != jetstream.JSErrCodeStreamNotFound
	}
	for _, is := range []error{
		errAgain, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrDisconnected,
		nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// errCodeNoPeers means that too few nodes are up to place a stream, and errCodeInProcess that the same message is being stored.
const (
	errCodeNoPeers   jetstream.ErrorCode = 10005
	errCodeInProcess jetstream.ErrorCode = 10158
)

// Room notes whether a hub has room. It may be used from several goroutines. A nil one notes nothing.
type Room struct {
	// Tell is called with what the hub says when it is full, and with nil when it has room again.
	Tell func(full error)

	mu   sync.Mutex
	full bool
}

// Note notes how a write ended. Errors for other reasons say nothing about room.
func (r *Room) Note(err error) {
	full := isFull(err)
	if r == nil || err != nil && !full {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if full != r.full {
		r.full = full
		r.Tell(err)
	}
}

// Full reports whether r has noted that the hub is full.
func (r *Room) Full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full
}

// Codes of a hub without room. errCodeNotStored comes with a text that says why.
const (
	errCodeAccountFull jetstream.ErrorCode = 10002
	errCodeFull        jetstream.ErrorCode = 10023
	errCodeMemoryFull  jetstream.ErrorCode = 10028
	errCodeDiskFull    jetstream.ErrorCode = 10047
	errCodeNotStored   jetstream.ErrorCode = 10077
)

// perSubject is in the text of errCodeNotStored if the stream has a message of the same subject, and may have no more.
const perSubject = "per subject"

// isFull reports whether err is that of a hub without room.
func isFull(err error) bool {
	api := (*jetstream.APIError)(nil)
	if !errors.As(err, &api) {
		return false
	}
	return slices.Contains([]jetstream.ErrorCode{errCodeAccountFull, errCodeFull, errCodeMemoryFull, errCodeDiskFull}, api.ErrorCode) ||
		api.ErrorCode == errCodeNotStored && !InQueue(err)
}

// InQueue reports whether err is that of a stream with one message for each subject, which has the message already.
func InQueue(err error) bool {
	api := (*jetstream.APIError)(nil)
	return errors.As(err, &api) && api.ErrorCode == errCodeNotStored && strings.Contains(api.Description, perSubject)
}
