package compare

import (
	"cmp"
	"encoding/json"

	"parley/internal/view"
	"parley/world"
)

// deal is what an episode was given to play with. Where it is equal, episodes are a pair.
type deal struct {
	run    string // where the unit is no deal, but an episode of a run
	kind   string
	what   string // what the kind says beside chance: a problem
	seed   uint64 // with number, what chance depended on
	number int
}

func (d deal) compare(other deal) int {
	return cmp.Or(cmp.Compare(d.run, other.run), cmp.Compare(d.kind, other.kind), cmp.Compare(d.what, other.what),
		cmp.Compare(d.seed, other.seed), cmp.Compare(d.number, other.number))
}

// dealer tells the deals of a run.
type dealer struct {
	seed  uint64
	kind  world.Kind
	given map[int]given // by setting of the params, which are read once
}

// given is what a kind says of params: see world.Kind.
type given struct {
	what  string
	whole bool
}

func newDealer(r *view.Run, kinds []world.Kind) dealer {
	d := dealer{seed: r.Head.Begun.Seed, given: map[int]given{}}
	for _, k := range kinds {
		if k.Name == r.Head.Begun.Kind && k.Version == r.Head.Begun.KindVersion {
			d.kind = k
		}
	}
	return d
}

func (d dealer) deal(spec world.Spec, setting int) deal {
	g, ok := d.given[setting]
	if !ok {
		g = d.read(spec.Params)
		d.given[setting] = g
	}
	if g.whole {
		return deal{kind: spec.Kind, what: g.what}
	}
	return deal{kind: spec.Kind, what: g.what, seed: d.seed, number: spec.Deal}
}

func (d dealer) read(raw json.RawMessage) (g given) {
	if d.kind.Dealt == nil {
		return g
	}
	params := d.kind.Params()
	if json.Unmarshal(raw, params) != nil {
		return g // a run file may come from anywhere
	}
	g.what, g.whole = d.kind.Dealt(params)
	return g
}
