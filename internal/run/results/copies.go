// Part copies finds the episodes of a run that are copies of others, and says why there are any.
//
// It needs little memory, however many episodes there are, if few are copies.

package results

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"parley/journal"
	"parley/world"
)

// Distinct counts the different plays of the episodes that ended without failing, and the
// episodes that copy an earlier one: word for word the same, and not by chance. A copy is not
// independent evidence.
func Distinct(head *journal.Head) (distinct, copies int) {
	first := findCopies(head.Ended.Len(), plays(known(head)))
	for i, e := range known(head) {
		switch first.At(i) {
		case 0, i + 1:
			distinct++
		default:
			if !e.Chance {
				copies++
			}
		}
	}
	return distinct, copies
}

// known yields the episodes that did not fail and whose play is known, with their places among these.
func known(head *journal.Head) iter.Seq2[int, journal.Ended] {
	return func(yield func(int, journal.Ended) bool) {
		i := 0
		for _, e := range head.Plays() {
			if e.Outcome.Failed != "" || e.Play == (journal.Digest{}) {
				continue
			}
			if !yield(i, e) {
				return
			}
			i++
		}
	}
}

// plays yields the plays of episodes.
func plays(episodes iter.Seq2[int, journal.Ended]) iter.Seq2[int, journal.Digest] {
	return func(yield func(int, journal.Digest) bool) {
		for i, e := range episodes {
			if !yield(i, e.Play) {
				return
			}
		}
	}
}

// CopiesNote says how many episodes of a run are copies, why, and what to do about it. It is empty
// if no episode is a copy.
func CopiesNote(head *journal.Head) string {
	_, copies := Distinct(head)
	if copies == 0 {
		return ""
	}
	episodes := 0
	for range known(head) {
		episodes++
	}
	why, remedy := whyCopies(head)
	are := "are exact copies of others and do"
	if copies == 1 {
		are = "is an exact copy of another and does"
	}
	return fmt.Sprintf("Of %d episodes, %d %s not count. %s: to get new plays, %s.", episodes, copies, are, why, remedy)
}

// whyCopies says why episodes are the same, and what to change.
func whyCopies(head *journal.Head) (why, remedy string) {
	deals := map[int]int{} // of the first episode of several with one play
	sameDeal := true
	agents := map[string]bool{}
	i := -1
	first := findCopies(head.Ended.Len(), func(yield func(int, journal.Digest) bool) {
		n := -1
		for _, e := range head.Plays() {
			if n++; !yield(n, e.Play) {
				return
			}
		}
	})
	for spec, e := range head.Plays() {
		i++
		same := first.At(i)
		if same == 0 || e.Chance || e.Outcome.Failed != "" {
			continue
		}
		deal, known := deals[same]
		if !known {
			deals[same] = spec.Deal
			continue
		}
		sameDeal = sameDeal && deal == spec.Deal
		for _, name := range spec.Lineup {
			agents[name] = true
		}
	}
	why, remedy = Unvarying(head.Begun.Agents, func(name string) bool { return agents[name] })
	if why == "" {
		why, remedy = "The provider gives the same answer to the same question", "use a temperature above 0, or a provider that samples"
	}
	if sameDeal {
		return why + ", and copies have the same deal", remedy + ", or play more deals"
	}
	return why + ", and copies were asked the same though their deals differ", remedy + ", or vary what episodes are about, as with plan.matrix"
}

// Unvarying says which of the played agents always give the same answer to the same question, and
// how to change that. It returns "" unless all agents with a model do so.
func Unvarying(agents []world.Agent, played func(name string) bool) (why, remedy string) {
	var cold, seeded []string
	for _, a := range agents {
		switch {
		case a.Bot != "" || a.Human() || !played(a.Name):
		case a.Temperature != nil && *a.Temperature == 0:
			cold = append(cold, a.Name)
		case a.Seed != nil:
			seeded = append(seeded, a.Name)
		default:
			return "", ""
		}
	}
	var whys, remedies []string
	if len(cold) > 0 {
		whys = append(whys, "temperature is 0 for "+names(cold))
		remedies = append(remedies, "set agents.NAME.temperature above 0")
	}
	if len(seeded) > 0 {
		whys = append(whys, "a seed is set for "+names(seeded))
		remedies = append(remedies, "leave out agents.NAME.seed")
	}
	if len(whys) == 0 { // only bots
		return "All agents are bots", "use a model"
	}
	why = strings.Join(whys, " and ")
	return strings.ToUpper(why[:1]) + why[1:], strings.Join(remedies, " and ")
}

// names lists a few names.
func names(all []string) string {
	const limit = 4
	if slices.Sort(all); len(all) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:limit-1], ", "), len(all)-limit+1)
	}
	return strings.Join(all, ", ")
}
