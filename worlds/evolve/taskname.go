package evolve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// TaskName identifies the content of a trial independently of the seed, so that runs can be compared trial by trial. A test
// is identified by its problem. An earlier trial is identified by its prompt too, because there a prompt is only
// compared with itself. A verdict depends on chance and has no identity.
func (definition) TaskName(p *Params) (name string, whole bool) {
	if p.Episode == nil || p.Episode.Trial == nil {
		return "", false
	}
	t := p.Episode.Trial
	var about []any
	if t.Purpose != recordTesting {
		about = append(about, t.Text)
	}
	for _, one := range t.Problems {
		about = append(about, one.Question, one.Answer, one.Choices) // not the id, which differs between files
	}
	b, err := json.Marshal(about)
	if err != nil {
		return "", false // not reached: these are strings
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), true
}
