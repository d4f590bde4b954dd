package results

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"parley/internal/kit/text"
	"parley/internal/run/planner"
	"parley/world"
)

// maxFactors is how many factors can group scores at once.
const maxFactors = 4

// ErrFactor is returned for an unknown factor.
var ErrFactor = errors.New("unknown factor")

// OwnFactors returns the factors that every run has. Tags and params are factors too.
func OwnFactors() []string {
	return []string{"file", "agent", "model", "seat", "lineup", "cell", "variation"}
}

// Levels are the values of factors for one score, in the order of the factors.
type Levels [maxFactors]string

// Factors are what scores are grouped by.
type Factors struct {
	Names []string
	of    []factor
	runs  []*runFactors
	seats []string // whose agent varies, for lineups
	apart []string // params that only tell episodes apart: see part.Recorded
}

// factor returns the level of a score, or "" if it has none.
type factor struct {
	name  string
	sort  FactorSort
	level func(*runFactors, world.Spec, string) string
}

// FactorSort says what a factor is a property of.
type FactorSort int

// The sorts of factors.
const (
	OfFile      FactorSort = iota
	OfAgent                // the agent of the score: its name, its model, its tags
	OfSeat                 // the seat of the score
	OfCell                 // the cell of the episode
	OfVariation            // its variation
	OfLineup               // its lineup
	OfParam                // one of its params
)

// runFactors holds what the levels in one run are made from.
type runFactors struct {
	file       string
	agents     map[string]world.Agent
	models     map[string]string
	variations map[string]map[string]string // tags
	params     map[string]map[string]string // by params, and by path
}

// FactorsOf finds factors by name. files are the names of the runs. A tag hides a param of the
// same name, which can be written params.NAME.
func FactorsOf(runs []*Run, files, names []string) (*Factors, error) {
	f := &Factors{Names: names}
	for i, r := range runs {
		f.runs = append(f.runs, newRunFactors(r, files[i]))
		if recorded, ok := r.Recorded(); ok {
			if err := CallKind(r.kind, "Names", func() error { f.apart = recorded.Names(); return nil }); err != nil {
				return nil, err
			}
		}
	}
	if len(names) > maxFactors {
		return nil, fmt.Errorf("%w: %d factors are named: at most %d at once", ErrFactor, len(names), maxFactors)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%w: %q is named twice", ErrFactor, name)
		}
		one, ok := f.find(runs, name)
		if !ok {
			return nil, f.unknown(runs, name)
		}
		f.of = append(f.of, one)
	}
	if slices.ContainsFunc(f.of, func(x factor) bool { return x.sort == OfLineup }) {
		f.seats = variedSeats(runs)
	}
	return f, nil
}

func newRunFactors(r *Run, file string) *runFactors {
	f := &runFactors{file: file, agents: map[string]world.Agent{}, models: map[string]string{}, variations: r.variationTags(), params: map[string]map[string]string{}}
	for _, a := range r.Head.Begun.Agents {
		f.agents[a.Name], f.models[a.Name] = a, r.Model(a.Name)
	}
	return f
}

// variationTags returns the tags of variations in all plans of the run, by name.
func (r *Run) variationTags() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, plan := range append([]json.RawMessage{r.Head.Begun.Plan}, r.Plans...) {
		for name, tags := range variationTags(plan) {
			out[name] = JoinTags(tags, out[name])
		}
	}
	return out
}

// variationTags reads the tags of variations from a recorded plan, by name.
func variationTags(plan json.RawMessage) map[string]map[string]string {
	var p struct {
		Plan struct {
			Matrix struct {
				Variations map[string]struct {
					Tags map[string]string `json:"tags"`
				} `json:"variations"`
			} `json:"matrix"`
		} `json:"plan"`
	}
	if json.Unmarshal(plan, &p) != nil {
		return nil // a run file may hold anything
	}
	out := map[string]map[string]string{}
	for name, v := range p.Plan.Matrix.Variations {
		out[name] = v.Tags
	}
	return out
}

// Tags returns a function that joins the tags of an agent and of a cell's variation, or returns nil without any.
func (r *Run) Tags() func(agent, cell string) map[string]string {
	variations, agents := r.variationTags(), map[string]map[string]string{}
	for _, a := range r.Head.Begun.Agents {
		agents[a.Name] = a.Tags
	}
	return func(agent, cell string) map[string]string {
		return JoinTags(agents[agent], variations[planner.VariationOf(cell)])
	}
}

