// Package config reads plan files: what to play, who plays, with which accounts and
// under which limits.
//
// A plan file is one YAML document, read strictly: a key that is not known, a value of
// the wrong type, a seat nobody sits in are errors, and each names its file, line,
// column and key, says what is allowed, and shows the line. Everything that can be found
// wrong is reported at once. What a plan may hold stands in one table (keys.go) that
// also makes the JSON Schema and the reference in docs/reference/plan-file.md.
//
// What it promises: nothing in a file makes it panic, recurse or grow without bound; no
// error shows what may be a secret; a Plan holds no secret, only the names of the
// environment variables that do; Plan.JSON is itself a valid plan file, from which
// FromJSON makes an equal Plan.
//
// It is not for starting anything: it reads the file it is given and, for a kind that asks
// for them, those that its params name (files.go), and no environment variable.
package config

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"parley/internal/provider"
	"parley/llm"
	"parley/world"
)

// maxEpisodes is the most that a run can have.
const maxEpisodes = world.MaxEpisodes

// MaxDistinct bounds what a kind makes of a plan itself: specs that differ in more than their deal,
// and plans of its own, are held in memory.
const MaxDistinct = 1_000_000

// Plan is a plan file, resolved: nothing is left to a default but what only a run can
// find out, such as what a provider bears.
type Plan struct {
	Kind world.Kind
	// Seed is what all chance depends on. Default: 1.
	Seed uint64
	// Episodes is how many to play of the lineup. It is 0 where Matrix or Until is set.
	Episodes int
	// Matrix and Until are what the plan key says. Default: nil.
	Matrix *Matrix
	Until  *Until
	// Agents are those that have a seat, sorted by name.
	Agents []world.Agent
	// Lineup is seat to the name of an agent. A Matrix fills the seats it leaves out.
	Lineup map[string]string
	// Seats are the kind's, in its order.
	Seats []string
	// Outside are the files outside the plan's folder that the user allowed it to name, without
	// symbolic links. It is not recorded.
	Outside []string
	// Advice is what to write differently in the plan and in the files that params name, though
	// it is understood. It is not recorded.
	Advice []string
	// Params are the kind's, with all that the file says; ParamsJSON is the same with nothing
	// left to a default.
	Params     world.Params
	ParamsJSON json.RawMessage
	// Providers are those the file lists and the presets that its models name, sorted by name.
	Providers []provider.Provider
	// Places says where the providers that the file lists say which key they send where, as
	// plan.yaml:5:12: providers.lab.key_env. It is not recorded.
	Places map[string]string
	// Budget is the most the run may cost. 0: no budget.
	Budget llm.Money
	// EpisodeBudget is the most an episode may cost. 0: no budget.
	EpisodeBudget llm.Money
	// Cache is the path of the cache. Empty: off.
	Cache string
	// Pace is free or wave. Default: free.
	Pace string
	// Batch is how waves go over batch APIs.
	Batch Batch
	// Unreachable is how long a provider that cannot be reached is waited for. 0: not at all.
	Unreachable time.Duration
	// Concurrency is the most calls in flight. 0: what the providers bear.
	Concurrency int
	// Live is the most episodes begun and not ended. 0: the engine's default.
	Live int
	// Prices is the path of a file of prices. Empty: the built-in ones.
	Prices string
	// Out is the path of the run file. Empty: for the caller to choose.
	Out string
}

// DefaultUnreachable is how long a run waits for a provider that cannot be reached.
const DefaultUnreachable = 10 * time.Minute

// Batch is how waves go over the providers' batch APIs. Zero means the default of package
// batch/batcher.
type Batch struct {
	Lane     string        `json:"lane,omitempty"` // auto, batch or live. Default: auto
	Min      int           `json:"min,omitempty"`
	Deadline time.Duration `json:"deadline,omitempty"`
	Poll     time.Duration `json:"poll,omitempty"`
	Cancel   bool          `json:"cancel,omitempty"`
}

// Load reads the plan file at path. kinds are those that can be played, and sets are
// overrides written a.b=c, with c in YAML; a.b= takes the key out. The files that a plan names,
// or that these name, lie in its folder or within reach: others are not opened. An error is of type
// Errors, or the cause of the context where that has ended: a plan may name large files; or
// says which folder within reach there is not.
func Load(ctx context.Context, path string, kinds []world.Kind, sets []string, reach Reach) (*Plan, error) {
	b, err := read(context.WithoutCancel(ctx), path, "plan file", maxSize) // it is small
	if err != nil {
		return nil, err
	}
	beside, err := besides(ctx, path, reach)
	if err != nil {
		return nil, err
	}
	plan, err := parsePlan(path, b, kinds, sets, beside)
	return settled(ctx, plan, err, beside)
}

// Written makes a Plan of a plan file in JSON that a program wrote. It is Load for a plan in the current folder: its
// errors name keys, and no file and no lines.
func Written(ctx context.Context, plan json.RawMessage, kinds []world.Kind, sets []string, reach Reach) (*Plan, error) {
	beside, err := besides(ctx, "plan", reach)
	if err != nil {
		return nil, err
	}
	made, err := fromJSON(&source{name: "plan"}, plan, kinds, sets, beside)
	return settled(ctx, made, err, beside)
}

// settled is a plan that was read, with the paths of its files, or what it was not read for.
func settled(ctx context.Context, plan *Plan, err error, beside files) (*Plan, error) {
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []*string{&plan.Prices, &plan.Cache, &plan.Out} {
		if *name != "" {
			*name = beside.path(*name)
		}
	}
	return plan, nil
}

// Parse reads a plan file that is at hand. Errors call it name.
func Parse(name string, src []byte, kinds []world.Kind, sets []string) (*Plan, error) {
	beside, err := besides(context.Background(), name, Reach{})
	if err != nil {
		return nil, err
	}
	return parsePlan(name, src, kinds, sets, beside)
}

func parsePlan(name string, src []byte, kinds []world.Kind, sets []string, beside files) (*Plan, error) {
	rep := newSource(name, src)
	if err := rep.err(); err != nil {
		return nil, err
	}
	root := parse(rep)
	if root == nil {
		return nil, rep.err()
	}
	return resolve(rep, root, kinds, sets, beside)
}

// FromJSON makes a Plan of what Plan.JSON returned, such as the one recorded with a run.
// sets are overrides as for Load.
func FromJSON(recorded json.RawMessage, kinds []world.Kind, sets []string) (*Plan, error) {
	// What its files said is recorded with it.
	return fromJSON(&source{name: "recorded plan", recorded: true}, recorded, kinds, sets, files{})
}

func fromJSON(src *source, plan json.RawMessage, kinds []world.Kind, sets []string, beside files) (*Plan, error) {
	rep := &report{src: src}
	dec := json.NewDecoder(bytes.NewReader(plan))
	dec.UseNumber()
	root, err := jsonNode(dec, 0)
	if err != nil {
		rep.add(place{}, nil, "is not JSON that a plan can be: %v", err)
		return nil, rep.err()
	}
	if !src.recorded {
		root.move(place{set: src.name}) // whoever wrote it answers for it, as for an override
	}
	rep.src.conceal(secretsOf(root))
	return resolve(rep, root, kinds, sets, beside)
}

// Agent returns the agent of that name.
func (p *Plan) Agent(name string) (world.Agent, bool) {
	i := slices.IndexFunc(p.Agents, func(a world.Agent) bool { return a.Name == name })
	if i < 0 {
		return world.Agent{}, false
	}
	return p.Agents[i], true
}
