package saved

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/worlds/diplomacy/record"
	"parley/worlds/diplomacy/rules"
	"parley/worlds/diplomacy/rules/board"
)

// Info is what a file says of a game that its notes do not.
type Info struct {
	ID string // of the game
	// Models is power to the model that played it, and MaxTokens to how much it might write.
	Models    map[string]string
	MaxTokens map[string]int
}

// mapName is what the standard map is called.
const mapName = "standard"

// completed is what the phase after the last one is called.
const completed = "COMPLETED"

// file is a saved game.
type file struct {
	ID     string   `json:"id"`
	Map    string   `json:"map"`
	Rules  []string `json:"rules"`
	Phases []phase  `json:"phases"`
}

type phase struct {
	Name     string              `json:"name"`
	State    state               `json:"state"`
	Orders   map[string][]string `json:"orders"`
	Results  map[string][]string `json:"results"`
	Messages []message           `json:"messages"`
}

type state struct {
	Timestamp     int64               `json:"timestamp"`
	Hash          string              `json:"zobrist_hash"`
	Note          string              `json:"note"`
	rules.State                       // name, units, retreats, centers
	Homes         map[string][]string `json:"homes"`
	Influence     map[string][]string `json:"influence"`
	CivilDisorder map[string]int      `json:"civil_disorder"`
	Builds        map[string]build    `json:"builds"`
	Phase         string              `json:"phase"`
	GameID        string              `json:"game_id"`
	Map           string              `json:"map"`
	Rules         []string            `json:"rules"`
}

type build struct {
	Count int      `json:"count"`
	Homes []string `json:"homes"`
}

type message struct {
	Sender    string `json:"sender"`
	Recipient string `json:"recipient"`
	TimeSent  int64  `json:"time_sent"`
	Phase     string `json:"phase"`
	Message   string `json:"message"`
}

// Game writes a game as the Python package diplomacy saves it.
func Game(g record.Game, info Info) ([]byte, error) {
	w := newWriter(info)
	f := file{ID: info.ID, Map: mapName, Rules: []string{}, Phases: []phase{}}
	for i := range g.Phases {
		f.Phases = append(f.Phases, w.phase(&g.Phases[i]))
	}
	if g.End != nil {
		f.Phases = append(f.Phases, w.last(g.End))
	}
	return json.Marshal(f)
}

// writer goes through a game and keeps what a state says of the past.
type writer struct {
	rules     *rules.Rules
	info      Info
	influence [board.Provinces]board.Power // who was in a province last
	clock     int64                        // made up: it only goes on
}

func newWriter(info Info) *writer { return &writer{rules: rules.New(), info: info} }

func (w *writer) tick() int64 { w.clock++; return w.clock }

func (w *writer) phase(p *record.Phase) phase {
	out := phase{Name: p.State.Name, State: w.state(p.State, p.State.Name), Orders: map[string][]string{}, Results: map[string][]string{}, Messages: []message{}}
	for _, power := range board.Powers() {
		name := power.String()
		out.Orders[name] = []string{}
		for _, o := range p.Orders[name] {
			out.Orders[name] = append(out.Orders[name], o.Order)
			out.Results[unitOf(o.Order)] = results(o.Results)
		}
	}
	for _, unit := range p.Removed {
		out.Results[unit] = []string{"disband"}
	}
	for _, m := range p.Messages {
		to := m.To
		if to == "ALL" {
			to = "GLOBAL"
		}
		out.Messages = append(out.Messages, message{Sender: m.From, Recipient: to, TimeSent: w.tick(), Phase: m.Phase, Message: m.Text})
	}
	return out
}

// last is the phase after the last one: the position in the end.
func (w *writer) last(end *record.End) phase {
	p := phase{Name: completed, State: w.state(end.State, completed), Orders: map[string][]string{}, Results: map[string][]string{}, Messages: []message{}}
	if len(end.Winners) > 0 {
		p.State.Note = "Victory by: " + strings.Join(end.Winners, ", ")
	}
	return p
}

// state is a position with what is known of the past.
func (w *writer) state(s rules.State, name string) state {
	out := state{
		Timestamp: w.tick(), State: s, Homes: map[string][]string{}, Influence: map[string][]string{}, CivilDisorder: map[string]int{},
		Builds: map[string]build{}, GameID: w.info.ID, Map: mapName, Rules: []string{},
	}
	out.Name = name
	pos, err := w.rules.FromState(s)
	if err == nil {
		out.Phase = strings.ToUpper(fmt.Sprintf("%s %d %s", pos.Phase.Season, pos.Phase.Year, pos.Phase.Step))
		out.Hash = fmt.Sprintf("%016x", pos.Hash())
	}
	if name == completed {
		out.Phase = completed
	}
	w.remember(&pos)
	for _, power := range board.Powers() {
		n := power.String()
		out.Homes[n], out.Influence[n], out.CivilDisorder[n] = w.homes(power), w.influenced(power), 0
		out.Builds[n] = w.build(&pos, power)
	}
	return out
}

// remember notes who is where.
func (w *writer) remember(pos *rules.Position) {
	for i := range pos.Units {
		switch {
		case pos.Units[i].Power != board.None:
			w.influence[i] = pos.Units[i].Power
		case w.influence[i] == board.None:
			w.influence[i] = pos.Owners[i]
		}
	}
}

func (w *writer) influenced(power board.Power) []string {
	list := []string{}
	for i, who := range w.influence {
		if who == power {
			list = append(list, w.rules.Board.Code(board.Location(i)))
		}
	}
	return list
}

func (w *writer) homes(power board.Power) []string {
	list := []string{}
	for c := range w.rules.Board.Homes(power).All() {
		list = append(list, w.rules.Board.Code(board.Location(c)))
	}
	return list
}

func (w *writer) build(pos *rules.Position, power board.Power) build {
	b := build{Homes: []string{}}
	if pos.Phase.Step != rules.Adjustments {
		return b
	}
	b.Count = w.rules.Allowed(pos, power)
	if b.Count > 0 {
		for c := range w.rules.Board.Homes(power).All() {
			if pos.Owners[c] == power && pos.Units[c].Power == board.None {
				b.Homes = append(b.Homes, w.rules.Board.Code(board.Location(c)))
			}
		}
	}
	return b
}

// unitOf is the unit of an order: A PAR of A PAR - BUR.
func unitOf(order string) string {
	words := strings.Fields(order)
	return strings.Join(words[:min(2, len(words))], " ")
}

// results are codes as the Python package writes them: a success is an empty list.
func results(codes []string) []string {
	list := []string{}
	for _, c := range codes {
		switch c {
		case "success":
			continue
		case "noconvoy":
			c = "no convoy"
		case "illegal":
			c = "void"
		}
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}
