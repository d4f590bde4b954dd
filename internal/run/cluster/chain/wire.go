package chain

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/journal"
	"parley/world"
)

// Claim says that a worker begins to play the lot of a chain, or a coordinator the run. Whoever wrote to the chain
// before cannot write any more.
type Claim struct {
	// Session names the worker's process.
	Session string
	// Number is higher than that of every claim of the chain before.
	Number uint64
	// Trying are the episodes that the worker plays next with nothing beside them, since earlier workers died. None: it claims the lot.
	Trying []int
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

// splitMessage returns a message as it is published where payloads may have so many bytes.
func splitMessage(message []byte, payload int) [][]byte {
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
	decoder decoder
	parts   []byte
	begun   bool   // a message was complete
	cut     bool   // its first messages are missing: they are purged once a lot is done
	last    uint64 // the sequence of the last message
	id      string // its Msg-Id
}

// ErrForked is wrapped by the error of a chain that the hub did not keep as it was written: a message is missing, or one is there that
// the hub should have refused. That can happen when nodes of a hub are lost. Nothing after it can be read.
var ErrForked = errors.New("a message does not follow the one before it")

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
		return nil, errors.New("a message is empty")
	}
	kind, rest := data[0], data[1:]
	want := header.Get(jetstream.ExpectedLastSubjSeqHeader)
	r.cut = r.cut || after == 0 && want != "" && want != "0"
	switch {
	case after == 0 || want == "" || want == strconv.FormatUint(after, 10):
	case isDone(rest): // what is before it may be purged while it is read
	case want == "0" && !r.begun: // Seed began again
	default:
		return nil, fmt.Errorf("%w: it was written after message %s, and comes after %d", ErrForked, want, after)
	}
	items, err := r.read(kind, rest)
	if err != nil && r.cut {
		err = fmt.Errorf("%w: it is the first that is there: %w", ErrForked, err)
	}
	return items, err
}

// read reads a message of a kind.
func (r *Reader) read(kind byte, rest []byte) ([]any, error) {
	switch kind {
	case whole:
		r.parts, r.begun = nil, true
		return r.decoder.Decode(rest)
	case firstPart:
		r.parts = append([]byte(nil), rest...)
		return nil, nil
	case middlePart, lastPart:
		if r.parts == nil || len(r.parts)+len(rest) > maxSize {
			return nil, errors.New("a part without the first, or too many")
		}
		r.parts = append(r.parts, rest...)
		if kind == middlePart {
			return nil, nil
		}
		all := r.parts
		r.parts, r.begun = nil, true
		return r.decoder.Decode(all)
	default:
		return nil, errors.New("unknown kind of message")
	}
}

// isDone reports whether a message is Done alone.
func isDone(message []byte) bool {
	return len(message) == 2 && int(message[0]) == itemNumber(reflect.TypeFor[Done]()) && message[1] == 0
}

const (
	minText  = 24        // shorter texts are not numbered
	maxTexts = 256 << 20 // bytes of numbered texts of a chain: later texts are not numbered
	maxDepth = 64        // of values in values
	textSize = 16        // bytes of memory that a numbered text takes beside its bytes
)

// encoder writes the messages of a chain. The zero value begins a chain.
//
// It numbers the longer texts of a chain in the order in which they first occur, as a decoder does, so that later messages
// refer to them by number. Every field of an entry is encoded, by reflection: a new field cannot be forgotten. Both sides must
// be the same build, which the cluster checks.
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
			return nil, fmt.Errorf("%T is no item of a message", item)
		}
		n := itemNumber(v.Type().Elem())
		if n < 0 {
			return nil, fmt.Errorf("%T is no item of a message", item)
		}
		e.b = append(e.b, byte(n))
		codecOf(v.Type().Elem()).encode(e, v.Elem())
	}
	out := e.b
	e.b = nil
	return out, nil
}

