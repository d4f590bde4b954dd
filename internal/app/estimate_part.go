package app

import (
	"encoding/json"
	"fmt"
	"math"

	"parley/internal/config"
	"parley/internal/stats"
	"parley/world"
)

// part is episodes of one sort: how many a plan has of it, in how many stages one after
// the other, and which of those that were tried are like it.
type part struct {
	name      string
	cell      string // parts of one cell are played one after the other, those of several beside each other
	low, high int
	stages    int
	from, to  int // in trial.episodes
}

// PartUse is a part of a plan that a kind makes as it goes, such as a generation.
type PartUse struct {
	Name     string     `json:"name"`
	Episodes PartExtent `json:"episodes"`
	Stages   int        `json:"stages"` // one after the other, at most
	Use
}

// PartExtent is how many episodes a part has, at least and at most.
type PartExtent struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

// outlook is what a plan is made of, and which episodes to try to find out what that takes.
type outlook struct {
	cells  []world.Spec
	parts  []part
	sample []world.Spec
}

// look finds out what the plan is made of. What a kind plans by itself is as the kind
// foresees it; any other plan is one part.
func (c Check) look() (*outlook, error) {
	plain := *c.Plan
	if c.Plan.Kind.Forecast != nil {
		plain.Kind.Plan = nil // what the plan file asks for, not what becomes of it
	}
	stages, err := plain.World()
	if err != nil {
		return nil, err
	}
	first := stages.Next(nil)
	o := &outlook{cells: cellsOf(first)}
	if c.Plan.Kind.Plan != nil && c.Plan.Kind.Forecast != nil {
		return o, c.foresee(o, first)
	}
	o.sample = sampleOf(o.cells, first.Len(), c.Episodes)
	whole := part{low: first.Len(), high: first.Len(), stages: 1, to: len(o.sample)}
	if u := c.Plan.Until; u != nil {
		whole.high = len(o.cells) * u.Max
		whole.stages += (u.Max - u.Min + u.Step - 1) / u.Step
	}
	o.parts = []part{whole}
	return o, nil
}

// foresee asks the kind what becomes of each episode that the plan file asks for. Those of
// one cell come to the same parts.
func (c Check) foresee(o *outlook, specs world.Specs) error {
	like := [][]world.Spec{}
	if specs.Len() > config.MaxDistinct {
		return fmt.Errorf("the plan makes more than %d plans of its kind's own: lower episodes", config.MaxDistinct)
	}
	at := map[string]int{} // the first part of a cell
	for _, spec := range specs.All() {
		params := c.Plan.Kind.Params()
		err := json.Unmarshal(spec.Params, params)
		var parts []world.Part
		if err == nil {
			parts, err = c.Plan.Kind.Forecast(params, spec, c.Plan.Seed)
		}
		if err != nil {
			return fmt.Errorf("forecast: %w", err)
		}
		from, known := at[spec.Cell]
		if !known {
			from = len(o.parts)
			at[spec.Cell] = from
		}
		for i, p := range parts {
			if len(p.Like) == 0 {
				return fmt.Errorf("forecast: %s: nothing says what its episodes are like", p.Name)
			}
			if !known {
				o.parts = append(o.parts, part{name: p.Name, cell: spec.Cell})
				like = append(like, p.Like)
			}
			if from+i < len(o.parts) {
				of := &o.parts[from+i]
				of.low, of.high, of.stages = of.low+p.Low, of.high+p.High, max(of.stages, p.Stages)
			}
		}
	}
	const most = 256 // so that a matrix of many cells takes no longer than it must
	n := max(1, len(o.parts))
	each := max(2, c.Episodes/n, min(leastTried, most/n))
	for i := range o.parts {
		o.parts[i].from = len(o.sample)
		o.sample = append(o.sample, some(like[i], each)...)
		o.parts[i].to = len(o.sample)
	}
	return nil
}

