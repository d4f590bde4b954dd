package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/world"
	"parley/world/exhibit"
)

// storyLimit limits the words of a kind's own story, as an account is limited. Pictures do not count, and tables of numbers are
// not cut.
type storyLimit struct {
	left    int // bytes
	playing bool
}

// apply leaves out what is too much: of a replay the last lines before its last frame or, if the episode is being played, the
// first ones. It does not change the parts that it is given.
func (b *storyLimit) apply(exhibits []exhibit.Exhibit) []exhibit.Exhibit {
	exhibits = slices.Clone(exhibits)
	for i := range exhibits {
		e := &exhibits[i]
		b.left -= len(e.Title) + len(e.Caption)
		switch show := e.Show.(type) {
		case exhibit.Replay:
			show.Frames = b.frames(show.Frames)
			e.Show = show
		case exhibit.Text:
			show.Body = b.text(show.Body)
			e.Show = show
		case exhibit.Grid:
			if show.Rows = b.rows(show.Rows); len(show.Rows) < len(e.Show.(exhibit.Grid).Rows) {
				e.Caption = strings.TrimSpace(e.Caption + " " + leftOut(len(e.Show.(exhibit.Grid).Rows)-len(show.Rows), "row"))
			}
			e.Show = show
		}
	}
	return exhibits
}

// frames returns frames with the lines that fit, and a frame that says how many do not. Frames with pictures stay.
func (b *storyLimit) frames(all []exhibit.Frame) []exhibit.Frame {
	if len(all) == 0 {
		return nil
	}
	kept, rest, cut := make([]exhibit.Frame, len(all)), 0, -1 // cut is the first frame that is not whole
	tell := func(i int) {
		var n int
		if kept[i], n = b.frame(all[i]); n > 0 && cut < 0 {
			cut = i
		}
		rest += n
	}
	last := len(all) - 1
	if b.playing {
		for i := last; i >= 0; i-- {
			tell(i)
		}
	} else {
		end := min(maxPlaying, lineSize+len(all[last].Title)+sizeOf(all[last].Lines...)) // how it ended
		b.left -= end
		for i := range last {
			tell(i)
		}
		b.left = max(b.left, 0) + end
		tell(last)
	}
	if rest == 0 {
		return all
	}
	var out []exhibit.Frame
	if b.playing {
		out = omittedFrame("Earlier", leftOut(rest, "line"))
	}
	for i, f := range kept {
		if f.Title+f.SVG != "" || len(f.Lines) > 0 {
			out = append(out, f)
		}
		if i == cut && !b.playing {
			out = append(out, omittedFrame("Later", leftOut(rest, "line"))...)
		}
	}
	return out
}

// frame returns a frame with the lines that fit, and how many do not. If none fits, only its picture is left, with the title.
func (b *storyLimit) frame(f exhibit.Frame) (exhibit.Frame, int) {
	all, n := f.Lines, 0
	b.left -= lineSize + len(f.Title)
	for n < len(all) && b.left >= 0 {
		at := n
		if b.playing {
			at = len(all) - 1 - n
		}
		if b.left -= sizeOf(all[at]); b.left >= 0 {
			n++
		}
	}
	switch {
	case b.left >= 0:
		return f, 0
	case n == 0 && f.SVG == "":
		return exhibit.Frame{}, max(1, len(all))
	case b.playing:
		f.Lines = all[len(all)-n:]
	default:
		f.Lines = all[:n]
	}
	return f, len(all) - n
}

// text returns the lines of a text that fit, and says how many do not. Of a long line it returns the beginning.
func (b *storyLimit) text(body string) string {
	n, part := 0, ""
	for line := range strings.Lines(body) {
		if len(line) > maxText && 0 < b.left && b.left < len(line) {
			part = exhibit.Shorten(line, b.left) + "\n"
		}
		if b.left -= len(line); b.left < 0 {
			break
		}
		n += len(line)
	}
	if n == len(body) {
		return body
	}
	rest := strings.Count(strings.TrimSuffix(body[n:], "\n"), "\n") + 1
	if part == "" {
		return body[:n] + "\n" + leftOut(rest, "line")
	}
	if rest--; rest > 0 {
		part += "\n" + leftOut(rest, "line")
	}
	return body[:n] + part
}

// rows returns the rows of a table that fit.
func (b *storyLimit) rows(all [][]any) [][]any {
	for i, row := range all {
		b.left -= lineSize
		for _, cell := range row {
			if text, ok := cell.(string); ok {
				b.left -= len(text)
			}
		}
		if b.left < 0 {
			return all[:i]
		}
	}
	return all
}

// sizeOf returns what lines take.
func sizeOf(lines ...exhibit.FrameLine) (n int) {
	for _, l := range lines {
		n += lineSize + len(l.Who) + len(l.To) + len(l.Mark) + len(l.Text)
	}
	return n
}

