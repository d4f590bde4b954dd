package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/press"
	"parley/worlds/diplomacy/record"
	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// Replay makes the replay of a game, phase by phase, from its notes.
func Replay(notes []world.Note) []world.Exhibit {
	g := record.Read(notes)
	if len(g.Phases) == 0 {
		return nil
	}
	b := board.New()
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
		s, err := Scene(b, p)
		add(p.State.Name, s, err, frameLines(p)...)
	}
	if g.End != nil {
		s, err := stateScene(b, "The end: "+g.End.Reason, g.End.State)
		add("The end", s, err, world.FrameLine{Text: endText(g.End)})
	}
	return []world.Exhibit{{Name: "diplomacy-replay", Title: "The game, phase by phase", Show: show, Caption: "Each picture shows the position of a phase and the orders given in it. Colours show their results."}}
}

func endText(e *record.End) string {
	powers := strings.Join(e.Winners, ", ")
	switch e.Reason {
	case record.Solo:
		return "The game ended: " + powers + " won alone."
	case record.Draw:
		return "The game ended in a draw between " + powers + "."
	case record.Concession:
		return "The game ended: the others conceded it to " + powers + "."
	case record.Year:
		return "The game ended with its last year, without a winner."
	case record.Until:
		return "The game ended with its last phase, without a winner."
	case record.Alone:
		return "The game ended. The last power: " + cmp.Or(powers, "none") + "."
	}
	return "The game ended: " + e.Reason + "."
}

// Scene is the picture of a phase: the position in which its orders were given, the orders
// and their results. Orders that cannot be read are left out.
func Scene(b *board.Board, p *record.Phase) (drawing.Scene, error) {
	s, err := stateScene(b, p.State.Name, p.State)
	for _, w := range board.Powers() {
		for _, o := range p.Orders[w.String()] {
			if read, err := order.Parse(b, o.Order); err == nil && read.Kind != order.Waive {
				s.Orders = append(s.Orders, drawing.Order{Order: read, Power: w, Dislodged: strings.HasSuffix(p.State.Name, "R"), Results: o.Results})
			}
		}
	}
	return s, err
}

// Position draws a position. A reader can choose the provinces in spots.
func Position(b *board.Board, title string, state rules.State, spots []board.Province) (svg string, err error) {
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
func stateScene(b *board.Board, title string, state rules.State) (drawing.Scene, error) {
	s := drawing.Scene{Title: title, Owners: map[board.Province]board.Power{}}
	for _, w := range board.Powers() {
		for _, c := range state.Centers[w.String()] {
			at, err := order.ParseLocation(b, c)
			if err != nil {
				return s, fmt.Errorf("show: centers: %w", err)
			}
			s.Owners[b.Province(at)] = w
		}
		for _, text := range state.Units[w.String()] {
			text, dislodged := strings.CutPrefix(text, "*")
			t, at, err := order.ParseUnit(b, text)
			if err != nil {
				return s, fmt.Errorf("show: units: %w", err)
			}
			s.Units = append(s.Units, drawing.Unit{Unit: board.Unit{Power: w, Type: t, Location: at}, Dislodged: dislodged})
		}
	}
	return s, nil
}

// frameLines lists what was said and written in a phase, in order. What is not addressed to anybody begins with what it is.
func frameLines(p *record.Phase) []world.FrameLine {
	var lines []world.FrameLine
	diary := func(about ...string) {
		for _, e := range p.Diary {
			if slices.Contains(about, e.About) && e.Text != "" {
				lines = append(lines, world.FrameLine{Who: e.Power, Text: "(diary, " + e.About + ") " + e.Text})
			}
		}
	}
	diary(record.AboutPlan)
	for _, m := range p.Messages {
		lines = append(lines, world.FrameLine{Who: m.From, To: addressee(m.To), Text: m.Text})
	}
	diary(record.AboutTalks, record.AboutYears)
	for _, seat := range board.PowerNames() {
		if orders := p.OrderTexts(seat); len(orders) > 0 {
			lines = append(lines, world.FrameLine{Who: seat, Text: "(orders) " + strings.Join(orders, "; ")})
		}
	}
	for _, r := range p.Promises {
		lines = append(lines, world.FrameLine{Who: r.From, Text: "(promise to " + addressee(r.To) + ", " + r.Verdict + ") " + r.Quote})
	}
	diary(record.AboutResults)
	return lines
}

// addressee returns to whom something is said, in words.
func addressee(to string) string {
	if to == press.All {
		return "all"
	}
	return to
}
