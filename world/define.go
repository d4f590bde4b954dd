package world

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"parley/internal/kit/fieldtag"
	"parley/internal/kit/text"
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
	choosesModels, plans, nests, external, restarts bool
	bots                                            map[string]Bot
	outside                                         []string
	nested                                          *Kind // whose episodes it plays too; nil: none
}

// Params are the params of a kind, made by its Defaults or Read.
type Params struct {
	pointer any
	err     error // why there are no params
}

// Pointer returns the pointer to the kind's params struct, for code that handles the params of any kind by
// reflection.
func (p Params) Pointer() any {
	if d, ok := p.pointer.(dynamic); ok {
		return d.Fields()
	}
	return p.pointer
}

// Define makes a Kind of a definition and of the optional parts that the definition has, those of package part included. It panics on a
// name that is not a lower-case word, a version below 1, a tag range that cannot be read, and params that a run file cannot hold: fields that are
// not exported, or have no json tag or a repeated one.
func Define[P any](d Definition[P]) Kind {
	k := Kind{About: d.About(), definition: d, params: typed[P]{d, fieldtag.For(reflect.TypeFor[P]())}}
	for _, err := range []error{k.About.Check(), checkParams(reflect.TypeFor[P]())} {
		if err != nil {
			panic(fmt.Sprintf("world: Define: kind %s: %v", k.Name, err))
		}
	}
	_, k.choosesModels = d.(modelChooser[P])
	_, k.plans = d.(planner[P])
	_, k.nests = d.(nester[P])
	if d, ok := d.(botMaker); ok {
		k.bots = d.Bots()
	}
	if d, ok := d.(environment[P]); ok {
		k.external, k.outside = true, d.Outside()
	}
	if d, ok := d.(restarter); ok {
		k.restarts = d.Restarts()
	}
	return k
}

// As returns a part of a kind that does not depend on params, such as a part.Storyteller or a part.StandIn.
func As[T any](k Kind) (T, bool) {
	part, ok := k.definition.(T)
	return part, ok
}

// With returns k for a plan that plays episodes of another kind too: see Nester.
func (k Kind) With(nested Kind) Kind {
	k.nested = &nested
	return k
}

// Of returns the kind of an episode: k, or the other kind whose episodes it plays.
func (k Kind) Of(spec Spec) Kind {
	if k.nested != nil && k.nested.Name == spec.Kind {
		return *k.nested
	}
	k.nested = nil
	return k
}

// All returns k and the other kind whose episodes it plays, if there is one.
func (k Kind) All() []Kind {
	if k.nested == nil {
		return []Kind{k}
	}
	own := k
	own.nested = nil
	return []Kind{own, *k.nested}
}

