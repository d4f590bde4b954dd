package transcript

import (
	"fmt"
	"strconv"
	"strings"

	"parley/world"
)

// The limits of an account: a page must stay readable, whatever was played.
const (
	maxAccount      = 4000 // bytes of a text
	maxQuestion     = 2000 // bytes of what a client asked
	maxAccountLines = 1000 // lines. Those after it are told only if they are marked
)

// account tells an episode turn by turn, for a kind that has no story of its own: what was said and noted, and the result.
// Structured answers and notes are written as lines.
func (t *Transcript) account(p world.Played) []world.Exhibit {
	var frames []world.Frame
	turn, shown := "", 0
	for _, l := range t.Lines {
		if shown >= maxAccountLines && l.Mark == "" {
			continue
		}
		if name, _, _ := strings.Cut(l.Turn, "."); name != turn || len(frames) == 0 { // strands belong to the turn that forked them
			turn = name
			frames = append(frames, world.Frame{Title: "Turn " + turn})
		}
		last := &frames[len(frames)-1]
		last.Lines = append(last.Lines, accountLine(&l))
		shown++
	}
	if n := len(t.Lines) - shown; n > 0 {
		frames = append(frames, world.Frame{Title: "Later", Lines: []world.FrameLine{{Text: fmt.Sprintf("%d more lines are in the transcript.", n)}}})
	}
	if end := endLines(p.Outcome); len(end) > 0 {
		frames = append(frames, world.Frame{Title: "The end", Lines: end})
	}
	if len(frames) == 0 {
		return nil
	}
	return []world.Exhibit{{Name: "story", Title: "Turn by turn", Show: world.Replay{Frames: frames}}}
}

func accountLine(l *Line) world.FrameLine {
	who := l.Seat
	if l.Agent != "" && l.Agent != l.Seat {
		who += " (" + l.Agent + ")"
	}
	text, limit := Readable(l.Text), maxAccount
	switch l.Said {
	case SaidNote:
		if who, text = l.Seat, strings.TrimSpace(strings.Join(strings.Split(text, "\n"), "; ")); text == "null" {
			text = "" // the kind of the note says everything
		}
		text = strings.TrimSuffix(l.Label+": "+text, ": ")
	case SaidThought:
		text = "(thinks) " + text
	case SaidAct:
		text = "does " + l.Label + ": " + text
	case SaidFailed:
		text = "failed: " + text
	case SaidAsked:
		text, limit = "(asks) "+text, maxQuestion
	}
	return world.FrameLine{Who: who, To: l.To, Text: world.Shorten(text, limit), Mark: l.Mark}
}

// endLines tells the result of an episode.
func endLines(o world.Outcome) (lines []world.FrameLine) {
	if o.Failed != "" {
		lines = append(lines, world.FrameLine{Text: "failed: " + o.Failed})
	}
	for _, s := range o.Scores {
		lines = append(lines, world.FrameLine{Who: s.Seat, Text: fmt.Sprintf("%s %s", s.Name, strconv.FormatFloat(s.Value, 'g', 6, 64))})
	}
	return lines
}
