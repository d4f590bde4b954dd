package results

import (
	"context"
	"slices"
	"strings"

	"parley/journal"
	"parley/world"
	"parley/world/part"
)

// partReader is a journal that can read an episode, or a part of it, without the messages of its requests.
type partReader interface {
	Sparing(ctx context.Context, episode int) (entries []journal.Entry, fill func(...*journal.Replied) error, err error)
	Window(ctx context.Context, episode int, at int64, before, after int) (entries []journal.Entry, keys map[*journal.Replied]int64, fill func(...*journal.Replied) error, first, last bool, err error)
}

// marginReplies is how many more replies than lines are read, so that notes on the last lines are known, and what is new in the
// first requests.
const marginReplies = 50

// Part is a part of the transcript of an episode, or all of it.
type Part struct {
	*Transcript
	// Fill reads the messages of some requests.
	Fill func(...*journal.Replied) error
	// First and Last report whether the part has the first and the last line of the episode.
	First, Last bool

	keys map[*journal.Replied]int64
}

// Partial reports whether lines are missing.
func (p *Part) Partial() bool { return !p.First || !p.Last }

// endOfTurn returns the last entry of the turn that ends before a line; 0: none ends there, or it has no replies.
func (p *Part) endOfTurn(line int) (entry int64) {
	if line == 0 || line == len(p.Lines) && !p.Last || line < len(p.Lines) && p.Lines[line].Turn == p.Lines[line-1].Turn {
		return 0
	}
	for n := line; n > 0 && p.Lines[n-1].Turn == p.Lines[line-1].Turn; n-- {
		entry = max(entry, p.keys[p.Lines[n-1].Reply])
	}
	return entry
}

// after returns the first line after the turn that ends with an entry. Without strands, turns follow each other.
func (p *Part) after(entry int64) int {
	n := len(p.Lines)
	for n > 0 && (p.Lines[n-1].Reply == nil || p.keys[p.Lines[n-1].Reply] > entry) {
		n--
	}
	return n
}

// Wanted says which lines are needed: so many after the turn that ends with the entry At, or up to that with Back. At 0 is
// the beginning. 0 lines are all.
type Wanted struct {
	At    int64
	Back  bool
	Lines int
}

// enough reports whether a part has the lines that are needed. Strands that were played at once are put in order together.
func (p *Part) enough(r Wanted) bool {
	if slices.ContainsFunc(p.Lines, func(l Line) bool { return strings.Contains(l.Turn, "/") }) {
		return false
	}
	at := p.after(r.At)
	return r.Back && (p.First || at >= r.Lines) || !r.Back && (p.Last || len(p.Lines)-at > r.Lines)
}

// ReadLines reads the transcript of an episode, or a part of it that has the lines that are needed.
func ReadLines(ctx context.Context, j journal.Journal, begun *journal.Begun, kind world.Kind, episode, attempt int, r Wanted) (*Part, error) {
	s, ok := j.(partReader)
	if _, recorded := world.As[part.Recorded](kind); !ok || recorded {
		entries, err := journal.Episode(ctx, j, episode)
		return &Part{Transcript: NewTranscript(begun, entries, attempt, kind), Fill: func(...*journal.Replied) error { return nil }, First: true, Last: true}, err
	}
	if r.Lines > 0 && attempt == 0 {
		before, after := marginReplies, r.Lines+marginReplies
		if r.Back {
			before, after = after, before
		}
		entries, keys, fill, first, last, err := s.Window(ctx, episode, r.At, before, after)
		if err != nil {
			return nil, err
		}
		p := &Part{NewTranscript(begun, entries, attempt, kind), fill, first, last, keys}
		if !p.Partial() || p.enough(r) {
			return p, nil
		}
	}
	entries, fill, err := s.Sparing(ctx, episode)
	return &Part{Transcript: NewTranscript(begun, entries, attempt, kind), Fill: fill, First: true, Last: true}, err
}

// Place is where a window of lines begins: at a line, after an entry of the journal. With a negative entry, the window
// ends with that entry, and the line follows it. Entry 0 is unknown: then everything is read, except for line 0.
type Place struct {
	Line  int // negative: the window has the last lines
	Entry int64
}

// Around is where a window is: the number of its first line, and the windows after and before it; nil: there are none.
type Around struct {
	From       int
	Next, Prev *Place
}

// Window returns a window of about so many lines. In a part of an episode it begins and ends between turns if it can:
// their entries say where.
func (p *Part) Window(at Place, limit int) ([]Line, Around) {
	first, end, number := p.window(at, limit)
	around := Around{From: number}
	if end < len(p.Lines) || !p.Last {
		around.Next = &Place{Line: number + end - first}
		if p.Partial() {
			around.Next.Entry = p.endOfTurn(end)
		}
	}
	if first > 0 || !p.First {
		around.Prev = &Place{Line: max(0, number-limit)}
		if entry := p.endOfTurn(first); p.Partial() && entry != 0 {
			around.Prev = &Place{number, -entry}
		}
	}
	return p.Lines[first:end], around
}

// window returns the lines of a window in what was read, and the number of the first.
func (p *Part) window(at Place, limit int) (first, end, number int) {
	total := len(p.Lines)
	switch {
	case p.Partial() && at.Entry < 0:
		end = p.after(-at.Entry)
		first = max(0, end-limit)
		for n := first; n < end; n++ {
			if n == 0 && p.First || p.endOfTurn(n) != 0 {
				first = n
				break
			}
		}
		return first, end, max(0, at.Line-(end-first))
	case p.Partial():
		first = p.after(at.Entry)
		end = min(total, first+limit)
		for n := end; n > first && end < total; n-- {
			if p.endOfTurn(n) != 0 {
				return first, n, at.Line
			}
		}
		return first, end, at.Line
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
