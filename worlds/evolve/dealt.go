package evolve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"parley/worlds/evolve/record"
)

// Dealt names what a trial is about, whatever the seed: a test, the problem; what comes
// before it, the prompt too, since problem by problem a prompt is only ever compared with
// itself there. A verdict is about an evolution, which is chance's.
func (definition) Dealt(p *Params) (what string, whole bool) {
	if p.Episode == nil || p.Episode.Trial == nil {
		return "", false
	}
	t := p.Episode.Trial
	var about []any
	if t.Purpose != record.Testing {
		about = append(about, t.Text)
	}
	for _, one := range t.Problems {
		about = append(about, one.Question, one.Answer, one.Choices) // an id is the file's own
	}
	b, err := json.Marshal(about)
	if err != nil {
		return "", false // not reached: these are texts
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), true
}
