// Package planfile reads plan files: which episodes to play, with which agents, accounts and limits.
//
// A plan file is one YAML document, read strictly: an unknown key, a value of the wrong type and an
// empty seat are errors. Each error names its file, line, column and key, says what is allowed, and
// shows the line. All errors are reported at once.
//
// What it promises: no file makes it panic, recurse or grow without bound; no error shows what may
// be a secret; a Plan holds no secret, only the names of environment variables; Plan.JSON is a valid
// plan file, from which FromJSON makes an equal Plan.
//
// A plan is read in these steps:
//   - document.go turns text into a tree of YAML nodes, and override.go applies overrides to it;
//   - check.go compares the tree with shapes (shape.go). The tags of structs are the shape of a plan (keys.go); the JSON Schema
//     and docs/reference/plan-file.md are made from the same tags, so they always agree;
//   - resolve.go makes a Plan of the values and checks what fits together, with providers.go, agents.go and
//     resolve_plan.go for those keys, and matrix.go for the lineups and params of a matrix;
//   - errors.go and secret.go report errors with their position and hide secrets;
//   - files.go opens the files that a plan names, and only those that it may name.
//
// It starts nothing. It reads the plan file and the files that params name, and no environment variable.
package planfile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/internal/ask/provider"
	"parley/internal/ask/settings"
	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/internal/run/planner"
	"parley/llm"
	"parley/world"
)

// maxEpisodes is the largest number of episodes of a run.
const maxEpisodes = world.MaxEpisodes

// Plan is a resolved plan file: defaults are filled in, except those that only a run can find out,
// such as a provider's limits.
type Plan struct {
	Kind world.Kind
	// Seed determines all chance. Default: 1.
	Seed uint64
	// Episodes is how many episodes to play with the lineup. It is 0 if Matrix or Until is set.
	Episodes int
	// Matrix and Until come from the plan key. Default: nil.
	Matrix *Matrix
	Until  *planner.Until
	// Train comes from the train key, and from params of the same names.
	Train planner.Train
	// Agents are the agents that have a seat, sorted by name.
	Agents []world.Agent
	// Lineup maps seats to names of agents. A Matrix fills the seats it leaves out.
	Lineup map[string]string
	// Seats are the kind's seats, in its order.
	Seats []string
	// Outside are the files outside the plan's folder that the user allowed, with symbolic links
	// resolved. It is not recorded.
	Outside []string
	// Advice lists things to write differently in the plan or in the files that params name. It is not recorded.
	Advice []string
	// Params are the kind's params. ParamsJSON is the same with all defaults.
	Params     world.Params
	ParamsJSON json.RawMessage
	// Loaded means that the plan file held the content of the files that its params name.
	Loaded bool
	// Providers are the listed providers and the presets that models name, sorted by name.
	Providers []provider.Provider
	// Places says where each listed provider names its key or address, as
	// plan.yaml:5:12: providers.lab.key_env, and where a model first names a preset. It is not recorded.
	Places map[string]string
	// Settings of how calls are made. Their paths are from the current folder.
	*settings.Settings
	// Out is the path of the run file. Empty: for the caller to choose.
	Out string
	// Nested is the plan that the params name, if the kind is a part.Nester. Agents and Providers have its own too.
	Nested *Plan
	// others are the agents that are copies of others, with other models: see part.ModelTrier. They are not recorded.
	others []string
	Folder string // of the run file: JSON writes paths relative to it, or as they are if it is empty

	trains  *planner.Train // the train key as it was written
	checker *checker       // knows the lines of the plan file; nil: the plan was recorded
}

// Load reads the plan file at path. kinds are the kinds that the plan may name. sets are overrides
// such as a.b=c, with c in YAML; a.b= removes the key. The plan may name files in its own folder and
// within what is allowed. An error is of type Errors, the cause of the context if that has ended, or an
// error about an allowed folder that does not exist.
func Load(ctx context.Context, path string, kinds []world.Kind, sets []string, allowed Reach) (*Plan, error) {
	b, err := readFile(context.WithoutCancel(ctx), path, "plan file", MaxSize) // it is small
	if err != nil {
		return nil, err
	}
	beside, err := NewFiles(ctx, path, allowed)
	if err != nil {
		return nil, err
	}
	plan, err := parsePlan(path, b, kinds, sets, beside)
	return resolvePaths(ctx, plan, err, beside)
}

// Written makes a Plan of a plan in JSON that a program wrote, as Load does for a plan file in the
// current folder. Its errors name keys, but no file and no lines.
func Written(ctx context.Context, plan json.RawMessage, kinds []world.Kind, sets []string, allowed Reach) (*Plan, error) {
	beside, err := NewFiles(ctx, "plan", allowed)
	if err != nil {
		return nil, err
	}
	made, err := fromJSON(&source{Name: "plan"}, plan, kinds, sets, beside)
	return resolvePaths(ctx, made, err, beside)
}

