package merge

import (
	"encoding/json"
	"fmt"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/world"
)

// episodeKey identifies an episode by what is played, without what was said.
type episodeKey struct {
	kind string
	seed uint64
	planner.Draw
	who string // the agents in the seats
}

// play is what was said in an episode of a run.
type play struct {
	run    int
	said   journal.Digest
	chance bool // independent episodes may have the same play
}

// numbered identifies an episode by its number in a run. Copies of the file share it.
type numbered struct {
	run     string
	episode int
}

// duplicates finds the episodes of each run that are also in an earlier one: those of copies of a
// file, and those with the same key and the same play. If little was said, plays can be equal by
// chance, and leaving out only equal ones would bias every mean. So such episodes are
// duplicates only if two runs agree in all episodes that have the same key.
func duplicates(members []*member) (drop []map[int]bool, shared []Shared) {
	best := bestCopies(members)
	at, count := map[episodeKey][]play{}, map[[2]int]int{}
	keysOf := make([]map[int]episodeKey, len(members))
	for i, p := range members {
		drop = append(drop, map[int]bool{})
		keysOf[i] = map[int]episodeKey{}
		k := newKeyer(p)
		p.each(func(n int, spec world.Spec) {
			key := k.of(spec)
			e, ended := p.head.Ended.Of(n)
			if b := best[numbered{p.head.Begun.Run, n}]; b != i && (!ended || e.Play == members[b].head.Ended.Play(n)) {
				drop[i][n] = true
				count[[2]int{min(b, i), max(b, i)}]++
				return
			}
			if ended && e.Play != (journal.Digest{}) {
				keysOf[i][n] = key
				at[key] = append(at[key], play{i, e.Play, e.Chance})
			}
		})
	}
	differ := differing(at)
	for i, p := range members {
		p.each(func(n int, _ world.Spec) {
			key, ok := keysOf[i][n]
			if !ok {
				return
			}
			own, _ := p.head.Ended.Of(n)
			for _, other := range at[key] {
				if other.run < i && other.said == own.Play && (!own.Chance || !differ[[2]int{other.run, i}]) {
					drop[i][n] = true
					count[[2]int{other.run, i}]++
					return
				}
			}
		})
	}
	for i, a := range members {
		for j, b := range members {
			if n := count[[2]int{i, j}]; n > 0 {
				shared = append(shared, Shared{a.Name, b.Name, n})
			}
		}
	}
	return drop, shared
}

// each calls f with every episode of the run.
func (p *member) each(f func(n int, spec world.Spec)) {
	for _, st := range p.head.Stages {
		for j, spec := range st.Specs.All() {
			f(st.First+j, spec)
		}
	}
}

// differing returns the pairs of runs that have different plays for one key.
func differing(at map[episodeKey][]play) map[[2]int]bool {
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

// bestCopies returns the run to take each numbered episode from: the first in which it ended, or
// else the first that has it.
func bestCopies(members []*member) map[numbered]int {
	best := map[numbered]int{}
	for i, p := range members {
		p.each(func(n int, _ world.Spec) {
			key := numbered{p.head.Begun.Run, n}
			first, known := best[key]
			if !known || p.head.Ended.Has(n) && !members[first].head.Ended.Has(n) {
				best[key] = i
			}
		})
	}
	return best
}

// keyer computes the keys of the episodes of a run, in order.
type keyer struct {
	episodeKey
	draws  *planner.Draws
	agents map[string]world.Agent
	who    map[planner.CellID]string
}

func newKeyer(p *member) *keyer {
	b := p.head.Begun
	k := &keyer{
		episodeKey: episodeKey{kind: fmt.Sprint(b.Kind, " ", b.KindVersion), seed: b.Seed},
		draws:      planner.NewDraws(p.Kind), agents: map[string]world.Agent{}, who: map[planner.CellID]string{},
	}
	for _, a := range b.Agents {
		a.Tags = nil // tags do not change the play
		k.agents[a.Name] = a
	}
	return k
}

// of returns the key of the next episode.
func (k *keyer) of(s world.Spec) episodeKey {
	at := k.episodeKey
	at.Draw = k.draws.Of(s)
	who, known := k.who[at.Cell]
	if !known {
		seats := map[string]world.Agent{}
		for seat, name := range s.Lineup {
			seats[seat] = k.agents[name]
		}
		text, err := json.Marshal(seats)
		if err != nil {
			text = fmt.Append(nil, err)
		}
		who = string(text)
		k.who[at.Cell] = who
	}
	at.who = who
	return at
}