// some takes so many of specs, evenly from all of them. Where they are too few, they are
// taken again with other deals.
func some(specs []world.Spec, n int) []world.Spec {
	var out []world.Spec
	for i := range n {
		at := i
		if n < len(specs) {
			at = i * len(specs) / n
		}
		s := specs[at%len(specs)]
		s.Deal += at / len(specs)
		out = append(out, s)
	}
	return out
}

// partUses sums up parts with the same name, in the order of their first.
func (t *trial) partUses(parts []part, priced bool) []PartUse {
	uses := []PartUse{}
	of := t.of(func(string) bool { return true })
	byName := map[string][]part{}
	for _, p := range parts {
		if byName[p.name] == nil {
			uses = append(uses, PartUse{Name: p.name})
		}
		byName[p.name] = append(byName[p.name], p)
	}
	for i := range uses {
		u := &uses[i]
		same := byName[u.Name]
		for _, p := range same {
			u.Episodes.Low += p.low
			u.Episodes.High += p.high
		}
		u.Stages = int(inARow(same, func(p part) float64 { return float64(p.stages) }))
		u.Use = t.use(of, same, priced)
	}
	return uses
}

// inARow adds something up over the parts of a cell, which come one after the other, and
// returns the most of any cell.
func inARow(parts []part, get func(part) float64) (most float64) {
	sums := map[string]float64{}
	for _, p := range parts {
		sums[p.cell] += get(p)
		most = max(most, sums[p.cell])
	}
	return most
}

// amount is the mean over the episodes that were tried, and what it makes of all. The
// interval is one of prediction: the plan's episodes are taken to be new ones, since a
// real model's answers are. Of several parts, the mean is by how many episodes each has at
// most.
func (t *trial) amount(of []spent, parts []part, get func(spent) float64) Amount {
	var a Amount
	var low, high, spread, half, weight float64 // spread and half are squares
	for _, p := range parts {
		values := make([]float64, 0, p.to-p.from)
		for _, s := range of[p.from:p.to] {
			values = append(values, get(s))
		}
		e := stats.Mean(t.withinCells(values, p.from), confidence)
		sure := func(n int) float64 {
			h := e.Interval.Half()
			return h * h * float64(n) * float64(n+len(values))
		}
		a.Total.Low += float64(p.low) * e.Mean
		a.Total.High += float64(p.high) * e.Mean
		low += sure(p.low)
		high += sure(p.high)
		w := float64(p.high)
		weight += w
		spread += w * e.SD * e.SD
		half += w * w * e.Interval.Half() * e.Interval.Half()
		a.Episode = stats.Estimate{N: a.Episode.N + e.N, Mean: a.Episode.Mean + w*e.Mean, Method: e.Method}
	}
	if weight > 0 {
		a.Episode.Mean /= weight
		a.Episode.SD = math.Sqrt(spread / weight)
		half = math.Sqrt(half) / weight
	}
	a.Episode.Interval = stats.Interval{Low: a.Episode.Mean - half, High: a.Episode.Mean + half}
	a.Total = stats.Interval{Low: max(0, a.Total.Low-math.Sqrt(low)), High: a.Total.High + math.Sqrt(high)}
	return a
}

// withinCells takes away how cells differ from each other: how often each is played is
// known, and only what differs within one is chance. Each cell was tried equally often.
// The values are of the episodes from one on.
func (t *trial) withinCells(values []float64, from int) []float64 {
	sums, counts, mean := map[string]float64{}, map[string]float64{}, 0.0
	for i, v := range values {
		cell := t.episodes[from+i].cell
		sums[cell] += v
		counts[cell]++
		mean += v / float64(len(values))
	}
	n, k := float64(len(values)), float64(len(counts))
	if k < 2 || n <= k {
		return values // one cell, or one episode of each: all there is to go by
	}
	freedom := math.Sqrt((n - 1) / (n - k))
	out := make([]float64, len(values))
	for i, v := range values {
		cell := t.episodes[from+i].cell
		out[i] = mean + freedom*(v-sums[cell]/counts[cell])
	}
	return out
}