// resolvePaths makes the paths of a plan's files relative to the current folder.
func resolvePaths(ctx context.Context, plan *Plan, err error, beside *Files) (*Plan, error) {
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []*string{&plan.Prices, &plan.Cache, &plan.Out} {
		if *name != "" {
			*name = beside.Path(*name)
		}
	}
	return plan, nil
}

// Parse reads a plan file from memory. Errors call it name.
func Parse(name string, src []byte, kinds []world.Kind, sets []string) (*Plan, error) {
	beside, err := NewFiles(context.Background(), name, Reach{})
	if err != nil {
		return nil, err
	}
	return parsePlan(name, src, kinds, sets, beside)
}

func parsePlan(name string, src []byte, kinds []world.Kind, sets []string, beside *Files) (*Plan, error) {
	rep := newPlanReport(name, src)
	if err := rep.Err(); err != nil {
		return nil, err
	}
	root := parseYAML(rep)
	if root == nil {
		return nil, rep.Err()
	}
	return resolve(rep, root, kinds, sets, beside)
}

// FromJSON makes a Plan from the result of Plan.JSON, such as the plan recorded with a run. sets are
// overrides as for Load.
func FromJSON(recorded json.RawMessage, kinds []world.Kind, sets []string) (*Plan, error) {
	return fromJSON(&source{Name: "recorded plan", Recorded: true}, recorded, kinds, sets, nil) // the content of its files is in it
}

func fromJSON(src *source, plan json.RawMessage, kinds []world.Kind, sets []string, beside *Files) (*Plan, error) {
	rep := &report{Source: src}
	root, err := yamltree.ParseJSON(plan)
	if err != nil {
		rep.Add(yamltree.Position{}, nil, "is not JSON that a plan can be: %v", err)
		return nil, rep.Err()
	}
	if !src.Recorded {
		root.Move(yamltree.Position{Set: src.Name}) // the program that wrote it is responsible, as for an override
	}
	rep.Source.Conceal(secretsOf(root))
	return resolve(rep, root, kinds, sets, beside)
}

// CheckParams calls check with the params of the plan, and with those of each variant of its matrix. An error was found after the plan
// was read, such as one of the code that params name: if it names a param, it gets its file and line, as the errors of Load. The
// variants of a recorded plan are not checked: the run began with them.
func (p *Plan) CheckParams(check func(world.Params) error) error {
	if err := check(p.Params); err != nil || p.Matrix == nil || p.checker == nil {
		return p.ParamsError(err)
	}
	for _, v := range p.Matrix.Variants() {
		params, _, err := p.vary(v)
		if err == nil {
			err = check(params)
		}
		if err != nil {
			at, tried := p.Matrix.Place(v)
			return p.checker.ParamsError(p.Kind.Name, err, at, tried)
		}
	}
	return nil
}

// ParamPlace says where the plan file has a param of an episode with these params, as plan.yaml:8:8: plan.matrix.params.env[1]. It is
// empty if the plan has no matrix, or no file.
func (p *Plan) ParamPlace(params json.RawMessage, name string) string {
	if p.Matrix == nil || p.checker == nil {
		return ""
	}
	for _, v := range p.Matrix.Variants() {
		if _, own, err := p.vary(v); err == nil && bytes.Equal(own, params) {
			at, tried := p.Matrix.Place(v)
			return p.checker.Where(p.checker.Param(name, "", at, tried))
		}
	}
	return ""
}

// Place says where the plan file has a key, as plan.yaml:5:12: agents.bold.seed. Without a file, it is the key alone.
func (p *Plan) Place(key ...string) string { return p.checker.Where(key) }

// ParamsError gives an error about the plan's own params or agents its file and line, if it names one of them: see CheckParams.
func (p *Plan) ParamsError(err error) error {
	return p.checker.ParamsError(p.Kind.Name, err, yamltree.Path{"params"}, nil)
}

// Batches reports whether the provider of a model has a batch API.
func (p *Plan) Batches(model string) bool {
	account, _ := llm.SplitModel(model)
	i := slices.IndexFunc(p.Providers, func(one provider.Provider) bool { return one.Name == account })
	return i >= 0 && p.Providers[i].Batch != nil
}

// NestedKind returns the kind of the nested plan, or the zero kind.
func (p *Plan) NestedKind() world.Kind {
	if p.Nested == nil {
		return world.Kind{}
	}
	return p.Nested.Kind
}

