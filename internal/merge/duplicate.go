package merge

import (
	"encoding/json"
	"fmt"

	"parley/internal/planner"
	"parley/journal"
	"parley/world"
)

// place identifies an episode by what is played: everything but what was said.
type place struct {
	kind string
	seed uint64
	cell planner.CellID
	who  string // what sat in the seats
	deal int
	nth  int // of the run's episodes with all of this
}

// play is what was said at a place in a run.
type play struct {
	run    int
	said   journal.Digest
	chance bool // two independent episodes may say the same
}

// numbered identifies an episode by its number in a run, which copies of its file share.
type numbered struct {
	run     string
	episode int
}

// duplicates finds the episodes of each run that are in an earlier one too: those of copies of
// a file, and those in which the same was said at the same place. Where little was said, that
// may be chance, and leaving out just those that agree would bias every mean: such episodes are
// duplicates only where two runs agree at all places that they have in common.
func duplicates(parts []*part) (drop []map[int]bool, shared []Shared) {
	best := bestCopies(parts)
	at, count := map[place][]play{}, map[[2]int]int{}
	places := make([]map[int]place, len(parts))
	for i, p := range parts {
		drop = append(drop, map[int]bool{})
		places[i] = map[int]place{}
		k := newKeys(p)
		p.each(func(n int, spec world.Spec) {
			key := k.of(spec)
			e, ended := p.head.Ended[n]
			if b := best[numbered{p.head.Begun.Run, n}]; b != i && (!ended || e.Play == parts[b].head.Ended[n].Play) {
				drop[i][n] = true
				count[[2]int{min(b, i), max(b, i)}]++
				return
			}
			if ended && e.Play != (journal.Digest{}) {
				places[i][n] = key
				at[key] = append(at[key], play{i, e.Play, e.Chance})
			}
		})
	}
	differ := differing(at)
	for i, p := range parts {
		p.each(func(n int, _ world.Spec) {
			key, ok := places[i][n]
			if !ok {
				return
			}
			own := p.head.Ended[n]
			for _, other := range at[key] {
				if other.run < i && other.said == own.Play && (!own.Chance || !differ[[2]int{other.run, i}]) {
					drop[i][n] = true
					count[[2]int{other.run, i}]++
					return
				}
			}
		})
	}
	for i, a := range parts {
		for j, b := range parts {
			if n := count[[2]int{i, j}]; n > 0 {
				shared = append(shared, Shared{a.Name, b.Name, n})
			}
		}
	}
	return drop, shared
}

// each calls f with every episode of the run.
func (p *part) each(f func(n int, spec world.Spec)) {
	for _, st := range p.head.Stages {
		for j, spec := range st.Specs.All() {
			f(st.First+j, spec)
		}
	}
}

// differing tells the pairs of runs in which something else was said at one place.
func differing(at map[place][]play) map[[2]int]bool {
	differ := map[[2]int]bool{}
	for _, plays := range at {
		for j, b := range plays {
			for _, a := range plays[:j] {
				if a.said != b.said {
					differ[[2]int{a.run, b.run}] = true
				}
			}
		}
	}
	return differ
}

// bestCopies says, for each numbered episode, which of the runs to take it from: the first in
// which it ended, or else the first that has it.
func bestCopies(parts []*part) map[numbered]int {
	best := map[numbered]int{}
	for i, p := range parts {
		p.each(func(n int, _ world.Spec) {
			key := numbered{p.head.Begun.Run, n}
			first, known := best[key]
			if !known || hasEnded(p, n) && !hasEnded(parts[first], n) {
				best[key] = i
			}
		})
	}
	return best
}

func hasEnded(p *part, episode int) bool {
	_, ok := p.head.Ended[episode]
	return ok
}

// keys tells the places of the episodes of a run, in order.
type keys struct {
	place
	ids    *planner.CellIDs
	agents map[string]world.Agent
	who    map[planner.CellID]string
	seen   map[place]int
}

func newKeys(p *part) *keys {
	b := p.head.Begun
	k := &keys{
		place: place{kind: fmt.Sprint(b.Kind, " ", b.KindVersion), seed: b.Seed},
		ids:   planner.NewCellIDs(p.Kind), agents: map[string]world.Agent{}, who: map[planner.CellID]string{}, seen: map[place]int{},
	}
	for _, a := range b.Agents {
		a.Tags = nil // for readers alone
		k.agents[a.Name] = a
	}
	return k
}

// of is the place of the next episode.
func (k *keys) of(s world.Spec) place {
	at := k.place
	at.cell, at.deal = k.ids.Of(s), s.Deal
	who, known := k.who[at.cell]
	if !known {
		sitting := map[string]world.Agent{}
		for seat, name := range s.Lineup {
			sitting[seat] = k.agents[name]
		}
		text, err := json.Marshal(sitting)
		if err != nil {
			text = fmt.Append(nil, err)
		}
		who = string(text)
		k.who[at.cell] = who
	}
	at.who = who
	nth := k.seen[at]
	k.seen[at]++
	at.nth = nth
	return at
}
