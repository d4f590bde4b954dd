package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"parley/internal/kit/text"
	"parley/internal/run/results"
	"parley/world"
)

// maxFailedCalls is the share of failed calls above which a comparison carries a caution: a few are normal, and more can decide
// who wins.
const maxFailedCalls = 0.03

// failedEpisode is an episode without scores.
type failedEpisode struct {
	run, episode int // episode is numbered across runs
	spec         world.Spec
	deal         results.Deal
}

// failedGroup is the episodes of a group that failed.
type failedGroup struct {
	episodes map[int]bool
	deals    map[results.Deal]int // how many of each deal
}

// addFailed adds failed episodes to the groups that their scores would be in.
func (c *collection) addFailed(all []failedEpisode, group func(run int, spec world.Spec, seat string) (string, bool), subject func(world.Spec, string) string) {
	for _, s := range c.series {
		s.failed = map[string]*failedGroup{}
		for _, f := range all {
			for seat := range s.seats {
				if _, sits := f.spec.Lineup[seat]; seat != "" && !sits || subject(f.spec, seat) != s.of {
					continue
				}
				name, ok := group(f.run, f.spec, seat)
				if !ok {
					continue
				}
				g := s.failed[name]
				if g == nil {
					g = &failedGroup{map[int]bool{}, map[results.Deal]int{}}
					s.failed[name] = g
				}
				if !g.episodes[f.episode] {
					g.episodes[f.episode] = true
					g.deals[f.deal]++
				}
			}
		}
	}
}

// onlyFailed names the groups that have no score, because all of their episodes failed.
func (c *collection) onlyFailed() (notes []string) {
	failed := map[string]int{}
	for _, s := range c.series {
		for name, g := range s.failed {
			if !slices.Contains(c.groups, name) {
				failed[name] = max(failed[name], len(g.episodes))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		notes = append(notes, fmt.Sprintf("%s is not compared: all of its episodes failed, %s.", name, text.GroupDigits(failed[name])))
	}
	return notes
}

// countFailed counts the failed episodes of both groups, and says what may be wrong because of failures.
func (c *Comparison) countFailed(m match) {
	a, b := m.failed[m.a], m.failed[m.b]
	if a == nil {
		a = &failedGroup{}
	}
	if b == nil {
		b = &failedGroup{}
	}
	c.FailedA, c.FailedB = len(a.episodes), len(b.episodes)
	inA, inB := episodesOf(m.by[m.a]), episodesOf(m.by[m.b])
	if !maps.Equal(a.deals, b.deals) {
		where := ""
		if c.FailedA == c.FailedB {
			where = ", in different deals"
		}
		c.Caution = fmt.Sprintf("%s of %s failed and %s of %s%s; failed episodes have no score, so what is left of the two may differ in difficulty",
			failedOf(c.FailedA, len(inA)), c.A, failedOf(c.FailedB, len(inB)), c.B, where)
	}
	maps.Copy(inA, a.episodes)
	maps.Copy(inB, b.episodes)
	for _, side := range []struct {
		name string
		in   map[int]bool
	}{{c.B, inB}, {c.A, inA}} {
		calls, failed := 0, 0
		for n := range side.in {
			calls += m.spent[n].Calls
			failed += m.spent[n].FailedCalls
		}
		if failed > 0 && float64(failed) > maxFailedCalls*float64(calls) {
			c.Caution = join(fmt.Sprintf("%s of %s in the episodes of %s failed", text.GroupDigits(failed), plural(calls, "call"), side.name), c.Caution)
		}
	}
}

// failedOf says how many episodes failed, given those that did not.
func failedOf(failed, ended int) string {
	return fmt.Sprintf("%s of %s", text.GroupDigits(failed), plural(failed+ended, "episode"))
}

// failedTable counts the failed episodes by agent and cell. It has no rows if none failed.
func failedTable(r *results.Run, colours *Palette) *Table {
	type key struct{ cell, agent string }
	type count struct{ episodes, failed int }
	counts, some := map[key]*count{}, false
	var order []key
	r.Each(func(p world.Played) {
		some = some || p.Outcome.Failed != ""
		for _, agent := range slices.Compact(slices.Sorted(maps.Values(p.Spec.Lineup))) {
			k := key{p.Spec.Cell, agent}
			if counts[k] == nil {
				counts[k], order = &count{}, append(order, k)
			}
			counts[k].episodes++
			if p.Outcome.Failed != "" {
				counts[k].failed++
			}
		}
	})
	t := &Table{Name: "failed-episodes", Title: "Failed episodes", Track: -1, Filter: len(order) > 30, Columns: []Column{KeyColumn("cell"), KeyColumn("agent"), NumberColumn("episodes"), NumberColumn("failed")}}
	if !some {
		return t
	}
	place := map[string]int{}
	for i, a := range r.Head.Begun.Agents {
		place[a.Name] = i
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(place[a.agent], place[b.agent]), cmp.Compare(a.agent, b.agent))
	})
	for _, k := range order {
		name := Word(k.agent)
		name.Look = colours.Look(k.agent)
		t.Rows = append(t.Rows, []Cell{Word(k.cell), name, whole(counts[k].episodes), whole(counts[k].failed)})
	}
	return t
}
