package show

import (
	"slices"
	"strings"

	"parley/world"
	picture "parley/worlds/diplomacy/board"
	"parley/worlds/diplomacy/press"
	"parley/worlds/diplomacy/record"
	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
	"parley/worlds/diplomacy/rules/order"
)

// Replay makes a game to step through, phase by phase, out of its notes.
func Replay(_ world.Played, notes []world.Note) []world.Exhibit {
	g := record.Read(notes)
	if len(g.Phases) == 0 {
		return nil
	}
	b := board.New()
	show := world.Replay{Base: picture.Map()}
	for i := range g.Phases {
		p := &g.Phases[i]
		frame := world.Frame{Title: p.State.Name, Lines: frameLines(p)}
		frame.SVG, _ = picture.Overlay(Scene(b, p)) // a position that cannot be drawn is told in words
		show.Frames = append(show.Frames, frame)
	}
	if g.End != nil {
		frame := world.Frame{Title: "the end", Lines: []world.FrameLine{{Text: endText(g.End)}}}
		frame.SVG, _ = picture.Overlay(stateScene("The end: "+g.End.Reason, g.End.State))
		show.Frames = append(show.Frames, frame)
	}
	return []world.Exhibit{{Name: "diplomacy-replay", Title: "The game, phase by phase", Show: show, Caption: "Each picture is the position of a phase with the orders given in it, coloured by what came of them."}}
}

func endText(e *record.End) string {
	if len(e.Winners) == 0 {
		return "The game ended: " + e.Reason + "."
	}
	return "The game ended: " + e.Reason + ", " + strings.Join(e.Winners, ", ") + "."
}

// Scene is the picture of a phase: the position its orders were given in, the orders and
// what came of them.
func Scene(b *board.Board, p *record.Phase) picture.Scene {
	s := stateScene(p.State.Name, p.State)
	for _, seat := range seats() {
		for _, o := range p.Orders[seat] {
			if drawn, ok := drawnOrder(b, seat, o); ok {
				drawn.Unit.Dislodged = strings.HasSuffix(p.State.Name, "R")
				s.Orders = append(s.Orders, drawn)
			}
		}
	}
	return s
}

// stateScene is the picture of a position.
func stateScene(title string, state rules.State) picture.Scene {
	s := picture.Scene{Title: title, Held: map[string]string{}}
	for _, seat := range seats() {
		for _, c := range state.Centers[seat] {
			s.Held[c] = seat
		}
		for _, text := range state.Units[seat] {
			text, dislodged := strings.CutPrefix(text, "*")
			kind, at, _ := strings.Cut(text, " ")
			s.Units = append(s.Units, picture.Unit{Power: seat, Fleet: kind == "F", At: at, Dislodged: dislodged})
		}
	}
	return s
}

func drawnOrder(b *board.Board, seat string, o record.Order) (picture.Order, bool) {
	read, err := order.Parse(b, o.Order)
	if err != nil || !slices.Contains(picture.Kinds(), picture.Kind(read.Kind.String())) {
		return picture.Order{}, false
	}
	drawn := picture.Order{
		Unit: picture.Unit{Power: seat, Fleet: read.Type == board.Fleet, At: b.Code(read.At)},
		Kind: picture.Kind(read.Kind.String()), Results: o.Results,
	}
	if read.Of != board.Nowhere {
		drawn.From = b.Code(read.Of)
	}
	if read.To != board.Nowhere {
		drawn.To = b.Code(read.To)
	}
	return drawn, true
}

// frameLines are what was said and written in a phase, in order.
func frameLines(p *record.Phase) []world.FrameLine {
	var lines []world.FrameLine
	diary := func(about ...string) {
		for _, e := range p.Diary {
			if slices.Contains(about, e.About) && e.Text != "" {
				lines = append(lines, world.FrameLine{Who: e.Power, To: "diary (" + e.About + ")", Text: e.Text})
			}
		}
	}
	diary(record.AboutPlan)
	for _, m := range p.Messages {
		to := m.To
		if to == press.All {
			to = ""
		}
		lines = append(lines, world.FrameLine{Who: m.From, To: to, Text: m.Text})
	}
	diary(record.AboutTalks, record.AboutYears)
	for _, seat := range seats() {
		var orders []string
		for _, o := range p.Orders[seat] {
			text := o.Order
			if failed := record.Failures(o.Results); failed != "" {
				text += " (" + failed + ")"
			}
			orders = append(orders, text)
		}
		if len(orders) > 0 {
			lines = append(lines, world.FrameLine{Who: seat, To: "orders", Text: strings.Join(orders, "; ")})
		}
	}
	for _, r := range p.Promises {
		lines = append(lines, world.FrameLine{Who: r.From, To: r.To, Text: "promise " + r.Verdict + ": " + r.Quote})
	}
	diary(record.AboutResults)
	return lines
}
