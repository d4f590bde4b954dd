package yamltree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ParseJSON reads one JSON value into a tree without positions.
func ParseJSON(b []byte) (*Node, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return jsonNode(dec, 0)
}

func jsonNode(dec *json.Decoder, depth int) (*Node, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > MaxDepth {
		return nil, errors.New("it is nested too deeply")
	}
	switch t := t.(type) {
	case json.Delim:
		return jsonNested(dec, t, depth)
	case string:
		return &Node{Form: Text, Text: t}, nil
	case bool:
		return &Node{Form: Boolean, Flag: t, Text: fmt.Sprint(t)}, nil
	case json.Number:
		n := &Node{}
		n.decimal(t.String())
		return n, nil
	}
	return &Node{}, nil
}

func jsonNested(dec *json.Decoder, open json.Delim, depth int) (*Node, error) {
	n := &Node{Form: List}
	if open == '{' {
		n.Form = Mapping
	}
	for dec.More() {
		var name string
		if n.Form == Mapping {
			t, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ = t.(string)
			if n.Field(name) != nil {
				return nil, fmt.Errorf("it holds %s twice", Quote(name))
			}
		}
		value, err := jsonNode(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if n.Form == Mapping {
			n.Fields = append(n.Fields, Field{name, value})
		} else {
			n.Items = append(n.Items, value)
		}
	}
	_, err := dec.Token() // the closing one
	return n, err
}