func itemNumber(t reflect.Type) int {
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

// decoder reads the messages of a chain, all of them in order. The zero value begins a chain. Any bytes give an error or
// items, never a panic, and take memory in proportion to their size.
type decoder struct {
	texts []string
	known map[string]uint64 // the numbers of texts
	size  int               // of all of them

	b     []byte
	room  int // bytes of memory that the message may still take
	depth int
}

var errShort = errors.New("the message ends too early")

// Decode reads a message. After an error the chain cannot be continued.
func (d *decoder) Decode(message []byte) (all []any, err error) {
	if d.known == nil {
		d.known = map[string]uint64{}
	}
	d.b, d.room, d.depth = message, 1<<20+64*len(message), 0
	defer func() { d.b = nil }()
	for len(d.b) > 0 {
		n := int(d.b[0])
		d.b = d.b[1:]
		if n >= len(items) {
			return nil, fmt.Errorf("unknown item %d", n)
		}
		v := reflect.New(items[n])
		if err := d.take(int(items[n].Size())); err != nil {
			return nil, fmt.Errorf("%s: %w", items[n].Name(), err)
		}
		if err := codecOf(items[n]).decode(d, v.Elem()); err != nil {
			return nil, fmt.Errorf("%s: %w", items[n].Name(), err)
		}
		all = append(all, v.Interface())
	}
	return all, nil
}

// Continue returns an encoder for the messages after those that were decoded. The decoder is not
// used any more.
func (d *decoder) Continue() *encoder { return &encoder{texts: d.known, size: d.size} }

// take counts memory that the message takes.
func (d *decoder) take(bytes int) error {
	if d.room -= bytes; d.room < 0 {
		return errors.New("the message takes too much memory")
	}
	return nil
}

func (d *decoder) uint() (uint64, error) {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		return 0, errShort
	}
	d.b = d.b[size:]
	return n, nil
}

// count reads how many values follow. Each takes at least one byte.
func (d *decoder) count() (int, error) {
	n, err := d.uint()
	if err == nil && n > uint64(len(d.b)) {
		err = errShort
	}
	return int(n), err
}

func (d *decoder) text() (string, error) {
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

// codec writes and reads the values of a type.
type codec struct {
	encode func(e *encoder, v reflect.Value)
	decode func(d *decoder, v reflect.Value) error
}

var codecs sync.Map // reflect.Type → *codec

// codecOf returns the codec of a type. It panics for a type that no entry may have: a test makes
// the codecs of all items.
func codecOf(t reflect.Type) *codec {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec) //nolint:forcetypeassert // nothing else is stored
	}
	c, _ := codecs.LoadOrStore(t, newCodec(t))
	return c.(*codec) //nolint:forcetypeassert // nothing else is stored
}

func newCodec(t reflect.Type) *codec {
	switch t {
	case reflect.TypeFor[time.Time]():
		return timeCodec()
	case reflect.TypeFor[world.Specs]():
		return specsCodec()
	case reflect.TypeFor[world.Measure]():
		return measureCodec()
	case reflect.TypeFor[any](): // the data of an outcome
		return dataCodec()
	case reflect.TypeFor[error](): // what an llm.Error wraps: for the process that made it
		return notSent()
	}
	switch t.Kind() {
	case reflect.Func: // how to carry out an act
		return notSent()
	case reflect.Bool:
		return &codec{
			func(e *encoder, v reflect.Value) {
				if v.Bool() {
					e.b = append(e.b, 1)
				} else {
					e.b = append(e.b, 0)
				}
			},
			func(d *decoder, v reflect.Value) error {
				n, err := d.uint()
				v.SetBool(n != 0)
				return err
			},
		}
	case reflect.String:
		return &codec{
			func(e *encoder, v reflect.Value) { e.text(v.String()) },
			func(d *decoder, v reflect.Value) error {
				s, err := d.text()
				v.SetString(s)
				return err
			},
		}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint8, reflect.Float64:
		return numberCodec(t)
	case reflect.Pointer:
		return pointerCodec(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return bytesCodec()
		}
		return sliceCodec(t)
	case reflect.Array:
		return arrayCodec(t)
	case reflect.Map:
		return mapCodec(t)
	case reflect.Struct:
		return structCodec(t)
	default:
		panic(fmt.Sprintf("no codec for %s", t)) // not reached: a test makes all codecs
	}
}

func notSent() *codec {
	return &codec{func(*encoder, reflect.Value) {}, func(*decoder, reflect.Value) error { return nil }}
}

