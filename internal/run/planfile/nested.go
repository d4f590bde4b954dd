package planfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/kit/yamltree"
	"parley/internal/run/planner"
	"parley/world"
)

// Plan reads a plan that params name, with the files in its own folder.
func (f *Files) Plan(name string) (*world.NestedPlan, error) {
	if f.inner {
		return nil, fmt.Errorf("%s: a plan that another one plays cannot play a third one", name)
	}
	path, err := f.allowedPath(name)
	if err != nil {
		return nil, err
	}
	b, err := readFile(f.ctx, path, "plan file", MaxSize)
	if err != nil {
		return nil, err
	}
	beside, err := NewFiles(f.ctx, path, f.reach)
	if err != nil {
		return nil, err
	}
	beside.inner = true
	plan, err := parsePlan(path, b, f.kinds, nil, beside)
	if plan, err = resolvePaths(f.ctx, plan, err, beside); err != nil {
		return nil, err
	}
	if plan.Until != nil {
		return nil, fmt.Errorf("%s has plan.until, and whoever plays it decides how many episodes there are: use another plan", name)
	}
	asked, err := plan.Asked()
	if err != nil {
		return nil, err
	}
	nested := &world.NestedPlan{File: name, Plan: plan.JSON(), Agents: plan.Agents}
	first := asked.Next(nil)
	seen := map[string]bool{}
	for _, spec := range first.Distinct() {
		if !seen[spec.Cell] {
			seen[spec.Cell] = true
			nested.Cells = append(nested.Cells, spec.WithDeal(0))
		}
		params, err := plan.Kind.Read(spec.Params)
		if err != nil {
			return nil, err
		}
		stages, err := plan.Kind.Plan(params, spec, plan.Seed)
		if err != nil {
			return nil, err
		}
		list, fixed := stages.(world.Specs)
		if !fixed {
			return nil, fmt.Errorf("%s decides from outcomes which episodes it plays, so its deals are no problems for another plan", name)
		}
		tasks := plan.Kind.TaskName(params).Deals
		if plan.Kind.Plans() && !plan.Kind.Uniform(params) { // the kind makes its tasks of one deal
			tasks = 0
			for b := range list.Blocks() {
				tasks += len(b.Groups) * b.Rounds
			}
		}
		if tasks > 0 && (nested.Tasks == 0 || tasks < nested.Tasks) {
			nested.Tasks = tasks
		}
	}
	nested.Measures = planner.Measures(plan.Kind, first)
	f.nested, f.Outside = plan, append(f.Outside, plan.Outside...)
	return nested, nil
}

// nest joins the plan with the one that its params name: agents, providers, and the budget if it has none itself.
func (r *resolver) nest(kinds []world.Kind, beside *Files) {
	p := r.plan
	of := p.Kind.Nested(p.Params)
	if of == nil || len(r.Errs) > 0 {
		return
	}
	here := yamltree.Path{"params"}
	p.Nested = beside.nestedPlan()
	if p.Nested == nil {
		var err error
		if p.Nested, err = FromJSON(of.Plan, kinds, nil); err != nil {
			r.Complain(here, "the plan %s: %v", of.File, err)
			return
		}
	}
	in := p.Nested
	p.Kind, p.Advice = p.Kind.With(in.Kind), append(p.Advice, in.Advice...)
	for _, own := range in.Providers {
		i := slices.IndexFunc(p.Providers, func(one provider.Provider) bool { return one.Name == own.Name })
		if i < 0 {
			p.Providers = append(p.Providers, own)
			p.Places[own.Name] = in.Places[own.Name]
		} else if !reflect.DeepEqual(p.Providers[i], own) {
			r.Complain(yamltree.Path{"providers"}, "%s is another provider in %s: give one of them another name", r.Quote(own.Name), of.File)
		}
	}
	for _, a := range p.nestedAgents() {
		if _, both := p.Agent(a.Name); both {
			r.ComplainOfKey(yamltree.Path{"agents", a.Name}, "%s has an agent of that name: give this one another", of.File)
		}
		if a.Model != "" && !a.Human() {
			r.model(a.Model, here)
		}
		p.Agents = append(p.Agents, a)
	}
	slices.SortFunc(p.Agents, func(a, b world.Agent) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Providers, func(a, b provider.Provider) int { return strings.Compare(a.Name, b.Name) })
	checkAgents(r.checker, p.Agents, p.Pace)
	if p.Budget == 0 {
		p.Budget = in.Budget
	}
	if p.EpisodeBudget == 0 {
		p.EpisodeBudget = in.EpisodeBudget
	}
	if in.Prices != "" && p.Prices == "" {
		r.Complain(yamltree.Path{"prices"}, "%s names a file of prices: name it here too, since the settings of the plan that plays count", of.File)
	}
}

// otherModels adds copies of agents with other models.
func (r *resolver) otherModels() {
	p := r.plan
	models, seats := p.Kind.OtherModels(p.Params)
	if len(models) == 0 || len(r.Errs) > 0 {
		return
	}
	lineups := p.Matrix.Parts(p.Lineup, p.Seats)
	if of := p.Kind.Nested(p.Params); of != nil {
		lineups = nil
		for _, cell := range of.Cells {
			lineups = append(lineups, cell.Lineup)
		}
	}
	here := yamltree.Path{"params"}
	for _, model := range models {
		r.model(model, here)
		for _, lineup := range lineups {
			for _, seat := range seats {
				a, known := p.Agent(lineup[seat])
				copied := world.AgentWith(a.Name, model)
				if _, there := p.Agent(copied); !known || there {
					continue
				}
				if a.Model == "" || a.Human() || a.Program != nil {
					r.Complain(here, "%s, in the seat %s, is no model, so no other model can take its place", r.Quote(a.Name), seat)
					continue
				}
				a.Name, a.Model, a.Fallbacks = copied, model, nil
				p.Agents, p.others = append(p.Agents, a), append(p.others, copied)
			}
		}
	}
	slices.SortFunc(p.Agents, func(a, b world.Agent) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Providers, func(a, b provider.Provider) int { return strings.Compare(a.Name, b.Name) })
}

// nestedPlan returns the plan that Plan has read. Nil: the plan was recorded.
func (f *Files) nestedPlan() *Plan {
	if f == nil {
		return nil
	}
	return f.nested
}

// nestedAgents lists the agents of the nested plan, as the kind has completed them.
func (p *Plan) nestedAgents() []world.Agent {
	if of := p.Kind.Nested(p.Params); of != nil {
		return of.Agents
	}
	return nil
}
