package chain

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The first byte of a message on the wire says which part of a whole it is. A message that is too
// large for the hub is sent in parts. Parts without a last one are no message: their writer died.
const (
	whole = iota
	firstPart
	middlePart
	lastPart
)

const (
	headers = 1 << 10   // bytes that the id and the expected sequence of a message take at most
	maxSize = 512 << 20 // bytes of a message in parts
)

// Parts returns a message as it is published where payloads may have so many bytes.
func Parts(message []byte, payload int) [][]byte {
	size := max(1, payload-headers-1)
	if len(message) <= size {
		return [][]byte{append([]byte{whole}, message...)}
	}
	var out [][]byte
	for kind := byte(firstPart); len(message) > 0; kind = middlePart {
		n := min(size, len(message))
		if n == len(message) {
			kind = lastPart
		}
		out = append(out, append([]byte{kind}, message[:n]...))
		message = message[n:]
	}
	return out
}

// Reader reads the messages of a chain, all of them in order. The zero value begins a chain.
type Reader struct {
	decoder wireDecoder
	parts   []byte
	begun   bool   // a message was complete
	last    uint64 // the sequence of the last message
	id      string // its Msg-Id
}

// ErrForked is wrapped by the error of a chain that the hub did not keep as it was written: a message is missing, or one is there that
// the hub should have refused. That can happen when nodes of a hub are lost. Nothing after it can be read.
var ErrForked = errors.New("chain: a message does not follow the one before it")

// Add reads what was published, and returns its items, once all its parts are there. What is delivered again, or was stored
// twice when a node of the hub was lost, has no items: a writer numbers its messages.
func (r *Reader) Add(sequence uint64, header nats.Header, data []byte) ([]any, error) {
	if sequence <= r.last {
		return nil, nil
	}
	id := header.Get(jetstream.MsgIDHeader)
	again, after := id != "" && id == r.id, r.last
	if r.last, r.id = sequence, id; again {
		return nil, nil
	}
	if len(data) == 0 {
		return nil, errors.New("chain: a message is empty")
	}
	kind, rest := data[0], data[1:]
	want := header.Get(jetstream.ExpectedLastSubjSeqHeader)
	switch {
	case after == 0 || want == "" || want == strconv.FormatUint(after, 10):
	case isDone(rest): // what is before it may be purged while it is read
	case want == "0" && !r.begun: // Seed began again
	default:
		return nil, fmt.Errorf("%w: it was written after message %s, and comes after %d", ErrForked, want, after)
	}
	switch kind {
	case whole:
		r.parts, r.begun = nil, true
		return r.decoder.Decode(rest)
	case firstPart:
		r.parts = append([]byte(nil), rest...)
		return nil, nil
	case middlePart, lastPart:
		if r.parts == nil || len(r.parts)+len(rest) > maxSize {
			return nil, errors.New("chain: a part without the first, or too many")
		}
		r.parts = append(r.parts, rest...)
		if kind == middlePart {
			return nil, nil
		}
		all := r.parts
		r.parts, r.begun = nil, true
		return r.decoder.Decode(all)
	default:
		return nil, errors.New("chain: unknown kind of message")
	}
}
