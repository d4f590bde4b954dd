package diplomacy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/rules"
)

// showReplay makes the replay of a game, phase by phase, from its notes.
func showReplay(notes []world.Note) []world.Exhibit {
	g := Read(notes)
	if len(g.Phases) == 0 {
		return nil
	}
	b := rules.NewBoard()
	d := drawing.New(b)
	show := world.Replay{Base: d.Base()}
	add := func(title string, s drawing.Scene, err error, lines ...world.FrameLine) {
		frame := world.Frame{Title: title, Lines: lines}
		if err == nil {
			frame.SVG, _ = d.Overlay(s) // a position that cannot be drawn has only words
		}
		show.Frames = append(show.Frames, frame)
	}
	for i := range g.Phases {
		p := &g.Phases[i]
		s, err := showScene(b, p)
		add(p.State.Name, s, err, frameLines(p)...)
	}
	if g.End != nil {
		s, err := stateScene(b, "The end: "+g.End.Reason, g.End.State)
		add("The end", s, err, world.FrameLine{Text: endText(g.End)})
	}
	return []world.Exhibit{{Name: "diplomacy-replay", Title: "The game, phase by phase", Show: show, Caption: "Each picture shows the position of a phase and the orders given in it. Colours show their results."}}
}

func endText(e *End) string {
	powers := strings.Join(e.Winners, ", ")
	switch e.Reason {
	case recordSolo:
		return "The game ended: " + powers + " won alone."
	case recordDraw:
		return "The game ended in a draw between " + powers + "."
	case concession:
		return "The game ended: the others conceded it to " + powers + "."
	case recordYear:
		return "The game ended with its last year, without a winner."
	case recordUntil:
		return "The game ended with its last phase, without a winner."
	case recordAlone:
		return "The game ended. The last power: " + cmp.Or(powers, "none") + "."
	}
	return "The game ended: " + e.Reason + "."
}

// showScene is the picture of a phase: the position in which its orders were given, the orders
// and their results. Orders that cannot be read are left out.
func showScene(b *rules.Board, p *Phase) (drawing.Scene, error) {
	s, err := stateScene(b, p.State.Name, p.State)
	for _, w := range rules.Powers() {
		for _, o := range p.Orders[w.String()] {
			if read, err := rules.Parse(b, o.Order); err == nil && read.Kind != rules.Waive {
				s.Orders = append(s.Orders, drawing.Order{Order: read, Power: w, Dislodged: strings.HasSuffix(p.State.Name, "R"), Results: o.Results})
			}
		}
	}
	return s, err
}

// showPosition draws a position. A reader can choose the provinces in spots.
func showPosition(b *rules.Board, title string, state rules.State, spots []rules.Province) (svg string, err error) {
	s, err := stateScene(b, title, state)
	if err != nil {
		return "", err
	}
	s.Spots = spots
	var out strings.Builder
	err = drawing.New(b).Draw(&out, s)
	return out.String(), err
}

// stateScene is the picture of a position.
func stateScene(b *rules.Board, title string, state rules.State) (drawing.Scene, error) {
	s := drawing.Scene{Title: title, Owners: map[rules.Province]rules.Power{}}
	for _, w := range rules.Powers() {
		for _, c := range state.Centers[w.String()] {
			at, err := rules.ParseLocation(b, c)
			if err != nil {
				return s, fmt.Errorf("show: centers: %w", err)
			}
			s.Owners[b.Province(at)] = w
		}
		for _, text := range state.Units[w.String()] {
			text, dislodged := strings.CutPrefix(text, "*")
			t, at, err := rules.ParseUnit(b, text)
			if err != nil {
				return s, fmt.Errorf("show: units: %w", err)
			}
			s.Units = append(s.Units, drawing.Unit{Unit: rules.Unit{Power: w, Type: t, Location: at}, Dislodged: dislodged})
		}
	}
	return s, nil
}

// frameLines lists what was said and written in a phase, in order. What is not addressed to anybody begins with what it is.
func frameLines(p *Phase) []world.FrameLine {
	var lines []world.FrameLine
	diary := func(about ...string) {
		for _, e := range p.Diary {
			if slices.Contains(about, e.About) && e.Text != "" {
				lines = append(lines, world.FrameLine{Who: e.Power, Text: "(diary, " + e.About + ") " + e.Text})
			}
		}
	}
	diary(aboutPlan)
	for _, m := range p.Messages {
		lines = append(lines, world.FrameLine{Who: m.From, To: addressee(m.To), Text: m.Text})
	}
	diary(AboutTalks, AboutYears)
	for _, seat := range rules.PowerNames() {
		if orders := p.OrderTexts(seat); len(orders) > 0 {
			lines = append(lines, world.FrameLine{Who: seat, Text: "(orders) " + strings.Join(orders, "; ")})
		}
	}
	for _, r := range p.Promises {
		lines = append(lines, world.FrameLine{Who: r.From, Text: "(promise to " + addressee(r.To) + ", " + r.Verdict + ") " + r.Quote})
	}
	diary(AboutResults)
	return lines
}

// addressee returns to whom something is said, in words.
func addressee(to string) string {
	if to == pressAll {
		return "all"
	}
	return to
}
