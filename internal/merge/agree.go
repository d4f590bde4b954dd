package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/internal/jsondiff"
	"parley/internal/planner"
	"parley/world"
)

// ConflictError is why runs are not parts of one experiment.
type ConflictError struct{ What string }

// Error says why.
func (e *ConflictError) Error() string { return e.What }

func conflict(format string, args ...any) error {
	return &ConflictError{fmt.Sprintf(format, args...)}
}

func differ(a, b *part, d *jsondiff.Difference) error {
	return conflict("%s is %s in %s, and %s in %s", d.Key, jsondiff.Brief(d.A), a.Name, jsondiff.Brief(d.B), b.Name)
}

// agree makes sure that the runs are of one kind, and that an agent is the same wherever it is.
func (r *Runs) agree() error {
	first := r.parts[0]
	type known struct {
		agent world.Agent
		in    *part
	}
	agents := map[string]known{}
	for _, p := range r.parts {
		b, f := p.head.Begun, first.head.Begun
		switch {
		case b.Kind != f.Kind:
			return conflict("%s is of kind %s, and %s of kind %s", first.Name, f.Kind, p.Name, b.Kind)
		case b.KindVersion != f.KindVersion:
			return conflict("%s is of version %d of %s, and %s of version %d", first.Name, f.KindVersion, f.Kind, p.Name, b.KindVersion)
		case b.Fork != nil && len(r.parts) > 1:
			return conflict("%s is a fork: its episodes go on from one of another run", p.Name)
		case len(b.Plan) == 0 && len(r.parts) > 1:
			return conflict("%s has no plan", p.Name)
		}
		for _, a := range b.Agents {
			if was, ok := agents[a.Name]; ok {
				if d := jsondiff.First("agents."+a.Name, was.agent, a); d != nil {
					return differ(was.in, p, d)
				}
			}
			agents[a.Name] = known{a, p}
		}
		if p.Kind.Plans() { // cells are of its own making
			if d := jsondiff.First("params", first.params(), p.params()); d != nil {
				return differ(first, p, d)
			}
		}
	}
	return nil
}

// params are those of the recorded plan, as far as they change what is played.
func (p *part) params() json.RawMessage {
	var plan struct{ Params json.RawMessage }
	if json.Unmarshal(p.head.Begun.Plan, &plan) != nil {
		return nil // a run file may come from anywhere
	}
	return p.Kind.Identity(plan.Params)
}

// cell is a cell of a run.
type cell struct {
	name string
	spec world.Spec
	in   *part
}

// rename gives a cell the same name in all runs: the longest that it has, since a cell is named
// by what varies, and in another run more may. Two cells with one name are a conflict.
func (r *Runs) rename() error {
	if r.parts[0].Kind.Plans() {
		return nil
	}
	cells, own := r.cells()
	named := map[string]*cell{}
	for i, p := range r.parts {
		p.cells = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(own[i])) {
			c := cells[own[i][name]]
			if c.name == "" && len(cells) > 1 {
				c.name = c.in.Name // nothing varies there
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

// cells returns the cells of all runs, each with its longest name, and by run which cell a name
// is of.
func (r *Runs) cells() (map[planner.CellID]*cell, []map[string]planner.CellID) {
	ids := planner.NewCellIDs(r.parts[0].Kind)
	cells, own := map[planner.CellID]*cell{}, make([]map[string]planner.CellID, len(r.parts))
	for i, p := range r.parts {
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

// cellsDiffer names what is not the same in two cells of one name.
func cellsDiffer(name string, a, b *cell, in *part) error {
	d := jsondiff.First("params", a.in.Kind.Identity(a.spec.Params), a.in.Kind.Identity(b.spec.Params))
	if d == nil {
		d = jsondiff.First("lineup", a.spec.Lineup, b.spec.Lineup)
	}
	if d == nil {
		return conflict("the cell %q is not the same in %s and %s", name, a.in.Name, in.Name)
	}
	if name != "" {
		d.Key = fmt.Sprintf("cell %q: %s", name, d.Key)
	}
	return differ(a.in, in, d)
}
