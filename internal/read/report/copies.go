package report

import (
	"cmp"
	"fmt"
	"slices"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// plays numbers the plays of all runs, so that copies have the same number.
type plays map[journal.Digest]int

// of returns the number of an episode's play, or 0 if the same play can occur by chance.
func (p plays) of(r *results.Run, played world.Played) int {
	if played.Unit.Play == 0 {
		return 0
	}
	play := r.Head.Ended.Play(played.Episode)
	if p[play] == 0 {
		p[play] = len(p) + 1
	}
	return p[play]
}

// alike counts the deals that two groups without a common episode played word for word the same.
func alike(x, y []observation) (n int) {
	plays := map[results.Deal]map[int]bool{}
	episodes := episodesOf(x)
	for _, o := range x {
		if plays[o.deal] == nil {
			plays[o.deal] = map[int]bool{}
		}
		plays[o.deal][o.play] = true
	}
	same, met := map[results.Deal]bool{}, map[results.Deal]bool{}
	for _, o := range y {
		if episodes[o.episode] {
			return 0
		}
		if !met[o.deal] {
			met[o.deal], same[o.deal] = true, true
		}
		same[o.deal] = same[o.deal] && o.play != 0 && plays[o.deal][o.play]
	}
	for _, all := range same {
		if all {
			n++
		}
	}
	return n
}

// collapse renames a deal that both groups played exactly like an earlier deal to the earlier one,
// so that they count once. It returns the numbers of deals before and after.
func collapse(x, y []observation) (a, b []observation, deals, left int) {
	signature := map[results.Deal][]string{}
	chance := map[results.Deal]bool{}
	for side, all := range [][]observation{x, y} {
		for _, o := range all {
			signature[o.deal] = append(signature[o.deal], fmt.Sprint(side, o.stratum, o.play))
			chance[o.deal] = chance[o.deal] || o.play == 0
		}
	}
	order := make([]results.Deal, 0, len(signature))
	for d := range signature {
		order = append(order, d)
	}
	slices.SortFunc(order, results.Deal.Compare)
	first, renamed := map[string]results.Deal{}, map[results.Deal]results.Deal{}
	for _, d := range order {
		slices.Sort(signature[d])
		key := fmt.Sprint(signature[d])
		if earlier, ok := first[key]; ok && !chance[d] {
			renamed[d] = earlier
			continue
		}
		first[key] = d
	}
	if len(renamed) == 0 {
		return x, y, len(order), len(order)
	}
	rename := func(all []observation) []observation {
		return recounted(all, func(o observation) results.Deal { return cmp.Or(renamed[o.deal], o.deal) })
	}
	return rename(x), rename(y), len(order), len(order) - len(renamed)
}
