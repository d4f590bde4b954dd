package estimate

import (
	"fmt"
	"math/rand/v2"

	"parley/internal/kit/statmath"
	"parley/internal/run/planner"
	"parley/internal/run/results"
	"parley/world"
)

// part is a set of similar episodes: how many a plan has, in how many consecutive stages, and
// which episodes of the sample represent it.
type part struct {
	name      string
	cell      string // parts of one cell are played one after the other; cells are played side by side
	low, high int
	stages    int
	from, to  int // in trial.episodes
}

// PartUse is a part of a plan that a kind makes during play, such as a generation.
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

// outlook holds the parts of a plan, and the sample of episodes to play.
type outlook struct {
	specs     world.Specs  // of the first stage
	cells     []world.Spec // one of each
	low, high int          // episodes
	parts     []part       // those in the sample: all, or those of random cells
	foreseen  bool         // the kind made the parts
	sample    []world.Spec
}

// look returns the outlook of the plan. If a kind plans during play, its forecast gives the
// parts. Any other plan has a part for each cell.
func (c Config) look() (*outlook, error) {
	stages, err := c.Plan.Asked()
	if err != nil {
		return nil, err
	}
	first := stages.Next(nil)
	foreseen := false
	if c.Plan.Kind.Plans() && first.Len() > 0 {
		parts, err := c.forecast(first.At(0))
		if err != nil {
			return nil, err
		}
		if foreseen = len(parts) > 0; !foreseen {
			if stages, err = c.Plan.World(); err != nil {
				return nil, err
			}
			first = stages.Next(nil)
		}
	}
	o := &outlook{specs: first, cells: cellsOf(first), foreseen: foreseen}
	r := rand.New(rand.NewPCG(c.Plan.Seed, uint64(first.Len())))
	if foreseen {
		return o, c.foresee(o, r)
	}
	o.low, o.high = first.Len(), first.Len()
	o.draw(c.Episodes, r)
	if u := c.Plan.Until; u != nil {
		o.high = len(o.cells) * u.Max
		for i := range o.parts {
			o.parts[i].high = u.Max
			o.parts[i].stages += (u.Max - u.Min + u.Step - 1) / u.Step
		}
	}
	return o, nil
}

// forecast asks the kind which parts it makes of an episode of the plan file.
func (c Config) forecast(spec world.Spec) ([]world.Part, error) {
	params, err := c.Plan.Kind.Read(spec.Params)
	var parts []world.Part
	if err == nil {
		parts, err = c.Plan.Kind.Forecast(params, spec, c.Plan.Seed)
	}
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	return parts, nil
}

// foresee asks the kind which parts it makes of each episode of the plan file. The episodes
// of one cell have the same parts.
func (c Config) foresee(o *outlook, r *rand.Rand) error {
	like := [][]world.Spec{}
	if o.specs.Len() > planner.MaxDistinct {
		return fmt.Errorf("the plan makes more than %d plans of its kind's own: lower episodes", planner.MaxDistinct)
	}
	at := map[string]int{} // the first part of a cell
	for _, spec := range o.specs.All() {
		parts, err := c.forecast(spec)
		if err != nil {
			return err
		}
		from, known := at[spec.Cell]
		if !known {
			from = len(o.parts)
			at[spec.Cell] = from
		}
		for i, p := range parts {
			if len(p.Like) == 0 {
				return fmt.Errorf("forecast: %s: Like has no example of its episodes", p.Name)
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
	const maxSample = 256 // limits the time for a matrix of many cells
	n := max(1, len(o.parts))
	each := max(2, c.Episodes/n, min(minSample, maxSample/n))
	for i := range o.parts {
		p := &o.parts[i]
		o.low, o.high = o.low+p.low, o.high+p.high
		p.from = len(o.sample)
		o.sample = append(o.sample, some(world.List(like[i]...), each, r)...)
		p.to = len(o.sample)
	}
	return nil
}

// partUses sums up parts with the same name, in the order of their first.
func (t *trial) partUses(o *outlook, priced bool) []PartUse {
	uses := []PartUse{}
	of := t.of(func(string) bool { return true })
	byName := map[string][]part{}
	for _, p := range o.parts {
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
		u.Stages = int(maxOfCells(same, func(p part) float64 { return float64(p.stages) }))
		u.Use = o.use(of, same, priced)
	}
	return uses
}

// maxOfCells adds get up over the consecutive parts of each cell, and returns the largest sum.
func maxOfCells(parts []part, get func(part) float64) (largest float64) {
	sums := map[string]float64{}
	for _, p := range parts {
		sums[p.cell] += get(p)
		largest = max(largest, sums[p.cell])
	}
	return largest
}

// amount returns the mean over the sample, and the total for the plan. The interval of the total
// is a prediction interval: the plan's episodes differ from the sample, as a real model's
// answers do. Parts are weighted by the most episodes that they can have.
func (o *outlook) amount(parts []part, values []float64) Amount {
	low, high := o.strata(parts, values, false), o.strata(parts, values, true)
	return Amount{
		Episode: high.Mean(results.Confidence),
		Total:   statmath.Interval{Low: max(0, low.Total(results.Confidence).Low), High: high.Total(results.Confidence).High},
	}
}

// strata returns values, one for each episode of the sample, as a sample of parts. The size of a
// part is its largest number of episodes if largest is set, and its smallest otherwise.
func (o *outlook) strata(parts []part, values []float64, largest bool) statmath.Strata {
	s := statmath.Strata{All: len(parts)}
	for _, p := range parts {
		size := p.low
		if largest {
			size = p.high
		}
		s.Size += float64(size)
		s.Sampled = append(s.Sampled, statmath.Stratum{Size: float64(size), Values: values[p.from:p.to]})
	}
	if !o.foreseen { // cells may be missing in the sample
		s.All, s.Size = len(o.cells), float64(o.low)
		if largest {
			s.Size = float64(o.high)
		}
	}
	return s
}
