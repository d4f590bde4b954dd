package transcript

import (
	"context"
	"slices"
	"strings"

	"parley/journal"
	"parley/world"
)

// sparing is a journal that can read an episode, or its beginning, without the messages of its requests. fill reads those
// of some replies, and whole reports whether a beginning is all.
type sparing interface {
	Sparing(ctx context.Context, episode int) (entries []journal.Entry, fill func(...*journal.Replied) error, err error)
	Beginning(ctx context.Context, episode, replies int) (entries []journal.Entry, fill func(...*journal.Replied) error, whole bool, err error)
}

// margin is how many more replies than lines are read, so that notes on the last lines are known.
const margin = 50

// ReadLines reads the transcript of an episode, and returns a function that reads the messages of some requests. It may
// read only the beginning if that has so many lines, and then it is partial; 0 reads all.
func ReadLines(ctx context.Context, j journal.Journal, kind world.Kind, episode, attempt, lines int) (t *Transcript, fill func(...*journal.Replied) error, partial bool, err error) {
	s, ok := j.(sparing)
	if _, recorded := world.As[world.Recorded](kind); !ok || recorded {
		entries, err := journal.Episode(ctx, j, episode)
		return New(entries, attempt, kind, episode), func(...*journal.Replied) error { return nil }, false, err
	}
	if lines > 0 && attempt == 0 {
		entries, fill, whole, err := s.Beginning(ctx, episode, lines+margin)
		if err != nil {
			return nil, nil, false, err
		}
		t := New(entries, attempt, kind, episode)
		// Strands that were played at once are put in order together.
		if whole || len(t.Lines) > lines && !slices.ContainsFunc(t.Lines, func(l Line) bool { return strings.Contains(l.Turn, "/") }) {
			return t, fill, !whole, nil
		}
	}
	entries, fill, err := s.Sparing(ctx, episode)
	return New(entries, attempt, kind, episode), fill, false, err
}
