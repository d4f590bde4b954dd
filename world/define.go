package world

import (
	"context"
	"fmt"
	"reflect"
	"slices"
)

// Define makes a Kind of its definition, with all the optional parts that the definition has. It panics where the
// definition has an exported method that no part of a kind has, or one with another signature: the compiler cannot
// tell that such a method was meant as one.
func Define[P any](d Definition[P]) Kind {
	about := d.About()
	if err := checkMethods[P](d); err != nil {
		panic(fmt.Sprintf("world: Define: kind %s: %v", about.Name, err))
	}
	k := Kind{
		Name: about.Name, Version: about.Version, Doc: about.Doc, Example: about.Example, ExampleFiles: about.ExampleFiles,
		Params: func() any { return d.Defaults() },
		Seats: func(params any) ([]string, error) {
			p, err := typed[P](about.Name, params)
			if err != nil {
				return nil, err
			}
			return d.Seats(p)
		},
		World: func(params any, lineup Lineup) (World, error) {
			p, err := typed[P](about.Name, params)
			if err != nil {
				return nil, err
			}
			return d.World(p, lineup)
		},
		definition: d,
	}
	definePlay[P](&k, d)
	defineReading[P](&k, d)
	return k
}

// As returns a part of a kind that does not depend on its params, such as a StandIn or a Commander.
func As[T any](k Kind) (T, bool) {
	part, ok := k.definition.(T)
	return part, ok
}

// typed returns params as those of the kind.
func typed[P any](kind string, params any) (*P, error) {
	p, ok := params.(*P)
	if !ok || p == nil {
		return nil, fmt.Errorf("%s: params are %T, want %T", kind, params, p)
	}
	return p, nil
}

// of calls f with params as those of the kind, and returns nothing for those of another.
func of[P, T any](kind string, f func(*P) T) func(any) T {
	return func(params any) T {
		p, err := typed[P](kind, params)
		if err != nil {
			var nothing T
			return nothing
		}
		return f(p)
	}
}

// definePlay adds the parts that decide what is played.
func definePlay[P any](k *Kind, d Definition[P]) {
	name := k.Name
	if d, ok := d.(Loader[P]); ok {
		k.Load = func(params any, files Files) ([]string, error) {
			p, err := typed[P](name, params)
			if err != nil {
				return nil, err
			}
			return d.Load(p, files)
		}
	}
	if d, ok := d.(Caster[P]); ok {
		k.Models = of(name, d.Models)
	}
	if d, ok := d.(Planner[P]); ok {
		k.Plan = func(params any, cell Spec, seed uint64) (Plan, error) {
			p, err := typed[P](name, params)
			if err != nil {
				return nil, err
			}
			return d.Plan(p, cell, seed)
		}
		k.Forecast = func(params any, cell Spec, seed uint64) ([]Part, error) {
			p, err := typed[P](name, params)
			if err != nil {
				return nil, err
			}
			return d.Forecast(p, cell, seed)
		}
	}
	if d, ok := d.(UniformPlanner[P]); ok {
		k.Alike = of(name, d.Uniform)
	}
	if d, ok := d.(Dealer[P]); ok {
		k.Dealt = func(params any) (string, bool) {
			p, err := typed[P](name, params)
			if err != nil {
				return "", false
			}
			return d.Dealt(p)
		}
	}
	if d, ok := d.(BotBringer); ok {
		k.Bots = d.Bots()
	}
	defineOutside[P](k, d)
}

// defineOutside adds the parts that connect to what is outside.
func defineOutside[P any](k *Kind, d any) {
	name := k.Name
	if d, ok := d.(Environment[P]); ok {
		k.External, k.Outside = true, d.Outside()
		k.Actor = func(params any, run string) (Actor, error) {
			p, err := typed[P](name, params)
			if err != nil {
				return nil, err
			}
			return d.Actor(p, run)
		}
	}
	if d, ok := d.(Prober[P]); ok {
		k.Local = of(name, d.Local)
		k.Probe = func(ctx context.Context, params any) []Presence {
			return of(name, func(p *P) []Presence { return d.Probe(ctx, p) })(params)
		}
	}
}

// Attach returns a kind with more parts: those of an Environment, a Prober or a Commander. It is for kinds that are not
// made by Define.
func Attach[P any](k Kind, parts any) Kind {
	k.definition = parts
	defineOutside[P](&k, parts)
	return k
}

// defineReading adds the parts that show what was played.
func defineReading[P any](k *Kind, d Definition[P]) {
	if d, ok := d.(Measurer[P]); ok {
		k.Scores = of(k.Name, d.Measures)
	}
	if d, ok := d.(StatusMaker[P]); ok {
		k.Status = of(k.Name, d.Status)
	}
	if d, ok := d.(Reporter); ok {
		k.Exhibitor = d.Exhibitor
	}
	if d, ok := d.(Storyteller); ok {
		k.Story = d.Story
	}
	if d, ok := d.(FileMaker); ok {
		k.Files = d.Files
	}
	if d, ok := d.(Marker); ok {
		k.Mark = d.Mark
	}
	if d, ok := d.(Painter); ok {
		k.Colours = d.Colours()
	}
}

// checkMethods wants every exported method of a definition to be one of a part of a kind.
func checkMethods[P any](d Definition[P]) error {
	parts := []reflect.Type{
		reflect.TypeFor[Definition[P]](), reflect.TypeFor[Measurer[P]](), reflect.TypeFor[BotBringer](), reflect.TypeFor[StandIn](),
		reflect.TypeFor[Loader[P]](), reflect.TypeFor[Caster[P]](), reflect.TypeFor[Planner[P]](), reflect.TypeFor[UniformPlanner[P]](),
		reflect.TypeFor[Dealer[P]](), reflect.TypeFor[StatusMaker[P]](), reflect.TypeFor[Reporter](), reflect.TypeFor[Storyteller](),
		reflect.TypeFor[FileMaker](), reflect.TypeFor[Marker](), reflect.TypeFor[Painter](), reflect.TypeFor[Environment[P]](),
		reflect.TypeFor[Prober[P]](), reflect.TypeFor[Commander](),
	}
	own := reflect.TypeOf(d)
	for i := range own.NumMethod() {
		name := own.Method(i).Name
		at := slices.IndexFunc(parts, func(part reflect.Type) bool { _, has := part.MethodByName(name); return has })
		if at < 0 {
			var all []string
			for _, part := range parts {
				for m := range part.NumMethod() {
					all = append(all, part.Method(m).Name)
				}
			}
			return fmt.Errorf("the method %s is of no part of a kind: %s", name, meantOr(name, all))
		}
		if !own.Implements(parts[at]) {
			return fmt.Errorf("the method %s makes no %v: that has %s", name, parts[at], signatures(parts[at]))
		}
	}
	return nil
}

// meantOr says which method was probably meant, or what to do with one of another purpose.
func meantOr(name string, all []string) string {
	if near := Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "make it a function, or do not export it"
}

// signatures lists the methods of an interface as they must be.
func signatures(part reflect.Type) string {
	text := ""
	for i := range part.NumMethod() {
		m := part.Method(i)
		if i > 0 {
			text += " and "
		}
		text += m.Name + m.Type.String()[len("func"):]
	}
	return text
}
