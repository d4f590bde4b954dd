package view

import "parley/journal"

// Distinct counts the different plays among the episodes that ended well, and the episodes that
// are copies of an earlier one: played word for word alike, and not by chance. A copy is no
// evidence of its own.
func Distinct(head *journal.Head) (distinct, copies int) {
	seen := map[journal.Digest]bool{}
	for _, e := range head.Ended {
		if e.Outcome.Failed != "" || e.Play == (journal.Digest{}) {
			continue
		}
		if seen[e.Play] && !e.Chance {
			copies++
		}
		seen[e.Play] = true
	}
	return len(seen), copies
}
