package app

import (
	"parley/internal/config"
	"parley/internal/provider"
	"parley/internal/trust"
	"parley/llm"
)

// Needs lists which keys the models of a plan send where. file is where the plan is from: a
// plan file, or a run file that recorded it.
func Needs(plan *config.Plan, file string, recorded bool) []trust.Need {
	source, before := "the plan "+file, ""
	if recorded {
		source, before = "the run file "+file, file+": "
	}
	used := map[string]bool{}
	for _, m := range modelsOf(plan) {
		name, _ := llm.SplitModel(m)
		used[name] = true
	}
	var all []trust.Need
	for _, p := range plan.Providers {
		if used[p.Name] {
			all = append(all, needs(p, source, before+plan.Places[p.Name])...)
		}
	}
	return all
}

// needs lists which keys a provider sends where.
func needs(p provider.Provider, source, place string) []trust.Need {
	var all []trust.Need
	for _, g := range trust.Keys(p) {
		all = append(all, trust.Need{Grant: g, Source: source, Place: place})
	}
	return all
}

// destinations says where the key of a provider goes, and why it may.
func destinations(gate *trust.Gate, p provider.Provider) []Destination {
	all := []Destination{}
	for _, g := range trust.Keys(p) {
		all = append(all, Destination{Host: g.Host, Allowed: gate.Why(g), Plain: g.Plain()})
	}
	return all
}
