package app

import (
	"parley/internal/ask/provider"
	"parley/internal/ask/trust"
	"parley/internal/run/planfile"
	"parley/llm"
)

// Needs lists which keys the models of a plan send where. file is the plan file or, if
// recorded is set, the run file that recorded the plan.
func Needs(plan *planfile.Plan, file string, recorded bool) []trust.Need {
	source, prefix := "the plan "+file, ""
	if recorded {
		source, prefix = "the run file "+file, file+": "
	}
	used := map[string]bool{}
	for _, m := range modelsOf(plan.Agents) {
		name, _ := llm.SplitModel(m)
		used[name] = true
	}
	var all []trust.Need
	for _, p := range plan.Providers {
		if used[p.Name] {
			all = append(all, needs(p, source, prefix+plan.Places[p.Name])...)
		}
	}
	return all
}

// needs lists which keys a provider sends where.
func needs(p provider.Provider, source, location string) []trust.Need {
	var all []trust.Need
	for _, g := range trust.Keys(p) {
		all = append(all, trust.Need{Grant: g, Source: source, Place: location})
	}
	return all
}

// destinations lists the hosts that get the key of a provider, and why they may.
func destinations(gate *trust.Gate, p provider.Provider) []Destination {
	all := []Destination{}
	if p.Credentials != "" {
		for _, one := range p.Servers() {
			host, err := trust.Origin(one.BaseURL)
			switch {
			case err != nil: // provider.Validate refuses it
			case trust.Loopback(host):
				all = append(all, Destination{Host: host, Allowed: trust.OnLoopback})
			default:
				all = append(all, Destination{Host: host, Allowed: trust.Preset})
			}
		}
	}
	for _, g := range trust.Keys(p) {
		all = append(all, Destination{Host: g.Host, Allowed: gate.Why(g), Plain: g.Plain(), Flag: g.Flag()})
	}
	return all
}