// Acting returns the plan whose kind may have an environment, programs and code: the nested one, if there is one.
func (p *Plan) Acting() *Plan { return cmp.Or(p.Nested, p) }

// File returns the plan file. Empty: the plan was not read from one.
func (p *Plan) File() string {
	if p.checker == nil {
		return ""
	}
	return p.checker.Source.Name
}

// Agent returns the agent of that name.
func (p *Plan) Agent(name string) (world.Agent, bool) {
	i := slices.IndexFunc(p.Agents, func(a world.Agent) bool { return a.Name == name })
	if i < 0 {
		return world.Agent{}, false
	}
	return p.Agents[i], true
}

// FindKind returns the kind of that name. The error lists the kinds and suggests the nearest.
func FindKind(kinds []world.Kind, name string) (world.Kind, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		names[i] = k.Name
	}
	if name == "" {
		return world.Kind{}, fmt.Errorf("the kind is missing; the kinds are %s", listed(names))
	}
	return world.Kind{}, fmt.Errorf("no kind is called %s%s the kinds are %s", yamltree.Quote(name), endHint(text.Suggest(name, names)), listed(names))
}

// World makes the plan that the engine plays, a new one for each run or resume: the plan of the file,
// or the plan that the kind makes of it. It cannot fail for a Plan that was loaded.
func (p *Plan) World() (world.Stages, error) {
	plan, err := p.Asked()
	if err != nil || p.Until != nil || !p.Kind.Plans() {
		return plan, err
	}
	return planner.OfKind(p.Kind, plan.Next(nil), p.Seed)
}

// Asked makes the plan of the plan file.
func (p *Plan) Asked() (world.Stages, error) {
	spec := world.Spec{Kind: p.Kind.Name, Params: p.ParamsJSON, Lineup: maps.Clone(p.Lineup)}
	cells := []world.Spec{spec}
	var plan world.Stages = world.Repeat(spec, p.Episodes)
	if p.Matrix != nil {
		m, err := p.plannerMatrix()
		if err == nil {
			plan, err = m.Plan()
		}
		if err != nil {
			return nil, err
		}
		cells = m.Cells()
	}
	if p.Until != nil {
		u := *p.Until
		u.Cells, u.Bounds = cells, p.bounds(u.Score, cells)
		return u.Plan()
	}
	if list, ok := plan.(world.Specs); ok && p.Train.Group > 1 && !ownParam(p.Kind, "group") {
		return planner.Grouped(list, p.Train.Group)
	}
	return plan, nil
}

// bounds returns the bounds of a score that hold in all cells.
func (p *Plan) bounds(score string, cells []world.Spec) (out world.Bounds) {
	for i, c := range cells {
		params, err := p.Kind.Read(c.Params)
		if err != nil {
			return world.Bounds{}
		}
		one := world.Bounds{}
		for _, m := range p.Kind.Measures(params) {
			if m.Name == score {
				one = m.Bounds
			}
		}
		if i == 0 {
			out = one
			continue
		}
		out = out.Join(one)
	}
	return out
}

// plannerMatrix converts the matrix to the planner's.
func (p *Plan) plannerMatrix() (planner.Matrix, error) {
	m := planner.Matrix{Kind: p.Kind.Name, Seats: p.Seats, Repetitions: p.Matrix.Repeat}
	for _, seating := range p.Matrix.Seatings(p.Seats) {
		lineup := maps.Clone(p.Lineup)
		if lineup == nil {
			lineup = map[string]string{}
		}
		maps.Copy(lineup, seating)
		m.Lineups = append(m.Lineups, lineup)
	}
	for _, v := range p.Matrix.Variants() {
		_, params, err := p.vary(v)
		if err != nil {
			return m, fmt.Errorf("plan.matrix: %w", err)
		}
		m.Variants = append(m.Variants, planner.Variant{Variation: v.Name, Name: p.Matrix.CellLabel(v.Change), Params: params, Lineup: v.Lineup})
	}
	return m, nil
}

// vary resolves params with the changes of a variation and then those of a combination.
func (p *Plan) vary(v Variant) (world.Params, json.RawMessage, error) {
	values := map[string]any{}
	if err := unmarshal(p.ParamsJSON, &values); err != nil {
		return world.Params{}, nil, err
	}
	values, _ = mergeParams(values, v.Params).(map[string]any)
	// A path with dots changes a part of a whole param, so shorter names are applied first.
	shape := paramsShape(p.Kind)
	for _, name := range slices.Sorted(maps.Keys(v.Change)) {
		setParam(values, shape, name, v.Change[name])
	}
	return decodeParams(p.Kind, values)
}