// JoinTags joins tags. It returns nil without any.
func JoinTags(of ...map[string]string) map[string]string {
	var out map[string]string
	for _, tags := range of {
		if out == nil && len(tags) > 0 {
			out = map[string]string{}
		}
		maps.Copy(out, tags)
	}
	return out
}

// Variations returns a function that finds the tags of a cell's variation in a recorded plan.
func Variations(plan json.RawMessage) func(cell string) map[string]string {
	tags := variationTags(plan)
	return func(cell string) map[string]string { return tags[planner.VariationOf(cell)] }
}

func (f *Factors) find(runs []*Run, name string) (factor, bool) {
	own := map[string]factor{
		"file":  {sort: OfFile, level: func(r *runFactors, _ world.Spec, _ string) string { return r.file }},
		"agent": {sort: OfAgent, level: func(_ *runFactors, s world.Spec, seat string) string { return s.Lineup[seat] }},
		"model": {sort: OfAgent, level: func(r *runFactors, s world.Spec, seat string) string { return r.models[s.Lineup[seat]] }},
		"seat":  {sort: OfSeat, level: func(_ *runFactors, _ world.Spec, seat string) string { return seat }},
		"cell":  {sort: OfCell, level: func(_ *runFactors, s world.Spec, _ string) string { return s.Cell }},
		"lineup": {sort: OfLineup, level: func(_ *runFactors, s world.Spec, _ string) string {
			parts := make([]string, len(f.seats))
			for i, seat := range f.seats {
				parts[i] = seat + "=" + s.Lineup[seat]
			}
			return strings.Join(parts, ", ")
		}},
		"variation": {sort: OfVariation, level: func(r *runFactors, s world.Spec, _ string) string {
			if _, ok := r.variations[planner.VariationOf(s.Cell)]; ok {
				return planner.VariationOf(s.Cell)
			}
			return ""
		}},
	}
	if one, ok := own[name]; ok {
		one.name = name
		return one, true
	}
	agents, variations := f.tags()
	switch {
	case agents[name]:
		return factor{name, OfAgent, func(r *runFactors, s world.Spec, seat string) string { return r.tag(s.Lineup, seat, name) }}, true
	case variations[name]:
		return factor{name, OfVariation, func(r *runFactors, s world.Spec, _ string) string {
			return r.variations[planner.VariationOf(s.Cell)][name]
		}}, true
	}
	path := strings.TrimPrefix(name, "params.")
	level := func(r *runFactors, s world.Spec, _ string) string { return r.param(s.Params, path) }
	for i, spec := range specsOf(runs) {
		if level(f.runs[i], spec, "") != "" {
			return factor{name, OfParam, level}, true
		}
	}
	// A kind that plans its own episodes may not give them the param: then the name of the cell has it.
	level = func(_ *runFactors, s world.Spec, _ string) string { return planner.LabelValue(s.Cell, path) }
	for i, spec := range specsOf(runs) {
		if level(f.runs[i], spec, "") != "" {
			return factor{name, OfCell, level}, true
		}
	}
	return factor{}, false
}

// specsOf iterates over the specs of all runs that differ in more than their deal, with the number of the run.
func specsOf(runs []*Run) iter.Seq2[int, world.Spec] {
	return func(yield func(int, world.Spec) bool) {
		for i, r := range runs {
			for _, st := range r.Head.Stages {
				for _, spec := range st.Specs.Distinct() {
					if !yield(i, spec) {
						return
					}
				}
			}
		}
	}
}

// Of returns the levels of a score of an episode. run is the index of its run. ok is false if a level is missing.
func (f *Factors) Of(run int, spec world.Spec, seat string) (levels Levels, ok bool) {
	known := f.runs[run]
	for i := range f.of {
		if levels[i] = f.of[i].level(known, spec, seat); levels[i] == "" {
			return levels, false
		}
	}
	return levels, true
}

// Only returns the same factors for one run, by its index.
func (f *Factors) Only(run int) *Factors {
	one := *f
	one.runs = f.runs[run : run+1]
	return &one
}

// Any reports whether a factor is of one of these sorts.
func (f *Factors) Any(sorts ...FactorSort) bool {
	return slices.ContainsFunc(f.of, func(x factor) bool { return slices.Contains(sorts, x.sort) })
}

// tag returns a tag of the agent in a seat. A score of the whole episode has a tag if all agents
// with that tag agree.
func (r *runFactors) tag(lineup map[string]string, seat, name string) string {
	if seat != "" {
		return r.agents[lineup[seat]].Tags[name]
	}
	all := ""
	for _, agent := range lineup {
		one := r.agents[agent].Tags[name]
		if one != "" && all != "" && one != all {
			return ""
		}
		all = cmp.Or(all, one)
	}
	return all
}

