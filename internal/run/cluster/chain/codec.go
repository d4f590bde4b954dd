package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"parley/world"
)

// codec writes and reads the values of a type.
type codec struct {
	encode func(e *encoder, v reflect.Value)
	decode func(d *wireDecoder, v reflect.Value) error
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
			func(d *wireDecoder, v reflect.Value) error {
				n, err := d.uint()
				v.SetBool(n != 0)
				return err
			},
		}
	case reflect.String:
		return &codec{
			func(e *encoder, v reflect.Value) { e.text(v.String()) },
			func(d *wireDecoder, v reflect.Value) error {
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
		panic(fmt.Sprintf("wire: no codec for %s", t)) // not reached: a test makes all codecs
	}
}

func notSent() *codec {
	return &codec{func(*encoder, reflect.Value) {}, func(*wireDecoder, reflect.Value) error { return nil }}
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
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		panic(fmt.Sprintf("wire: no codec for %s", t)) // not reached: a test makes all codecs
	}
	return &codec{
		func(e *encoder, v reflect.Value) {
			for i := range t.Len() {
				e.b = append(e.b, byte(v.Index(i).Uint()))
			}
		},
		func(d *wireDecoder, v reflect.Value) error {
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
		func(d *wireDecoder, v reflect.Value) error {
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
		panic(fmt.Sprintf("wire: %s has too many fields", t)) // not reached: a test makes all codecs
	}
	fields := sync.OnceValue(func() []*codec {
		all := make([]*codec, t.NumField())
		for i := range all {
			if f := t.Field(i); !f.IsExported() {
				panic(fmt.Sprintf("wire: %s.%s is not exported", t, f.Name)) // not reached: a test makes all codecs
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
		func(d *wireDecoder, v reflect.Value) error {
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
