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
	lines, _ := dataLines(text)
	if len(lines) == 0 {
		return text
	}
	return strings.Join(lines, "\n")
}

// dataLines returns the lines of a JSON object or array; none if it is neither, or too deep. flat means that each is one value.
func dataLines(text string) (lines []string, flat bool) {
	d := json.NewDecoder(strings.NewReader(strings.TrimSpace(text)))
	lines, flat, err := readFields(d, 0)
	if _, more := d.Token(); err != nil || !errors.Is(more, io.EOF) {
		return nil, false
	}
	return lines, flat
}

// IsData reports whether a text is a JSON object or array.
func IsData(text string) bool {
	text = strings.TrimSpace(text)
	return (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text))
}

// maxDeep is the maximum depth of an answer that Readable follows: a hostile answer may be very deep.
const maxDeep = 8

// The longest line of several values, and the longest value of a list on one line.
const (
	maxJoined = 100
	maxItem   = 32
)

// joinFields returns values as one line, if they are short.
func joinFields(lines []string, flat bool) (string, bool) {
	one := strings.Join(lines, " · ")
	return one, flat && len(one) <= maxJoined
}

// joinItems returns the items of a list as one line, if they are short words.
func joinItems(lines []string, flat bool) (string, bool) {
	items := make([]string, len(lines))
	for i, line := range lines {
		items[i] = strings.TrimPrefix(line, "- ")
		flat = flat && len(items[i]) <= maxItem && !strings.ContainsAny(items[i], ",.:;!?") && !strings.HasPrefix(items[i], "-")
	}
	one := strings.Join(items, ", ")
	return one, flat && len(one) <= maxJoined
}

// readFields reads an object or an array from its first token. flat means that each of the lines is one value.
func readFields(d *json.Decoder, depth int) (lines []string, flat bool, err error) {
	open, err := d.Token()
	if err != nil {
		return nil, false, err
	}
	bracket, ok := open.(json.Delim)
	if !ok || depth > maxDeep {
		return nil, false, fmt.Errorf("%v: want an object or array of at most %d levels", open, maxDeep)
	}
	flat = true
	for d.More() {
		name := "-"
		if bracket == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, false, err
			}
			name = strings.ReplaceAll(fmt.Sprint(key), "_", " ") + ":"
		}
		field, one, err := readValue(d, name, depth)
		if err != nil {
			return nil, false, err
		}
		lines, flat = append(lines, field...), flat && one
	}
	_, err = d.Token()
	return lines, flat, err
}

// readValue reads the value of a name and writes it on the same line, or below if it has fields. one means that it is a value or a list
// of words, without line breaks.
func readValue(d *json.Decoder, name string, depth int) (lines []string, one bool, err error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, false, err
	}
	if raw[0] != '{' && raw[0] != '[' {
		text := string(raw)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, false, err
			}
		}
		if text == "" || text == "null" {
			return nil, true, nil
		}
		return []string{name + " " + text}, !strings.ContainsAny(name+text, "·\n\r\u0085\u2028\u2029"), nil // a value must not look like another field
	}
	under, flat, err := readFields(json.NewDecoder(bytes.NewReader(raw)), depth+1)
	if err != nil || len(under) == 0 {
		return nil, err == nil, err
	}
	if raw[0] == '[' {
		if line, ok := joinItems(under, flat); ok && name != "-" {
			return []string{name + " " + line}, true, nil
		}
	} else if name == "-" {
		if line, ok := joinFields(under, flat); ok {
			return []string{name + " " + line}, false, nil
		}
	}
	for i := range under {
		under[i] = "  " + under[i]
	}
	if name == "-" { // the first field begins on its line
		under[0] = "-" + under[0][1:]
		return under, false, nil
	}
	return append([]string{name}, under...), false, nil
}
