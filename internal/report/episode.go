package report

import (
	"context"
	"html/template"
	"slices"
	"strings"
	"time"

	"parley/internal/report/exhibit"
	"parley/internal/report/page"
	"parley/internal/view"
	"parley/internal/view/transcript"
	"parley/journal"
	"parley/world"
)

// Episode is one episode to read, a window of its lines at a time. The lines are in the order of time.
type Episode struct {
	page.Transcript
	From, Total int          // the first line of the window, and how many lines there are
	Partial     bool         // only the beginning was read: there are more lines, and a story
	Style       template.CSS // colours of the kind
	Problems    []string     // parts of the kind that failed
	Began       time.Time    // when the first reply came; zero: unknown
	// Prompts are what is new in the requests of the window, by the name of the call.
	Prompts map[string]transcript.Prompt
}

// beginner is a journal that can read the beginning of an episode. whole reports whether it is all.
type beginner interface {
	Beginning(ctx context.Context, episode, replies int) (entries []journal.Entry, fill func(...*journal.Replied) error, whole bool, err error)
}

// sparing is a journal that can read an episode without the messages of its requests.
type sparing interface {
	Sparing(ctx context.Context, episode int) (entries []journal.Entry, fill func(...*journal.Replied) error, err error)
}

// ReadEpisode reads one episode of a run, without the rest of the run. The window has limit lines
// from line from on; if from is negative, it has the last lines. With quick, only the beginning of a long episode is read
// if that is enough.
func ReadEpisode(ctx context.Context, j journal.Journal, begun *journal.Begun, kind world.Kind, l journal.Planned, attempt, from, limit int, quick bool) (*Episode, error) {
	head := &journal.Head{Begun: begun}
	read, fill, partial, err := readBeginning(ctx, j, kind, l.Episode, attempt, limit, quick && from == 0)
	if err == nil && read == nil {
		read, fill, err = readLines(ctx, j, kind, l.Episode, attempt)
	}
	if err != nil {
		return nil, err
	}
	colours := exhibit.NewPalette(&view.Run{Head: head}, kind)
	var failed problems
	failed.note(colours.Failed)
	failed.note(read.Failed)
	failed.note(read.Mark(kind))
	e := &Episode{Partial: partial, Total: len(read.Lines), Style: colours.Style(), Began: transcript.ByTime(read.Lines)}
	if from < 0 {
		from = (max(0, e.Total-1) / limit) * limit
	}
	e.From = min(from, max(0, e.Total-1))
	window := read.Lines[e.From:min(e.Total, e.From+limit)]
	if e.Prompts, err = transcript.Prompts(read.Lines, window, fill); err != nil {
		return nil, err
	}
	row := view.Episode{Number: l.Episode, State: "playing"}
	played := world.Played{Episode: l.Episode, Spec: l.Spec}
	if l.Ended != nil {
		if row.State = "ended"; l.Ended.Outcome.Failed != "" {
			row.State = "failed"
		}
		row.Failed, row.Scores, played.Outcome = l.Ended.Outcome.Failed, l.Ended.Outcome.Scores, l.Ended.Outcome
	}
	left := maxWords
	e.Transcript = newTranscript(row, read, window, &left, colours)
	if e.Problems = failed; partial {
		return e, nil
	}
	story, err := read.Story(kind, played)
	if l.Ended != nil { // a kind may need the outcome for its story
		failed.note(err)
	}
	e.Replays, e.Problems = blocks(story, colours), failed
	return e, nil
}

// margin is how many more replies than lines are read, so that notes on the last lines of a window are known.
const margin = 50

// readBeginning reads as much of an episode as a window of so many lines needs. It returns nil if all must be read.
func readBeginning(ctx context.Context, j journal.Journal, kind world.Kind, episode, attempt, lines int, quick bool) (*transcript.Transcript, func(...*journal.Replied) error, bool, error) {
	s, ok := j.(beginner)
	if _, recorded := world.As[world.Recorded](kind); !ok || recorded || !quick || attempt > 0 {
		return nil, nil, false, nil
	}
	entries, fill, whole, err := s.Beginning(ctx, episode, lines+margin)
	if err != nil {
		return nil, nil, false, err
	}
	read := transcript.New(entries, attempt, kind, episode)
	if !whole && (len(read.Lines) <= lines || slices.ContainsFunc(read.Lines, func(l transcript.Line) bool { return strings.Contains(l.Turn, "/") })) {
		return nil, nil, false, nil // strands that were played at once are put in order together
	}
	return read, fill, !whole, nil
}

// readLines reads the transcript of an episode, and returns a function that reads the messages of some requests.
func readLines(ctx context.Context, j journal.Journal, kind world.Kind, episode, attempt int) (*transcript.Transcript, func(...*journal.Replied) error, error) {
	s, ok := j.(sparing)
	if _, recorded := world.As[world.Recorded](kind); !ok || recorded {
		entries, err := journal.Episode(ctx, j, episode)
		return transcript.New(entries, attempt, kind, episode), func(...*journal.Replied) error { return nil }, err
	}
	entries, fill, err := s.Sparing(ctx, episode)
	return transcript.New(entries, attempt, kind, episode), fill, err
}
