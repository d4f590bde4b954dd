package results

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"parley/journal"
)

// Turn is a turn of a strand with its replies, in the order of its calls.
type Turn struct {
	Strand  string
	Number  int
	Turned  *journal.Turned // nil if it was not recorded
	Replies []*journal.Replied
}

// Name returns the name of the turn: 3, or 4.2/0 in a strand.
func (t *Turn) Name() string { return TurnName(t.Strand, t.Number) }

// TurnName returns the name of a turn.
func TurnName(strand string, turn int) string { return strand + strconv.Itoa(turn) }

// Turns returns the turns of an attempt in the order of a transcript: a fork is followed by
// its strands, one after the other, whatever order they were played in.
func Turns(entries []journal.Entry, attempt int) []*Turn {
	type name struct {
		strand string
		turn   int
	}
	all := make([]*Turn, 0, len(entries)/2+1)
	byName := make(map[name]*Turn, len(entries)/2+1)
	at := func(t journal.Turn) *Turn {
		of := byName[name{t.Strand, t.Turn}]
		if of == nil {
			of = &Turn{Strand: t.Strand, Number: t.Turn}
			byName[name{t.Strand, t.Turn}] = of
			all = append(all, of)
		}
		return of
	}
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			if e.Attempt == attempt {
				at(e.Turn).Turned = e
			}
		case *journal.Replied:
			if e.Attempt == attempt {
				t := at(e.Turn)
				t.Replies = append(t.Replies, e)
			}
		}
	}
	for _, t := range all {
		slices.SortStableFunc(t.Replies, func(a, b *journal.Replied) int { return cmp.Compare(a.Index, b.Index) })
	}
	slices.SortStableFunc(all, func(a, b *Turn) int {
		if a.Strand == b.Strand {
			return cmp.Compare(a.Number, b.Number)
		}
		return CompareTurns(a.Name(), b.Name())
	})
	return all
}

// CompareTurns orders the names of turns as a transcript does.
func CompareTurns(a, b string) int { return slices.Compare(transcriptPath(a), transcriptPath(b)) }

// transcriptPath returns the numbers in the name of a turn. They sort turns in the order of a transcript.
func transcriptPath(turn string) (path []int) {
	for word := range strings.FieldsFuncSeq(turn, func(r rune) bool { return r == '.' || r == '/' }) {
		n, _ := strconv.Atoi(word) // the engine writes only numbers
		path = append(path, n)
	}
	return path
}
