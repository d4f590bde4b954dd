package press

import (
	"fmt"
	"strings"
	"unicode"

	"parley/worlds/diplomacy/rules/board"
)

// Draft is a message as a player wrote it: to whom is still words.
type Draft struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// Refused is a draft that is not delivered, and why: in a word to be counted by, and
// in words for its writer.
type Refused struct {
	Draft  Draft
	Reason string // recipient, empty, repeated, too many
	Why    string
}

// Sorted is what became of the drafts of one power in one round.
type Sorted struct {
	Messages []Message
	Refused  []Refused
	Cut      int // messages that were too long
}

// Sort makes messages of drafts. Present are those who can be written to; no
// more than most messages are made. A draft for several powers becomes a message to each.
func (m *Mail) Sort(drafts []Draft, like Message, present board.Set[board.Power], most int) Sorted {
	var s Sorted
	refuse := func(d Draft, reason, format string, args ...any) {
		d.To, d.Text = Line(d.To, 60), Line(d.Text, 60)
		s.Refused = append(s.Refused, Refused{d, reason, fmt.Sprintf(format, args...)})
	}
	for _, d := range drafts {
		text := Line(d.Text, MaxText)
		if text == "" {
			refuse(d, "empty", "it is empty")
			continue
		}
		to, why := recipients(d.To, like.From, present)
		if why != "" {
			refuse(d, "recipient", "%s", why)
			continue
		}
		for _, w := range to {
			next := like
			next.To, next.Text = w, text
			switch {
			case len(s.Messages) == most:
				refuse(d, "too many", "at most %d messages are delivered in a round", most)
			case m.Repeats(next) || repeats(s.Messages, next):
				refuse(d, "repeated", "you have said the same, and it was not answered")
			default:
				s.Messages = append(s.Messages, next)
				if len(text) < len(strings.TrimSpace(d.Text)) && strings.HasSuffix(text, "…") {
					s.Cut++
				}
			}
		}
	}
	return s
}

func repeats(earlier []Message, next Message) bool {
	m := Mail{all: earlier}
	return m.Repeats(next)
}

// recipients reads whom a draft is for: everybody, a power, or several.
func recipients(to string, from board.Power, present board.Set[board.Power]) (list []board.Power, why string) {
	switch strings.ToLower(strings.TrimSpace(to)) {
	case "all", "global", "everyone", "everybody", "public", "all powers":
		return []board.Power{board.None}, ""
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(to, " and ", ","), ",") {
		w, ok := board.ParsePower(part)
		switch {
		case strings.TrimSpace(part) == "" && len(list) > 0:
			continue
		case !ok:
			return nil, fmt.Sprintf("there is no power %q", Line(part, 30))
		case w == from:
			return nil, "it is for yourself"
		case !present.Has(w):
			return nil, w.Name() + " is out of the game"
		}
		list = append(list, w)
	}
	return list, ""
}

// Line makes one line of a text: whatever is no printable character is a space, spaces
// are single, and it is at most so many characters long.
func Line(text string, most int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text {
		if r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			space = b.Len() > 0
			continue
		}
		if n += 1; space {
			n++
		}
		if n > most {
			return b.String() + "…"
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
