package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/internal/kit/text"
	"parley/internal/run/planner"
	"parley/journal"
	"parley/world"
)

// ConflictError says why runs do not belong to one experiment.
type ConflictError struct{ What string }

// Error implements error.
func (e *ConflictError) Error() string { return e.What }

func conflict(format string, args ...any) error {
	return &ConflictError{fmt.Sprintf(format, args...)}
}

func differ(a, b *member, d *text.Difference) error {
	return conflict("%s is %s in %s, and %s in %s", d.Key, text.BriefJSON(d.A), a.Name, text.BriefJSON(d.B), b.Name)
}

// filesOf returns the files of the code of a run, by the names of the code.
func filesOf(b *journal.Begun) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, c := range b.Code {
		all[c.Name] = c.Files
	}
	return all
}

// agree checks that all runs are of one kind, and that an agent is the same in all of them.
func (r *Runs) agree() error {
	first := r.members[0]
	type known struct {
		agent world.Agent
		in    *member
	}
	agents := map[string]known{}
	for _, p := range r.members {
		b, f := p.head.Begun, first.head.Begun
		switch {
		case b.Kind != f.Kind:
			return conflict("%s is of kind %s, and %s of kind %s", first.Name, f.Kind, p.Name, b.Kind)
		case b.KindVersion != f.KindVersion:
			return conflict("%s is of version %d of %s, and %s of version %d", first.Name, f.KindVersion, f.Kind, p.Name, b.KindVersion)
		case b.Fork != nil && len(r.members) > 1:
			return conflict("%s is a fork: its episodes go on from one of another run", p.Name)
		case len(b.Plan) == 0 && len(r.members) > 1:
			return conflict("%s has no plan", p.Name)
		}
		if d := text.FirstJSONDifference("code", filesOf(f), filesOf(b)); d != nil {
			return differ(first, p, d)
		}
		for _, a := range b.Agents {
			if was, ok := agents[a.Name]; ok {
				if d := text.FirstJSONDifference("agents."+a.Name, was.agent, a); d != nil {
					return differ(was.in, p, d)
				}
			}
			agents[a.Name] = known{a, p}
		}
		if p.Kind.Plans() { // the kind makes its cells
			if d := text.FirstJSONDifference("params", first.params(), p.params()); d != nil {
				return differ(first, p, d)
			}
		}
	}
	return nil
}

// params returns the params of the recorded plan, as far as they change what is played.
func (p *member) params() json.RawMessage {
	var plan struct{ Params json.RawMessage }
	if json.Unmarshal(p.head.Begun.Plan, &plan) != nil {
		return nil // a run file may hold anything
	}
	return p.Kind.Identity(plan.Params)
}

// cell is a cell of a run.
type cell struct {
	name string
	spec world.Spec
	in   *member
}

// rename gives a cell the same name in all runs: its longest one. A cell is named by what varies,
// and more may vary in another run. Two cells with one name are a conflict.
func (r *Runs) rename() error {
	if r.members[0].Kind.Plans() {
		return nil
	}
	cells, own := r.cells()
	named := map[string]*cell{}
	for i, p := range r.members {
		p.cells = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(own[i])) {
			c := cells[own[i][name]]
			if c.name == "" && len(cells) > 1 {
				c.name = c.in.Name // nothing varies in its run
			}
			if other := named[name]; other != nil && other != c {
				return cellsDiffer(name, other, c, p)
			}
			named[name] = c
			p.cells[name] = c.name
		}
	}
	return nil
}

// cells returns the cells of all runs, each with its longest name, and for each run the cell of a
// name.
func (r *Runs) cells() (map[planner.CellID]*cell, []map[string]planner.CellID) {
	ids := planner.NewCellIDs(r.members[0].Kind)
	cells, own := map[planner.CellID]*cell{}, make([]map[string]planner.CellID, len(r.members))
	for i, p := range r.members {
		own[i] = map[string]planner.CellID{}
		for _, st := range p.head.Stages {
			for _, s := range st.Specs.Distinct() {
				id := ids.Of(s)
				if _, seen := own[i][s.Cell]; !seen {
					own[i][s.Cell] = id
				}
				if cells[id] == nil {
					cells[id] = &cell{s.Cell, s, p}
				}
				if len(s.Cell) > len(cells[id].name) {
					cells[id].name = s.Cell
				}
			}
		}
	}
	return cells, own
}

// cellsDiffer returns an error with the difference between two cells of one name.
func cellsDiffer(name string, a, b *cell, in *member) error {
	d := text.FirstJSONDifference("params", a.in.Kind.Identity(a.spec.Params), a.in.Kind.Identity(b.spec.Params))
	if d == nil {
		d = text.FirstJSONDifference("lineup", a.spec.Lineup, b.spec.Lineup)
	}
	if d == nil {
		return conflict("the cell %q is not the same in %s and %s", name, a.in.Name, in.Name)
	}
	if name != "" {
		d.Key = fmt.Sprintf("cell %q: %s", name, d.Key)
	}
	return differ(a.in, in, d)
}
