package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Kind is a family of worlds, made by Define. Its methods have the names of the parts in this package, and
// return nothing if the definition lacks the part. As returns parts that take no params.
//
// The zero Kind is an unknown kind: all methods work, and it has no seats and no worlds.
type Kind struct {
	About
	definition any     // the argument of Define
	params     untyped // the parts that take params; nil: an unknown kind
	// The parts it has, if their results do not show it.
	choosesModels, plans, external, restarts bool
	bots                                     map[string]Bot
	outside                                  []string
}

// Params are the params of a kind, made by its Defaults or Read.
type Params struct {
	pointer any
	err     error // why there are no params
}

// Pointer returns the pointer to the kind's params struct, for code that handles the params of any kind by
// reflection.
func (p Params) Pointer() any {
	if d, ok := p.pointer.(Dynamic); ok {
		return d.Fields()
	}
	return p.pointer
}

// Dynamic is implemented by params whose fields are known only at run time, such as those of a world in another
// language. They decode and encode themselves as JSON.
type Dynamic interface {
	// Fields returns a pointer to the struct that holds the fields, with the tags of params.
	Fields() any
}

// Define makes a Kind of a definition and of the optional parts that the definition has. It panics if the
// definition has an exported method that belongs to no part or has another signature, since the compiler cannot
// find that. It also panics on a name that is not a lower-case word, a version below 1, and params that a run
// file cannot hold: fields that are not exported, or have no json tag or a repeated one.
func Define[P any](d Definition[P]) Kind {
	k := Kind{About: d.About(), definition: d, params: typed[P]{d}}
	for _, err := range []error{k.About.Check(), checkMethods[P](d), checkParams(reflect.TypeFor[P]())} {
		if err != nil {
			panic(fmt.Sprintf("world: Define: kind %s: %v", k.Name, err))
		}
	}
	_, k.choosesModels = d.(ModelChooser[P])
	_, k.plans = d.(Planner[P])
	if d, ok := d.(BotMaker); ok {
		k.bots = d.Bots()
	}
	if d, ok := d.(Environment[P]); ok {
		k.external, k.outside = true, d.Outside()
	}
	if d, ok := d.(Restarter); ok {
		k.restarts = d.Restarts()
	}
	return k
}

// As returns a part of a kind that does not depend on params, such as a Storyteller, a StandIn or a Commander.
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

// Defaults returns new params with the values that apply if a plan file sets nothing.
func (k Kind) Defaults() Params { return k.typeless().defaults() }

// Read decodes recorded params. Fields that raw leaves out have their default.
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

// Measures declares the scores of outcomes. Nil: they are not known in advance.
func (k Kind) Measures(p Params) []Measure { return k.typeless().measures(p) }

// Bots returns the kind's agents without a model, by name. Do not modify the map.
func (k Kind) Bots() map[string]Bot { return k.bots }

// Load reads the files that params name into params. See Loader.
func (k Kind) Load(p Params, files Files) (advice []string, err error) {
	return k.typeless().load(p, files)
}

// ChoosesModels reports whether the kind is a ModelChooser: Models may fill seats that a plan leaves empty.
func (k Kind) ChoosesModels() bool { return k.choosesModels }

// Models maps seats to provider/model, as the loaded files ask for.
func (k Kind) Models(p Params) map[string]string { return k.typeless().models(p) }

// Plans reports whether the kind is a Planner. If not, each spec of a plan is one episode.
func (k Kind) Plans() bool { return k.plans }

// Plan decides which episodes to play, for a kind that is a Planner.
func (k Kind) Plan(p Params, cell Spec, seed uint64) (Plan, error) {
	return k.typeless().plan(p, cell, seed)
}

// Forecast describes what Plan may ask for.
func (k Kind) Forecast(p Params, cell Spec, seed uint64) ([]Part, error) {
	return k.typeless().forecast(p, cell, seed)
}

// Uniform reports whether Plan makes the same of every deal, except for the deals of its specs.
func (k Kind) Uniform(p Params) bool { return k.typeless().uniform(p) }

// TaskName names the task that the params give to an episode. See TaskNamer.
func (k Kind) TaskName(p Params) (name string, whole bool) { return k.typeless().taskName(p) }

// Status returns the progress of a run with these params. Nil: only the number of episodes is known.
func (k Kind) Status(p Params) Status { return k.typeless().status(p) }

// External reports whether the kind has an Environment.
func (k Kind) External() bool { return k.external }

// Restarts reports whether an unfinished episode begins again when a run is resumed: the kind has an Environment, or
// is a Restarter that says so.
func (k Kind) Restarts() bool { return k.external || k.restarts }

// Actor connects to the outside for the run with this id, as in Environment. The kind must be External.
func (k Kind) Actor(p Params, run string) (Actor, error) { return k.typeless().actor(p, run) }

// Local reports whether everything that params need is within this process.
func (k Kind) Local(p Params) bool { return k.typeless().local(p) }

// Probe asks every server that params name.
func (k Kind) Probe(ctx context.Context, p Params) []Presence { return k.typeless().probe(ctx, p) }

// Identity returns params without those of Environment.Outside: two plans with equal identities are the same.
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

// unknown is the definition of an unknown kind.
type unknown struct{}

var errUnknown = errors.New("world: the kind is not known")

func (unknown) About() About                           { return About{} }
func (unknown) Defaults() *struct{}                    { return &struct{}{} }
func (unknown) Seats(*struct{}) ([]string, error)      { return nil, errUnknown }
func (unknown) World(*struct{}, Lineup) (World, error) { return nil, errUnknown }
