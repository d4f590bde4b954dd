package envhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"parley/llm"
)

// exchangeMalformed returns the error of an answer of a server that cannot be read. The same request may succeed later: a proxy
// sends pages of its own while a server restarts.
func exchangeMalformed(address string, err error) error {
	return &llm.Error{Kind: llm.KindMalformed, Uncertain: true, Provider: address, Message: err.Error(), Err: err}
}

// invalid returns the error of an answer that is complete and not in the form of the protocol. Waiting does not help.
func invalid(address string, err error) error {
	return &llm.Error{Kind: llm.KindInvalid, Uncertain: true, Provider: address, Message: err.Error(), Err: err}
}

// wrongForm returns the error of an answer that could not be decoded: Invalid if it is JSON or has only a number that JSON
// does not have, otherwise Malformed.
func wrongForm(address string, text []byte, err error) error {
	if _, ok := errors.AsType[numberError](err); ok || json.Valid(text) {
		return invalid(address, err)
	}
	return exchangeMalformed(address, err)
}

// numberError is about a number that JSON does not have.
type numberError struct{ key, number string }

func (e numberError) Error() string {
	return fmt.Sprintf("%s is %s, which JSON does not have: want a number", e.key, e.number)
}

// decode reads an answer. It calls a json.Unmarshaler directly: json.Unmarshal would scan the data twice
// before, and a prompt may be long.
func decode(text []byte, into any) error {
	var err error
	if u, ok := into.(json.Unmarshaler); ok && len(bytes.TrimSpace(text)) > 0 {
		err = u.UnmarshalJSON(text)
	} else {
		err = json.Unmarshal(text, into)
	}
	if err == nil {
		return nil
	}
	return exchangeDescribe(text, err)
}

// exchangeDescribe says in words what is wrong with an answer, without names of Go types.
func exchangeDescribe(text []byte, err error) error {
	if !json.Valid(text) {
		return notJSON(text)
	}
	if wrong, ok := err.(*json.UnmarshalTypeError); ok { // one that is wrapped is about a part of the answer
		if wrong.Field == "" {
			return fmt.Errorf("the answer is a JSON %s: want an object", wrong.Value)
		}
		return fmt.Errorf("%s is a JSON %s: want %s", wrong.Field, wrong.Value, wanted(wrong.Type))
	}
	return err
}

// lastKey matches the key of the value that follows a text.
var lastKey = regexp.MustCompile(`"([^"]{1,40})"\s*:\s*\[?[^"\[\]{}]*$`)

// notJSON describes a text that is not JSON.
func notJSON(text []byte) error {
	var raw json.RawMessage
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &raw))
	if !ok || len(bytes.TrimSpace(text)) == 0 {
		return errors.New("the answer is empty: want JSON")
	}
	at := int(min(max(wrong.Offset-1, 0), int64(len(text))))
	for _, number := range []string{"NaN", "Infinity"} {
		if bytes.HasPrefix(text[at:], []byte(number)) {
			e := numberError{"a value", number}
			if m := lastKey.FindSubmatch(text[:at]); m != nil {
				e.key = string(m[1])
			}
			return e
		}
	}
	return fmt.Errorf("the answer is not JSON; it begins with %q", strings.ToValidUTF8(fmt.Sprintf("%.40s", bytes.TrimSpace(text)), ""))
}

// wanted describes what a Go type takes.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String:
		return "a text"
	case k >= reflect.Int && k <= reflect.Float64:
		return "a number"
	case k == reflect.Slice || k == reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}
