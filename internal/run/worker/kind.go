package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/internal/run/results"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// definition makes the definition of the kind that the first worker describes.
func (p *Pool) definition() (*definition, error) {
	described := p.first.description
	d := &definition{pool: p, checked: map[string]*answer{}}
	d.about = world.About{Name: p.Name, Version: described.Version, Doc: described.Doc}
	if err := d.about.Check(); err != nil {
		return nil, err
	}
	var err error
	if d.params, err = newParams(described.Params); err != nil {
		return nil, err
	}
	switch described.Durable {
	case "turn":
	case durableEpisode:
		d.restarts = true
	default:
		return nil, fmt.Errorf("durable is %q: want turn or episode", described.Durable)
	}
	return d, nil
}

// kind makes the kind that the first worker describes.
func (p *Pool) kind() (world.Kind, error) {
	d, err := p.definition()
	if err != nil {
		return world.Kind{}, err
	}
	if p.first.description.StandIn {
		return world.Define(&simulated{d, standIn{p}}), nil
	}
	return world.Define(d), nil
}

// durableEpisode means that an unfinished episode begins again, since it cannot be played a second time.
const durableEpisode = "episode"

// definition is a kind whose worlds are in workers.
type definition struct {
	pool     *Pool
	about    world.About
	params   *shape
	restarts bool
	played   func(episode int) (json.RawMessage, []string, error) // of a scorer: an episode that is scored, and its seats

	mu      sync.Mutex
	checked map[string]*answer // what workers say about params, by their JSON
}

// maxChecked limits how many params are remembered.
const maxChecked = 10_000

// About describes the kind.
func (d *definition) About() world.About { return d.about }

// Defaults returns params as the class declares them.
func (d *definition) Defaults() *classParams { return d.params.Defaults() }

// Restarts reports whether the world says that it cannot be played again.
func (d *definition) Restarts() bool { return d.restarts }

// Seats asks a worker to check params.
func (d *definition) Seats(p *classParams) ([]string, error) {
	a, err := d.check(p)
	if err != nil {
		return nil, err
	}
	return a.Seats, nil
}

// check asks a worker about params.
func (d *definition) check(p *classParams) (*answer, error) {
	raw, _, err := d.own(p)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	a, known := d.checked[string(raw)]
	d.mu.Unlock()
	if !known {
		if a, err = d.pool.ask(context.Background(), &request{Op: "seats", Params: raw}); err != nil {
			return nil, fmt.Errorf("%s: %w", d.about.Name, err)
		}
		d.mu.Lock()
		if len(d.checked) < maxChecked {
			d.checked[string(raw)] = a
		}
		d.mu.Unlock()
	}
	switch err := paramError(a.Error, d.about.Name); {
	case err != nil:
		return nil, err
	case len(a.Seats) == 0 && d.played == nil:
		return nil, errors.New("the world has no seats: its method seats returns at least one")
	}
	return a, nil
}

// Measures lists the scores that the class declares.
func (d *definition) Measures(p *classParams) []world.Measure {
	a, err := d.check(p)
	if err != nil {
		return nil // Seats reports it
	}
	return a.Measures
}

// World makes the world of one episode.
func (d *definition) World(p *classParams, lineup world.Lineup) (world.World, error) {
	a, err := d.check(p)
	if err != nil {
		return nil, err
	}
	raw, scored, err := d.own(p)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(lineup))
	for seat, agent := range lineup {
		names[seat] = agent.Name
	}
	e := &episode{
		seats: a.Seats, params: raw, lineup: names, talks: map[int][]llm.Message{},
		exchange: exchange{pool: d.pool, key: d.pool.name("e")},
	}
	if d.played != nil {
		e.played = func() (json.RawMessage, []string, error) { return d.played(scored) }
	}
	return e, nil
}

// own returns the params of the class as JSON and, for a scorer, the episode that is scored.
func (d *definition) own(p *classParams) (raw json.RawMessage, scored int, err error) {
	if d.played == nil {
		raw, err = json.Marshal(p)
		return raw, 0, err
	}
	own, s, err := d.split(p)
	if err == nil {
		raw, err = json.Marshal(own)
	}
	return raw, s.Episode, err
}

// simulated is a definition whose class answers for the simulated provider.
type simulated struct {
	*definition
	standIn
}

// standIn asks a class to answer for the simulated provider, if the class can.
type standIn struct{ in *Pool }

