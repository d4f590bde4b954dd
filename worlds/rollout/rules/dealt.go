package rules

import "encoding/json"

// dealt is which environment it is, and of the tasks of a file which one: they have the same
// numbers in any file. What a plan makes an environment with is what is compared. What an
// environment draws is chance's, unless the plan gives it a seed.
func dealt(params any) (what string, whole bool) {
	p, ok := params.(*Params)
	if !ok || p == nil {
		return "", false
	}
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
