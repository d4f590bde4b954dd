package diplomacy

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"parley/worlds/diplomacy/rules"
)

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
	phase
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

// LMvsGame writes a game in the shape of lmvsgame.json: a saved game with the state of
// the agents in each phase.
func LMvsGame(g RecordGame, info Info) ([]byte, error) {
	w := newWriter(info)
	agents := newAgents(info)
	f := lmFile{ID: info.ID, Map: mapName, Rules: []string{}, Phases: []lmPhase{}, Summaries: map[string]string{}, Final: map[string]lmFinal{}}
	for i := range g.Phases {
		p := &g.Phases[i]
		agents.read(p)
		f.Phases = append(f.Phases, lmPhase{
			phase: w.phase(p), Statistical: map[string]any{}, Agents: agents.copies(), Outcomes: w.outcomes(p), Phases: map[string]string{},
		})
	}
	if g.End != nil {
		f.Phases = append(f.Phases, lmPhase{
			phase: w.last(g.End), Statistical: map[string]any{}, Agents: agents.copies(), Outcomes: map[string]map[string][]lmOrder{}, Phases: map[string]string{},
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
func (w *writer) outcomes(p *Phase) map[string]map[string][]lmOrder {
	all := map[string]map[string][]lmOrder{}
	for power, orders := range p.Orders {
		all[power] = map[string][]lmOrder{}
		for _, o := range orders {
			kind := "other"
			if read, err := rules.Parse(w.rules.Board, o.Order); err == nil {
				kind = read.Kind.String()
			}
			result := strings.Join(results(o.Results), ", ")
			if result == "" {
				result = "success"
			}
			all[power][kind] = append(all[power][kind], lmOrder{o.Order, result})
		}
	}
	return all
}

// agents are the states of the powers in the course of a game, by name.
type agents map[string]*lmAgent

func newAgents(info Info) agents {
	all := agents{}
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
func (all agents) read(p *Phase) {
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
		case e.About == AboutYears:
			a.Diary = append([]string{"[CONSOLIDATED HISTORY] " + e.Text}, since(a.Diary, e.Phase)...)
		default:
			line := fmt.Sprintf("[%s] %s", e.Phase, e.Text)
			a.Full, a.Diary = append(a.Full, line), append(a.Diary, line)
		}
	}
}

// since keeps the lines of a diary from the year before a phase or later.
func since(diary []string, phase string) []string {
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
func (all agents) copies() map[string]lmAgent {
	now := map[string]lmAgent{}
	for name, a := range all {
		c := *a
		c.Relationships = maps.Clone(a.Relationships)
		c.Full, c.Diary = append([]string{}, a.Full...), append([]string{}, a.Diary...)
		now[name] = c
	}
	return now
}
