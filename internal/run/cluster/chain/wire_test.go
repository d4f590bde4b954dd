package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/journal"
	"parley/journal/journaltest"
	"parley/llm"
	"parley/world"
)

// fill sets every field of v that is sent to a value that is not zero, and different from all others. What JSON leaves out is not sent, but
// for fields of a request that run files keep.
func fill(t *testing.T, v reflect.Value, n *int64, depth int) {
	t.Helper()
	*n++
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(*n, *n).UTC()))
		return
	case reflect.TypeFor[world.Specs]():
		v.Set(reflect.ValueOf(world.Repeat(world.Spec{Kind: "k", Lineup: map[string]string{"a": "b"}, Cell: "c"}, int(*n))))
		return
	case reflect.TypeFor[world.Measure]():
		v.Set(reflect.ValueOf(world.Measure{Name: "points", Seats: []string{"a", "b"}, Rivals: true, Bounds: world.Bounds{High: float64(*n)}.Difference()}))
		return
	case reflect.TypeFor[any]():
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"n": %d}`, *n))))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d %s", *n, strings.Repeat("x", int(*n%40))))
	case reflect.Int, reflect.Int64:
		v.SetInt(-*n)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n, depth)
	case reflect.Slice:
		if depth > 6 {
			return // Logprob has Logprobs
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n, depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n, depth)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, n, depth+1)
			fill(t, elem, n, depth+1)
			v.SetMapIndex(key, elem)
		}
	case reflect.Struct:
		for is, field := range v.Fields() {
			if is.Tag.Get("json") != "-" || slices.Contains([]string{"Deadline", "Fallbacks", "Prefix", "Session", "Order"}, is.Name) {
				fill(t, field, n, depth+1)
			}
		}
	default:
		t.Fatalf("%s has a kind that this test does not know", v.Type())
	}
}

// TestEveryField: every field of every item comes back, filled and empty, and so does a second copy.
func TestEveryField(t *testing.T) {
	t.Parallel()
	var e encoder
	var d decoder
	n := int64(0)
	for range 2 {
		for _, typ := range items {
			filled := reflect.New(typ)
			fill(t, filled.Elem(), &n, 0)
			want := []any{filled.Interface(), reflect.New(typ).Interface(), filled.Interface()}
			message, err := e.Encode(want...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Decode(message)
			if err != nil {
				t.Fatalf("%s: %v", typ, err)
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %d items came back, want %d", typ, len(got), len(want))
			}
			for i := range want {
				if !same(got[i], want[i]) {
					t.Errorf("%s: got\n%+v\nwant\n%+v", typ, got[i], want[i])
				}
			}
		}
	}
}

// same compares items. The data of an outcome that is nil comes back as empty JSON.
func same(a, b any) bool {
	if x, ok := a.(*journal.Ended); ok {
		y, ok := b.(*journal.Ended)
		if !ok {
			return false
		}
		p, q := *x, *y
		if string(data(p)) != string(data(q)) {
			return false
		}
		p.Outcome.Data, q.Outcome.Data = nil, nil
		a, b = &p, &q
	}
	return reflect.DeepEqual(a, b)
}

func data(e journal.Ended) json.RawMessage {
	raw, _ := e.Outcome.Data.(json.RawMessage)
	return raw
}

// TestContinue: a chain whose writer changes is read as one, and a text is sent once.
func TestContinue(t *testing.T) {
	t.Parallel()
	entries := append(journaltest.Run(3, 600), journaltest.Raised()...)
	text := strings.Repeat("a long prompt ", 1000)
	var next, reader decoder // of the second writer, and of somebody who reads all
	e, size := &encoder{}, 0
	for i, entry := range entries {
		replied := &journal.Replied{Index: i, Request: &llm.Request{Model: "m", Sample: i, Messages: []llm.Message{llm.User(text)}}}
		message, err := e.Encode(entry, replied)
		if err != nil {
			t.Fatal(err)
		}
		size += len(message)
		got, err := reader.Decode(message)
		if err != nil || len(got) != 2 || !same(got[0], entry) || !same(got[1], replied) {
			t.Fatalf("entry %d: %v: got\n%+v\nwant\n%+v", i, err, got, entry)
		}
		if i <= len(entries)/2 {
			if _, err := next.Decode(message); err != nil {
				t.Fatal(err)
			}
		}
		if i == len(entries)/2 {
			e = next.Continue()
		}
	}
	if size > 40*len(text) {
		t.Errorf("a text of %d bytes was sent more than once: %d bytes", len(text), size)
	}
}

// TestRefused: what is no message is refused.
func TestRefused(t *testing.T) {
	t.Parallel()
	of := func(number int, value any) []byte {
		raw, err := encode(value)
		if err != nil {
			t.Fatal(err)
		}
		b, err := encode(message{Items: []item{{Number: number, Value: raw}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const begun, staged, replied, ended = 0, 3, 5, 6
	type fields = map[string]any
	text, err := encode(llm.User("text"))
	if err != nil {
		t.Fatal(err)
	}
	twice, err := encode(message{Messages: []cbor.RawMessage{text, text}})
	if err != nil {
		t.Fatal(err)
	}
	deep := append(bytes.Repeat([]byte{0x81}, 100), 0)
	for name, b := range map[string][]byte{
		"nothing":                     {},
		"no list":                     {0x00},
		"a list of another length":    {0x82, 0x80, 0x80},
		"it ends too early":           of(begun, fields{"Seed": 1})[:10],
		"more after it":               append(of(begun, fields{}), 0),
		"a list that says it is huge": {0x83, 0x80, 0x80, 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a text that says it is huge": {0x83, 0x80, 0x80, 0x81, 0x82, 0x00, 0x7b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"no length":                   {0x83, 0x80, 0x80, 0x9f, 0xff},
		"a tag":                       {0x83, 0x80, 0x80, 0x81, 0x82, 0x00, 0xc1, 0x00},
		"a key twice":                 {0x83, 0x80, 0x80, 0x81, 0x82, 0x08, 0xa2, 0x61, 'x', 0x00, 0x61, 'x', 0x00},
		"an unknown item":             of(len(items), fields{}),
		"an item below all":           of(-1, fields{}),
		"an unknown field":            of(begun, fields{"More": 1}),
		"a text for a number":         of(begun, fields{"Seed": "x"}),
		"a text that nobody sent":     of(replied, fields{"Request": fields{"Settings": 7}}),
		"a text below all":            of(replied, fields{"Request": fields{"Settings": -1}}),
		"a text twice":                twice,
		"data that is no JSON":        of(ended, fields{"Outcome": fields{"data": 1}}),
		"too many episodes":           of(staged, fields{"Blocks": []any{fields{"rounds": 1 << 60, "groups": []any{fields{"count": 1}}}}}),
		"too deep":                    append([]byte{0x83, 0x80, 0x80, 0x81, 0x82, 0x06}, deep...),
	} {
		var d decoder
		if got, err := d.Decode(b); err == nil {
			t.Errorf("%s: % x was read as %+v", name, b, got)
		}
	}
	for _, item := range []any{nil, 1, journal.Ended{}, (*journal.Ended)(nil), &struct{}{}, new(string)} {
		if _, err := new(encoder).Encode(item); err == nil {
			t.Errorf("%T was written", item)
		}
	}
}

// FuzzDecode: any bytes give an error or items that can be written again.
func FuzzDecode(f *testing.F) {
	var e encoder
	for _, entry := range journaltest.Run(1, 60) {
		message, err := e.Encode(entry)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var d decoder
		got, err := d.Decode(message)
		if err != nil {
			return
		}
		again, err := new(encoder).Encode(got...)
		if err != nil {
			t.Fatal(err)
		}
		var second decoder
		if _, err := second.Decode(again); err != nil {
			t.Fatalf("% x: %v", again, errors.Join(err))
		}
	})
}

// TestAgain: a message that is delivered again, or was stored twice, is read once.
func TestAgain(t *testing.T) {
	t.Parallel()
	var w encoder
	var messages [][]byte
	for _, item := range []any{&journal.Replied{Request: &llm.Request{Messages: []llm.Message{llm.User("text")}}}, &journal.Steered{}} {
		b, err := w.Encode(item)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, splitMessage(b, 1<<20)[0])
	}
	r := &Reader{}
	for i, c := range []struct {
		sequence uint64
		id       string
		after    string
		message  int
		items    int
	}{
		{4, "a", "0", 0, 1}, {4, "a", "0", 0, 0}, {6, "a", "0", 0, 0}, {7, "b", "6", 1, 1}, {4, "a", "0", 0, 0}, {7, "b", "6", 1, 0},
		{9, "", "", 1, 1}, {10, "", "", 1, 1},
	} {
		items, err := r.Add(c.sequence, header(c.id, c.after), messages[c.message])
		if err != nil || len(items) != c.items {
			t.Errorf("%d: %v %v", i, items, err)
		}
	}
}

func header(id, after string) nats.Header {
	h := nats.Header{}
	for name, value := range map[string]string{jetstream.MsgIDHeader: id, jetstream.ExpectedLastSubjSeqHeader: after} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// TestForked: a message that does not follow the one before it is refused. Otherwise its texts would be others.
func TestForked(t *testing.T) {
	t.Parallel()
	claim, done := wholeMessage(t, &Claim{Session: "x"}), wholeMessage(t, &Done{})
	part := splitMessage(make([]byte, 100), headers+50)[0]
	for name, c := range map[string]struct {
		first, second []byte
		after         string
		forked        bool
	}{
		"in order":                  {claim, claim, "4", false},
		"a message is missing":      {claim, claim, "5", true},
		"one is there too much":     {claim, claim, "3", true},
		"two beginnings":            {claim, claim, "0", true},
		"a part, and a beginning":   {part, claim, "0", false},
		"done, and the rest purged": {claim, done, "5", false},
	} {
		r := &Reader{}
		if _, err := r.Add(4, header("a-1", "0"), c.first); err != nil {
			t.Fatal(err)
		}
		if items, err := r.Add(6, header("b-1", c.after), c.second); errors.Is(err, ErrForked) != c.forked || (err == nil) != (len(items) == 1) {
			t.Errorf("%s: %v %v", name, items, err)
		}
	}
}

// wholeMessage returns a whole message.
func wholeMessage(t *testing.T, items ...any) []byte {
	t.Helper()
	b, err := new(encoder).Encode(items...)
	if err != nil {
		t.Fatal(err)
	}
	return splitMessage(b, 1<<20)[0]
}

// TestCut: a chain whose first messages were purged while it was read is one that the hub did not keep, and not one that nobody wrote.
func TestCut(t *testing.T) {
	t.Parallel()
	e := &encoder{}
	var data [2][]byte
	for i := range data {
		b, err := e.Encode(&journal.Replied{Request: &llm.Request{Model: "m"}})
		if err != nil {
			t.Fatal(err)
		}
		data[i] = append([]byte{whole}, b...)
	}
	var r Reader
	if _, err := r.Add(9, nats.Header{jetstream.ExpectedLastSubjSeqHeader: {"7"}}, data[1]); !errors.Is(err, ErrForked) {
		t.Errorf("%v, want ErrForked", err)
	}
	r = Reader{}
	if _, err := r.Add(9, nats.Header{jetstream.ExpectedLastSubjSeqHeader: {"0"}}, data[1]); err == nil || errors.Is(err, ErrForked) {
		t.Errorf("%v, want another error than ErrForked for a chain that has no first text", err)
	}
}
