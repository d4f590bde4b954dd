package report

import (
	"cmp"
	"slices"

	"parley/internal/run/results"
	"parley/world"
)

// passBlock returns what share of the deals an agent solves in at least one of k plays (pass@k), and in all of k plays (pass^k), for scores that are
// 0 or 1 and deals that were played several times in a cell. It has no table if there are none.
func passBlock(r *results.Run, colours *Palette) (b Block) {
	groups := passesOf(r)
	if len(groups) == 0 {
		return b
	}
	t := &Table{Name: "passes", Title: "Passes of several plays", Track: 4, Share: true, Grouped: true, Filter: true, Columns: []Column{
		KeyColumn("score"), KeyColumn("cell"), KeyColumn("agent"), NumberColumn("k"), NumberColumn("pass@k"), NumberColumn("pass^k"), NumberColumn("plays"), NumberColumn("deals"),
	}}
	for _, g := range groups {
		for _, k := range g.draws() {
			any, all, plays := g.estimate(k)
			q := sampleEstimate(any, true)
			c := Quantity(q)
			c.Look = colours.Look(g.agent)
			t.Rows = append(t.Rows, []Cell{Word(g.score), Word(g.cell), Word(g.agent), whole(k), c, Quantity(sampleEstimate(all, true)), whole(plays), whole(q.N)})
		}
	}
	return Block{Title: t.Title, Table: t, Caption: "pass@k is the chance that at least one of k plays of a deal has the score 1, and pass^k the chance that all of them have it. Both are estimated without bias " +
		"from all plays of a deal, of those with at least k plays. Each deal counts as much as any other. Copies of a play count once, failed episodes not at all."}
}

// passGroup is what an agent did in a cell.
type passGroup struct {
	score, cell, agent string
	tries              map[passDeal]*passTries
	order              []passDeal // of tries
}

// passDeal is what is tried several times.
type passDeal struct {
	deal int
	seat string
}

type passTries struct{ plays, passed int }

// passesOf counts the plays and the passes of every deal, for scores of which every value is 0 or 1. Episodes of another kind are left out: the
// trials of an evolution are not of the same texts.
func passesOf(r *results.Run) []*passGroup {
	type key struct{ score, cell, agent string }
	if r.Head.Begun.Fork != nil { // all its episodes have one deal
		return nil
	}
	found, other, copied := map[key]*passGroup{}, map[string]bool{}, map[int]bool{}
	var order []*passGroup
	r.Each(func(p world.Played) {
		if p.Spec.Kind != r.Head.Begun.Kind || p.Outcome.Failed != "" || p.Unit.Play != 0 && copied[p.Unit.Play] {
			return
		}
		copied[p.Unit.Play] = true
		for _, s := range p.Outcome.Scores {
			if other[s.Name] = other[s.Name] || s.Value != 0 && s.Value != 1; other[s.Name] {
				continue
			}
			k := key{s.Name, p.Spec.Cell, p.Spec.Lineup[s.Seat]}
			g := found[k]
			if g == nil {
				g = &passGroup{score: k.score, cell: k.cell, agent: k.agent, tries: map[passDeal]*passTries{}}
				found[k], order = g, append(order, g)
			}
			d := passDeal{p.Unit.Deal, s.Seat}
			if g.tries[d] == nil {
				g.tries[d], g.order = &passTries{}, append(g.order, d)
			}
			g.tries[d].plays++
			g.tries[d].passed += int(s.Value)
		}
	})
	order = slices.DeleteFunc(order, func(g *passGroup) bool { return other[g.score] || g.largest() < 2 })
	slices.SortStableFunc(order, func(a, b *passGroup) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.cell, b.cell)) })
	return order
}

// largest returns the largest number of plays of a deal.
func (g *passGroup) largest() (n int) {
	for _, t := range g.tries {
		n = max(n, t.plays)
	}
	return n
}

// draws returns the numbers of plays to show: each up to 4, then twice as many each time, and the largest.
func (g *passGroup) draws() (ks []int) {
	plays := g.largest()
	for k := 1; k < plays; {
		if ks = append(ks, k); k < 4 {
			k++
		} else {
			k *= 2
		}
	}
	return append(ks, plays)
}

// estimate returns pass@k and pass^k, with a value for each deal, and the number of plays that they are from.
func (g *passGroup) estimate(k int) (any, all *world.Sample, plays int) {
	any, all = &world.Sample{Bounds: world.Share()}, &world.Sample{Bounds: world.Share()}
	for _, d := range g.order {
		t := g.tries[d]
		if t.plays < k {
			continue
		}
		plays += t.plays
		u := world.Unit{Deal: d.deal}
		any.Add(u, 1-drawAll(t.plays, t.plays-t.passed, k))
		all.Add(u, drawAll(t.plays, t.passed, k))
	}
	return any, all, plays
}

// drawAll returns the chance that k draws from n without replacement are all among c of them.
func drawAll(n, c, k int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(max(0, c-i)) / float64(n-i)
	}
	return p
}
