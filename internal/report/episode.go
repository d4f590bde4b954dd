package report

import (
	"context"
	"html/template"
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

// ReadEpisode reads one episode of a run, without the rest of the run. The window has limit lines
// from line from on; if from is negative, it has the last lines. With quick, only the beginning of a long episode is read
// if that is enough.
func ReadEpisode(ctx context.Context, j journal.Journal, begun *journal.Begun, kind world.Kind, l journal.Planned, attempt, from, limit int, quick bool) (*Episode, error) {
	head := &journal.Head{Begun: begun}
	lines := 0 // all
	if quick && from == 0 {
		lines = limit
	}
	read, fill, partial, err := transcript.ReadLines(ctx, j, kind, l.Episode, attempt, lines)
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
