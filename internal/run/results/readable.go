package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Readable returns a structured answer as lines, one for each field, in their order. Empty fields are left out. A
// text that is not a JSON object is returned unchanged.
func Readable(text string) string {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return text
	}
	return readableData(text)
}

// readableData returns a JSON object or array as lines, as Readable does.
func readableData(text string) string {
	trimmed := strings.TrimSpace(text)
	d := json.NewDecoder(strings.NewReader(trimmed))
	lines, err := readFields(d, 0)
	if _, more := d.Token(); err != nil || !errors.Is(more, io.EOF) || len(lines) == 0 {
		return text
	}
	return strings.Join(lines, "\n")
}

// IsData reports whether a text is a JSON object or array.
func IsData(text string) bool {
	text = strings.TrimSpace(text)
	return (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text))
}

// maxDeep is the maximum depth of an answer that Readable follows: a hostile answer may be very deep.
const maxDeep = 8

// readFields reads an object or an array from its first token.
func readFields(d *json.Decoder, depth int) (lines []string, err error) {
	open, err := d.Token()
	if err != nil {
		return nil, err
	}
	bracket, ok := open.(json.Delim)
	if !ok || depth > maxDeep {
		return nil, fmt.Errorf("%v: want an object or array of at most %d levels", open, maxDeep)
	}
	for d.More() {
		name := "-"
		if bracket == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name = strings.ReplaceAll(fmt.Sprint(key), "_", " ") + ":"
		}
		field, err := readValue(d, name, depth)
		if err != nil {
			return nil, err
		}
		lines = append(lines, field...)
	}
	_, err = d.Token()
	return lines, err
}

// readValue reads the value of a name and writes it on the same line, or below if it has fields.
func readValue(d *json.Decoder, name string, depth int) ([]string, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, err
	}
	if raw[0] != '{' && raw[0] != '[' {
		text := string(raw)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}
		if text == "" || text == "null" {
			return nil, nil
		}
		return []string{name + " " + text}, nil
	}
	under, err := readFields(json.NewDecoder(bytes.NewReader(raw)), depth+1)
	if err != nil || len(under) == 0 {
		return nil, err
	}
	for i := range under {
		under[i] = "  " + under[i]
	}
	return append([]string{name}, under...), nil
}
