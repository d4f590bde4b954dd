package journaltest

import (
	"math"
	"testing"

	"parley/journal"
)

// Ends returns the complete ends of the episodes in j, by episode.
func Ends(t *testing.T, j journal.Journal) map[int]journal.Ended {
	t.Helper()
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]journal.Ended{}
	last := -1
	err = head.Ended.Outcomes(t.Context(), j, 0, math.MaxInt, func(e *journal.Ended) error {
		if e.Episode <= last {
			t.Errorf("the end of episode %d comes after that of %d", e.Episode, last)
		}
		last = e.Episode
		out[e.Episode] = *e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