// zigzag writes signed numbers so that small ones are short.
func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

func numberCodec(t reflect.Type) *codec {
	write := func(v reflect.Value) uint64 { return zigzag(v.Int()) }
	read := func(v reflect.Value, n uint64) { v.SetInt(unzigzag(n)) }
	switch {
	case t.Kind() == reflect.Float64:
		write = func(v reflect.Value) uint64 { return math.Float64bits(v.Float()) }
		read = func(v reflect.Value, n uint64) { v.SetFloat(math.Float64frombits(n)) }
	case t.Kind() == reflect.Uint64 || t.Kind() == reflect.Uint8:
		write = reflect.Value.Uint
		read = func(v reflect.Value, n uint64) { v.SetUint(n) }
	}
	return &codec{
		func(e *encoder, v reflect.Value) { e.uint(write(v)) },
		func(d *decoder, v reflect.Value) error {
			n, err := d.uint()
			read(v, n)
			return err
		},
	}
}

// timeCodec keeps the moment, not the zone.
func timeCodec() *codec {
	return &codec{
		func(e *encoder, v reflect.Value) {
			at, _ := reflect.TypeAssert[time.Time](v)
			e.uint(zigzag(at.Unix()))
			e.uint(uint64(at.Nanosecond()))
		},
		func(d *decoder, v reflect.Value) error {
			seconds, err := d.uint()
			nanos, nanosErr := d.uint()
			if nanos >= uint64(time.Second) {
				return errors.New("a time has more than a second of nanoseconds")
			}
			v.Set(reflect.ValueOf(time.Unix(unzigzag(seconds), int64(nanos)).UTC()))
			return errors.Join(err, nanosErr)
		},
	}
}

func specsCodec() *codec {
	blocks := sync.OnceValue(func() *codec { return codecOf(reflect.TypeFor[[]world.Block]()) })
	return &codec{
		func(e *encoder, v reflect.Value) {
			specs, _ := reflect.TypeAssert[world.Specs](v)
			blocks().encode(e, reflect.ValueOf(slices.Collect(specs.Blocks())))
		},
		func(d *decoder, v reflect.Value) error {
			var list []world.Block
			if err := blocks().decode(d, reflect.ValueOf(&list).Elem()); err != nil {
				return err
			}
			specs, err := world.Blocks(list...)
			v.Set(reflect.ValueOf(specs))
			return err
		},
	}
}

// measureCodec writes a measure as JSON, which has its parts that are not exported too.
func measureCodec() *codec {
	return &codec{
		func(e *encoder, v reflect.Value) {
			raw, _ := json.Marshal(v.Interface()) // it does not fail
			e.text(string(raw))
		},
		func(d *decoder, v reflect.Value) error {
			s, err := d.text()
			if err == nil {
				err = d.take(8 * len(s)) // an empty name of a seat takes 16 bytes, and 3 of JSON
			}
			if err == nil {
				err = json.Unmarshal([]byte(s), v.Addr().Interface())
			}
			return err
		},
	}
}

// dataCodec keeps the JSON of a value.
func dataCodec() *codec {
	return &codec{
		func(e *encoder, v reflect.Value) {
			raw, is := reflect.TypeAssert[json.RawMessage](v)
			if !is {
				raw, _ = json.Marshal(v.Interface()) // the engine has made it JSON before
			}
			e.text(string(raw))
		},
		func(d *decoder, v reflect.Value) error {
			s, err := d.text()
			raw := json.RawMessage(nil)
			if s != "" {
				raw = json.RawMessage(s)
			}
			v.Set(reflect.ValueOf(raw))
			return err
		},
	}
}

func pointerCodec(t reflect.Type) *codec {
	elem := sync.OnceValue(func() *codec { return codecOf(t.Elem()) })
	return &codec{ // nil is the zero value of a field, and left out
		func(e *encoder, v reflect.Value) { elem().encode(e, v.Elem()) },
		func(d *decoder, v reflect.Value) error {
			if err := d.take(int(t.Elem().Size())); err != nil {
				return err
			}
			v.Set(reflect.New(t.Elem()))
			return elem().decode(d, v.Elem())
		},
	}
}

