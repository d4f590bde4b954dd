package world

import (
	"context"
	"fmt"
)

// untyped is a definition without the type of its params.
type untyped interface {
	untypedPlay
	untypedPlan
	untypedReading
	untypedOutside
}

type untypedPlay interface {
	defaults() Params
	seats(p Params) ([]string, error)
	world(p Params, lineup Lineup) (World, error)
	load(p Params, files Files) (advice []string, err error)
}

type untypedPlan interface {
	plan(p Params, cell Spec, seed uint64) (Plan, error)
	forecast(p Params, cell Spec, seed uint64) ([]Part, error)
	uniform(p Params) bool
	taskName(p Params) (name string, whole bool)
}

type untypedReading interface {
	models(p Params) map[string]string
	measures(p Params) []Measure
	status(p Params) Status
}

type untypedOutside interface {
	actor(p Params, run string) (Actor, error)
	local(p Params) bool
	probe(ctx context.Context, p Params) []Presence
	code(p Params) []CodeName
}

// typed implements untyped. A part that the definition lacks returns nothing.
type typed[P any] struct{ Definition[P] }

// of returns params as the definition's type.
func (t typed[P]) of(p Params) (*P, error) {
	if p.err != nil {
		return nil, p.err
	}
	own, ok := p.pointer.(*P)
	if !ok || own == nil {
		return nil, fmt.Errorf("%s: params are %T, want %T", t.About().Name, p.pointer, own)
	}
	return own, nil
}

// try calls a part with params of the definition's type. It turns a panic into an error that names the part.
func try[P, T any](t typed[P], p Params, name string, part func(own *P) (T, error)) (out T, err error) {
	own, err := t.of(p)
	if err != nil {
		return out, err
	}
	defer t.caught(name, &err)
	return part(own)
}

// give calls a part that cannot fail. It returns nothing for params of another kind.
func give[P, T any](t typed[P], p Params, part func(own *P) T) (none T) {
	own, err := t.of(p)
	if err != nil {
		return none
	}
	return part(own)
}

// caught turns a panic into an error. Defer it.
func (t typed[P]) caught(part string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("kind %s: %s panicked: %v", t.About().Name, part, v)
	}
}

func (t typed[P]) defaults() (p Params) {
	p.pointer = (*P)(nil)
	defer t.caught("Defaults", &p.err)
	p.pointer = t.Defaults()
	return p
}

// seats also tries Measures and Models, which return no error: params that make them panic are refused.
func (t typed[P]) seats(p Params) ([]string, error) {
	seats, err := try(t, p, "Seats", t.Seats)
	if err != nil {
		return nil, err
	}
	if _, err = t.measured(p); err == nil {
		_, err = try(t, p, "Models", func(*P) (any, error) { return t.models(p), nil })
	}
	return seats, err
}

// world does not catch a panic: the caller handles it as a panic of the world.
func (t typed[P]) world(p Params, lineup Lineup) (World, error) {
	own, err := t.of(p)
	if err != nil {
		return nil, err
	}
	return t.World(own, lineup)
}

func (t typed[P]) load(p Params, files Files) ([]string, error) {
	d, ok := t.Definition.(Loader[P])
	if !ok {
		return nil, nil
	}
	return try(t, p, "Load", func(own *P) ([]string, error) { return d.Load(own, files) })
}

func (t typed[P]) models(p Params) map[string]string {
	d, ok := t.Definition.(ModelChooser[P])
	if !ok {
		return nil
	}
	return give(t, p, d.Models)
}

func (t typed[P]) measures(p Params) []Measure {
	declared, _ := t.measured(p) // it does not fail for params of a plan: seats has tried it
	return declared
}

func (t typed[P]) measured(p Params) ([]Measure, error) {
	d, ok := t.Definition.(Measurer[P])
	if !ok {
		return nil, nil
	}
	return try(t, p, "Measures", func(own *P) ([]Measure, error) { return d.Measures(own), nil })
}

func (t typed[P]) plan(p Params, cell Spec, seed uint64) (Plan, error) {
	d, ok := t.Definition.(Planner[P])
	if !ok {
		return List(cell), nil
	}
	return try(t, p, "Plan", func(own *P) (Plan, error) { return d.Plan(own, cell, seed) })
}

func (t typed[P]) forecast(p Params, cell Spec, seed uint64) ([]Part, error) {
	d, ok := t.Definition.(Planner[P])
	if !ok {
		return nil, nil
	}
	return try(t, p, "Forecast", func(own *P) ([]Part, error) { return d.Forecast(own, cell, seed) })
}

func (t typed[P]) uniform(p Params) bool {
	d, ok := t.Definition.(UniformPlanner[P])
	return ok && give(t, p, d.Uniform)
}

func (t typed[P]) taskName(p Params) (name string, whole bool) {
	d, ok := t.Definition.(TaskNamer[P])
	own, err := t.of(p)
	if !ok || err != nil {
		return "", false
	}
	return d.TaskName(own)
}

func (t typed[P]) status(p Params) Status {
	d, ok := t.Definition.(StatusMaker[P])
	if !ok {
		return nil
	}
	return give(t, p, d.Status)
}

func (t typed[P]) actor(p Params, run string) (Actor, error) {
	d, ok := t.Definition.(Environment[P])
	if !ok {
		return nil, fmt.Errorf("world: the kind %q has no environment", t.About().Name)
	}
	return try(t, p, "Actor", func(own *P) (Actor, error) { return d.Actor(own, run) })
}

func (t typed[P]) local(p Params) bool {
	if d, ok := t.Definition.(Prober[P]); ok {
		return give(t, p, d.Local)
	}
	_, external := t.Definition.(Environment[P])
	return !external
}

func (t typed[P]) probe(ctx context.Context, p Params) []Presence {
	d, ok := t.Definition.(Prober[P])
	if !ok {
		return nil
	}
	return give(t, p, func(own *P) []Presence { return d.Probe(ctx, own) })
}
