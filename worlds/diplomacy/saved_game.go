package diplomacy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/worlds/diplomacy/rules"
)

// Info is what a file holds and the notes of a game do not.
type Info struct {
	ID string // of the game
	// Models are the models by power, and MaxTokens their limits of output.
	Models    map[string]string
	MaxTokens map[string]int
}

// mapName is the name of the standard map.
const mapName = "standard"

// completed is the name of the phase after the last one.
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

// SavedGame writes a game as the Python package diplomacy saves it.
func SavedGame(g RecordGame, info Info) ([]byte, error) {
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

// writer writes the phases of a game in order, and keeps what later states need.
type writer struct {
	rules     *rules.Rules
	info      Info
	influence [rules.Provinces]rules.Power // the power last in a province
	clock     int64                        // made up: it only increases
}

func newWriter(info Info) *writer { return &writer{rules: rules.New(), info: info} }

func (w *writer) tick() int64 { w.clock++; return w.clock }

func (w *writer) phase(p *Phase) phase {
	out := phase{Name: p.State.Name, State: w.state(p.State, p.State.Name), Orders: map[string][]string{}, Results: map[string][]string{}, Messages: []message{}}
	for _, power := range rules.Powers() {
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

// last is the phase after the last one: the final position.
func (w *writer) last(end *End) phase {
	p := phase{Name: completed, State: w.state(end.State, completed), Orders: map[string][]string{}, Results: map[string][]string{}, Messages: []message{}}
	if len(end.Winners) > 0 {
		p.State.Note = "Victory by: " + strings.Join(end.Winners, ", ")
	}
	return p
}

// state is a position with what depends on earlier phases.
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
	for _, power := range rules.Powers() {
		n := power.String()
		out.Homes[n], out.Influence[n], out.CivilDisorder[n] = w.codes(w.rules.Board.Homes(power)), w.influenced(power), 0
		out.Builds[n] = w.build(&pos, power)
	}
	return out
}

// remember records which power is where.
func (w *writer) remember(pos *rules.Position) {
	for i := range pos.Units {
		switch {
		case pos.Units[i].Power != rules.None:
			w.influence[i] = pos.Units[i].Power
		case w.influence[i] == rules.None:
			w.influence[i] = pos.Owners[i]
		}
	}
}

func (w *writer) influenced(power rules.Power) []string {
	var set rules.Set[rules.Province]
	for i, who := range w.influence {
		if who == power {
			set.Add(rules.Province(i))
		}
	}
	return w.codes(set)
}

func (w *writer) codes(set rules.Set[rules.Province]) []string {
	list := []string{}
	for p := range set.All() {
		list = append(list, w.rules.Board.Code(rules.Location(p)))
	}
	return list
}

func (w *writer) build(pos *rules.Position, power rules.Power) build {
	b := build{Homes: []string{}}
	if pos.Phase.Step != rules.Adjustments {
		return b
	}
	b.Count = w.rules.Allowed(pos, power)
	if b.Count > 0 {
		b.Homes = w.codes(w.rules.Sites(pos, power))
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
