package report

import (
	"context"
	"html/template"
	"time"

	"parley/internal/run/results"
	"parley/journal"
	"parley/world"
)

// Episode is one episode to read, a window of its lines, in the order of time, at a time. The first window has the story.
type Episode struct {
	Transcript
	From, Total int            // the first line of the window, and how many lines were read
	Next, Prev  *results.Place // the windows after and before; nil: there are none
	Partial     bool           // not everything was read: there are more lines, and a story
	Style       template.CSS   // colours of the kind
	Problems    []string       // parts of the kind that failed
	Began       time.Time      // when the first reply came; zero: unknown
	// Prompts are what is new in the requests of the window, by the name of the call.
	Prompts map[string]results.Prompt
}

// ReadEpisode reads one episode of a run, without the rest of the run. The window has limit lines. With quick, only a part
// of a long episode is read if that is enough.
func ReadEpisode(ctx context.Context, j journal.Journal, begun *journal.Begun, kind world.Kind, l journal.Planned, attempt int, at results.Place, limit int, quick bool) (*Episode, error) {
	head := &journal.Head{Begun: begun}
	var want results.Wanted // everything
	if quick && (at.Line == 0 || at.Entry != 0) {
		want = results.Wanted{At: max(at.Entry, -at.Entry), Back: at.Entry < 0, Lines: limit}
	}
	read, err := results.ReadLines(ctx, j, begun, kind, l.Episode, attempt, want)
	if err != nil {
		return nil, err
	}
	colours := NewPalette(&results.Run{Head: head}, kind)
	var failed problems
	failed.note(colours.Failed)
	failed.note(read.Failed)
	failed.note(read.Mark(kind))
	row := results.Episode{Number: l.Episode, State: "playing"}
	played := world.Played{Episode: l.Episode, Spec: l.Spec}
	if l.Ended != nil {
		if row.State = "ended"; l.Ended.Outcome.Failed != "" {
			row.State = "failed"
		}
		row.Failed, row.Scores, played.Outcome = l.Ended.Outcome.Failed, l.Ended.Outcome.Scores, l.Ended.Outcome
	}
	var story []world.Exhibit
	if _, around := read.Window(at, limit); around.Prev == nil && !read.Partial() {
		read.Playing = l.Ended == nil
		story, err = read.Story(kind, played)
		if l.Ended != nil { // a kind may need the outcome for its story
			failed.note(err)
		}
	}
	e := &Episode{Partial: read.Partial(), Total: len(read.Lines), Style: colours.Style(), Began: results.ByTime(read.Lines)}
	window, around := read.Window(at, limit)
	e.From, e.Next, e.Prev = around.From, around.Next, around.Prev
	if e.Prompts, err = results.Prompts(read.Lines, window, read.Fill); err != nil {
		return nil, err
	}
	left := maxReportWords
	e.Transcript = newTranscript(row, read.Transcript, window, &left, colours)
	e.Replays, e.Problems = blocks(story, colours), failed
	return e, nil
}
