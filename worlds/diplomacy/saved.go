package diplomacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"parley/world"
	"parley/worlds/diplomacy/drawing"
	"parley/worlds/diplomacy/rules"
)

// savedInfo is what a file holds and the notes of a game do not.
type savedInfo struct {
	ID string // of the game
	// Models are the models by power, and MaxTokens their limits of output.
	Models    map[string]string
	MaxTokens map[string]int
}

// mapName is the name of the standard map.
const mapName = "standard"

// completed is the name of the phase after the last one.
const completed = "COMPLETED"

// savedFile is a saved game.
type savedFile struct {
	ID     string       `json:"id"`
	Map    string       `json:"map"`
	Rules  []string     `json:"rules"`
	Phases []savedPhase `json:"phases"`
}

type savedPhase struct {
	Name     string              `json:"name"`
	State    savedState          `json:"state"`
	Orders   map[string][]string `json:"orders"`
	Results  map[string][]string `json:"results"`
	Messages []savedMessage      `json:"messages"`
}

type savedState struct {
	Timestamp     int64                  `json:"timestamp"`
	Hash          string                 `json:"zobrist_hash"`
	Note          string                 `json:"note"`
	rules.State                          // name, units, retreats, centers
	Homes         map[string][]string    `json:"homes"`
	Influence     map[string][]string    `json:"influence"`
	CivilDisorder map[string]int         `json:"civil_disorder"`
	Builds        map[string]savedBuilds `json:"builds"`
	Phase         string                 `json:"phase"`
	GameID        string                 `json:"game_id"`
	Map           string                 `json:"map"`
	Rules         []string               `json:"rules"`
}

type savedBuilds struct {
	Count int      `json:"count"`
	Homes []string `json:"homes"`
}

type savedMessage struct {
	Sender    string `json:"sender"`
	Recipient string `json:"recipient"`
	TimeSent  int64  `json:"time_sent"`
	Phase     string `json:"phase"`
	Message   string `json:"message"`
}

// writeSavedGame writes a game as the Python package diplomacy saves it. The same record makes the
// same bytes. Fields that a record does not have, such as times of day and the hashes of the Python
// engine, are made up in a way that readers accept; see docs/worlds/diplomacy.md.
func writeSavedGame(g gameRecord, info savedInfo) ([]byte, error) {
	w := newWriter(info)
	f := savedFile{ID: info.ID, Map: mapName, Rules: []string{}, Phases: []savedPhase{}}
	for i := range g.Phases {
		f.Phases = append(f.Phases, w.phase(&g.Phases[i]))
	}
	if g.End != nil {
		f.Phases = append(f.Phases, w.last(g.End))
	}
	return json.Marshal(f)
}

// savedWriter writes the phases of a game in order, and keeps what later states need.
type savedWriter struct {
	rules     *rules.Rules
	info      savedInfo
	influence [rules.Provinces]rules.Power // the power last in a province
	clock     int64                        // made up: it only increases
}

func newWriter(info savedInfo) *savedWriter { return &savedWriter{rules: rules.New(), info: info} }

func (w *savedWriter) tick() int64 { w.clock++; return w.clock }

func (w *savedWriter) phase(p *phaseRecord) savedPhase {
	out := savedPhase{Name: p.State.Name, State: w.state(p.State, p.State.Name), Orders: map[string][]string{}, Results: map[string][]string{}, Messages: []savedMessage{}}
	for _, power := range rules.Powers() {
		name := power.String()
		out.Orders[name] = []string{}
		for _, o := range p.Orders[name] {
			out.Orders[name] = append(out.Orders[name], o.Order)
			out.Results[unitOf(o.Order)] = pythonResults(o.Results)
		}
	}
	for _, unit := range p.Removed {
		out.Results[unit] = []string{"disband"}
	}
	for _, m := range p.Messages {
		to := m.To
		if to == toAll {
			to = "GLOBAL"
		}
		out.Messages = append(out.Messages, savedMessage{Sender: m.From, Recipient: to, TimeSent: w.tick(), Phase: m.Phase, Message: m.Text})
	}
	return out
}

// last is the phase after the last one: the final position.
func (w *savedWriter) last(end *endRecord) savedPhase {
	p := savedPhase{Name: completed, State: w.state(end.State, completed), Orders: map[string][]string{}, Results: map[string][]string{}, Messages: []savedMessage{}}
	if len(end.Winners) > 0 {
		p.State.Note = "Victory by: " + strings.Join(end.Winners, ", ")
	}
	return p
}