// typeless returns the parts that take params.
func (k Kind) typeless() untyped {
	if k.params == nil {
		return typed[struct{}]{unknown{}, nil}
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

// Load reads the files that params name into params. See part.Loader.
func (k Kind) Load(p Params, files Files) (advice []string, err error) {
	return k.typeless().load(p, files)
}

// ChoosesModels reports whether the kind is a part.ModelChooser: Models may fill seats that a plan leaves empty.
func (k Kind) ChoosesModels() bool { return k.choosesModels }

// Models maps seats to provider/model, as the loaded files ask for.
func (k Kind) Models(p Params) map[string]string { return k.typeless().models(p) }

// Plans reports whether the kind is a part.Planner. If not, each spec of a plan is one episode.
func (k Kind) Plans() bool { return k.plans }

// Plan decides which episodes to play, for a kind that is a part.Planner.
func (k Kind) Plan(p Params, cell Spec, seed uint64) (Stages, error) {
	return k.typeless().plan(p, cell, seed, k.nested)
}

// Nests reports whether the kind is a part.Nester.
func (k Kind) Nests() bool { return k.nests }

// OtherModels returns the models that agents of some seats also have, for a kind that is a part.ModelTrier.
func (k Kind) OtherModels(p Params) (models, seats []string) { return k.typeless().otherModels(p) }

// Nested returns the plan that params name, for a kind that is a part.Nester. Nil: they name none.
func (k Kind) Nested(p Params) *NestedPlan { return k.typeless().nested(p) }

// Forecast describes what Plan may ask for.
func (k Kind) Forecast(p Params, cell Spec, seed uint64) ([]Part, error) {
	return k.typeless().forecast(p, cell, seed, k.nested)
}

// Uniform reports whether Plan makes the same of every deal, except for the deals of its specs.
func (k Kind) Uniform(p Params) bool { return k.typeless().uniform(p) }

// Starts says what the kind starts. See part.Starter.
func (k Kind) Starts(p Params) Starts { return k.typeless().starts(p) }

// TaskName names the task that the params give to an episode. See part.TaskNamer.
func (k Kind) TaskName(p Params) Task { return k.typeless().taskName(p) }

// Status returns the progress of a run with these params. Nil: only the number of episodes is known.
func (k Kind) Status(p Params) Status { return k.typeless().status(p) }

// External reports whether the kind has a part.Environment.
func (k Kind) External() bool { return k.external }

// Restarts reports whether an unfinished episode begins again when a run is resumed: the kind has a part.Environment, or
// is a part.Restarter that says so, or the other kind whose episodes it plays.
func (k Kind) Restarts() bool {
	return k.external || k.restarts || k.nested != nil && k.nested.Restarts()
}

// Actor connects to the outside for the run with this id, as in part.Environment. The kind must be External.
func (k Kind) Actor(p Params, run string) (Actor, error) { return k.typeless().actor(p, run) }

// Local reports whether everything that params need is within this process.
func (k Kind) Local(p Params) bool { return k.typeless().local(p) }

// Probe asks every server that params name.
func (k Kind) Probe(ctx context.Context, p Params) []Presence { return k.typeless().probe(ctx, p) }

// Identity returns params without those of part.Environment.Outside: two plans with equal identities are the same.
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

// untyped is a definition without the type of its params. The methods are those of Kind, and return nothing for a part that it lacks.
type untyped interface {
	parts() []reflect.Type
	defaults() Params
	seats(p Params) ([]string, error)
	world(p Params, lineup Lineup) (World, error)
	load(p Params, files Files) (advice []string, err error)

	plan(p Params, cell Spec, seed uint64, nested *Kind) (Stages, error)
	forecast(p Params, cell Spec, seed uint64, nested *Kind) ([]Part, error)
	nested(p Params) *NestedPlan
	otherModels(p Params) (models, seats []string)
	uniform(p Params) bool
	taskName(p Params) Task

	models(p Params) map[string]string
	measures(p Params) []Measure
	status(p Params) Status

	starts(p Params) Starts
	actor(p Params, run string) (Actor, error)
	local(p Params) bool
	probe(ctx context.Context, p Params) []Presence
	code(p Params) []CodeName
}

// typed implements untyped.
type typed[P any] struct {
	Definition[P]
	rules *fieldtag.Rules
}

// of returns params as the definition's type, if their tags allow all values.
func (t typed[P]) of(p Params) (*P, error) {
	if p.err != nil {
		return nil, p.err
	}
	own, ok := p.pointer.(*P)
	if !ok || own == nil {
		return nil, fmt.Errorf("%s: params are %T, want %T", t.About().Name, p.pointer, own)
	}
	var c ParamErrors
	for _, f := range t.rules.Check(own) {
		c.Kind = t.About().Name
		c.Addf(f.Field(), "%s", f.Problem)
	}
	return own, c.Err()
}

// try calls a part, if the definition has it, with params of the definition's type. It turns a panic into an error that names the part.
func try[P, I, T any](t typed[P], p Params, name string, call func(part I, own *P) (T, error)) (out T, err error) {
	part, ok := t.Definition.(I)
	if !ok {
		return out, nil
	}
	own, err := t.of(p)
	if err != nil {
		return out, err
	}
	defer t.caught(name, &err)
	return call(part, own)
}

// give calls a part that cannot fail, if the definition has it. It returns nothing for params of another kind.
func give[P, I, T any](t typed[P], p Params, call func(part I, own *P) T) (none T) {
	part, ok := t.Definition.(I)
	own, err := t.of(p)
	if !ok || err != nil {
		return none
	}
	return call(part, own)
}

// caught turns a panic into an error. Defer it.
func (t typed[P]) caught(part string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("kind %s: %s panicked: %v", t.About().Name, part, v)
	}
}

func (typed[P]) parts() []reflect.Type { return partsOf[P]() }

func (t typed[P]) defaults() (p Params) {
	p.pointer = (*P)(nil)
	defer t.caught("Defaults", &p.err)
	p.pointer = t.Defaults()
	return p
}

// seats also tries Measures and Models, which return no error: params that make them panic are refused.
func (t typed[P]) seats(p Params) ([]string, error) {
	seats, err := try(t, p, "Seats", Definition[P].Seats)
	if err != nil {
		return nil, err
	}
	if _, err = t.measured(p); err == nil {
		_, err = try(t, p, "Models", func(d modelChooser[P], own *P) (any, error) { return d.Models(own), nil })
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
	return try(t, p, "Load", func(d loader[P], own *P) ([]string, error) { return d.Load(own, files) })
}

func (t typed[P]) measures(p Params) []Measure {
	declared, _ := t.measured(p) // it does not fail for params of a plan: seats has tried it
	return declared
}

func (t typed[P]) measured(p Params) ([]Measure, error) {
	return try(t, p, "Measures", func(d Measurer[P], own *P) ([]Measure, error) { return d.Measures(own), nil })
}

func (t typed[P]) otherModels(p Params) (models, seats []string) {
	give(t, p, func(d modelTrier[P], own *P) any { models, seats = d.OtherModels(own); return nil })
	return models, seats
}

func (t typed[P]) plan(p Params, cell Spec, seed uint64, nested *Kind) (Stages, error) {
	if _, nests := t.Definition.(nester[P]); nests && nested != nil {
		return try(t, p, "PlanNested", func(d nester[P], own *P) (Stages, error) { return d.PlanNested(own, *nested, cell, seed) })
	}
	if _, plans := t.Definition.(planner[P]); !plans {
		return List(cell), nil
	}
	return try(t, p, "Plan", func(d planner[P], own *P) (Stages, error) { return d.Plan(own, cell, seed) })
}

func (t typed[P]) forecast(p Params, cell Spec, seed uint64, nested *Kind) ([]Part, error) {
	if _, nests := t.Definition.(nester[P]); nests && nested != nil {
		return try(t, p, "ForecastNested", func(d nester[P], own *P) ([]Part, error) { return d.ForecastNested(own, *nested, cell, seed) })
	}
	return try(t, p, "Forecast", func(d planner[P], own *P) ([]Part, error) { return d.Forecast(own, cell, seed) })
}

func (t typed[P]) actor(p Params, run string) (Actor, error) {
	if _, external := t.Definition.(environment[P]); !external {
		return nil, fmt.Errorf("world: the kind %q has no environment", t.About().Name)
	}
	return try(t, p, "Actor", func(d environment[P], own *P) (Actor, error) { return d.Actor(own, run) })
}

func (t typed[P]) local(p Params) bool {
	if _, probes := t.Definition.(prober[P]); probes {
		return give(t, p, prober[P].Local)
	}
	_, external := t.Definition.(environment[P])
	return !external
}

func (t typed[P]) probe(ctx context.Context, p Params) []Presence {
	return give(t, p, func(d prober[P], own *P) []Presence { return d.Probe(ctx, own) })
}

func (t typed[P]) models(p Params) map[string]string { return give(t, p, modelChooser[P].Models) }
func (t typed[P]) nested(p Params) *NestedPlan       { return give(t, p, nester[P].Nested) }
func (t typed[P]) uniform(p Params) bool             { return give(t, p, uniformPlanner[P].Uniform) }
func (t typed[P]) taskName(p Params) Task            { return give(t, p, taskNamer[P].TaskName) }
func (t typed[P]) status(p Params) Status            { return give(t, p, statusMaker[P].Status) }
func (t typed[P]) starts(p Params) Starts            { return give(t, p, starter[P].Starts) }
func (t typed[P]) code(p Params) []CodeName          { return give(t, p, codeUser[P].Code) }

// The parts that take params or are needed to make a kind. Package part has them for authors, with what each is for. A test of it checks that
// both are the same.
type (
	botMaker      interface{ Bots() map[string]Bot }
	loader[P any] interface {
		Load(params *P, files Files) (advice []string, err error)
	}
	modelChooser[P any] interface {
		Models(params *P) map[string]string
	}
	planner[P any] interface {
		Plan(params *P, cell Spec, seed uint64) (Stages, error)
		Forecast(params *P, cell Spec, seed uint64) ([]Part, error)
	}
	nester[P any] interface {
		Nested(params *P) *NestedPlan
		PlanNested(params *P, nested Kind, cell Spec, seed uint64) (Stages, error)
		ForecastNested(params *P, nested Kind, cell Spec, seed uint64) ([]Part, error)
	}
	modelTrier[P any] interface {
		OtherModels(params *P) (models, seats []string)
	}
	uniformPlanner[P any] interface{ Uniform(params *P) bool }
	taskNamer[P any]      interface{ TaskName(params *P) Task }
	statusMaker[P any]    interface{ Status(params *P) Status }
	environment[P any]    interface {
		Actor(params *P, run string) (Actor, error)
		Outside() []string
	}
	restarter      interface{ Restarts() bool }
	starter[P any] interface{ Starts(params *P) Starts }
	prober[P any]  interface {
		Local(params *P) bool
		Probe(ctx context.Context, params *P) []Presence
	}
	codeUser[P any] interface {
		Code(params *P) []CodeName
		WithCode(codes Codes) Kind
	}
	dynamic interface{ Fields() any } // of params
)

// partsOf lists the parts of a kind that take params or are needed to make it.
func partsOf[P any]() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[Definition[P]](), reflect.TypeFor[Measurer[P]](), reflect.TypeFor[botMaker](), reflect.TypeFor[loader[P]](), reflect.TypeFor[modelChooser[P]](),
		reflect.TypeFor[planner[P]](), reflect.TypeFor[nester[P]](), reflect.TypeFor[modelTrier[P]](), reflect.TypeFor[uniformPlanner[P]](), reflect.TypeFor[taskNamer[P]](), reflect.TypeFor[statusMaker[P]](),
		reflect.TypeFor[environment[P]](), reflect.TypeFor[starter[P]](), reflect.TypeFor[prober[P]](), reflect.TypeFor[restarter](), reflect.TypeFor[codeUser[P]](),
	}
}

