package world

import (
	"errors"
	"fmt"
)

// ErrCannotGrow is returned by Grow for a plan whose episodes depend on each other.
var ErrCannotGrow = errors.New("the plan decides which episodes to play from the outcomes of all others")

// Grown is a plan for a run that has recorded stages. It asks for the same episodes again, stage
// by stage, and then for those that are new. So episodes keep their numbers.
type Grown struct {
	Plan
	// Recorded is how many episodes are recorded, and New how many are new; -1: that depends on
	// outcomes.
	Recorded, New int
	// Renamed are the recorded cells that the plan names differently: recorded name to new name.
	Renamed map[string]string
}

// MissingError is about recorded episodes that a plan does not ask for.
type MissingError struct {
	Count   int
	Episode int // the first of them
	Spec    Spec
}

// Error names the first.
func (e *MissingError) Error() string {
	where := fmt.Sprintf("episode %d (deal %d", e.Episode, e.Spec.Deal)
	if e.Spec.Cell != "" {
		where += ", cell " + e.Spec.Cell
	}
	if e.Count == 1 {
		return where + ") is recorded and not in the plan"
	}
	return fmt.Sprintf("%s) and %d more are recorded and not in the plan", where, e.Count-1)
}

// Grow makes p go on from the episodes that a run has recorded, stage by stage. p is a List or
// the plan of an Until, made for the same kind and seed. It must ask for all episodes that are
// recorded: else the error is a *MissingError.
func Grow(k Kind, recorded [][]Spec, p Plan) (*Grown, error) {
	g := &grower{Grown: Grown{Renamed: map[string]string{}}, ids: NewCellIDs(k)}
	var err error
	switch p := p.(type) {
	case List:
		err = g.list(recorded, p)
	case *untilPlan:
		err = g.until(recorded, p)
	default:
		return nil, ErrCannotGrow
	}
	if err != nil {
		return nil, err
	}
	if g.missing.Count > 0 {
		return nil, &g.missing
	}
	return &g.Grown, nil
}

// grower matches recorded episodes with those of a plan.
type grower struct {
	Grown
	ids     *CellIDs
	missing MissingError
}

// cellDeal is what two episodes have in common that are repetitions of each other.
type cellDeal struct {
	cell CellID
	deal int
}

func (g *grower) key(s Spec) cellDeal { return cellDeal{g.ids.Of(s), s.Deal} }

// take notes that a recorded spec is one of the plan.
func (g *grower) take(was, is Spec) error {
	g.Recorded++
	if was.Cell == is.Cell {
		return nil
	}
	if other, ok := g.Renamed[was.Cell]; ok && other != is.Cell {
		return fmt.Errorf("world: the recorded cell %q is both %q and %q in the plan", was.Cell, other, is.Cell)
	}
	g.Renamed[was.Cell] = is.Cell
	return nil
}

// miss notes that a recorded spec is none of the plan.
func (g *grower) miss(was Spec) {
	if g.missing.Count++; g.missing.Count == 1 {
		g.missing.Episode, g.missing.Spec = g.Recorded, was
	}
	g.Recorded++
}

// list takes what is recorded out of l. Mostly l begins with it.
func (g *grower) list(recorded [][]Spec, l List) error {
	stages, n, err := g.prefix(recorded, l)
	if err != nil {
		return err
	}
	rest := l[n:]
	if stages == nil {
		if stages, rest, err = g.pick(recorded, l); err != nil {
			return err
		}
	}
	g.New = len(rest)
	g.Plan = &grownPlan{stages: stages, rest: &onceList{rest}}
	return nil
}

// prefix returns the stages if l begins with all that is recorded; else nil.
func (g *grower) prefix(recorded [][]Spec, l List) (stages [][]Spec, n int, err error) {
	for _, stage := range recorded {
		if len(stage) > len(l)-n {
			return nil, 0, nil
		}
		for i, was := range stage {
			if is := l[n+i]; g.key(was) != g.key(is) {
				return nil, 0, nil
			}
		}
		stages = append(stages, l[n:n+len(stage)])
		n += len(stage)
	}
	for i, stage := range recorded {
		for j, was := range stage {
			if err := g.take(was, stages[i][j]); err != nil {
				return nil, 0, err
			}
		}
	}
	return stages, n, nil
}

// pick finds each recorded spec anywhere in l, and returns the others in the order of l.
func (g *grower) pick(recorded [][]Spec, l List) (stages [][]Spec, rest List, err error) {
	at := make(map[cellDeal]int, len(l)) // in l: specs with the same key are the same
	left := make(map[cellDeal]int, len(l))
	for i, s := range l {
		k := g.key(s)
		at[k] = i
		left[k]++
	}
	used := map[cellDeal]int{}
	for _, stage := range recorded {
		specs := make([]Spec, 0, len(stage))
		for _, was := range stage {
			k := g.key(was)
			if left[k] == 0 {
				g.miss(was)
				continue
			}
			left[k]--
			used[k]++
			specs = append(specs, l[at[k]])
			if err := g.take(was, l[at[k]]); err != nil {
				return nil, nil, err
			}
		}
		stages = append(stages, specs)
	}
	for _, s := range l {
		if k := g.key(s); used[k] > 0 {
			used[k]--
			continue
		}
		rest = append(rest, s)
	}
	return stages, rest, nil
}

// until has u take in what is recorded.
func (g *grower) until(recorded [][]Spec, u *untilPlan) error {
	cells := map[CellID]Spec{}
	for _, c := range u.open {
		cells[g.ids.Of(c.spec)] = c.spec
	}
	p := &grownPlan{rest: u, keep: true}
	for _, stage := range recorded {
		specs := make([]Spec, 0, len(stage))
		for _, was := range stage {
			is, ok := cells[g.ids.Of(was)]
			if !ok || was.Deal < 0 || was.Deal >= u.Max {
				g.miss(was)
				continue
			}
			specs = append(specs, is.dealt(was.Deal))
			if err := g.take(was, is); err != nil {
				return err
			}
		}
		p.stages = append(p.stages, specs)
	}
	g.Plan, g.New = p, -1
	return nil
}

// grownPlan plays stages, and then what rest makes of all of them together.
type grownPlan struct {
	stages [][]Spec
	rest   Plan
	keep   bool // rest wants to see what was played
	played []Played
}

// Next returns the next stage.
func (p *grownPlan) Next(last []Played) []Spec {
	if p.keep {
		p.played = append(p.played, last...)
	}
	for len(p.stages) > 0 {
		stage := p.stages[0]
		p.stages = p.stages[1:]
		if len(stage) > 0 { // or the run would end here
			return stage
		}
	}
	played := p.played
	p.played, p.keep = nil, false
	if played == nil {
		played = last
	}
	return p.rest.Next(played)
}

// Err is why rest failed, or nil.
func (p *grownPlan) Err() error {
	if failed, ok := p.rest.(interface{ Err() error }); ok {
		return failed.Err()
	}
	return nil
}

// onceList plays a list, whatever was played before it.
type onceList struct{ list List }

// Next returns the list, once.
func (o *onceList) Next([]Played) []Spec {
	l := o.list
	o.list = nil
	return l
}
