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
		return &explained{fmt.Sprintf("%s: found %s, want %s", fieldPath(e.Field, v), e.Value, e.Type), err}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not valid JSON: the line ends in the middle of the object")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unknownField(name, data, v)
	}
	return err
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
	return fmt.Errorf("unknown field %.60s%s", name, text.Want(bare, FieldNames(v)))
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

// FieldNames lists the JSON names of a struct's fields, including those of embedded structs, in
// alphabetical order.
func FieldNames(v any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