// CheckMethods returns an error unless every exported method of the definition belongs to a part of a kind, with its signature: one of this
// package, or one of more. The compiler cannot find that. part.Check has all.
func (k Kind) CheckMethods(more ...reflect.Type) error {
	if k.definition == nil {
		return nil
	}
	parts := slices.Concat(k.params.parts(), more)
	own := reflect.TypeOf(k.definition)
	if own.Kind() != reflect.Pointer {
		for m := range reflect.PointerTo(own).Methods() {
			if !hasMethod(own, m.Name) {
				return fmt.Errorf("the method %s has a pointer receiver: give Define a pointer", m.Name)
			}
		}
	}
	for m := range own.Methods() {
		name := m.Name
		at := slices.IndexFunc(parts, func(part reflect.Type) bool { return hasMethod(part, name) })
		if at < 0 {
			var all []string
			for _, part := range parts {
				for m := range part.Methods() {
					all = append(all, m.Name)
				}
			}
			return fmt.Errorf("no part of a kind has a method %s: %s", name, meantOr(name, all))
		}
		if !own.Implements(parts[at]) {
			return fmt.Errorf("the method %s does not fit %s, which has %s", name, partName(parts[at]), signatures(parts[at]))
		}
	}
	return nil
}

// partName returns the name under which authors know a part: that of package part, where it is not exported here.
func partName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.String(), "[")
	own, here := strings.CutPrefix(name, "world.")
	if !here || strings.ToUpper(own[:1]) == own[:1] {
		return name
	}
	return "part." + strings.ToUpper(own[:1]) + own[1:]
}

