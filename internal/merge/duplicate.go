package merge

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/journal"
	"parley/world"
)

// played identifies an episode by what was played and said in it.
type played struct {
	kind string
	seed uint64
	cell world.CellID
	who  string // what sat in the seats
	deal int
	play journal.Digest
}

// numbered identifies an episode by its number in a run, which copies of its file share.
type numbered struct {
	run     string
	episode int
}

// duplicates finds the episodes of each run that are in an earlier one too.
func duplicates(parts []*part) (drop []map[int]bool, shared []Shared) {
	best := bestCopies(parts)
	seen := map[played][]int{} // in which runs
	count := map[[2]int]int{}
	for i, p := range parts {
		drop = append(drop, map[int]bool{})
		k := newKeys(p)
		own := map[played]int{}
		for _, st := range p.head.Stages {
			for j, spec := range st.Specs {
				n := st.First + j
				e, ended := p.head.Ended[n]
				if b := best[numbered{p.head.Begun.Run, n}]; b != i && (!ended || e.Play == parts[b].head.Ended[n].Play) {
					drop[i][n] = true
					count[[2]int{min(b, i), max(b, i)}]++
					continue
				}
				key, ok := k.of(spec, e)
				if !ended || !ok {
					continue
				}
				if at := own[key]; at < len(seen[key]) && seen[key][at] < i {
					drop[i][n] = true
					count[[2]int{seen[key][at], i}]++
				} else {
					seen[key] = append(seen[key], i)
				}
				own[key]++
			}
		}
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

// bestCopies says, for each numbered episode, which of the runs to take it from: the first in
// which it ended, or else the first that has it.
func bestCopies(parts []*part) map[numbered]int {
	best := map[numbered]int{}
	for i, p := range parts {
		for _, st := range p.head.Stages {
			for j := range st.Specs {
				key := numbered{p.head.Begun.Run, st.First + j}
				at, known := best[key]
				_, ended := p.head.Ended[key.episode]
				if !known || ended && !hasEnded(parts[at], key.episode) {
					best[key] = i
				}
			}
		}
	}
	return best
}

func hasEnded(p *part, episode int) bool {
	_, ok := p.head.Ended[episode]
	return ok
}

// keys identifies the episodes of a run.
type keys struct {
	part   *part
	kind   string
	ids    *world.CellIDs
	agents map[string]world.Agent
	who    map[world.CellID]string
}

func newKeys(p *part) *keys {
	k := &keys{part: p, kind: fmt.Sprint(p.head.Begun.Kind, " ", p.head.Begun.KindVersion), ids: world.NewCellIDs(p.Kind), agents: map[string]world.Agent{}, who: map[world.CellID]string{}}
	for _, a := range p.head.Begun.Agents {
		k.agents[a.Name] = a
	}
	return k
}

// of returns the key of an episode that ended. It is not ok where another episode may have come
// to the same by chance, or nothing is known about what was said.
func (k *keys) of(s world.Spec, e journal.Ended) (key played, ok bool) {
	if e.Play == (journal.Digest{}) || e.Chance && !k.bots(s) {
		return key, false
	}
	id := k.ids.Of(s)
	who, known := k.who[id]
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
		k.who[id] = who
	}
	return played{k.kind, k.part.head.Begun.Seed, id, who, s.Deal, e.Play}, true
}

// bots says whether no model sits in the seats: then the deal decides everything, unless
// something outside does.
func (k *keys) bots(s world.Spec) bool {
	names := make([]string, 0, len(s.Lineup))
	for _, name := range s.Lineup {
		names = append(names, name)
	}
	return k.part.Kind.Name != "" && !k.part.Kind.External && !slices.ContainsFunc(names, func(name string) bool { return k.agents[name].Bot == "" })
}