// tags returns the names of tags, of agents and of variations.
func (f *Factors) tags() (agents, variations map[string]bool) {
	agents, variations = map[string]bool{}, map[string]bool{}
	for _, r := range f.runs {
		for _, a := range r.agents {
			for name := range a.Tags {
				agents[name] = true
			}
		}
		for _, tags := range r.variations {
			for name := range tags {
				variations[name] = true
			}
		}
	}
	return agents, variations
}

// unknown returns an error about an unknown factor that lists the known ones.
func (f *Factors) unknown(runs []*Run, name string) error {
	agents, variations := f.tags()
	there := slices.Concat(OwnFactors(), slices.Sorted(maps.Keys(agents)), slices.Sorted(maps.Keys(variations)), variedParams(runs))
	hint := cmp.Or(text.Suggest(name, there), ";")
	return fmt.Errorf("%w %q%s there are: %s, and any other param", ErrFactor, name, hint, strings.Join(there, ", "))
}

// variedSeats returns the seats whose agent varies, sorted.
func variedSeats(runs []*Run) []string {
	first, varied := map[string]string{}, map[string]bool{}
	for _, spec := range specsOf(runs) {
		for seat, agent := range spec.Lineup {
			was, ok := first[seat]
			if !ok {
				first[seat] = agent
			}
			varied[seat] = varied[seat] || ok && was != agent
		}
	}
	maps.DeleteFunc(varied, func(_ string, v bool) bool { return !v })
	return slices.Sorted(maps.Keys(varied))
}

// WithoutParams returns params without those that are factors, and those that only tell episodes apart.
func (f *Factors) WithoutParams(params json.RawMessage) string {
	if !f.Any(OfParam) && len(f.apart) == 0 {
		return string(params)
	}
	for _, name := range f.apart {
		params = withoutPath(params, name)
	}
	for _, x := range f.of {
		if x.sort == OfParam {
			params = withoutPath(params, strings.TrimPrefix(x.name, "params."))
		}
	}
	return string(params)
}

func withoutPath(raw json.RawMessage, path string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	head, rest, dotted := strings.Cut(path, ".")
	_, whole := fields[path]
	switch inner, there := fields[head]; {
	case whole:
		delete(fields, path)
	case dotted && there:
		fields[head] = withoutPath(inner, rest)
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return raw // not reached: it was JSON
	}
	return b
}

// param returns the value at a path of params, as text. It returns a digest of a long value.
func (r *runFactors) param(params json.RawMessage, path string) string {
	known := r.params[string(params)]
	if known == nil {
		known = map[string]string{}
		r.params[string(params)] = known
	}
	level, ok := known[path]
	if !ok {
		level = valueAt(params, path)
		known[path] = level
	}
	return level
}

func valueAt(raw json.RawMessage, path string) string {
	const longest = 64
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	if v, ok := fields[path]; ok {
		var s string
		var b bytes.Buffer
		switch {
		case json.Unmarshal(v, &s) == nil && s != "" && len(s) <= longest:
			return s
		case json.Compact(&b, v) == nil && b.Len() <= longest:
			return b.String()
		}
		sum := sha256.Sum256(v)
		return fmt.Sprintf("#%x", sum[:4])
	}
	head, rest, dotted := strings.Cut(path, ".")
	if !dotted {
		return ""
	}
	return valueAt(fields[head], rest)
}

// variedParams returns the params that differ between episodes, two levels deep.
func variedParams(runs []*Run) []string {
	first, varied := map[string]string{}, map[string]bool{}
	var walk func(prefix string, raw json.RawMessage, depth int)
	walk = func(prefix string, raw json.RawMessage, depth int) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return
		}
		for name, v := range fields {
			was, ok := first[prefix+name]
			switch {
			case !ok:
				first[prefix+name] = string(v)
			case was != string(v):
				varied[prefix+name] = true
			}
			if depth < 2 {
				walk(prefix+name+".", v, depth+1)
			}
		}
	}
	const limit = 1000 // of different params to read
	seen := map[string]bool{}
	for _, spec := range specsOf(runs) {
		if !seen[string(spec.Params)] && len(seen) < limit {
			seen[string(spec.Params)] = true
			walk("", spec.Params, 1)
		}
	}
	for path := range varied { // an inner param is more specific
		if head, _, dotted := strings.Cut(path, "."); dotted {
			delete(varied, head)
		}
	}
	return slices.Sorted(maps.Keys(varied))
}