func hasMethod(t reflect.Type, name string) bool {
	_, has := t.MethodByName(name)
	return has
}

// meantOr suggests a similar method, or what to do with one of another purpose.
func meantOr(name string, all []string) string {
	if near := text.Nearest(name, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "make it a function, or do not export it"
}

// signatures lists the methods of an interface.
func signatures(part reflect.Type) string {
	var all []string
	for m := range part.Methods() {
		all = append(all, m.Name+strings.TrimPrefix(m.Type.String(), "func"))
	}
	return strings.Join(all, " and ")
}

var (
	kindName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)
	codeName = regexp.MustCompile(`^[^:\x00-\x1f]+:[A-Za-z_][A-Za-z0-9_]*$`) // a file and a class in it: auction.py:Auction
)

// Check checks the name and the version.
func (a About) Check() error {
	switch {
	case !kindName.MatchString(a.Name) && !codeName.MatchString(a.Name):
		return fmt.Errorf("the name %q: want a lower-case letter, then lower-case letters and digits, with single - and _ between them", a.Name)
	case a.Version < 1:
		return fmt.Errorf("version %d: want 1 or more", a.Version)
	}
	return nil
}

// checkParams checks that plan files and run files can hold params: a struct of exported fields, each with its
// own JSON name. Other fields would be lost when the run is resumed.
func checkParams(params reflect.Type) error {
	if readsItself(params) {
		return nil
	}
	if params.Kind() != reflect.Struct {
		return fmt.Errorf("its params are %v: want a struct", params)
	}
	return checkFields(params, "params", map[reflect.Type]bool{})
}

