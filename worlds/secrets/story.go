package secrets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/world"
	"parley/world/exhibit"
)

// gameStory tells a game conversation by conversation, and marks the messages that give a secret away or name the other's. The
// notes may be of any form: a run file may come from anywhere.
func gameStory(p world.Played, entries []world.TranscriptEntry) []exhibit.Exhibit {
	s := &teller{played: p, secrets: map[string]string{}, said: map[string]string{}}
	for _, e := range entries {
		if s.Turn = e.Turn; e.Note != nil {
			s.note(*e.Note)
		} else {
			s.said[strandOf(e.Turn)] = e.Turn
		}
	}
	s.end()
	page := exhibit.Page{}
	page.Add("secrets-story", "Conversation by conversation", "", s.Replay)
	return page.All
}

// The limits of a story: a page must stay readable, whatever was played.
const (
	maxStoryMessages = 1000 // messages. Those after it are told only if they are marked
	maxStoryText     = 4000 // bytes of a message
)

// teller builds a story.
type teller struct {
	shown, omitted int // messages

	exhibit.Replay
	played  world.Played
	talk    string            // the conversation of the last frame
	secrets map[string]string // by seat
	said    map[string]string // by strand: the turn of the last call
}

// strandOf returns the strand of a turn: "4.2/" of 4.2/0.
func strandOf(turn string) string { return turn[:strings.LastIndexByte(turn, '/')+1] }

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
			s.Begin("Round %d", r.Round)
			s.Say(exhibit.FrameLine{Text: r.Sits + " sits out."})
		}
	case "message", "silence":
		var m messageNote
		if json.Unmarshal(n.Data, &m) == nil {
			s.message(n, m)
		}
	case "verdict":
		var v struct {
			Verdicts []Verdict
			Reason   string
		}
		if json.Unmarshal(n.Data, &v) == nil && len(s.Frames) > 0 {
			s.verdicts(v.Verdicts, v.Reason)
		}
	case "standings":
		var r struct {
			Round  int
			Points map[string]float64
		}
		if json.Unmarshal(n.Data, &r) == nil {
			s.Begin("After round %d", r.Round)
			s.Say(exhibit.FrameLine{Text: "Points: " + pointsBySeat(r.Points) + "."})
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
		s.talk = "deal"
		s.Begin("The secrets")
	}
	if n.Kind == "target" {
		s.Say(exhibit.FrameLine{Text: "The word of " + n.Seat + " is the target."})
		return
	}
	s.secrets[n.Seat] = word
	s.Say(exhibit.FrameLine{Who: s.who(n.Seat), Text: "holds the word “" + word + "”"})
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
		s.talk = talk
		s.Turn = cmp.Or(s.said[strandOf(s.Turn)], s.Turn) // the note of a message follows it
		s.Begin("Round %d: %s and %s", m.Round, s.who(n.Seat), s.who(m.To))
	}
	line := exhibit.FrameLine{Who: n.Seat, To: m.To, Text: exhibit.Shorten(m.Text, maxStoryText)}
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
	s.Say(line)
}

// verdicts tells what the judge found in the conversation.
func (s *teller) verdicts(all []Verdict, reason string) {
	for _, v := range all {
		text := v.Seat + " kept its word secret"
		if v.Revealed {
			text = v.Seat + " gave its word away"
			if v.Message > 0 {
				text += fmt.Sprintf(" in message %d", v.Message)
			}
		}
		s.Say(exhibit.FrameLine{Who: "judge", Text: text})
	}
	if reason != "" {
		s.Say(exhibit.FrameLine{Who: "judge", Text: reason})
	}
}

// end tells the result.
func (s *teller) end() {
	var g Game
	raw, _ := s.played.Outcome.Data.(json.RawMessage)
	if json.Unmarshal(raw, &g) != nil || len(g.Conversations) == 0 {
		return
	}
	s.Begin("The end")
	if s.omitted > 0 {
		s.Say(exhibit.FrameLine{Text: fmt.Sprintf("%d messages after the first %d are not told here, since they give nothing away. The transcript has them.", s.omitted, maxStoryMessages)})
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
		s.Say(exhibit.FrameLine{Text: fmt.Sprintf("Round %d, %s and %s: %s.", c.Round, c.Seats[0], c.Seats[1], what)})
	}
	if s.played.Outcome.Failed != "" {
		s.Say(exhibit.FrameLine{Text: "The game failed: " + s.played.Outcome.Failed})
		return
	}
	text := "Points: " + pointsBySeat(g.Points) + "."
	if g.Winner != "" {
		text += " " + g.Winner + " won."
	}
	s.Say(exhibit.FrameLine{Text: text})
}

// pointsBySeat lists points by seat.
func pointsBySeat(points map[string]float64) string {
	var parts []string
	for _, seat := range slices.Sorted(maps.Keys(points)) {
		parts = append(parts, seat+" "+strconv.FormatFloat(points[seat], 'g', 6, 64))
	}
	return strings.Join(parts, ", ")
}
