package results

import (
	"fmt"
	"slices"
	"strings"

	"parley/world"
)

// bound limits the words of a kind's own story, as an account is limited. Pictures do not count, and tables of numbers are
// not cut.
type bound struct {
	left    int // bytes
	playing bool
}

// apply leaves out what is too much: of a replay the last lines before its last frame or, if the episode is being played, the
// first ones. It does not change the parts that it is given.
func (b *bound) apply(story []world.Exhibit) []world.Exhibit {
	story = slices.Clone(story)
	for i := range story {
		e := &story[i]
		b.left -= len(e.Title) + len(e.Caption)
		switch show := e.Show.(type) {
		case world.Replay:
			show.Frames = b.frames(show.Frames)
			e.Show = show
		case world.Text:
			show.Body = b.text(show.Body)
			e.Show = show
		case world.Grid:
			if show.Rows = b.rows(show.Rows); len(show.Rows) < len(e.Show.(world.Grid).Rows) {
				e.Caption = strings.TrimSpace(e.Caption + " " + leftOut(len(e.Show.(world.Grid).Rows)-len(show.Rows), "row"))
			}
			e.Show = show
		}
	}
	return story
}

// frames returns frames with the lines that fit, and a frame that says how many do not. Frames with pictures stay.
func (b *bound) frames(all []world.Frame) []world.Frame {
	if len(all) == 0 {
		return nil
	}
	kept, rest, cut := make([]world.Frame, len(all)), 0, -1 // cut is the first frame that is not whole
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
	var out []world.Frame
	if b.playing {
		out = untold("Earlier", leftOut(rest, "line"))
	}
	for i, f := range kept {
		if f.Title+f.SVG != "" || len(f.Lines) > 0 {
			out = append(out, f)
		}
		if i == cut && !b.playing {
			out = append(out, untold("Later", leftOut(rest, "line"))...)
		}
	}
	return out
}

// frame returns a frame with the lines that fit, and how many do not. If none fits, only its picture is left, with the title.
func (b *bound) frame(f world.Frame) (world.Frame, int) {
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
		return world.Frame{}, max(1, len(all))
	case b.playing:
		f.Lines = all[len(all)-n:]
	default:
		f.Lines = all[:n]
	}
	return f, len(all) - n
}

// text returns the lines of a text that fit, and says how many do not. Of a long line it returns the beginning.
func (b *bound) text(body string) string {
	n, part := 0, ""
	for line := range strings.Lines(body) {
		if len(line) > maxText && 0 < b.left && b.left < len(line) {
			part = world.Shorten(line, b.left) + "\n"
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
func (b *bound) rows(all [][]any) [][]any {
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
func sizeOf(lines ...world.FrameLine) (n int) {
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
