package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/journal"
	"parley/journal/journaltest"
	"parley/world"
)

// fill sets every field of v to a value that is not zero, and different from all others.
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
	case reflect.TypeFor[error]():
		return // it is not sent
	}
	switch v.Kind() {
	case reflect.Func: // it is not sent
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
		for _, field := range v.Fields() {
			fill(t, field, n, depth+1)
		}
	default:
		t.Fatalf("%s has a kind that this test does not know", v.Type())
	}
}

// TestEveryField: every field of every item comes back, filled and empty, and so does a second copy.
func TestEveryField(t *testing.T) {
	t.Parallel()
	var e encoder
	var d wireDecoder
	n := int64(0)
	for range 2 {
		for _, typ := range items {
			filled := reflect.New(typ)
			fill(t, filled.Elem(), &n, 0)
			want := []any{filled.Interface(), reflect.New(typ).Interface(), filled.Interface()}
			message, err := e.Append(nil, want...)
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
	var next, reader wireDecoder // of the second writer, and of somebody who reads all
	e, size := &encoder{}, 0
	for i, entry := range entries {
		ended := &journal.Ended{Episode: i, Stack: text}
		message, err := e.Append(nil, entry, ended)
		if err != nil {
			t.Fatal(err)
		}
		size += len(message)
		got, err := reader.Decode(message)
		if err != nil || len(got) != 2 || !same(got[0], entry) || !same(got[1], ended) {
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
	if size > 10*len(text) {
		t.Errorf("a text of %d bytes was sent more than once: %d bytes", len(text), size)
	}
}

// TestRefused: what is no message is refused.
func TestRefused(t *testing.T) {
	t.Parallel()
	huge := append([]byte{5, 0xff, 0xff, 0x03}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)
	for _, message := range [][]byte{{255}, {0}, {6, 0xff}, huge, {7, 2, 1, 3, 7}, {0, 2, 3}} {
		var d wireDecoder
		if got, err := d.Decode(message); err == nil {
			t.Errorf("% x was read as %+v", message, got)
		}
	}
	for _, item := range []any{nil, 1, journal.Ended{}, (*journal.Ended)(nil), &struct{}{}, new(string)} {
		if _, err := new(encoder).Append(nil, item); err == nil {
			t.Errorf("%T was written", item)
		}
	}
	if n := unzigzag(zigzag(math.MinInt64)); n != math.MinInt64 {
		t.Errorf("%d", n)
	}
}

// FuzzDecode: any bytes give an error or items that can be written again.
func FuzzDecode(f *testing.F) {
	var e encoder
	for _, entry := range journaltest.Run(1, 60) {
		message, err := e.Append(nil, entry)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var d wireDecoder
		got, err := d.Decode(message)
		if err != nil {
			return
		}
		again, err := new(encoder).Append(nil, got...)
		if err != nil {
			t.Fatal(err)
		}
		var second wireDecoder
		if _, err := second.Decode(again); err != nil {
			t.Fatalf("% x: %v", again, errors.Join(err))
		}
	})
}
