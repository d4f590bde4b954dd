package price

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digests returns a digest of the price of each model, so that a change of prices can be noticed. That of a model without
// a price is none.
func (t *Table) Digests(models []string) map[string]string {
	digests := make(map[string]string, len(models))
	for _, model := range models {
		digests[model] = "none"
		if p, ok := t.Find(model); ok {
			p.MaxOutput, p.Context, p.Retired = 0, 0, false // not prices
			b, err := json.Marshal(p)
			if err != nil {
				continue // not reached: it is a plain struct
			}
			sum := sha256.Sum256(b)
			digests[model] = hex.EncodeToString(sum[:digestSize])
		}
	}
	return digests
}

// digestSize is how many bytes of a hash tell two prices of one model apart.
const digestSize = 8
