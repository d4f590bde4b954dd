package parley

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/trust"
	"parley/internal/run/planfile"
	"parley/llm"
	"parley/world"
)

// Plan is a plan made by For: the common keys of a plan file. Run.Set sets the others.
type Plan struct {
	kind   world.Kind
	params map[string]json.RawMessage // those that differ from the defaults
	err    error

	// Agents are the players. Each needs a unique name, and a model or a bot.
	Agents []world.Agent
	// Lineup maps each seat to the name of an agent.
	Lineup map[string]string
	// Episodes is how many to play. Default: 1.
	Episodes int
	// Seed decides everything random. Default: 1.
	Seed uint64
	// Budget is the most that the run may cost in all, earlier processes of the same run included. Default: no limit.
	Budget llm.Money
}

// For returns a plan of a kind, with params of the kind's own type: set changes those that are not to have their defaults. It may be nil.
//
//	plan := parley.For(secrets.Kind(), func(p *secrets.Params) { p.Messages = 2 })
//	plan.Agents = []world.Agent{{Name: "small", Model: "sim/small"}}
//
// Play returns an error if P is another type than that of the kind's params.
func For[P any](kind world.Kind, set func(params *P)) Plan {
	p := Plan{kind: kind}
	before, known := kind.Defaults().Pointer().(*P)
	after, _ := kind.Defaults().Pointer().(*P)
	if known && before == nil {
		return p // its defaults cannot be made: Play says why
	}
	if !known {
		p.err = fmt.Errorf("plan: For: the kind %s has params of type %T, not %T", kind.Name, kind.Defaults().Pointer(), before)
		return p
	}
	if set != nil {
		set(after)
	}
	if p.params, p.err = changed(reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()); p.err != nil {
		p.err = fmt.Errorf("plan: params of %s: %w", kind.Name, p.err)
	}
	return p
}

