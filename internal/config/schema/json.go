package schema

import (
	"bytes"
	"encoding/json"
)

// Remarshal converts a Checker's values to a Go value.
func Remarshal(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return Unmarshal(b, to)
}

// Unmarshal decodes JSON and keeps numbers as written.
func Unmarshal(b []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(to)
}