// leftOut says how many lines or rows of a kind are left out. They need not be in the transcript.
func leftOut(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is left out."
	}
	return fmt.Sprintf("%d %ss are left out.", n, what)
}

// The limits of an account, and of a kind's own story, in bytes: a page must stay small, whatever was played.
const (
	maxStory    = 200_000 // an account
	maxPlaying  = 20_000  // that of an episode that is being played: pages send it again at each change
	maxText     = 4000    // a text
	maxQuestion = 2000    // what a client asked
	maxName     = 200     // who says something, to whom, and a mark
	lineSize    = 100     // what a line takes besides its words
)

// turnByTurn tells an episode turn by turn, for a kind that has no story of its own: what was said and noted, and the result.
// Structured answers and notes are written as lines. It tells the first lines, or the last if the episode is being played.
func (t *Transcript) turnByTurn(p world.Played) []exhibit.Exhibit {
	lines, rest := t.chooseLines()
	var frames []exhibit.Frame
	if t.Playing {
		frames = append(frames, omittedFrame("Earlier", moreLines(rest))...)
	}
	turn, phase, began := "", "", false
	for _, l := range lines {
		if l.phase {
			phase, began = " · "+l.Text, false
			continue
		}
		if !began || l.turn != turn {
			turn, began = l.turn, true
			frames = append(frames, exhibit.Frame{Title: "Turn " + turn + phase, Turn: turn})
		}
		last := &frames[len(frames)-1]
		last.Lines = append(last.Lines, l.FrameLine)
	}
	if !t.Playing {
		frames = append(frames, omittedFrame("Later", moreLines(rest))...)
	}
	if end := endLines(p.Outcome); len(end) > 0 {
		frames = append(frames, exhibit.Frame{Title: "The end", Lines: end})
	}
	if len(frames) == 0 {
		return nil
	}
	return []exhibit.Exhibit{{Name: "story", Title: "Turn by turn", Show: exhibit.Replay{Frames: frames}}}
}

// turnLine is a line of an account, with its turn. Strands belong to the turn that forked them.
type turnLine struct {
	exhibit.FrameLine
	turn  string
	phase bool // its text is the name of the phase that begins
}

// chooseLines returns the lines that an account tells, and how many it leaves out.
func (t *Transcript) chooseLines() (lines []turnLine, rest int) {
	order, left := slices.All(t.Lines), maxStory
	if t.Playing {
		order, left = slices.Backward(t.Lines), maxPlaying
	}
	for _, l := range order {
		line := turnLine{FrameLine: storyLine(&l), phase: l.Said == LinePhase}
		line.turn, _, _ = strings.Cut(l.Turn, ".")
		if left -= sizeOf(line.FrameLine); left < 0 {
			break
		}
		lines = append(lines, line)
	}
	if t.Playing {
		slices.Reverse(lines)
	}
	return lines, len(t.Lines) - len(lines)
}

// omittedFrame returns a frame that says what is not told, if there is anything.
func omittedFrame(title, what string) []exhibit.Frame {
	if what == "" {
		return nil
	}
	return []exhibit.Frame{{Title: title, Lines: []exhibit.FrameLine{{Text: what}}}}
}

// moreLines says how many lines of a transcript are not told, if there are any.
func moreLines(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 more line is in the transcript."
	default:
		return fmt.Sprintf("%d more lines are in the transcript.", n)
	}
}

func storyLine(l *Line) exhibit.FrameLine {
	who := l.Seat
	if l.Agent != "" && l.Agent != l.Seat {
		who += " (" + l.Agent + ")"
	}
	text, limit := l.Words(), maxText
	switch l.Said {
	case LineNote:
		who, text = l.Seat, strings.TrimSpace(strings.ReplaceAll(text, "\n", "; "))
		if l.Text == text || !strings.HasPrefix(text, l.kindText()) { // its first field may have the name of its kind
			text = strings.TrimSuffix(l.Label+": "+text, ": ")
		}
	case LinePhase:
		limit = maxName
	case LineThought:
		text = "(thinks) " + text
	case lineAct:
		text = "does " + l.Label + ": " + Readable(text)
	case LineFailed:
		text = "failed: " + text
	case LineAsked:
		text, limit = "(asks) "+text, maxQuestion
	}
	return exhibit.FrameLine{Who: exhibit.Shorten(who, maxName), To: exhibit.Shorten(l.To, maxName), Text: exhibit.Shorten(text, limit), Mark: exhibit.Shorten(l.Mark, maxName)}
}

// endLines tells the result of an episode.
func endLines(o world.Outcome) (lines []exhibit.FrameLine) {
	if o.Failed != "" {
		lines = append(lines, exhibit.FrameLine{Text: "failed: " + exhibit.Shorten(o.Failed, maxText)})
	}
	for _, s := range o.Scores {
		lines = append(lines, exhibit.FrameLine{Who: s.Seat, Text: fmt.Sprintf("%s %s", s.Name, strconv.FormatFloat(s.Value, 'g', 6, 64))})
	}
	return lines
}
