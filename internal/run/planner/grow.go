package planner

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/xxh3"

	"parley/world"
	"parley/world/part"
)

// ErrCannotGrow is returned by Grow for a plan whose episodes depend on each other.
var ErrCannotGrow = errors.New("the plan decides which episodes to play from the outcomes of all others")

// Grown is a plan for a run that has recorded stages. It asks for the recorded episodes again, stage by stage, and
// then for the new ones, so episodes keep their numbers.
type Grown struct {
	world.Stages
	// Recorded is the number of recorded episodes, and New that of new ones; -1: it depends on outcomes.
	Recorded, New int
	// Renamed maps the names of recorded cells to their new names, if these differ.
	Renamed map[string]string
	// Cells are the names of the plan's cells.
	Cells []string
}

// MissingError is about recorded episodes that a plan does not ask for.
type MissingError struct {
	Count   int
	Episode int // the first of them
	Spec    world.Spec
}

// Error names the first of them.
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

// Grow makes p continue after the episodes that a run has recorded, stage by stage. p is a Specs or the plan of an
// Until, for the same kind and seed. If it does not ask for all recorded episodes, the error is a *MissingError.
func Grow(k world.Kind, recorded []world.Specs, p world.Stages) (*Grown, error) {
	g := &grower{Grown: Grown{Renamed: map[string]string{}}, ids: NewCellIDs(k)}
	var err error
	switch p := p.(type) {
	case world.Specs:
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

// cellDeal identifies episodes that are repetitions of each other.
type cellDeal struct {
	cell CellID
	deal int
}

func (g *grower) key(s world.Spec) cellDeal { return cellDeal{g.ids.Of(s), s.Deal} }

// rename notes that a recorded spec is a spec of the plan.
func (g *grower) rename(was, is world.Spec) error {
	if was.Cell == is.Cell {
		return nil
	}
	if other, ok := g.Renamed[was.Cell]; ok && other != is.Cell {
		return fmt.Errorf("the recorded cell %q is both %q and %q in the plan", was.Cell, other, is.Cell)
	}
	g.Renamed[was.Cell] = is.Cell
	return nil
}

// stages returns the recorded stages with the plan's names of cells. A cell that is not in the plan does not change.
func (g *grower) stages(recorded []world.Specs, cells map[CellID]world.Spec) (stages []world.Specs, err error) {
	for _, s := range cells {
		g.Cells = append(g.Cells, s.Cell)
	}
	for _, stage := range recorded {
		stages = append(stages, stage.Map(func(was world.Spec) world.Spec {
			is, ok := cells[g.ids.Of(was)]
			if !ok {
				return was
			}
			err = cmp.Or(err, g.rename(was, is))
			return is.WithDeal(was.Deal)
		}))
	}
	return stages, err
}

// list removes the recorded specs from l. Usually l begins with them.
func (g *grower) list(recorded []world.Specs, l world.Specs) error {
	cells := map[CellID]world.Spec{}
	for _, s := range l.Distinct() {
		cells[g.ids.Of(s)] = s
	}
	stages, err := g.stages(recorded, cells)
	if err != nil {
		return err
	}
	g.Recorded = world.Join(recorded...).Len()
	rest, ok := g.after(recorded, l)
	if !ok {
		rest = g.others(recorded, l)
	}
	g.New = rest.Len()
	g.Stages = &grownPlan{stages: stages, rest: &onceList{rest}}
	return nil
}

// after returns the specs of l after the recorded ones, if l begins with these.
func (g *grower) after(recorded []world.Specs, l world.Specs) (world.Specs, bool) {
	n := 0
	for _, stage := range recorded {
		if stage.Len() > l.Len()-n || l.Cut(n, n+stage.Len()).Diff(stage, func(a, b world.Spec) bool { return g.key(a) == g.key(b) }) >= 0 {
			return world.Specs{}, false
		}
		n += stage.Len()
	}
	return l.Cut(n, l.Len()), true
}

// others returns the specs of l that are not recorded, in order.
func (g *grower) others(recorded []world.Specs, l world.Specs) world.Specs {
	left, all := map[cellDeal]int{}, world.Join(recorded...)
	for _, s := range all.All() {
		left[g.key(s)]++
	}
	var rest []world.Spec
	for _, s := range l.All() {
		k := g.key(s)
		switch n := left[k]; n {
		case 0:
			rest = append(rest, s)
		case 1:
			delete(left, k)
		default:
			left[k]--
		}
	}
	for n, s := range all.All() { // the rest is not in l
		if k := g.key(s); left[k] > 0 {
			left[k]--
			g.miss(n, s)
		}
	}
	return world.List(rest...)
}

// miss notes that a recorded episode is not in the plan.
func (g *grower) miss(n int, was world.Spec) {
	if g.missing.Count++; g.missing.Count == 1 {
		g.missing.Episode, g.missing.Spec = n, was
	}
}

// until makes u take the recorded episodes into account.
func (g *grower) until(recorded []world.Specs, u *untilPlan) error {
	cells := map[CellID]world.Spec{}
	for _, c := range u.open {
		cells[g.ids.Of(c.spec)] = c.spec
	}
	for n, was := range world.Join(recorded...).All() {
		if _, ok := cells[g.ids.Of(was)]; !ok || was.Deal < 0 || was.Deal >= u.Max {
			g.miss(n, was)
		}
		g.Recorded++
	}
	stages, err := g.stages(recorded, cells)
	g.Stages, g.New = &grownPlan{stages: stages, rest: u, keep: true}, -1
	return err
}

// grownPlan plays stages, and then what rest makes of all of them together.
type grownPlan struct {
	stages []world.Specs
	rest   world.Stages
	keep   bool // rest needs the played episodes
	played []world.Played
}

// Next returns the next stage.
func (p *grownPlan) Next(last []world.Played) world.Specs {
	if p.keep {
		p.played = append(p.played, last...)
	}
	for len(p.stages) > 0 {
		stage := p.stages[0]
		p.stages = p.stages[1:]
		if stage.Len() > 0 { // or the run would end here
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

// Fixed reports whether only a list follows the recorded stages.
func (p *grownPlan) Fixed() bool {
	_, list := p.rest.(*onceList)
	return list
}

// Err returns the error of rest, or nil.
func (p *grownPlan) Err() error {
	if failed, ok := p.rest.(part.FailingStages); ok {
		return failed.Err()
	}
	return nil
}

// onceList plays a list once, regardless of earlier stages.
type onceList struct{ list world.Specs }

// Next returns the list the first time, and then nothing.
func (o *onceList) Next([]world.Played) world.Specs {
	l := o.list
	o.list = world.Specs{}
	return l
}

// CellID identifies the cell of an episode: its kind, its params without those of Environment.Outside, its lineup and its
// system prompts. The name of the cell is not a part of it.
type CellID [16]byte

// CellIDs computes CellIDs. Only one goroutine may use it.
type CellIDs struct {
	kind   world.Kind
	params map[paramsAt]CellID // specs share params, which may be large
}

// paramsAt is where params are in memory.
type paramsAt struct {
	kind  string
	first *byte
	size  int
}

// maxParams limits how many params are remembered.
const maxParams = 1024

// NewCellIDs returns a CellIDs for specs of a kind.
func NewCellIDs(k world.Kind) *CellIDs { return &CellIDs{kind: k, params: map[paramsAt]CellID{}} }

// Of returns the CellID of a spec.
func (c *CellIDs) Of(s world.Spec) CellID {
	var pair [128]byte
	var high, low uint64 // of the lineup: a sum, so that the order of seats does not count
	for seat, agent := range s.Lineup {
		b := binary.AppendUvarint(pair[:0], uint64(len(seat)))
		h := xxh3.Hash128(append(append(b, seat...), agent...))
		high, low = high+h.Hi, low+h.Lo
	}
	params := c.paramsOf(s)
	b := append(pair[:0], params[:]...)
	b = binary.BigEndian.AppendUint64(b, high)
	b = binary.BigEndian.AppendUint64(b, low)
	for _, agent := range slices.Sorted(maps.Keys(s.Systems)) {
		b = fmt.Appendf(b, "%q%q", agent, s.Systems[agent])
	}
	return xxh3.Hash128(append(b, s.Kind...)).Bytes()
}

func (c *CellIDs) paramsOf(s world.Spec) CellID {
	if len(s.Params) == 0 {
		return CellID{}
	}
	at := paramsAt{s.Kind, &s.Params[0], len(s.Params)}
	id, ok := c.params[at]
	if !ok {
		if len(c.params) >= maxParams {
			clear(c.params)
		}
		id = xxh3.Hash128(c.kind.Of(s).Identity(s.Params)).Bytes()
		c.params[at] = id
	}
	return id
}

// Draw identifies an episode of a run by what it plays. What a model draws depends on it and not on the
// episode's number, so an experiment that grows plays the same as one that was that large from the
// start.
type Draw struct {
	Cell CellID
	Deal int
	Nth  int // of the run's episodes with the same cell and deal, from 0
}

// Draws identifies the episodes of a run. It must be given all of them, in order.
type Draws struct {
	ids  *CellIDs
	seen map[CellID][]dealRange
}

// dealRange is a range of deals that were each played the same number of times.
type dealRange struct{ first, last, times int }

// NewDraws returns Draws for a run of a kind.
func NewDraws(k world.Kind) *Draws {
	return &Draws{ids: NewCellIDs(k), seen: map[CellID][]dealRange{}}
}

// Of identifies the next episode.
func (d *Draws) Of(spec world.Spec) Draw {
	id := d.ids.Of(spec)
	list, nth := count(d.seen[id], spec.Deal)
	d.seen[id] = list
	return Draw{id, spec.Deal, nth}
}

// count adds a deal to the ordered list, and returns how often it was there before. Deals mostly
// come in order and equally often, so the list stays short.
func count(list []dealRange, deal int) (_ []dealRange, before int) {
	i, _ := slices.BinarySearchFunc(list, deal, func(d dealRange, deal int) int { return cmp.Compare(d.last, deal) })
	switch {
	case i == len(list) || list[i].first > deal:
		list = slices.Insert(list, i, dealRange{deal, deal, 1})
	case list[i].first == list[i].last:
		before = list[i].times
		list[i].times++
	default:
		in := list[i]
		before = in.times
		var parts []dealRange
		if in.first < deal {
			parts = append(parts, dealRange{in.first, deal - 1, before})
		}
		parts = append(parts, dealRange{deal, deal, before + 1})
		if in.last > deal {
			parts = append(parts, dealRange{deal + 1, in.last, before})
		}
		list = slices.Replace(list, i, i+1, parts...)
	}
	return joined(joined(list, i), i-1), before
}

// joined merges entry i of list with the next one, if they can be one range.
func joined(list []dealRange, i int) []dealRange {
	if i < 0 || i+1 >= len(list) || list[i].last != list[i+1].first-1 || list[i].times != list[i+1].times {
		return list
	}
	list[i].last = list[i+1].last
	return slices.Delete(list, i+1, i+2)
}
