package rules

import (
	"cmp"
	"encoding/json"
	"fmt"

	"parley/world"
)

// Plan makes groups of the episodes of a plan file. Each episode is one group or, with an environments file,
// all tasks of the file once. Members of a group have the same deal, so also the same seed, and follow each
// other, so that groups are complete early.
//
// With a judge of groups, the episodes of each stage are followed by judgements, one for each group.
func (Definition) Plan(p *Params, cell world.Spec, _ uint64) (world.Stages, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	plan, err := p.plan(cell)
	if err != nil || !p.Judge.comparesGroups() {
		return plan, err
	}
	return judged(plan)
}

func (p *Params) plan(cell world.Spec) (world.Stages, error) {
	tasks, err := parseTasks(p.Tasks)
	switch {
	case err != nil:
		return nil, paramErrorf("tasks", "%v", err)
	case p.Refill.Useful > 0:
		return p.refill(tasks, cell)
	case len(tasks) == 0:
		return planGroups(group(cell, p.Group))
	}
	all := make([]world.Group, 0, len(tasks))
	for i, task := range tasks {
		task = task.nth(cell.Deal)
		task.Index += cell.Deal * len(tasks)
		g, err := p.played(task, cell.WithDeal(cell.Deal*len(tasks)+i))
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return planGroups(all...)
}

// played returns the group of a task.
func (p *Params) played(task Task, cell world.Spec) (world.Group, error) {
	one := *p
	one.Tasks, one.Environments, one.Refill = "", "", Refill{}
	one.Env, one.EnvParams = task.Env, task.Params
	size := cmp.Or(p.Group, task.Size)
	if task.Group != "" {
		task.Params = nil
		one.Task = &task
	}
	params, err := json.Marshal(one)
	if err != nil {
		return world.Group{}, fmt.Errorf("rollout: params: %w", err)
	}
	cell.Params = params
	return group(cell, size), nil
}

// refill returns a plan that plays groups of the tasks, or of the params' own environment if there are none, until
// enough are useful.
func (p *Params) refill(tasks []Task, cell world.Spec) (world.Stages, error) {
	own := len(tasks) == 0
	if own {
		tasks = []Task{{Env: p.Env, Params: p.EnvParams, Group: p.Env, Size: p.Group}}
	}
	if cell.Deal > 0 {
		return nil, paramErrorf("refill", "episodes must be 1: refill.useful and refill.max_groups say how many groups are played")
	}
	for _, t := range tasks {
		if cmp.Or(p.Group, t.Size) < 2 {
			return nil, paramErrorf("group", "refill needs groups of at least 2 episodes: set group")
		}
	}
	return p.Refill.plan(tasks, own, func(t Task, deal int) (world.Group, error) {
		if own && t.Group == p.Env {
			t.Group = "" // a new deal is a new task
		}
		return p.played(t, cell.WithDeal(deal))
	}), nil
}

// Forecast returns nothing if the plan is its first stage, and otherwise between how many episodes it has.
func (d Definition) Forecast(p *Params, cell world.Spec, seed uint64) ([]world.Part, error) {
	if p.Refill.Useful == 0 && !p.Judge.comparesGroups() {
		return nil, nil
	}
	plan, err := d.Plan(p, cell, seed)
	if err != nil {
		return nil, err
	}
	part := world.Part{Name: "groups"}
	size, groups := 0, 0 // episodes of the largest group
	for b := range plan.Next(nil).Blocks() {
		for _, g := range b.Groups {
			part.Like, size = append(part.Like, g.Spec), max(size, g.Size)
			groups++
		}
	}
	low, high, stages := groups, groups, 1
	if p.Refill.Useful > 0 {
		_, high = p.Refill.limits()
		low, stages = min(p.Refill.Useful, high), high
	}
	part.Low, part.High, part.Stages = low*size, high*size, stages
	if !p.Judge.comparesGroups() {
		return []world.Part{part}, nil
	}
	like, err := judgementOf(part.Like[0], sampleGroup(size))
	return []world.Part{part, {Name: "judgements", Like: []world.Spec{like}, Low: low, High: high, Stages: stages}}, err
}

// Uniform reports whether every deal is the same: tasks change with the deal, and a refill has only one.
func (Definition) Uniform(p *Params) bool {
	return p.Tasks == "" && p.Refill.Useful == 0 && !p.Judge.comparesGroups()
}

func group(spec world.Spec, n int) world.Group { return world.Group{Spec: spec, Size: max(1, n)} }

// planGroups returns a plan of groups.
func planGroups(all ...world.Group) (world.Stages, error) {
	return world.Blocks(world.Block{Groups: all, Rounds: 1})
}

// Load loads the files that the params name.
func (Definition) Load(p *Params, files world.Files) (advice []string, err error) {
	if p.Environments != "" {
		p.Tasks, advice, err = loadTasks(p.Environments, files)
	}
	return advice, err
}
