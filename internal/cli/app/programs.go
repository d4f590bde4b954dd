package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"parley/internal/ask/provider"
	"parley/internal/ask/trust"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/program"
	"parley/internal/serve/gateway"
	"parley/internal/serve/gateway/format"
	"parley/world"
)

// programNeeds lists the programs that a plan starts, and the code that its kind runs with the rights of the user. Code that is
// recorded, or that the plan file holds, comes from that file, whatever the plan names.
func programNeeds(plan *planfile.Plan, file string, recorded bool) (all []trust.Need, err error) {
	add := func(what, name, place string) {
		n := trust.Need{Grant: trust.Grant{What: what, Name: name}, Place: place}
		if !slices.ContainsFunc(all, func(other trust.Need) bool { return other.Grant == n.Grant }) {
			all = append(all, n)
		}
	}
	for _, a := range plan.Agents {
		if a.Program == nil {
			continue
		}
		if name := program.Permission(*a.Program); name != "" {
			owner := plan
			if _, nested := plan.Acting().Agent(a.Name); nested {
				owner = plan.Acting()
			}
			add(trust.Program, name, owner.Place("agents", a.Name, "program"))
		}
	}
	if acting := plan.Acting(); acting != plan {
		plan, file = acting, cmp.Or(acting.File(), file)
	}
	recorded = recorded || plan.Loaded
	asked, err := plan.Asked()
	if err != nil {
		return nil, usageError{err}
	}
	for _, spec := range asked.Next(nil).Distinct() {
		params, err := plan.Kind.Read(spec.Params)
		if err != nil {
			return nil, usageError{err}
		}
		starts := plan.Kind.Starts(params)
		for _, c := range starts.Code {
			path := file
			if !recorded {
				path = filepath.FromSlash(c.Name)
				if !filepath.IsAbs(path) {
					path = filepath.Join(filepath.Dir(file), path)
				}
			}
			if path, err = filepath.Abs(path); err != nil {
				return nil, err
			}
			add(trust.Code, path, plan.Place("params", c.Param))
		}
		if len(starts.Command) > 0 {
			add(trust.Program, provider.CommandLine(starts.Command), plan.Place("params"))
		}
	}
	return all, nil
}

// Program is an agent that is a program, or a command of the kind that runs such agents.
type Program struct {
	Agent   string `json:"agent,omitempty"`
	Command string `json:"command"` // as the user allows it
	// Missing is why it cannot be started here, and what to do. Empty: it can, or this machine need not have it.
	Missing string `json:"missing,omitempty"`
	place   string
}

// programsOf lists the agents of a plan that are programs, and what runs them.
func programsOf(plan *planfile.Plan) (all []Program) {
	starts := plan.Kind.Starts(plan.Params)
	for _, a := range plan.Agents {
		if a.Program == nil || program.Own(*a.Program) != "" {
			continue
		}
		p := Program{Agent: a.Name, Command: cmp.Or(program.Permission(*a.Program), a.Program.Label()), place: plan.Place("agents", a.Name, "program")}
		if starts.Engine == "" && len(starts.Command) == 0 { // otherwise the image must have it, or the user's command knows where it is
			p.Missing = program.Missing(*a.Program)
		}
		all = append(all, p)
	}
	runs := starts.Command
	if starts.Engine != "" {
		runs = []string{starts.Engine}
	}
	if len(runs) > 0 {
		all = append(all, Program{Command: provider.CommandLine(runs), Missing: program.Missing(world.Program{Command: runs}), place: plan.Place("params")})
	}
	return all
}

// checkRules refuses rules of program.ignore that cannot be followed.
func checkRules(plan *planfile.Plan) error {
	var errs []error
	for _, a := range plan.Agents {
		if a.Program == nil {
			continue
		}
		if _, err := format.ParseRules(a.Program.Ignore); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", plan.Place("agents", a.Name, "program", "ignore"), err))
		}
	}
	return errors.Join(errs...)
}

// missingPrograms returns what cannot be started, before anything is asked.
func missingPrograms(plan *planfile.Plan) error {
	var errs []error
	for _, p := range programsOf(plan) {
		if p.Missing != "" {
			errs = append(errs, fmt.Errorf("%s: %s", p.place, p.Missing))
		}
	}
	return errors.Join(errs...)
}

// setPrograms gives c what starts the agents that are programs, if there are any. ended ends it.
func (p Play) setPrograms(ctx context.Context, c *engine.Config, plan *planfile.Plan, a *App, done bool) (ended func(context.Context) error, err error) {
	if done || p.Remote != nil || !slices.ContainsFunc(plan.Agents, func(a world.Agent) bool { return a.Program != nil }) {
		return func(context.Context) error { return nil }, nil
	}
	sessions, err := gateway.ServePrograms(ctx, gateway.ProgramsConfig{Dispatch: a.Dispatcher, Relays: a.relays, Cache: a.cache, Settings: plan.Settings})
	if err != nil {
		return nil, err
	}
	r, err := program.New(ctx, program.Config{Run: c.Begun.Run, Supervisor: p.Supervisor, Sessions: sessions})
	if err != nil {
		return nil, errors.Join(err, sessions.Close())
	}
	c.Programs = programs{r, sessions}
	whenBegun(c, sessions.Begin)
	return func(ctx context.Context) error { return errors.Join(r.Close(ctx), sessions.Close()) }, nil
}

// programs starts the agents that are programs, and serves their calls.
type programs struct {
	*program.Runner
	sessions *gateway.Programs
}

// Drain ends the programs when their calls in flight are recorded.
func (p programs) Drain() {
	p.sessions.Drain()
	p.Runner.Drain()
}
