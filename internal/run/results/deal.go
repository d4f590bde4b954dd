package results

import (
	"cmp"
	"encoding/json"
	"iter"

	"parley/journal"
	"parley/world"
)

// Deal is what an episode depends on before it is played. Episodes with the same deal are pairs, and not independent.
type Deal struct {
	Run    string // set if the unit is an episode of a run, not a deal
	Kind   string
	What   string // what else the kind deals, such as a problem
	Seed   uint64 // with Number, what chance depends on
	Number int
}

// Compare orders deals.
func (d Deal) Compare(other Deal) int {
	return cmp.Or(cmp.Compare(d.Run, other.Run), cmp.Compare(d.Kind, other.Kind), cmp.Compare(d.What, other.What),
		cmp.Compare(d.Seed, other.Seed), cmp.Compare(d.Number, other.Number))
}

// Deals finds the deals of a run's episodes.
type Deals struct {
	seed  uint64
	kind  world.Kind
	given map[string]given // by params
}

// given is the task that the params of an episode give it: see world.TaskNamer.
type given struct {
	what  string
	whole bool
}

// Deals returns the deals of r. It uses the kind only if it is the one that played r.
func (r *Run) Deals() *Deals {
	d := &Deals{seed: r.Head.Begun.Seed, given: map[string]given{}}
	if k := r.kind; k.Name == r.Head.Begun.Kind && k.Version == r.Head.Begun.KindVersion {
		d.kind = k
	}
	return d
}

// Of returns the deal of an episode.
func (d *Deals) Of(spec world.Spec) Deal {
	g, ok := d.given[string(spec.Params)]
	if !ok {
		g = d.read(spec.Params)
		d.given[string(spec.Params)] = g
	}
	if g.whole {
		return Deal{Kind: spec.Kind, What: g.what}
	}
	return Deal{Kind: spec.Kind, What: g.what, Seed: d.seed, Number: spec.Deal}
}

func (d *Deals) read(raw json.RawMessage) (g given) {
	params, err := d.kind.Read(raw)
	if err != nil {
		return g // a run file may hold anything
	}
	g.what, g.whole = d.kind.TaskName(params)
	return g
}

// Units numbers the deals and plays of one or several runs.
type Units struct {
	deals map[Deal]int
	plays map[journal.Digest]int
}

// NewUnits returns empty Units.
func NewUnits() *Units { return &Units{map[Deal]int{}, map[journal.Digest]int{}} }

// Of returns the unit of an episode of r, as Each passes it. d are the deals of r.
func (u *Units) Of(r *Run, d *Deals, p world.Played) world.Unit {
	return u.of(r, d.Of(p.Spec), r.Head.Ended.Play(p.Episode), p.Unit.Play == 0)
}

func (u *Units) of(r *Run, d Deal, play journal.Digest, chance bool) (unit world.Unit) {
	if r.Head.Begun.Fork == nil { // all episodes of a fork have one deal, and the question is how it can end
		unit.Deal = number(u.deals, d)
	}
	if !chance && play != (journal.Digest{}) {
		unit.Play = number(u.plays, play)
	}
	return unit
}

// runUnits are the units of the episodes of a run that ended, by their place among these.
type runUnits struct {
	deals, plays firsts
	fork         bool // all episodes have one deal, and the question is how it can end
}

// of returns the unit of an episode, and what of it other episodes share: a deal or play that is only its own is 0 there.
func (u *runUnits) of(place int, e *journal.Ended) (unit, shared world.Unit) {
	if !u.fork {
		shared.Deal = u.deals.At(place)
		unit.Deal = cmp.Or(shared.Deal, place+1)
	}
	if !e.Chance && e.Play != (journal.Digest{}) {
		shared.Play = u.plays.At(place)
		unit.Play = cmp.Or(shared.Play, place+1)
	}
	return unit, shared
}

// FindUnits finds which episodes share a deal or a play. After it, several goroutines may read the run.
func (r *Run) FindUnits() {
	if r.units != nil {
		return
	}
	n := r.Head.Ended.Len()
	r.units = &runUnits{fork: r.Head.Begun.Fork != nil}
	if !r.units.fork {
		r.units.deals = findCopies(n, r.dealt())
	}
	r.units.plays = findCopies(n, func(yield func(int, journal.Digest) bool) {
		i := 0
		for _, e := range r.Head.Plays() {
			if !e.Chance && e.Play != (journal.Digest{}) && !yield(i, e.Play) {
				return
			}
			i++
		}
	})
}

// dealt yields the deals of the episodes that ended: a number for all but the number of the deal, and that.
func (r *Run) dealt() iter.Seq2[int, [2]int] {
	return func(yield func(int, [2]int) bool) {
		deals, kinds, i := r.Deals(), map[Deal]int{}, 0
		for spec := range r.Head.Plays() {
			d := deals.Of(spec)
			of := d.Number
			d.Number = 0
			if !yield(i, [2]int{number(kinds, d), of}) {
				return
			}
			i++
		}
	}
}

func number[K comparable](known map[K]int, key K) int {
	if known[key] == 0 {
		known[key] = len(known) + 1
	}
	return known[key]
}
