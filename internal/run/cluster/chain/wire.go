package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/journal"
	"parley/llm"
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
	const longest = 16
	if len(message) > longest {
		return false
	}
	all, err := new(decoder).Decode(message)
	if err != nil || len(all) != 1 {
		return false
	}
	_, is := all[0].(*Done)
	return is
}

// A message is CBOR. An item is encoded by the fields and names of its JSON, so it has what a run file keeps of it. Both sides must be the
// same build, which the cluster checks.
//
// Prompts repeat what was said before. So a chain numbers the messages and the settings of requests in the order in which they first
// occur, and a request refers to them by number.
type message struct {
	_        struct{}          `cbor:",toarray"`
	Messages []cbor.RawMessage // those that are new in the chain
	Settings []cbor.RawMessage // the same: requests without messages
	Items    []item
}

type item struct {
	_      struct{} `cbor:",toarray"`
	Number int      // in items
	Value  cbor.RawMessage
}

// The forms of items that CBOR cannot write as they are. An outer field replaces the one of the same name.
type (
	begunForm struct {
		*journal.Begun
		Measures []byte // JSON, which has their parts that are not exported too
	}
	stagedForm struct {
		Stage, First int
		Blocks       []world.Block
	}
	repliedForm struct {
		*journal.Replied
		Request *requestForm
	}
	requestForm struct {
		Settings int
		Messages []int
		// What differs in every call, and is not in Settings.
		Sample, Prefix int
		Session        string
		Order          int64
	}
	settings struct {
		llm.Request
		Messages  *struct{}     `json:"messages,omitempty"`
		Deadline  time.Duration `json:"deadline,omitempty"`
		Fallbacks []string      `json:"fallbacks,omitempty"`
	}
)

const (
	maxTexts  = 256 << 20 // bytes of a table: then it begins again
	entrySize = 256       // bytes of memory that an entry of a table takes at least
)

// modes returns how messages are written and read. What a worker writes may be anything: what is read takes memory in proportion to its size.
var modes = sync.OnceValues(func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.EncOptions{Sort: cbor.SortBytewiseLexical, Time: cbor.TimeRFC3339NanoUTC}.EncMode()
	dec, decErr := cbor.DecOptions{
		DupMapKey:             cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors:     cbor.ExtraDecErrorUnknownField,
		FieldNameMatching:     cbor.FieldNameMatchingCaseSensitive,
		IndefLength:           cbor.IndefLengthForbidden,
		TagsMd:                cbor.TagsForbidden,
		UTF8:                  cbor.UTF8DecodeInvalid, // a text may have any bytes
		DefaultByteStringType: reflect.TypeFor[json.RawMessage](),
		MaxNestedLevels:       64,
		MaxArrayElements:      4 << 20, // token ids of a prompt
		MaxMapPairs:           1 << 20,
	}.DecMode()
	if err := errors.Join(err, decErr); err != nil {
		panic(err) // not reached: the options are constant
	}
	return enc, dec
})

func encode(v any) ([]byte, error) {
	enc, _ := modes()
	return enc.Marshal(v)
}

func decode(b []byte, v any) error {
	_, dec := modes()
	return dec.Unmarshal(b, v)
}

// table numbers values of a chain by their encoding. The zero value begins a chain.
type table[T any] struct {
	numbers map[string]int
	values  []T // of a decoder
	size    int
}

// renew begins a table again that takes too much memory. The encoder and the decoders of a chain do so before the same message.
func (t *table[T]) renew() {
	if t.numbers == nil || t.size > maxTexts {
		*t = table[T]{numbers: map[string]int{}}
	}
}

func (t *table[T]) add(b []byte) (number int) {
	number = len(t.numbers)
	t.numbers[string(b)] = number
	t.size += len(b) + entrySize
	return number
}

// number returns the number of a value, and adds the value to fresh if it had none.
func (t *table[T]) number(v *T, fresh *[]cbor.RawMessage) (int, error) {
	b, err := encode(v)
	if err != nil {
		return 0, err
	}
	if n, ok := t.numbers[string(b)]; ok {
		return n, nil
	}
	*fresh = append(*fresh, b)
	return t.add(b), nil
}

// read adds values that are new in the chain.
func (t *table[T]) read(fresh []cbor.RawMessage) error {
	t.renew()
	for _, b := range fresh {
		if _, twice := t.numbers[string(b)]; twice {
			return errors.New("a text is there twice")
		}
		var v T
		if err := decode(b, &v); err != nil {
			return err
		}
		t.values = append(t.values, v)
		t.add(b)
	}
	return nil
}

// value returns a value by its number.
func (t *table[T]) value(n int) (v T, err error) {
	if n < 0 || n >= len(t.values) {
		return v, fmt.Errorf("text %d of %d", n, len(t.values))
	}
	return t.values[n], nil
}

// encoder writes the messages of a chain. The zero value begins a chain.
type encoder struct {
	messages table[llm.Message]
	settings table[settings]
}

