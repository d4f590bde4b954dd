package rules

import "encoding/json"

// Dealt is which environment it is, and of the tasks of a file which one: they have the same
// numbers in any file. What a plan makes an environment with is what is compared. What an
// environment draws is chance's, unless the plan gives it a seed.
func (Definition) Dealt(p *Params) (what string, whole bool) {
	about := struct {
		Env    string
		Params json.RawMessage
		Seed   *int64
	}{Env: p.Env, Seed: p.Seed}
	if p.Task != nil {
		about.Params = p.EnvParams
	}
	b, err := json.Marshal(about)
	if err != nil {
		return p.Env, false // params that are no JSON
	}
	return string(b), false
}