// checkFields checks the fields of a struct and of the structs within it. path names the struct in errors.
func checkFields(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	by := map[string]string{} // JSON names to fields
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || len(f.Index) > 1 && shadowed(t, f) || name == "-" {
			continue
		}
		switch {
		case !f.IsExported():
			return fmt.Errorf("%s: the field %s is not exported: a run file would not hold it; export it, or keep it elsewhere", path, f.Name)
		case name == "":
			return fmt.Errorf("%s: the field %s has no json tag: add one such as `json:\"%s\"`", path, f.Name, strings.ToLower(f.Name))
		case by[name] != "":
			return fmt.Errorf("%s: the fields %s and %s have the same json tag %q: rename one", path, by[name], f.Name, name)
		}
		by[name] = f.Name
		if inner := elem(f.Type); inner.Kind() == reflect.Struct && !readsItself(inner) {
			if err := checkFields(inner, path+"."+name, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// shadowed reports whether a field of an embedded struct is hidden, or is within a struct with a JSON name,
// which is checked under that name.
func shadowed(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		if name, _, _ := strings.Cut(t.FieldByIndex(f.Index[:i]).Tag.Get("json"), ","); name != "" {
			return true
		}
	}
	seen, ok := t.FieldByName(f.Name)
	return !ok || len(seen.Index) != len(f.Index)
}

// readsItself reports whether a type has its own method to decode JSON.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// elem returns the type of the values in lists, maps and pointers.
func elem(t reflect.Type) reflect.Type {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return t
		}
	}
}