// StandIn asks for a text.
func (s standIn) StandIn(model string, req *llm.Request, seed uint64) (string, bool) {
	a := s.answer(model, req, seed)
	if a.Text == nil {
		return "", false
	}
	return *a.Text, true
}

// StandInCalls asks for calls of tools.
func (s standIn) StandInCalls(model string, req *llm.Request, seed uint64) ([]llm.ToolCall, bool) {
	a := s.answer(model, req, seed)
	return a.Calls, len(a.Calls) > 0
}

// answer returns the answer to a request, which is empty if there is none.
func (s standIn) answer(model string, req *llm.Request, seed uint64) *answer {
	if !s.in.first.description.StandIn {
		return &answer{}
	}
	a, err := s.in.ask(context.Background(), &request{Op: "answer", Model: model, Request: req, Seed: strconv.FormatUint(seed, 10)})
	if err != nil || a.Error != nil {
		return &answer{}
	}
	return a
}

// classParams are the params of a world in a worker. Its fields are known when the worker has described them.
type classParams struct{ fields any } // a pointer to a struct that package reflect made

var _ part.Dynamic = (*classParams)(nil)

// Fields returns the pointer to the struct.
func (p *classParams) Fields() any { return p.fields }

// UnmarshalJSON decodes params over those that are set.
func (p *classParams) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, p.fields) }

// MarshalJSON encodes them.
func (p *classParams) MarshalJSON() ([]byte, error) { return json.Marshal(p.fields) }

// paramField describes a param.
type paramField struct {
	Name    string          `json:"name"`
	Type    valueType       `json:"type"`
	Default json.RawMessage `json:"default"` // nil: the plan must set it
	Doc     string          `json:"doc"`
}

// valueType is a type of the protocol: a name, or an object with one field.
type valueType struct {
	name     string
	list     *valueType
	mapOf    *valueType
	optional *valueType
	oneOf    []string
	fields   []paramField
}

// UnmarshalJSON decodes a type.
func (k *valueType) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &k.name) == nil {
		return nil
	}
	var composed struct {
		List     *valueType   `json:"list"`
		Map      *valueType   `json:"map"`
		Optional *valueType   `json:"optional"`
		OneOf    []string     `json:"one_of"`
		Fields   []paramField `json:"fields"`
	}
	if err := json.Unmarshal(b, &composed); err != nil {
		return err
	}
	k.list, k.mapOf, k.optional, k.oneOf, k.fields = composed.List, composed.Map, composed.Optional, composed.OneOf, composed.Fields
	return nil
}

// maxNested limits how deep types are nested.
const maxNested = 20

// goType returns the Go type that holds values of a type.
func (k *valueType) goType(depth int) (reflect.Type, error) {
	if depth > maxNested {
		return nil, fmt.Errorf("its type is nested more than %d deep", maxNested)
	}
	if of := cmp.Or(k.list, k.mapOf, k.optional); of != nil {
		elem, err := of.goType(depth + 1)
		switch {
		case err != nil:
			return nil, err
		case of == k.list:
			return reflect.SliceOf(elem), nil
		case of == k.mapOf:
			return reflect.MapOf(reflect.TypeFor[string](), elem), nil
		default:
			return reflect.PointerTo(elem), nil
		}
	}
	switch {
	case k.fields != nil:
		return structOf(k.fields, depth+1)
	case k.oneOf != nil:
		return reflect.TypeFor[string](), nil
	}
	switch k.name {
	case "int":
		return reflect.TypeFor[int](), nil
	case "float":
		return reflect.TypeFor[float64](), nil
	case "str":
		return reflect.TypeFor[string](), nil
	case "bool":
		return reflect.TypeFor[bool](), nil
	case "any":
		return reflect.TypeFor[any](), nil
	default:
		return nil, fmt.Errorf("has the unknown type %q", k.name)
	}
}

// structOf returns a struct with these fields.
func structOf(fields []paramField, depth int) (reflect.Type, error) {
	made := make([]reflect.StructField, 0, len(fields))
	seen := map[string]bool{}
	for i, f := range fields {
		t, err := f.Type.goType(depth)
		if err != nil {
			return nil, fmt.Errorf("param %s %w", f.Name, err)
		}
		if f.Name == "" || strings.ContainsAny(f.Name, ",\"`\\") || seen[f.Name] {
			return nil, fmt.Errorf("param %q: want a name that is not used twice", f.Name)
		}
		seen[f.Name] = true
		name := f.Name
		if f.Default == nil && t.Kind() != reflect.Pointer {
			t, name = reflect.PointerTo(t), name+",omitempty" // nil means that it is not set
		}
		tag := fmt.Sprintf(`json:%q doc:%s`, name, strconv.Quote(f.Doc))
		if one := f.Type.oneOf; one != nil && !slices.ContainsFunc(one, func(s string) bool { return strings.Contains(s, ",") }) {
			tag += fmt.Sprintf(` oneof:%q`, strings.Join(one, ","))
		}
		made = append(made, reflect.StructField{Name: "P" + strconv.Itoa(i), Type: t, Tag: reflect.StructTag(tag)})
	}
	return reflect.StructOf(made), nil
}