// changed returns the fields of a struct that differ, as JSON. A value that writes itself as JSON is compared by its members.
func changed(before, after reflect.Value) (map[string]json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	if _, own := reflect.TypeAssert[json.Marshaler](after.Addr()); own || after.Kind() != reflect.Struct {
		old, err := members(before.Interface())
		if err != nil {
			return nil, err
		}
		now, err := members(after.Interface())
		maps.DeleteFunc(now, func(name string, value json.RawMessage) bool { return bytes.Equal(old[name], value) })
		return now, err
	}
	for _, f := range reflect.VisibleFields(after.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		value := after.FieldByIndex(f.Index).Interface()
		if reflect.DeepEqual(before.FieldByIndex(f.Index).Interface(), value) {
			continue
		}
		var err error
		if params[name], err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return params, nil
}

// file writes p as a plan file in JSON.
func (p Plan) file() (json.RawMessage, error) {
	if p.err != nil {
		return nil, p.err
	}
	if p.kind.Name == "" {
		return nil, errors.New("plan: it has no kind: begin it with For")
	}
	doc := map[string]any{"kind": p.kind.Name}
	agents := map[string]any{}
	for i, a := range p.Agents {
		if a.Name == "" {
			return nil, fmt.Errorf("plan: Agents[%d] has no Name: give it one that Lineup can name", i)
		}
		if _, twice := agents[a.Name]; twice {
			return nil, fmt.Errorf("plan: two agents are called %q: give each a unique name", a.Name)
		}
		fields, err := members(a)
		if err != nil {
			return nil, fmt.Errorf("plan: agent %q: %w", a.Name, err)
		}
		delete(fields, "name")
		if a.Deadline != 0 {
			fields["deadline"] = json.RawMessage(strconv.Quote(a.Deadline.String()))
		}
		agents[a.Name] = fields
	}
	if len(agents) > 0 {
		doc["agents"] = agents
	}
	if len(p.params) > 0 {
		doc["params"] = p.params
	}
	if len(p.Lineup) > 0 {
		doc["lineup"] = p.Lineup
	}
	for key, value := range map[string]any{"episodes": p.Episodes, "seed": p.Seed, "budget": p.Budget} {
		if !reflect.ValueOf(value).IsZero() {
			doc[key] = value
		}
	}
	return json.Marshal(doc)
}

// members marshals v and returns the members of the JSON object.
func members(v any) (m map[string]json.RawMessage, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(b, &m) != nil {
		return nil, fmt.Errorf("a value of type %T is not a JSON object: use a map or a struct", v)
	}
	return m, nil
}

// Provider answers for the models of one name: lab for lab/anything. If the name is a preset, such as openai, the preset
// supplies what you do not set here. A plan file and Run.Set have more keys.
type Provider struct {
	// Model answers instead of a server: your own client or, with llm.Func, a function. It is called from many
	// goroutines at once, and must return soon after its context is done. The answer to a Schema is JSON, as Text. With
	// a budget, a response without Usage is charged the most that it can cost. A cache and a run file identify a model
	// by its name: give another model another name. Default: a server answers.
	Model llm.Model

	// Dialect is the server's wire format: openai, responses or anthropic. Default: openai, or the preset's.
	Dialect string `key:"dialect"`
	// BaseURL is the server's address. Most end in /v1.
	BaseURL string `key:"base_url"`
	// KeyEnv names the environment variable that holds the key: see Trust. Default: no key.
	KeyEnv string `key:"key_env"`

	// RPM and TPM are the requests and tokens that the account allows per minute, and Concurrency is the most calls in
	// flight. Default: learned from the server.
	RPM         float64 `key:"limits.rpm"`
	TPM         float64 `key:"limits.tpm"`
	Concurrency int     `key:"limits.concurrency"`
}

// fieldOf returns the field of Provider for a key of a plan file's provider, or the key if it has none.
func fieldOf(key string) string {
	for f := range reflect.TypeFor[Provider]().Fields() {
		if f.Tag.Get("key") == key {
			return f.Name
		}
	}
	return key
}

// keys returns p with the keys of a plan file's provider.
func (p Provider) keys(name string) (map[string]any, error) {
	keys := map[string]any{}
	for f, value := range reflect.ValueOf(p).Fields() {
		if key := f.Tag.Get("key"); key != "" && !value.IsZero() {
			keys[key] = value.Interface()
		}
	}
	_, preset := provider.Lookup(name)
	switch {
	case p.Model != nil && (p.Dialect != "" || p.BaseURL != "" || p.KeyEnv != ""):
		return nil, fmt.Errorf("parley: provider %q: its Model answers, so Dialect, BaseURL and KeyEnv are not used: leave them out", name)
	case p.Model != nil:
		keys["dialect"] = "go"
	case p.Dialect == "" && !preset:
		keys["dialect"] = "openai"
	}
	return keys, nil
}

// modelsOf returns the models in Go of providers, by name.
func modelsOf(providers map[string]Provider) map[string]llm.Model {
	models := map[string]llm.Model{}
	for name, p := range providers {
		if p.Model != nil {
			models[name] = p.Model
		}
	}
	return models
}

// setsOf writes providers as overrides of a plan.
func setsOf(providers map[string]Provider) ([]string, error) {
	var sets []string
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		if strings.ContainsAny(name, "\"/ \t\r\n") || name == "" {
			return nil, fmt.Errorf("parley: provider %q: its name must be a word without slash, quote or space, such as lab", name)
		}
		keys, err := providers[name].keys(name)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			value, err := json.Marshal(keys[key])
			if err != nil {
				return nil, fmt.Errorf("parley: provider %q: %s: %w", name, fieldOf(key), err)
			}
			sets = append(sets, `providers."`+name+`".`+key+"="+string(value))
		}
	}
	return sets, nil
}

// gateOf returns the gate that decides which keys go where. allowed holds VAR=HOST pairs.
func gateOf(allowed []string) (*trust.Gate, error) {
	gate := &trust.Gate{Env: os.LookupEnv, Command: func(values []string) string {
		return "add " + strings.Trim(fmt.Sprintf("%q", values), "[]") + " to Trust"
	}}
	for _, one := range allowed {
		grant, err := trust.ParseFlag(one)
		if err != nil {
			return nil, fmt.Errorf("parley: Trust: %w", err)
		}
		gate.Give(grant)
	}
	return gate, nil
}

// plan resolves the plan of a run. It is nil if the run file's recorded plan is to be played.
func (r Run) plan(ctx context.Context, sets []string) (*planfile.Plan, error) {
	reach := planfile.Reach{Folders: r.AllowFiles}
	built := !reflect.ValueOf(r.Plan).IsZero()
	switch {
	case r.PlanFile != "" && built:
		return nil, errors.New("Plan and PlanFile are both set: leave one out, and use Set to change a plan file")
	case r.PlanFile != "":
		return planfile.Load(ctx, r.PlanFile, r.Kinds, sets, reach)
	case built:
		doc, err := r.Plan.file()
		if err != nil {
			return nil, err
		}
		return planfile.Written(ctx, doc, r.Kinds, sets, reach)
	case r.File == "" && r.Journal == nil:
		return nil, errors.New("nothing to play: set PlanFile or Plan, or File to resume a run")
	}
	return nil, nil
}
