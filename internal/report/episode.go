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
	From, Total int          // the first line of the window, and how many lines were read
	Next, Prev  *Place       // the windows after and before; nil: there are none
	Partial     bool         // not everything was read: there are more lines, and a story
	Style       template.CSS // colours of the kind
	Problems    []string     // parts of the kind that failed
	Began       time.Time    // when the first reply came; zero: unknown
	// Prompts are what is new in the requests of the window, by the name of the call.
	Prompts map[string]transcript.Prompt
}

// Place is where a window begins: at a line, after an entry of the journal. With a negative entry, the window ends with
// that entry, and the line follows it. Entry 0 is unknown: then everything is read, except for line 0.
type Place struct {
	Line  int // negative: the window has the last lines
	Entry int64
}

// window returns the lines of a window of so many, in what was read, and the number of the first. A window of a part
// begins and ends between turns if it can: their entries say where.
func (at Place) window(read *transcript.Part, limit int) (first, end, number int) {
	total := len(read.Lines)
	switch {
	case read.Partial() && at.Entry < 0:
		end = read.After(-at.Entry)
		first = max(0, end-limit)
		for n := first; n < end; n++ {
			if n == 0 && read.First || read.EndOfTurn(n) != 0 {
				first = n
				break
			}
		}
		return first, end, max(0, at.Line-(end-first))
	case read.Partial():
		first, number = read.After(at.Entry), at.Line
		end = min(total, first+limit)
		for n := end; n > first && end < total; n-- {
			if read.EndOfTurn(n) != 0 {
				return first, n, number
			}
		}
		return first, end, number
	case at.Line < 0:
		first = (max(0, total-1) / limit) * limit
	case at.Entry < 0:
		first = max(0, at.Line-limit)
	default:
		first = at.Line
	}
	first = min(first, max(0, total-1))
	return first, min(total, first+limit), first
}

// link sets the windows around one.
func (e *Episode) link(read *transcript.Part, first, end, limit int) {
	if end < len(read.Lines) || !read.Last {
		e.Next = &Place{Line: e.From + end - first}
		if read.Partial() {
			e.Next.Entry = read.EndOfTurn(end)
		}
	}
	if first == 0 && read.First {
		return
	}
	e.Prev = &Place{Line: max(0, e.From-limit)}
	if entry := read.EndOfTurn(first); read.Partial() && entry != 0 {
		e.Prev = &Place{e.From, -entry}
	}
}

// ReadEpisode reads one episode of a run, without the rest of the run. The window has limit lines. With quick, only a part
// of a long episode is read if that is enough.
func ReadEpisode(ctx context.Context, j journal.Journal, begun *journal.Begun, kind world.Kind, l journal.Planned, attempt int, at Place, limit int, quick bool) (*Episode, error) {
	head := &journal.Head{Begun: begun}
	var want transcript.Wanted // everything
	if quick && (at.Line == 0 || at.Entry != 0) {
		want = transcript.Wanted{At: max(at.Entry, -at.Entry), Back: at.Entry < 0, Lines: limit}
	}
	read, err := transcript.ReadLines(ctx, j, kind, l.Episode, attempt, want)
	if err != nil {
		return nil, err
	}
	colours := exhibit.NewPalette(&view.Run{Head: head}, kind)
	var failed problems
	failed.note(colours.Failed)
	failed.note(read.Failed)
	failed.note(read.Mark(kind))
	e := &Episode{Partial: read.Partial(), Total: len(read.Lines), Style: colours.Style(), Began: transcript.ByTime(read.Lines)}
	first, end, number := at.window(read, limit)
	e.From = number
	e.link(read, first, end, limit)
	window := read.Lines[first:end]
	if e.Prompts, err = transcript.Prompts(read.Lines, window, read.Fill); err != nil {
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
	e.Transcript = newTranscript(row, read.Transcript, window, &left, colours)
	if e.Problems = failed; e.Partial {
		return e, nil
	}
	story, err := read.Story(kind, played)
	if l.Ended != nil { // a kind may need the outcome for its story
		failed.note(err)
	}
	e.Replays, e.Problems = blocks(story, colours), failed
	return e, nil
}
