package runfile

import (
	"encoding/hex"
	"fmt"
)

// What an act raised is in the column json, since replays read and check that column. It is a JSON string for those who query the
// file, and keeps every byte, also those that are not UTF-8.

// quoted returns text as a JSON string.
func quoted(text string) []byte {
	b := append(make([]byte, 0, len(text)+2), '"')
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' {
			b = hex.AppendEncode(append(b, `\u00`...), []byte{c})
		} else {
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// unquoted returns the text of what quoted returned.
func unquoted(b []byte) (string, error) {
	if n := len(b); n < 2 || b[0] != '"' || b[n-1] != '"' {
		return "", errMissing("what an act raised")
	}
	text := make([]byte, 0, len(b))
	for b = b[1 : len(b)-1]; len(b) > 0; b = b[1:] {
		if b[0] != '\\' {
			text = append(text, b[0])
			continue
		}
		if len(b) < 6 {
			return "", errMissing("the end of what an act raised")
		}
		var err error
		if text, err = hex.AppendDecode(text, b[4:6]); err != nil {
			return "", fmt.Errorf("%w: what an act raised: %w", ErrDamaged, err)
		}
		b = b[5:]
	}
	return string(text), nil
}