// bytesCodec writes bytes as texts: schemas and params repeat.
func bytesCodec() *codec {
	return &codec{
		func(e *encoder, v reflect.Value) { e.text(string(v.Bytes())) },
		func(d *decoder, v reflect.Value) error {
			s, err := d.text()
			if err == nil {
				err = d.take(len(s))
			}
			if err == nil {
				v.SetBytes([]byte(s))
			}
			return err
		},
	}
}

func sliceCodec(t reflect.Type) *codec {
	elem := sync.OnceValue(func() *codec { return codecOf(t.Elem()) })
	return &codec{
		func(e *encoder, v reflect.Value) {
			e.uint(uint64(v.Len()))
			for i := range v.Len() {
				elem().encode(e, v.Index(i))
			}
		},
		func(d *decoder, v reflect.Value) error {
			n, err := d.count()
			if err == nil {
				err = d.take(n * int(t.Elem().Size()))
			}
			if err != nil {
				return err
			}
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				if err := elem().decode(d, v.Index(i)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func arrayCodec(t reflect.Type) *codec {
	if t.Elem().Kind() != reflect.Uint8 {
		panic(fmt.Sprintf("no codec for %s", t)) // not reached: a test makes all codecs
	}
	return &codec{
		func(e *encoder, v reflect.Value) {
			for i := range t.Len() {
				e.b = append(e.b, byte(v.Index(i).Uint()))
			}
		},
		func(d *decoder, v reflect.Value) error {
			if len(d.b) < t.Len() {
				return errShort
			}
			reflect.Copy(v, reflect.ValueOf(d.b[:t.Len()]))
			d.b = d.b[t.Len():]
			return nil
		},
	}
}

func mapCodec(t reflect.Type) *codec {
	key := sync.OnceValue(func() *codec { return codecOf(t.Key()) })
	elem := sync.OnceValue(func() *codec { return codecOf(t.Elem()) })
	return &codec{
		func(e *encoder, v reflect.Value) {
			e.uint(uint64(v.Len()))
			for iter := v.MapRange(); iter.Next(); {
				key().encode(e, iter.Key())
				elem().encode(e, iter.Value())
			}
		},
		func(d *decoder, v reflect.Value) error {
			n, err := d.count()
			if err == nil {
				err = d.take(2 * n * int(t.Key().Size()+t.Elem().Size()))
			}
			if err != nil {
				return err
			}
			v.Set(reflect.MakeMapWithSize(t, n))
			for range n {
				k, x := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				if err := errors.Join(key().decode(d, k), elem().decode(d, x)); err != nil {
					return err
				}
				v.SetMapIndex(k, x)
			}
			return nil
		},
	}
}

// structCodec writes a bit for each field that is not zero, and then these fields.
func structCodec(t reflect.Type) *codec {
	if t.NumField() > 64 {
		panic(fmt.Sprintf("%s has too many fields", t)) // not reached: a test makes all codecs
	}
	fields := sync.OnceValue(func() []*codec {
		all := make([]*codec, t.NumField())
		for i := range all {
			if f := t.Field(i); !f.IsExported() {
				panic(fmt.Sprintf("%s.%s is not exported", t, f.Name)) // not reached: a test makes all codecs
			}
			all[i] = codecOf(t.Field(i).Type)
		}
		return all
	})
	return &codec{
		func(e *encoder, v reflect.Value) {
			var set uint64
			for i := range t.NumField() {
				if !v.Field(i).IsZero() {
					set |= 1 << i
				}
			}
			e.uint(set)
			for i, c := range fields() {
				if set&(1<<i) != 0 {
					c.encode(e, v.Field(i))
				}
			}
		},
		func(d *decoder, v reflect.Value) error {
			set, err := d.uint()
			if err != nil {
				return err
			}
			if d.depth++; d.depth > maxDepth || t.NumField() < 64 && set>>t.NumField() != 0 {
				return fmt.Errorf("%s is not valid", t)
			}
			defer func() { d.depth-- }()
			for i, c := range fields() {
				if set&(1<<i) != 0 {
					if err := c.decode(d, v.Field(i)); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}
