// Part wire encodes the entries of a journal for the log of a cluster: compactly, and each text
// once for each chain.
//
// A chain is a sequence of messages with one writer at a time. An Encoder and a Decoder number the
// longer texts of a chain in the order in which they first occur, so that later messages refer to
// them by number. Every field of an entry is encoded, by reflection: a new field cannot be
// forgotten. Both sides must be the same build, which the cluster checks.
//
// What it promises: any bytes give an error or entries, never a panic, and take memory in
// proportion to their size.

package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"parley/journal"
)

// Claim says that a worker begins to play the lot of a chain, or a coordinator the run. Whoever wrote to the chain
// before cannot write any more.
type Claim struct {
	// Session names the worker's process.
	Session string
	// Number is higher than that of every claim of the chain before.
	Number uint64
	// Alone means that the worker plays the episodes one at a time, since earlier workers died. Trying is
	// the next one.
	Alone  bool
	Trying int
	// Lost is how many calls have no reply, because whoever claimed the chain before did not release it.
	Lost int
}

// Nth has the Nth of engine.Lot.
type Nth struct{ Numbers []int }

// Seeded is the end of a part of a chain that the coordinator wrote from the run file.
type Seeded struct{}

// Released says that a worker gives its lot back, and did not die.
type Released struct{}

// Done says that all episodes of the lot have ended.
type Done struct{}

// isDone reports whether a message is Done alone.
func isDone(message []byte) bool {
	return len(message) == 2 && int(message[0]) == number(reflect.TypeFor[Done]()) && message[1] == 0
}

// Halted says that the whole run must stop, and why.
type Halted struct {
	State  journal.State
	Reason journal.Reason
	// Error means that the run cannot continue unchanged.
	Error bool
}

// items are the types that a message may hold. Their index is their number on the wire.
var items = [...]reflect.Type{
	reflect.TypeFor[journal.Begun](), reflect.TypeFor[journal.Opened](), reflect.TypeFor[journal.Closed](),
	reflect.TypeFor[journal.Staged](), reflect.TypeFor[journal.Turned](), reflect.TypeFor[journal.Replied](),
	reflect.TypeFor[journal.Ended](), reflect.TypeFor[journal.Exposed](), reflect.TypeFor[journal.Batched](),
	reflect.TypeFor[journal.Steered](), reflect.TypeFor[journal.Collected](),
	reflect.TypeFor[Claim](), reflect.TypeFor[Nth](), reflect.TypeFor[Seeded](), reflect.TypeFor[Released](), reflect.TypeFor[Done](), reflect.TypeFor[Halted](),
}

const (
	minText  = 24        // shorter texts are not numbered
	maxTexts = 256 << 20 // bytes of numbered texts of a chain: later texts are not numbered
	maxDepth = 64        // of values in values
	textSize = 16        // bytes of memory that a numbered text takes beside its bytes
)

// encoder writes the messages of a chain. The zero value begins a chain.
type encoder struct {
	texts map[string]uint64 // their numbers
	size  int               // of all of them
	b     []byte
}

// Append appends a message of items to b: pointers to entries, or to the types of this package.
// After an error the chain cannot be continued.
func (e *encoder) Append(b []byte, all ...any) ([]byte, error) {
	if e.texts == nil {
		e.texts = map[string]uint64{}
	}
	e.b = b
	for _, item := range all {
		v := reflect.ValueOf(item)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return nil, fmt.Errorf("wire: %T is no item of a message", item)
		}
		n := number(v.Type().Elem())
		if n < 0 {
			return nil, fmt.Errorf("wire: %T is no item of a message", item)
		}
		e.b = append(e.b, byte(n))
		codecOf(v.Type().Elem()).encode(e, v.Elem())
	}
	out := e.b
	e.b = nil
	return out, nil
}

func number(t reflect.Type) int {
	for i, item := range items {
		if item == t {
			return i
		}
	}
	return -1
}

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

// text writes a text: its number and a bit, or its length and the text.
func (e *encoder) text(s string) {
	if len(s) >= minText {
		if n, ok := e.texts[s]; ok {
			e.uint(n<<1 | 1)
			return
		}
		if e.size+len(s)+textSize <= maxTexts {
			e.size += len(s) + textSize
			e.texts[s] = uint64(len(e.texts))
		}
	}
	e.uint(uint64(len(s)) << 1)
	e.b = append(e.b, s...)
}

// wireDecoder reads the messages of a chain, all of them in order. The zero value begins a chain.
type wireDecoder struct {
	texts []string
	known map[string]uint64 // the numbers of texts
	size  int               // of all of them

	b     []byte
	room  int // bytes of memory that the message may still take
	depth int
}

var errShort = errors.New("the message ends too early")

// Decode reads a message. After an error the chain cannot be continued.
func (d *wireDecoder) Decode(message []byte) (all []any, err error) {
	if d.known == nil {
		d.known = map[string]uint64{}
	}
	d.b, d.room, d.depth = message, 1<<20+64*len(message), 0
	defer func() { d.b = nil }()
	for len(d.b) > 0 {
		n := int(d.b[0])
		d.b = d.b[1:]
		if n >= len(items) {
			return nil, fmt.Errorf("wire: unknown item %d", n)
		}
		v := reflect.New(items[n])
		if err := d.take(int(items[n].Size())); err != nil {
			return nil, fmt.Errorf("wire: %s: %w", items[n].Name(), err)
		}
		if err := codecOf(items[n]).decode(d, v.Elem()); err != nil {
			return nil, fmt.Errorf("wire: %s: %w", items[n].Name(), err)
		}
		all = append(all, v.Interface())
	}
	return all, nil
}

// Continue returns an Encoder for the messages after those that were decoded. The decoder is not
// used any more.
func (d *wireDecoder) Continue() *encoder { return &encoder{texts: d.known, size: d.size} }

// take counts memory that the message takes.
func (d *wireDecoder) take(bytes int) error {
	if d.room -= bytes; d.room < 0 {
		return errors.New("the message takes too much memory")
	}
	return nil
}

func (d *wireDecoder) uint() (uint64, error) {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		return 0, errShort
	}
	d.b = d.b[size:]
	return n, nil
}

// count reads how many values follow. Each takes at least one byte.
func (d *wireDecoder) count() (int, error) {
	n, err := d.uint()
	if err == nil && n > uint64(len(d.b)) {
		err = errShort
	}
	return int(n), err
}

func (d *wireDecoder) text() (string, error) {
	n, err := d.uint()
	if err != nil {
		return "", err
	}
	if n&1 == 1 {
		if n>>1 >= uint64(len(d.texts)) {
			return "", fmt.Errorf("text %d of %d", n>>1, len(d.texts))
		}
		return d.texts[n>>1], nil
	}
	if n>>1 > uint64(len(d.b)) {
		return "", errShort
	}
	s := string(d.b[:n>>1])
	d.b = d.b[n>>1:]
	if len(s) >= minText && d.size+len(s)+textSize <= maxTexts {
		if _, twice := d.known[s]; twice {
			return "", errors.New("a text is there twice")
		}
		d.size += len(s) + textSize
		d.known[s] = uint64(len(d.texts))
		d.texts = append(d.texts, s)
	}
	return s, nil
}
