package world

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley/internal/kit/text"
)

// DecodeStrict decodes exactly one JSON object into the struct that v points to. A field that v does not
// have is an error. Errors name the column or the field, and say what is allowed.
func DecodeStrict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return explain(err, data, v)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("column %d: more text after the object", dec.InputOffset()+1)
	}
	return nil
}

// explain rewords an error of encoding/json for the author of the line.
func explain(err error, data []byte, v any) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("column %d: not valid JSON: %w", e.Offset, e)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return &explained{fmt.Sprintf("found %s, want object", e.Value), err}
		}
		return &explained{fmt.Sprintf("%s: found %s, want %s", fieldPath(e.Field, v), e.Value, typeWord(e.Type)), err}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not valid JSON: the line ends in the middle of the object")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknownField(name, data, v)
	}
	return err
}

// typeWord returns what an author calls a type.
func typeWord(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return "whole number"
	}
	return "object"
}

// explained is an error of encoding/json in other words.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// unknownField says which fields v has, unless the quoted name is that of a field further inside.
func unknownField(name string, data []byte, v any) error {
	var own map[string]json.RawMessage
	_ = json.NewDecoder(bytes.NewReader(data)).Decode(&own) // it is an object: v got as far as a field
	bare := strings.Trim(name, `"`)
	if _, ok := own[bare]; !ok {
		return fmt.Errorf("unknown field %.60s", name)
	}
	return fmt.Errorf("unknown field %.60s%s", name, text.Want(bare, text.FieldNames(v)))
}

// fieldPath returns the path of a field as it is written: without the embedded structs of v.
func fieldPath(path string, v any) string {
	for f := range reflect.TypeOf(v).Elem().Fields() {
		if f.Anonymous {
			path = strings.TrimPrefix(path, f.Name+".")
		}
	}
	return path
}

// Duration is a time in the params of a kind. Plan files and run files hold it with its unit, as 90s or 5m.
type Duration time.Duration

// Units of time, for worlds: they do not import package time, whose clock would make them differ from play to play.
const (
	Millisecond = Duration(time.Millisecond)
	Second      = Duration(time.Second)
	Minute      = Duration(time.Minute)
	Hour        = Duration(time.Hour)
)

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A time below zero is an error.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%.40q: want a time with its unit, as 90s or 5m", text)
	}
	*d = Duration(v)
	return nil
}

// String returns the time as people write it: 5m, not 5m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// ErrUnread is wrapped by errors about params whose files were not read.
var ErrUnread = errors.New("was not read")

// ParamErrors collects errors in the params of a kind, so that all of them are reported at once, each at
// its key. It is for what tags cannot say: see Definition. Set Kind to the kind's name before use.
type ParamErrors struct {
	Kind string
	errs []error
}

// Addf adds an error in a param, which is named as in a plan file: pool.timeout, servers[0].
func (c *ParamErrors) Addf(param, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: params.%s: %w", c.Kind, param, fmt.Errorf(format, args...)))
}

// Add adds an error that names its param itself. It ignores nil.
func (c *ParamErrors) Add(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

// IntRange reports n if it is not between low and high.
func (c *ParamErrors) IntRange(param string, n, low, high int) {
	if n < low || n > high {
		c.Addf(param, "%d: want %d to %d", n, low, high)
	}
}

// OneOf reports a value that is not allowed.
func (c *ParamErrors) OneOf(param, value string, allowed []string) {
	if !slices.Contains(allowed, value) {
		c.Addf(param, "%.40q: want one of %s", value, strings.Join(allowed, ", "))
	}
}

// Each reports values that are not allowed or are repeated.
func (c *ParamErrors) Each(param string, values, allowed []string) {
	for i, v := range values {
		switch {
		case !slices.Contains(allowed, v):
			c.OneOf(fmt.Sprintf("%s[%d]", param, i), v, allowed)
		case slices.Contains(values[:i], v):
			c.Addf(fmt.Sprintf("%s[%d]", param, i), "%.40q is listed twice", v)
		}
	}
}

// Braces reports placeholders of a text, such as {question}, that are in double braces.
func (c *ParamErrors) Braces(param, text string, marks ...string) {
	for _, mark := range marks {
		if twice := "{" + mark + "}"; strings.Contains(text, twice) {
			c.Addf(param, "%s is in double braces: write %s", twice, mark)
		}
	}
}

// Err returns all errors, or nil.
func (c *ParamErrors) Err() error { return errors.Join(c.errs...) }
