package planfile

import (
	"bytes"
	"encoding/json"
)

// remarshal converts a Checker's values to a Go value.
func remarshal(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return unmarshal(b, to)
}

// unmarshal decodes JSON and keeps numbers as written.
func unmarshal(b []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(to)
}
