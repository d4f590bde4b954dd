package report

import (
	"context"
	"html/template"

	"parley/internal/report/exhibit"
	"parley/internal/report/page"
	"parley/internal/view"
	"parley/internal/view/transcript"
	"parley/journal"
	"parley/world"
)

// Episode is one episode to read, a window of its lines at a time.
type Episode struct {
	page.Transcript
	From, Total int          // the first line of the window, and how many lines there are
	Style       template.CSS // colours of the kind
	Problems    []string     // parts of the kind that failed
}

// ReadEpisode reads one episode of a run, without the rest of the run. The window has limit lines
// from line from on; if from is negative, it has the last lines.
func ReadEpisode(ctx context.Context, j journal.Journal, begun *journal.Begun, kind world.Kind, l journal.Planned, attempt, from, limit int) (*Episode, error) {
	head := &journal.Head{Begun: begun}
	head.Live(l.Episode, journal.Progress{Attempt: attempt})
	read, err := transcript.Read(ctx, j, head, kind, l.Episode)
	if err != nil {
		return nil, err
	}
	colours := exhibit.NewPalette(&view.Run{Head: head}, kind)
	var failed problems
	failed.note(colours.Failed)
	failed.note(read.Failed)
	failed.note(read.Mark(kind))
	total := len(read.Lines)
	if from < 0 {
		from = (max(0, total-1) / limit) * limit
	}
	from = min(from, max(0, total-1))
	row := view.Episode{Number: l.Episode, State: "playing"}
	played := world.Played{Episode: l.Episode, Spec: l.Spec}
	if l.Ended != nil {
		if row.State = "ended"; l.Ended.Outcome.Failed != "" {
			row.State = "failed"
		}
		row.Failed, row.Scores, played.Outcome = l.Ended.Outcome.Failed, l.Ended.Outcome.Scores, l.Ended.Outcome
	}
	left := maxWords
	e := &Episode{From: from, Total: total, Style: colours.Style()}
	e.Transcript = newTranscript(row, read, read.Lines[from:min(total, from+limit)], &left, colours)
	story, err := read.Story(kind, played)
	if l.Ended != nil { // a kind may need the outcome for its story
		failed.note(err)
	}
	e.Replays, e.Problems = blocks(story, colours), failed
	return e, nil
}