// Encode returns a message of items: pointers to entries, or to the types of this package.
// After an error the chain cannot be continued.
func (e *encoder) Encode(all ...any) ([]byte, error) {
	e.messages.renew()
	e.settings.renew()
	var m message
	for _, is := range all {
		v := reflect.ValueOf(is)
		if v.Kind() != reflect.Pointer || v.IsNil() || !slices.Contains(items[:], v.Type().Elem()) {
			return nil, fmt.Errorf("%T is no item of a message", is)
		}
		value, err := e.encode(&m, is)
		if err != nil {
			return nil, fmt.Errorf("%T: %w", is, err)
		}
		m.Items = append(m.Items, item{Number: slices.Index(items[:], v.Type().Elem()), Value: value})
	}
	return encode(&m)
}

func (e *encoder) encode(m *message, is any) ([]byte, error) {
	switch is := is.(type) {
	case *journal.Begun:
		form := begunForm{Begun: is}
		if len(is.Measures) > 0 {
			measures, err := json.Marshal(is.Measures)
			if err != nil {
				return nil, err
			}
			form.Measures = measures
		}
		return encode(form)
	case *journal.Staged:
		return encode(stagedForm{is.Stage, is.First, slices.Collect(is.Specs.Blocks())})
	case *journal.Replied:
		form := repliedForm{Replied: is}
		var err error
		if is.Request != nil {
			form.Request, err = e.request(m, is.Request)
		}
		if err != nil {
			return nil, err
		}
		return encode(form)
	case *journal.Ended:
		ended := *is
		if _, raw := is.Outcome.Data.(json.RawMessage); !raw && is.Outcome.Data != nil {
			raw, err := json.Marshal(is.Outcome.Data)
			if err != nil {
				return nil, err
			}
			ended.Outcome.Data = json.RawMessage(raw)
		}
		return encode(&ended)
	default:
		return encode(is)
	}
}

func (e *encoder) request(m *message, q *llm.Request) (form *requestForm, err error) {
	form = &requestForm{Messages: make([]int, len(q.Messages)), Sample: q.Sample, Prefix: q.Prefix, Session: q.Session, Order: q.Order}
	rest := settings{Request: *q, Deadline: q.Deadline, Fallbacks: q.Fallbacks}
	rest.Sample = 0
	if form.Settings, err = e.settings.number(&rest, &m.Settings); err != nil {
		return nil, err
	}
	for i := range q.Messages {
		if form.Messages[i], err = e.messages.number(&q.Messages[i], &m.Messages); err != nil {
			return nil, err
		}
	}
	return form, nil
}

// decoder reads the messages of a chain, all of them in order. The zero value begins a chain. Any bytes give an error or
// items, never a panic.
type decoder struct {
	messages table[llm.Message]
	settings table[settings]
}

// Continue returns an encoder for the messages after those that were decoded. The decoder is not
// used any more.
func (d *decoder) Continue() *encoder { return &encoder{d.messages, d.settings} }

// Decode reads a message. After an error the chain cannot be continued.
func (d *decoder) Decode(b []byte) (all []any, err error) {
	var m message
	if err := decode(b, &m); err != nil {
		return nil, err
	}
	if err := errors.Join(d.messages.read(m.Messages), d.settings.read(m.Settings)); err != nil {
		return nil, err
	}
	for _, i := range m.Items {
		if i.Number < 0 || i.Number >= len(items) {
			return nil, fmt.Errorf("unknown item %d", i.Number)
		}
		is := reflect.New(items[i.Number]).Interface()
		if err := d.decode(i.Value, is); err != nil {
			return nil, fmt.Errorf("%T: %w", is, err)
		}
		all = append(all, is)
	}
	return all, nil
}

func (d *decoder) decode(b []byte, is any) error {
	switch is := is.(type) {
	case *journal.Begun:
		form := begunForm{Begun: is}
		if err := decode(b, &form); err != nil || len(form.Measures) == 0 {
			return err
		}
		return json.Unmarshal(form.Measures, &is.Measures)
	case *journal.Staged:
		var form stagedForm
		if err := decode(b, &form); err != nil {
			return err
		}
		is.Stage, is.First = form.Stage, form.First
		if len(form.Blocks) == 0 {
			return nil
		}
		var err error
		is.Specs, err = world.Blocks(form.Blocks...)
		return err
	case *journal.Replied:
		form := repliedForm{Replied: is}
		if err := decode(b, &form); err != nil || form.Request == nil {
			return err
		}
		return d.request(form.Request, is)
	case *journal.Ended:
		err := decode(b, is)
		switch is.Outcome.Data.(type) {
		case json.RawMessage:
		case nil:
			is.Outcome.Data = json.RawMessage(nil)
		default:
			err = errors.Join(err, errors.New("its data is not JSON"))
		}
		return err
	default:
		return decode(b, is)
	}
}

func (d *decoder) request(form *requestForm, is *journal.Replied) error {
	rest, err := d.settings.value(form.Settings)
	if err != nil {
		return err
	}
	q := rest.Request
	q.Deadline, q.Fallbacks = rest.Deadline, rest.Fallbacks
	q.Sample, q.Prefix, q.Session, q.Order = form.Sample, form.Prefix, form.Session, form.Order
	if len(form.Messages) > 0 {
		q.Messages = make([]llm.Message, len(form.Messages))
	}
	for i, n := range form.Messages {
		if q.Messages[i], err = d.messages.value(n); err != nil {
			return err
		}
	}
	is.Request = &q
	return nil
}
