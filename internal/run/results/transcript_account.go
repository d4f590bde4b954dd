package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// The limits of an account, and of a kind's own story, in bytes: a page must stay small, whatever was played.
const (
	maxAccount  = 200_000 // an account
	maxPlaying  = 20_000  // that of an episode that is being played: pages send it again at each change
	maxText     = 4000    // a text
	maxQuestion = 2000    // what a client asked
	maxName     = 200     // who says something, to whom, and a mark
	lineSize    = 100     // what a line takes besides its words
)

// account tells an episode turn by turn, for a kind that has no story of its own: what was said and noted, and the result.
// Structured answers and notes are written as lines. It tells the first lines, or the last if the episode is being played.
func (t *Transcript) account(p world.Played) []world.Exhibit {
	lines, rest := t.chosen()
	var frames []world.Frame
	if t.Playing {
		frames = append(frames, untold("Earlier", moreLines(rest))...)
	}
	turn, began := "", false
	for _, l := range lines {
		if !began || l.turn != turn {
			turn, began = l.turn, true
			frames = append(frames, world.Frame{Title: "Turn " + turn})
		}
		last := &frames[len(frames)-1]
		last.Lines = append(last.Lines, l.FrameLine)
	}
	if !t.Playing {
		frames = append(frames, untold("Later", moreLines(rest))...)
	}
	if end := endLines(p.Outcome); len(end) > 0 {
		frames = append(frames, world.Frame{Title: "The end", Lines: end})
	}
	if len(frames) == 0 {
		return nil
	}
	return []world.Exhibit{{Name: "story", Title: "Turn by turn", Show: world.Replay{Frames: frames}}}
}

// turnLine is a line of an account, with its turn. Strands belong to the turn that forked them.
type turnLine struct {
	world.FrameLine
	turn string
}

// chosen returns the lines that an account tells, and how many it leaves out.
func (t *Transcript) chosen() (lines []turnLine, rest int) {
	order, left := slices.All(t.Lines), maxAccount
	if t.Playing {
		order, left = slices.Backward(t.Lines), maxPlaying
	}
	for _, l := range order {
		line := turnLine{FrameLine: accountLine(&l)}
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

// untold returns a frame that says what is not told, if there is anything.
func untold(title, what string) []world.Frame {
	if what == "" {
		return nil
	}
	return []world.Frame{{Title: title, Lines: []world.FrameLine{{Text: what}}}}
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

func accountLine(l *Line) world.FrameLine {
	who := l.Seat
	if l.Agent != "" && l.Agent != l.Seat {
		who += " (" + l.Agent + ")"
	}
	text, limit := Readable(l.Text), maxText
	switch l.Said {
	case SaidNote:
		if who, text = l.Seat, strings.TrimSpace(strings.ReplaceAll(text, "\n", "; ")); text == "null" {
			text = "" // the kind of the note says everything
		}
		text = strings.TrimSuffix(l.Label+": "+text, ": ")
	case SaidThought:
		text = "(thinks) " + text
	case saidAct:
		text = "does " + l.Label + ": " + text
	case SaidFailed:
		text = "failed: " + text
	case SaidAsked:
		text, limit = "(asks) "+text, maxQuestion
	}
	return world.FrameLine{Who: world.Shorten(who, maxName), To: world.Shorten(l.To, maxName), Text: world.Shorten(text, limit), Mark: world.Shorten(l.Mark, maxName)}
}

// endLines tells the result of an episode.
func endLines(o world.Outcome) (lines []world.FrameLine) {
	if o.Failed != "" {
		lines = append(lines, world.FrameLine{Text: "failed: " + world.Shorten(o.Failed, maxText)})
	}
	for _, s := range o.Scores {
		lines = append(lines, world.FrameLine{Who: s.Seat, Text: fmt.Sprintf("%s %s", s.Name, strconv.FormatFloat(s.Value, 'g', 6, 64))})
	}
	return lines
}
