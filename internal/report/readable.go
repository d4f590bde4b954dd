package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readable is an answer with a structure as lines, a field each, in the order in which it has
// them; what is empty is left out. What is no JSON object stays as it is.
func readable(text string) string {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "{") {
		return text
	}
	d := json.NewDecoder(strings.NewReader(trimmed))
	lines, err := fields(d, 0)
	if _, more := d.Token(); err != nil || !errors.Is(more, io.EOF) || len(lines) == 0 {
		return text
	}
	return strings.Join(lines, "\n")
}

// data says whether a text is JSON with a structure, which is for programs to read.
func data(text string) bool {
	text = strings.TrimSpace(text)
	return (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text))
}

// mostDeep is how deep an answer is followed: nobody reads further, and a hostile one has no end.
const mostDeep = 8

// fields reads an object or a list, whose first token is still to come.
func fields(d *json.Decoder, depth int) (lines []string, err error) {
	open, err := d.Token()
	if err != nil {
		return nil, err
	}
	bracket, ok := open.(json.Delim)
	if !ok || depth > mostDeep {
		return nil, fmt.Errorf("report: %v is no object that can be shown", open)
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
		field, err := value(d, name, depth)
		if err != nil {
			return nil, err
		}
		lines = append(lines, field...)
	}
	_, err = d.Token()
	return lines, err
}

// value reads what a name stands before: on its line, or under it.
func value(d *json.Decoder, name string, depth int) ([]string, error) {
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
	under, err := fields(json.NewDecoder(bytes.NewReader(raw)), depth+1)
	if err != nil || len(under) == 0 {
		return nil, err
	}
	for i := range under {
		under[i] = "  " + under[i]
	}
	return append([]string{name}, under...), nil
}
