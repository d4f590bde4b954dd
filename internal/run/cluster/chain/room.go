package chain

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
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
	full := Full(err)
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

// Codes of the hub. NotStored comes with a text that says why.
const (
	errCodeAccountFull jetstream.ErrorCode = 10002
	errCodeFull        jetstream.ErrorCode = 10023
	errCodeMemoryFull  jetstream.ErrorCode = 10028
	errCodeDiskFull    jetstream.ErrorCode = 10047
	errCodeNotStored   jetstream.ErrorCode = 10077
)

// perSubject is in the text of errCodeNotStored if the stream has a message of the same subject, and may have no more.
const perSubject = "per subject"

// Full reports whether err is that of a hub without room.
func Full(err error) bool {
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
