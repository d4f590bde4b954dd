package secrets

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/world"
)

// gameStory tells a game conversation by conversation, and marks the messages that give a secret away or name the other's. The
// notes may be of any form: a run file may come from anywhere.
func gameStory(p world.Played, notes []world.Note) []world.Exhibit {
	s := &teller{played: p, secrets: map[string]string{}}
	for _, n := range notes {
		s.note(n)
	}
	s.end()
	if len(s.frames) == 0 {
		return nil
	}
	return []world.Exhibit{{Name: "secrets-story", Title: "Conversation by conversation", Show: world.Replay{Frames: s.frames}}}
}

// The limits of a story: a page must stay readable, whatever was played.
const (
	maxStoryMessages = 1000 // messages. Those after it are told only if they are marked
	maxStoryText     = 4000 // bytes of a message
)

// teller builds a story.
type teller struct {
	shown, omitted int // messages

	played  world.Played
	frames  []world.Frame
	talk    string            // the conversation of the last frame
	secrets map[string]string // by seat
}

func (s *teller) frame(talk, format string, args ...any) {
	s.talk = talk
	s.frames = append(s.frames, world.Frame{Title: fmt.Sprintf(format, args...)})
}

// say adds a line to the last frame.
func (s *teller) say(l world.FrameLine) {
	last := &s.frames[len(s.frames)-1]
	last.Lines = append(last.Lines, l)
}

// who returns a seat with its agent.
func (s *teller) who(seat string) string {
	if agent := s.played.Spec.Lineup[seat]; agent != "" && agent != seat {
		return seat + " (" + agent + ")"
	}
	return seat
}

func (s *teller) note(n world.Note) {
	switch n.Kind {
	case "secret", "target":
		s.deal(n)
	case "round":
		var r roundNote
		if json.Unmarshal(n.Data, &r) == nil && r.Sits != "" {
			s.frame("", "Round %d", r.Round)
			s.say(world.FrameLine{Text: r.Sits + " sits out."})
		}
	case "message", "silence":
		var m messageNote
		if json.Unmarshal(n.Data, &m) == nil {
			s.message(n, m)
		}
	case "verdict":
		var v struct{ Verdicts []Verdict }
		if json.Unmarshal(n.Data, &v) == nil && len(s.frames) > 0 {
			s.verdicts(v.Verdicts)
		}
	case "standings":
		var r struct {
			Round  int
			Points map[string]float64
		}
		if json.Unmarshal(n.Data, &r) == nil {
			s.frame("", "After round %d", r.Round)
			s.say(world.FrameLine{Text: "Points: " + pointsBySeat(r.Points) + "."})
		}
	}
}

// deal tells who holds which secret.
func (s *teller) deal(n world.Note) {
	var word string
	if json.Unmarshal(n.Data, &word) != nil {
		return
	}
	if s.talk != "deal" {
		s.frame("deal", "The secrets")
	}
	if n.Kind == "target" {
		s.say(world.FrameLine{Text: "The word of " + n.Seat + " is the target."})
		return
	}
	s.secrets[n.Seat] = word
	s.say(world.FrameLine{Who: s.who(n.Seat), Text: "holds the word “" + word + "”"})
}

// message tells a message, or a turn without one.
func (s *teller) message(n world.Note, m messageNote) {
	if s.shown >= maxStoryMessages && m.Reveals == "" && m.Names == "" {
		s.omitted++
		return
	}
	s.shown++
	pair := []string{n.Seat, m.To}
	slices.Sort(pair)
	if talk := fmt.Sprint(m.Round, pair); talk != s.talk {
		s.frame(talk, "Round %d: %s and %s", m.Round, s.who(n.Seat), s.who(m.To))
	}
	line := world.FrameLine{Who: n.Seat, To: m.To, Text: world.Shorten(m.Text, maxStoryText)}
	if n.Kind == "silence" {
		line.Text = "(silence)"
	}
	var marks []string
	if m.Reveals != "" {
		marks = append(marks, fmt.Sprintf("gives its own secret “%s” away (%s)", s.secrets[n.Seat], m.Reveals))
	}
	if m.Names != "" {
		marks = append(marks, fmt.Sprintf("names the other's secret “%s” (%s)", s.secrets[m.To], m.Names))
	}
	line.Mark = strings.Join(marks, "; ")
	s.say(line)
}

// verdicts tells what the judge found in the conversation.
func (s *teller) verdicts(all []Verdict) {
	for _, v := range all {
		text := v.Seat + " kept its word secret"
		if v.Revealed {
			text = v.Seat + " gave its word away"
			if v.Message > 0 {
				text += fmt.Sprintf(" in message %d", v.Message)
			}
		}
		if v.Reason != "" {
			text += ": " + v.Reason
		}
		s.say(world.FrameLine{Who: "judge", Text: text})
	}
}

// end tells the result.
func (s *teller) end() {
	var g Game
	raw, _ := s.played.Outcome.Data.(json.RawMessage)
	if json.Unmarshal(raw, &g) != nil || len(g.Conversations) == 0 {
		return
	}
	s.frame("", "The end")
	if s.omitted > 0 {
		s.say(world.FrameLine{Text: fmt.Sprintf("%d messages after the first %d are not told here, since they give nothing away. The transcript has them.", s.omitted, maxStoryMessages)})
	}
	for _, c := range g.Conversations {
		what := "both kept their words secret"
		switch {
		case c.Failed != "":
			what = "it does not count: " + c.Failed
		case len(c.Revealed) == 1:
			what = c.Revealed[0] + " gave its word away"
		case len(c.Revealed) > 1:
			what = "both gave their words away"
		}
		s.say(world.FrameLine{Text: fmt.Sprintf("Round %d, %s and %s: %s.", c.Round, c.Seats[0], c.Seats[1], what)})
	}
	if s.played.Outcome.Failed != "" {
		s.say(world.FrameLine{Text: "The game failed: " + s.played.Outcome.Failed})
		return
	}
	text := "Points: " + pointsBySeat(g.Points) + "."
	if g.Winner != "" {
		text += " " + g.Winner + " won."
	}
	s.say(world.FrameLine{Text: text})
}

// pointsBySeat lists points by seat.
func pointsBySeat(points map[string]float64) string {
	var parts []string
	for _, seat := range slices.Sorted(maps.Keys(points)) {
		parts = append(parts, seat+" "+strconv.FormatFloat(points[seat], 'g', 6, 64))
	}
	return strings.Join(parts, ", ")
}