// shape is the fields of params.
type shape struct {
	fields []paramField
	made   reflect.Type
}

// newParams returns the shape of fields.
func newParams(fields []paramField) (*shape, error) {
	made, err := structOf(fields, 0)
	if err != nil {
		return nil, err
	}
	s := &shape{fields, made}
	_, err = s.defaults()
	return s, err
}

// Defaults returns new params with their defaults.
func (s *shape) Defaults() *classParams {
	p, err := s.defaults()
	if err != nil {
		panic(err) // they were made once before
	}
	return p
}

func (s *shape) defaults() (*classParams, error) {
	v := reflect.New(s.made)
	for i, f := range s.fields {
		if f.Default == nil {
			continue
		}
		if err := json.Unmarshal(f.Default, v.Elem().Field(i).Addr().Interface()); err != nil {
			return nil, fmt.Errorf("param %s: its default %s is not of its type: %w", f.Name, f.Default, err)
		}
	}
	return &classParams{fields: v.Interface()}, nil
}

// scoredField describes the param of a scorer that says what is scored.
const scoredField = `{"name":"scored","type":{"fields":[{"name":"run","type":"str","default":""},{"name":"episodes","type":"str","default":""},` +
	`{"name":"measures","type":{"list":"any"},"default":[]},{"name":"episode","type":"int","default":0},{"name":"deal","type":"any","default":{}},` +
	`{"name":"play","type":"str","default":""},{"name":"chance","type":"bool","default":false}]},"default":{},"doc":"What is scored."}`

// OpenScorer starts a worker with the class of a scorer and returns the kind whose episodes score episodes of another run.
// played returns an episode of that run as JSON, and its seats. of makes specs for its episodes.
func OpenScorer(c Config, played func(episode int) (json.RawMessage, []string, error), of results.Scorable) (*Pool, world.Kind, error) {
	p, err := open(c, roleScorer)
	if err != nil {
		return nil, world.Kind{}, err
	}
	var field paramField
	if err = json.Unmarshal([]byte(scoredField), &field); err == nil {
		p.first.description.Params = append(p.first.description.Params, field)
	}
	d, err2 := p.definition()
	if err = errors.Join(err, err2); err != nil {
		return nil, world.Kind{}, errors.Join(fmt.Errorf("%s: %w", c.Name, err), p.Close())
	}
	d.played = played
	return p, world.Define(&scorer{d, standIn{p}, of}), nil
}

// scorer is the kind of a scorer.
type scorer struct {
	*definition
	standIn
	of results.Scorable
}

// Models returns the models of the judges that the class names.
func (s *scorer) Models(*classParams) map[string]string {
	return maps.Clone(s.pool.first.description.Judges)
}

// Plan makes an episode for each one that is scored.
func (s *scorer) Plan(p *classParams, cell world.Spec, _ uint64) (world.Stages, error) {
	own, what, err := s.split(p)
	if err != nil {
		return nil, err
	}
	numbers, err := what.Numbers()
	if err != nil {
		return nil, err
	}
	specs := make([]world.Spec, len(numbers))
	for i, n := range numbers {
		specs[i], err = s.of(cell, what, n, func(one results.Scored) (json.RawMessage, error) {
			raw, err := json.Marshal(one)
			if err != nil {
				return nil, err
			}
			own[results.ScoredParam] = raw
			return json.Marshal(own)
		})
		if err != nil {
			return nil, err
		}
	}
	return world.List(specs...), nil
}

// Forecast returns nothing: the plan is its first stage.
func (*scorer) Forecast(*classParams, world.Spec, uint64) ([]world.Part, error) { return nil, nil }

// split returns the scorer's own params, and what is scored.
func (*definition) split(p *classParams) (own map[string]json.RawMessage, s results.Scored, err error) {
	raw, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(raw, &own)
	}
	if err == nil {
		err = json.Unmarshal(own[results.ScoredParam], &s)
	}
	delete(own, results.ScoredParam)
	return own, s, err
}
