package diplomacy

import (
	"fmt"
	"strings"
	"unicode"

	"parley/worlds/diplomacy/rules"
)

// Draft is a message as a player wrote it, with an unchecked recipient.
type Draft struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// PressRefused is a draft that is not delivered: with a reason to count by, and an explanation for
// its writer.
type PressRefused struct {
	Draft  Draft
	Reason string // recipient, empty, repeated, too many
	Why    string
}

// pressSorted is the result of the drafts of one power in one round.
type pressSorted struct {
	Messages []pressMessage
	Refused  []PressRefused
	Cut      int // messages that were too long
}

// Sort makes at most limit messages from drafts. present are the possible recipients. A draft
// for several powers becomes a message to each.
func (m *pressMail) Sort(drafts []Draft, like pressMessage, present rules.Set[rules.Power], limit int) pressSorted {
	var s pressSorted
	refuse := func(d Draft, reason, format string, args ...any) {
		d.To, d.Text = pressLine(d.To, 60), pressLine(d.Text, 60)
		s.Refused = append(s.Refused, PressRefused{d, reason, fmt.Sprintf(format, args...)})
	}
	for _, d := range drafts {
		text := pressLine(d.Text, MaxText)
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
			case len(s.Messages) == limit:
				refuse(d, "too many", "at most %d messages are delivered in a round", limit)
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

func repeats(earlier []pressMessage, next pressMessage) bool {
	m := pressMail{all: earlier}
	return m.Repeats(next)
}

// recipients reads the recipients of a draft: everybody, a power, or several.
func recipients(to string, from rules.Power, present rules.Set[rules.Power]) (list []rules.Power, why string) {
	switch strings.ToLower(strings.TrimSpace(to)) {
	case "all", "global", "everyone", "everybody", "public", "all powers":
		return []rules.Power{rules.None}, ""
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(to, " and ", ","), ",") {
		w, ok := rules.ParsePower(part)
		switch {
		case strings.TrimSpace(part) == "" && len(list) > 0:
			continue
		case !ok:
			return nil, fmt.Sprintf("there is no power %q", pressLine(part, 30))
		case w == from:
			return nil, "it is for yourself"
		case !present.Has(w):
			return nil, w.Name() + " is out of the game"
		}
		list = append(list, w)
	}
	return list, ""
}

// pressLine makes a text one line of at most limit characters, with single spaces instead of
// characters that cannot be printed.
func pressLine(text string, limit int) string {
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
		if n > limit {
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
