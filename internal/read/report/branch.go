package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/internal/run/results"
)

// ref identifies an episode of a run, which may or may not be among those compared.
type ref struct {
	run     string
	episode int
}

// pasts returns, for each run, the episodes that it continues: the episode it was forked from,
// the episode that one was forked from, and so on, as far as the runs show.
func pasts(runs []*results.Run) [][]ref {
	origin := map[string]*ref{}
	for _, r := range runs {
		if b := r.Head.Begun; b.Fork != nil {
			origin[b.Run] = &ref{b.Fork.Run, b.Fork.Episode}
		}
	}
	out := make([][]ref, len(runs))
	for i, r := range runs {
		at := origin[r.Head.Begun.Run]
		for at != nil && len(out[i]) < len(runs) { // a file may claim to be forked from itself
			out[i] = append(out[i], *at)
			at = origin[at.run]
		}
	}
	return out
}

func forked(runs []*results.Run) bool {
	return slices.ContainsFunc(runs, func(r *results.Run) bool { return r.Head.Begun.Fork != nil })
}

// together gives the same name to forks of several episodes that were changed in the same way, so
// that they form one group.
func together(runs []*results.Run, names []string) []string {
	type change struct{ origin, how string }
	of := func(r *results.Run) (c change, ok bool) {
		b := r.Head.Begun
		if b.Fork == nil || len(r.Head.Stages) == 0 || r.Head.Stages[0].Specs.Len() == 0 {
			return c, false
		}
		spec := r.Head.Stages[0].Specs.At(0)
		agents, err := json.Marshal(b.Agents)
		return change{b.Fork.Run, fmt.Sprintf("%d %s %v %s", b.Fork.Turn, spec.Params, spec.Lineup, agents)}, err == nil
	}
	alike := map[change][]int{}
	for i, r := range runs {
		if c, ok := of(r); ok {
			alike[c] = append(alike[c], i)
		}
	}
	out := slices.Clone(names)
	for _, members := range alike {
		episodes := map[int]bool{}
		for _, i := range members {
			episodes[runs[i].Head.Begun.Fork.Episode] = true
		}
		if len(episodes) < 2 {
			continue // of one episode: more draws, which stay separate
		}
		for _, i := range members {
			out[i] = fmt.Sprintf("%s and %d more", names[members[0]], len(members)-1)
		}
		if len(members) == len(runs) {
			return names
		}
	}
	return out
}

// branches compares episodes that continue the same past episodes. It is not ok if there are none. A past
// counts as one pair, however often it was continued. If there is only one past, every
// continuation counts, and the comparison is only about that past.
func branches(x, y []observation) (pairing, bool) {
	x, y = related(x, y), related(y, x)
	x, y = shared(x, y), shared(y, x)
	if len(x) == 0 || len(y) == 0 {
		return pairing{}, false
	}
	if p := matched(x, y); p.paired {
		if slices.ContainsFunc(slices.Concat(x, y), func(o observation) bool { return o.past != o.self }) {
			p.unit = "forked episode"
		}
		p.x, p.y = x, y
		return p, true
	}
	if p := matched(byPast(x), byPast(y)); p.paired {
		p.unit, p.note, p.x, p.y = "repeat", onePast, x, y
		return p, true
	}
	x, y = byEpisode(x), byEpisode(y)
	a, alone := means(x)
	b, single := means(y)
	p := pairing{a: a, b: b, single: alone && single, episodes: 2, unit: "repeat", note: onePast, x: x, y: y}
	if min(len(a), len(b)) == 1 && max(len(a), len(b)) > 1 {
		p.note += "; one of them has a single episode: for more, fork it again unchanged with --repeat"
	}
	return p, true
}

const onePast = "both continue one and the same episode, so this is only about what follows from there"

// related keeps the observations of x that share a past with some of y, and sets the
// nearest. It clears the cell, which a fork does not keep.
func related(x, y []observation) (out []observation) {
	known := map[ref]bool{}
	for _, o := range y {
		known[o.self] = true
		for _, r := range o.from {
			known[r] = true
		}
	}
	for _, o := range x {
		for _, r := range append([]ref{o.self}, o.from...) {
			if known[r] {
				o.past, o.stratum = r, stratum{seat: o.stratum.seat}
				out = append(out, o)
				break
			}
		}
	}
	return out
}

// shared keeps the observations of x whose nearest past is also the nearest past of some of y.
func shared(x, y []observation) []observation {
	pasts := map[ref]bool{}
	for _, o := range y {
		pasts[o.past] = true
	}
	return slices.DeleteFunc(slices.Clone(x), func(o observation) bool { return !pasts[o.past] })
}

// byPast counts each common past once.
func byPast(all []observation) []observation {
	return recounted(all, func(o observation) results.Deal { return results.Deal{Run: o.past.run, Number: o.past.episode} })
}

// byEpisode counts each episode once.
func byEpisode(all []observation) []observation {
	return recounted(all, func(o observation) results.Deal { return results.Deal{Number: o.episode} })
}

func recounted(all []observation, unit func(observation) results.Deal) []observation {
	out := slices.Clone(all)
	for i := range out {
		out[i].deal = unit(out[i])
	}
	return out
}
