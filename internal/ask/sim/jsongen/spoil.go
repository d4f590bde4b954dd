package jsongen

import (
	"bytes"
	"math/rand/v2"
)

// Spoil wraps a JSON answer into words or a fence, or breaks it, as models sometimes do.
func Spoil(out []byte, r *rand.Rand) []byte {
	switch r.IntN(4) {
	case 0:
		return []byte("```json\n" + string(out) + "\n```")
	case 1:
		return []byte("Here is my answer:\n\n" + string(out) + "\n\nI hope this helps.")
	case 2:
		if i := bytes.LastIndexAny(out, "}]"); i > 1 && out[i-1] != '{' && out[i-1] != '[' {
			return []byte(string(out[:i]) + ",\n" + string(out[i:]))
		}
		return []byte("```\n" + string(out) + "\n```")
	default:
		return []byte("Let me think about {this} first.\n```json\n" + string(out) + "\n```\nDone.")
	}
}
