package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Kind is a family of worlds: what Define makes of a definition. Its methods have the names of the parts in this
// package, and return nothing where the definition lacks the part. As returns the parts that take no params.
//
// The zero Kind stands for a kind that is not known: it can be asked everything, and has no seats and no worlds.
type Kind struct {
	About
	definition any     // what Define was given
	params     untyped // its parts that take params; nil: not known
	// Which parts it has, where that cannot be seen from what they return.
	casts, plans, external bool
	bots                   map[string]Bot
	outside                []string
}

// Params are the params of one kind, made by its Defaults or Read.
type Params struct {
	pointer any
	err     error // why there are none
}

// Pointer returns the pointer to the kind's own struct. It is for those who handle the params of any kind as data,
// by reflection: the decoder of plan files, and the maker of schemas.
func (p Params) Pointer() any { return p.pointer }

// Define makes a Kind of its definition, with all the optional parts that the definition has. It panics where the
// definition has an exported method that no part of a kind has, or one with another signature: the compiler cannot
// know that such a method was meant as one. It also panics on a name that is not a word in lower case, a version below
// 1, and params that a run file cannot hold: fields that are not exported, or have no json tag or one that is taken.
func Define[P any](d Definition[P]) Kind {
	k := Kind{About: d.About(), definition: d, params: typed[P]{d}}
	for _, err := range []error{checkAbout(k.About), checkMethods[P](d), checkParams(reflect.TypeFor[P]())} {
		if err != nil {
			panic(fmt.Sprintf("world: Define: kind %s: %v", k.Name, err))
		}
	}
	_, k.casts = d.(Caster[P])
	_, k.plans = d.(Planner[P])
	if d, ok := d.(BotBringer); ok {
		k.bots = d.Bots()
	}
	if d, ok := d.(Environment[P]); ok {
		k.external, k.outside = true, d.Outside()
	}
	return k
}

// As returns a part of a kind that does not depend on its params, such as a Storyteller, a StandIn or a Commander.
func As[T any](k Kind) (T, bool) {
	part, ok := k.definition.(T)
	return part, ok
}

// typeless returns the parts that take params.
func (k Kind) typeless() untyped {
	if k.params == nil {
		return typed[struct{}]{unknown{}}
	}
	return k.params
}

// Defaults returns new params, as they are where a plan file says nothing.
func (k Kind) Defaults() Params { return k.typeless().defaults() }

// Read returns params that were recorded. What raw leaves out is as Defaults has it.
func (k Kind) Read(raw json.RawMessage) (Params, error) {
	p := k.Defaults()
	if p.err != nil {
		return Params{}, p.err
	}
	if err := json.Unmarshal(raw, p.pointer); err != nil {
		return Params{}, fmt.Errorf("params: %w", err)
	}
	return p, nil
}

// Seats checks params and lists the seats they make.
func (k Kind) Seats(p Params) ([]string, error) { return k.typeless().seats(p) }

// World makes the world of one episode.
func (k Kind) World(p Params, lineup Lineup) (World, error) { return k.typeless().world(p, lineup) }

// Measures declares what outcomes may score. Nil: it is not known beforehand.
func (k Kind) Measures(p Params) []Measure { return k.typeless().measures(p) }

// Bots are the kind's agents without a model, by name. The map is shared: do not write to it.
func (k Kind) Bots() map[string]Bot { return k.bots }

// Load puts what the files say that params name into params. See Loader.
func (k Kind) Load(p Params, files Files) (advice []string, err error) {
	return k.typeless().load(p, files)
}

// Casts says whether the kind is a Caster: seats that a plan leaves empty may get a model by Models.
func (k Kind) Casts() bool { return k.casts }

// Models returns seat to provider/model, as the files that were loaded ask for them.
func (k Kind) Models(p Params) map[string]string { return k.typeless().models(p) }

// Plans says whether the kind is a Planner. If not, each spec of a plan is one episode.
func (k Kind) Plans() bool { return k.plans }

// Plan decides which episodes are played. It is for kinds that plan: see Planner.
func (k Kind) Plan(p Params, cell Spec, seed uint64) (Plan, error) {
	return k.typeless().plan(p, cell, seed)
}

// Forecast says what Plan may ask for before anything of it is played.
func (k Kind) Forecast(p Params, cell Spec, seed uint64) ([]Part, error) {
	return k.typeless().forecast(p, cell, seed)
}

// Uniform says whether Plan makes the same of every deal, but for the deals of its specs.
func (k Kind) Uniform(p Params) bool { return k.typeless().uniform(p) }

// Dealt names what params put before the seats of an episode, beside chance. See Dealer.
func (k Kind) Dealt(p Params) (what string, whole bool) { return k.typeless().dealt(p) }

// Status says how a run with these params goes while it is played. Nil: nothing but the number of episodes.
func (k Kind) Status(p Params) Status { return k.typeless().status(p) }

// External says whether the kind has an Environment.
func (k Kind) External() bool { return k.external }

// Actor connects to the outside for one run, which has this id. It is for kinds that are External.
func (k Kind) Actor(p Params, run string) (Actor, error) { return k.typeless().actor(p, run) }

// Local says whether all that params need is within this process. It is where nothing is outside.
func (k Kind) Local(p Params) bool { return k.typeless().local(p) }

// Probe asks every server that the params name.
func (k Kind) Probe(ctx context.Context, p Params) []Presence { return k.typeless().probe(ctx, p) }

// Identity is params without those that are outside of play: what makes two plans the same.
func (k Kind) Identity(params json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if len(k.outside) == 0 || json.Unmarshal(params, &all) != nil {
		return params
	}
	for _, name := range k.outside {
		delete(all, name)
	}
	b, err := json.Marshal(all)
	if err != nil {
		return params
	}
	return b
}

// unknown is the definition of a kind that is not known.
type unknown struct{}

var errUnknown = errors.New("world: the kind is not known")

func (unknown) About() About                           { return About{} }
func (unknown) Defaults() *struct{}                    { return &struct{}{} }
func (unknown) Seats(*struct{}) ([]string, error)      { return nil, errUnknown }
func (unknown) World(*struct{}, Lineup) (World, error) { return nil, errUnknown }
