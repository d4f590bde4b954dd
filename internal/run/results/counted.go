package results

import (
	"fmt"
	"slices"

	"parley/internal/kit/text"
	"parley/journal"
)

// uncounted are the episodes of a run that ended and do not count, by their place among those that ended. Short episodes end
// before long ones, so what has ended when a run stops is not a fair sample of what was planned. Of each stage that has not
// ended, the longest prefix of its deals counts, in the order of the plan, all of whose episodes ended: which deals these are
// depends on the plan and not on what happened in them.
type uncounted struct {
	at    []bool // nil: all count
	count int
}

func (u *uncounted) has(place int) bool { return place < len(u.at) && u.at[place] }

// findUncounted finds what does not count. A complete run may miss episodes that cannot be read; the others count.
func (r *Run) findUncounted() (u uncounted) {
	if r.Head.Last.State == journal.Complete {
		return u
	}
	ended := make([][]int, len(r.Head.Stages)) // by stage: its episodes that ended, in order
	stage, all := 0, 0
	for _, e := range r.Head.Plays() {
		for {
			st := &r.Head.Stages[stage]
			if n := e.Episode - st.First; n >= 0 && n < st.Specs.Len() {
				break
			}
			stage++
		}
		ended[stage] = append(ended[stage], e.Episode)
		all++
	}
	place := 0
	for i, st := range r.Head.Stages {
		if len(ended[i]) < st.Specs.Len() {
			counts := wholeDeals(&st, ended[i], r.Head.Begun.Fork != nil)
			for j, n := range ended[i] {
				if counts(n) {
					continue
				}
				if u.at == nil {
					u.at = make([]bool, all)
				}
				u.at[place+j], u.count = true, u.count+1
			}
		}
		place += len(ended[i])
	}
	return u
}

// wholeDeals returns which episodes of a stage count. The cost depends on those that ended, not on the size of the stage. In a
// fork all episodes have one deal, and each counts as one.
func wholeDeals(st *journal.Staged, ended []int, fork bool) (counts func(episode int) bool) {
	dealOf := func(episode int) int {
		if fork {
			return episode
		}
		return st.Specs.At(episode - st.First).Deal
	}
	deals := make([]int, len(ended)) // of those that ended
	for i, n := range ended {
		deals[i] = dealOf(n)
	}
	slices.Sort(deals)
	rises := make([]int, len(deals)+1) // at the first of equal deals: how many more episodes are planned than of the deal before
	if !fork {
		for b := range st.Specs.Blocks() {
			for _, g := range b.Groups {
				from, _ := slices.BinarySearch(deals, g.Spec.Deal)
				to, _ := slices.BinarySearch(deals, g.Spec.Deal+b.Rounds)
				rises[from] += g.Size
				rises[to] -= g.Size
			}
		}
	}
	whole := make([]bool, len(deals)) // at the first of equal deals
	planned := 0
	for i := 0; i < len(deals); {
		first := i
		for ; i < len(deals) && deals[i] == deals[first]; i++ {
			planned += rises[i]
		}
		whole[first] = fork || planned == i-first
	}
	counted := make([]bool, len(deals))
	for i := range st.Specs.All() {
		at, found := slices.BinarySearch(deals, dealOf(st.First+i))
		if !found || !whole[at] {
			break
		}
		counted[at] = true
	}
	return func(episode int) bool {
		at, _ := slices.BinarySearch(deals, dealOf(episode))
		return counted[at]
	}
}

// Biased reports whether the numbers of the run are those of an unfair sample of its episodes: Everything is set, and that
// makes a difference.
func (r *Run) Biased() bool {
	r.FindUnits()
	return r.Everything && r.units.left.count > 0
}

// BiasedNote is the caution beside a number of a run that is Biased.
const BiasedNote = "biased: short episodes ended first"

// CountedNote says which of the episodes that ended do not count and why, or, if all count, what is wrong with that. It is empty
// if there is nothing to say.
func (r *Run) CountedNote() string {
	r.FindUnits()
	left := r.units.left.count
	if left == 0 {
		return ""
	}
	ended := r.Head.Ended.Len()
	begin := fmt.Sprintf("The run is not complete: %s of %s episodes have ended.", text.GroupDigits(ended), text.GroupDigits(r.Episodes.Total))
	if r.Everything {
		return begin + fmt.Sprintf(" All of these count, and short episodes end first, so means and intervals are biased. Without --count-all, %s of these would not count.", text.GroupDigits(left))
	}
	do := "do"
	if left == 1 {
		do = "does"
	}
	return begin + fmt.Sprintf(" %s of these %s not count, because short episodes end first: scores count whole deals in the order of the plan, up to the first that has not ended. With --count-all, report and compare count everything.",
		text.GroupDigits(left), do)
}
