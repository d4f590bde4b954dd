package rules

import "encoding/json"

// TaskName returns the environment and, for a task of a file, its params: tasks have the same numbers in any
// file. Everything else that an environment draws is chance, unless the plan sets a seed.
func (Definition) TaskName(p *Params) (name string, whole bool) {
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
