package app

import (
	"slices"

	"parley/internal/ask/dialect"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/run/planfile"
	"parley/llm"
)

// dropped returns a Notice for each setting of an agent that its model, or a fallback, does not take. It is left out of every request.
func dropped(plan *planfile.Plan) []dispatch.Notice {
	var out []dispatch.Notice
	for _, a := range plan.Agents {
		if a.Model == "" || a.Human() {
			continue
		}
		for _, model := range append([]string{a.Model}, a.Fallbacks...) {
			account, _ := llm.SplitModel(model)
			i := slices.IndexFunc(plan.Providers, func(p provider.Provider) bool { return p.Name == account })
			if i < 0 {
				continue
			}
			req := a.Request(llm.Request{Messages: []llm.Message{llm.User("-")}})
			req.Model = model
			for _, name := range dialect.Dropped(plan.Providers[i], &req) {
				out = append(out, dispatch.Notice{Model: model, Dropped: name, Text: plan.Place("agents", a.Name, name) + ": " + dispatch.LeftOut(model, name)})
			}
		}
	}
	return out
}

// notices returns a function that passes notices on, but not those about settings of the plan's agents. If tell is set, it first passes
// these on, all of them, with their places.
func (p Play) notices(plan *planfile.Plan, tell bool) func(dispatch.Notice) {
	if p.Notices == nil {
		return nil
	}
	known := map[dispatch.Notice]bool{}
	for _, n := range dropped(plan) {
		if tell {
			p.Notices(n)
		}
		known[dispatch.Notice{Model: n.Model, Dropped: n.Dropped}] = true
	}
	return func(n dispatch.Notice) {
		if !known[dispatch.Notice{Model: n.Model, Dropped: n.Dropped}] {
			p.Notices(n)
		}
	}
}