// state is a position with what depends on earlier phases.
func (w *savedWriter) state(s rules.State, name string) savedState {
	out := savedState{
		Timestamp: w.tick(), State: s, Homes: map[string][]string{}, Influence: map[string][]string{}, CivilDisorder: map[string]int{},
		Builds: map[string]savedBuilds{}, GameID: w.info.ID, Map: mapName, Rules: []string{},
	}
	out.Name = name
	pos, err := w.rules.FromState(s)
	if err == nil {
		out.Phase = strings.ToUpper(fmt.Sprintf("%s %d %s", pos.Phase.Season, pos.Phase.Year, pos.Phase.Step))
		out.Hash = positionHash(s)
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

// positionHash returns a number for a position, the same on every machine.
func positionHash(s rules.State) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%+v", s) // maps in order of their keys
	return fmt.Sprintf("%016x", h.Sum64())
}

// remember records which power is where.
func (w *savedWriter) remember(pos *rules.Position) {
	for i := range pos.Units {
		switch {
		case pos.Units[i].Power != rules.None:
			w.influence[i] = pos.Units[i].Power
		case w.influence[i] == rules.None:
			w.influence[i] = pos.Owners[i]
		}
	}
}

func (w *savedWriter) influenced(power rules.Power) []string {
	var set rules.Set[rules.Province]
	for i, who := range w.influence {
		if who == power {
			set.Add(rules.Province(i))
		}
	}
	return w.codes(set)
}

func (w *savedWriter) codes(set rules.Set[rules.Province]) []string {
	list := []string{}
	for p := range set.All() {
		list = append(list, w.rules.Board.Code(rules.Location(p)))
	}
	return list
}

func (w *savedWriter) build(pos *rules.Position, power rules.Power) savedBuilds {
	b := savedBuilds{Homes: []string{}}
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

// pythonResults are codes as the Python package writes them: a success is an empty list.
func pythonResults(codes []string) []string {
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

// lmFile is an lmvsgame.json.
type lmFile struct {
	ID        string             `json:"id"`
	Map       string             `json:"map"`
	Rules     []string           `json:"rules"`
	Phases    []lmPhase          `json:"phases"`
	Summaries map[string]string  `json:"phase_summaries"`
	Final     map[string]lmFinal `json:"final_agent_states"`
}

type lmPhase struct {
	savedPhase
	Summary     string                          `json:"summary"`
	Statistical map[string]any                  `json:"statistical_summary"`
	Agents      map[string]lmAgent              `json:"state_agents"`
	Outcomes    map[string]map[string][]lmOrder `json:"order_results"`
	Phases      map[string]string               `json:"state_phase_summaries"`
	Config      map[string]any                  `json:"config,omitempty"`
}

type lmAgent struct {
	Power         string            `json:"power_name"`
	Model         string            `json:"model_id"`
	MaxTokens     int               `json:"max_tokens"`
	Goals         []string          `json:"goals"`
	Relationships map[string]string `json:"relationships"`
	Full          []string          `json:"full_private_diary"`
	Diary         []string          `json:"private_diary"`
}

type lmFinal struct {
	Relationships map[string]string `json:"relationships"`
	Goals         []string          `json:"goals"`
}

type lmOrder struct {
	Order  string `json:"order"`
	Result string `json:"result"`
}

// writeLMvsGame writes a game as lmvsgame.json, the file of an LLM harness built on the Python
// package: a saved game with the state of the agents in each phase.
func writeLMvsGame(g gameRecord, info savedInfo) ([]byte, error) {
	w := newWriter(info)
	agents := newLMAgents(info)
	f := lmFile{ID: info.ID, Map: mapName, Rules: []string{}, Phases: []lmPhase{}, Summaries: map[string]string{}, Final: map[string]lmFinal{}}
	for i := range g.Phases {
		p := &g.Phases[i]
		agents.read(p)
		f.Phases = append(f.Phases, lmPhase{
			savedPhase: w.phase(p), Statistical: map[string]any{}, Agents: agents.copies(), Outcomes: w.outcomes(p), Phases: map[string]string{},
		})
	}
	if g.End != nil {
		f.Phases = append(f.Phases, lmPhase{
			savedPhase: w.last(g.End), Statistical: map[string]any{}, Agents: agents.copies(), Outcomes: map[string]map[string][]lmOrder{}, Phases: map[string]string{},
		})
	}
	if n := len(f.Phases); n > 0 {
		f.Phases[n-1].Config = map[string]any{"models": info.Models}
	}
	for name, a := range agents {
		f.Final[name] = lmFinal{a.Relationships, a.Goals}
	}
	return json.Marshal(f)
}

// outcomes sorts the orders of a phase by power and kind.
func (w *savedWriter) outcomes(p *phaseRecord) map[string]map[string][]lmOrder {
	all := map[string]map[string][]lmOrder{}
	for power, orders := range p.Orders {
		all[power] = map[string][]lmOrder{}
		for _, o := range orders {
			kind := "other"
			if read, err := rules.Parse(w.rules.Board, o.Order); err == nil {
				kind = read.Kind.String()
			}
			result := strings.Join(pythonResults(o.Results), ", ")
			if result == "" {
				result = "success"
			}
			all[power][kind] = append(all[power][kind], lmOrder{o.Order, result})
		}
	}
	return all
}

// lmAgents are the states of the powers in the course of a game, by name.
type lmAgents map[string]*lmAgent

func newLMAgents(info savedInfo) lmAgents {
	all := lmAgents{}
	for _, w := range rules.Powers() {
		name := w.String()
		a := &lmAgent{Power: name, Model: info.Models[name], MaxTokens: info.MaxTokens[name], Goals: []string{}, Relationships: map[string]string{}, Full: []string{}, Diary: []string{}}
		for _, other := range rules.Powers() {
			if other != w {
				a.Relationships[other.String()] = "Neutral"
			}
		}
		all[name] = a
	}
	return all
}

// read records what the powers wrote in a phase.
func (all lmAgents) read(p *phaseRecord) {
	for _, e := range p.Diary {
		a := all[e.Power]
		if a == nil {
			continue
		}
		if len(e.Goals) > 0 {
			a.Goals = e.Goals
		}
		for power, label := range e.Relations {
			if label != "" {
				a.Relationships[power] = strings.ToUpper(label[:1]) + label[1:]
			}
		}
		switch {
		case e.Text == "":
		case e.About == aboutYears:
			a.Diary = append([]string{"[CONSOLIDATED HISTORY] " + e.Text}, linesSince(a.Diary, e.Phase)...)
		default:
			line := fmt.Sprintf("[%s] %s", e.Phase, e.Text)
			a.Full, a.Diary = append(a.Full, line), append(a.Diary, line)
		}
	}
}

// linesSince keeps the lines of a diary from the year before a phase or later.
func linesSince(diary []string, phase string) []string {
	now, err := rules.ParsePhase(phase)
	if err != nil {
		return diary
	}
	var kept []string
	for _, line := range diary {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
		if at, err := rules.ParsePhase(name); err == nil && at.Year >= now.Year-1 {
			kept = append(kept, line)
		}
	}
	return kept
}

// copies returns copies of the current states.
func (all lmAgents) copies() map[string]lmAgent {
	now := map[string]lmAgent{}
	for name, a := range all {
		c := *a
		c.Relationships = maps.Clone(a.Relationships)
		c.Full, c.Diary = append([]string{}, a.Full...), append([]string{}, a.Diary...)
		now[name] = c
	}
	return now
}

// readPosition reads the position to start from: a state, or a phase of a saved game. If no phase
// is named, it is the last one that can be played.
func readPosition(data []byte, phase string) (rules.State, error) {
	var file struct {
		rules.State
		Phases []struct {
			Name  string
			State rules.State
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return rules.State{}, fmt.Errorf("not the JSON of a state or of a saved game: %w", err)
	}
	if len(file.Phases) == 0 {
		switch {
		case file.Units == nil:
			return rules.State{}, errors.New("neither a state (name, units, centers) nor a saved game (phases)")
		case phase != "" && phase != file.Name:
			return rules.State{}, fmt.Errorf("is one state, %s: there is no phase %s to start from", file.Name, phase)
		}
		return file.State, nil
	}
	var names []string
	for _, p := range slices.Backward(file.Phases) {
		if _, err := rules.ParsePhase(p.State.Name); err != nil {
			continue
		}
		if phase == "" || p.State.Name == phase {
			return p.State, nil
		}
		names = append(names, p.State.Name)
	}
	if len(names) == 0 {
		return rules.State{}, errors.New("has no phase that could be played")
	}
	return rules.State{}, fmt.Errorf("has no phase %s; it has %s to %s: %s", phase, names[len(names)-1], names[0], strings.Join(names, " "))
}

// Files returns the files of a game: saved games for the Python package diplomacy and for
// lmvsgame, and a picture of every phase.
func (d *definition) Files(_ json.RawMessage, p world.Played, notes []world.Note) map[string]string {
	g := readGame(notes)
	if len(g.Phases) == 0 {
		return nil
	}
	info := savedInfo{ID: fmt.Sprintf("episode-%d", p.Episode), Models: p.Spec.Lineup}
	out := map[string]string{}
	if b, err := writeSavedGame(g, info); err == nil {
		out["game.json"] = string(b)
	}
	if b, err := writeLMvsGame(g, info); err == nil {
		out["lmvsgame.json"] = string(b)
	}
	drawer := drawing.New(d.rules.Board)
	for i := range g.Phases {
		if scene, err := phaseScene(d.rules.Board, &g.Phases[i]); err == nil {
			out[fmt.Sprintf("board-%03d-%s.svg", i+1, safeName(g.Phases[i].State.Name))] = drawer.Draw(scene)
		}
	}
	return out
}

// safeName keeps the letters and digits of a phase's name: notes are not trusted.
func safeName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, text)
}
