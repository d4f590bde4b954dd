package score

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"parley/internal/run/results"
	"parley/llm"
	"parley/world"
	"parley/world/rubric"
)

// RubricName is the name of the kind in plan files.
const RubricName = "rubric"

// Params are the params of a plan. The doc tags explain each.
type Params struct {
	rubric.Rubric
	Rules   map[string]Rule     `json:"rules" doc:"Scores by rules, by name."`
	Agents  []string            `json:"agents" doc:"The agents of the run that answer questions themselves. parley score sets it."`
	Source  string              `json:"source" doc:"The digest of what decides scores in the plan file. parley score sets it."`
	Reasons map[string][]string `json:"reasons" doc:"The answers that categories are made of, by question. parley score sets it."`
	Again   bool                `json:"again" doc:"Whether judges choose categories twice. parley score sets it."`
	Scored  results.Scored      `json:"scored" doc:"What is scored. parley score sets it."`
}

// maxMeasures is how many rules and questions a plan may have.
const maxMeasures = 200

// Source returns the digest of what decides scores in the plan file that a recorded plan was made of,
// and the order of its questions.
func Source(plan json.RawMessage) (digest string, order []string) {
	var p struct {
		Params struct {
			Source string   `json:"source"`
			Order  []string `json:"order"`
		} `json:"params"`
	}
	_ = json.Unmarshal(plan, &p) // another plan has none
	return p.Params.Source, p.Params.Order
}

// RubricKind returns the kind. played returns an episode of the run that is scored, and of makes specs for its episodes. A kind that only
// reads runs of scores has neither.
func RubricKind(played func(episode int) (*Episode, error), of results.Scorable) world.Kind {
	return world.Define(&definition{played, of})
}

type definition struct {
	played func(episode int) (*Episode, error)
	of     results.Scorable
}

// About describes the kind.
func (*definition) About() world.About {
	return world.About{Name: RubricName, Version: 3, Doc: "Score the episodes of a run by rules and judges."}
}

// Defaults returns params that score nothing.
func (*definition) Defaults() *Params {
	return &Params{Rubric: rubric.Default(), Rules: map[string]Rule{}, Agents: []string{}, Reasons: map[string][]string{}, Scored: results.Scored{Measures: []world.Measure{}}}
}

// Seats checks params and lists the judges and the seats of interviews.
func (*definition) Seats(p *Params) ([]string, error) {
	c := &world.ParamErrors{Kind: RubricName}
	p.check(c)
	all := p.Rubric.Seats()
	for _, a := range p.Agents {
		all = append(all, InterviewSeat(a))
	}
	return all, c.Err()
}

// check reports what is wrong with params.
func (p *Params) check(c *world.ParamErrors) {
	if len(p.Rules)+len(p.Questions) == 0 {
		c.Addf("rules", "there is nothing to score: add rules or questions")
	}
	if n := len(p.Rules) + len(p.Questions); n > maxMeasures {
		c.Addf("rules", "%d rules and questions: want at most %d", n, maxMeasures)
	}
	for _, n := range slices.Sorted(maps.Keys(p.Rules)) {
		rubric.CheckName(c, "rules", n)
		if _, err := p.Rules[n].Compile(); err != nil {
			c.Addf("rules."+n, "%w", err)
		}
	}
	p.Rubric.Check(c, "", func(name string) bool { _, both := p.Rules[name]; return both })
}

// Measures lists the scores.
func (*definition) Measures(p *Params) (all []world.Measure) {
	for _, n := range slices.Sorted(maps.Keys(p.Rules)) {
		all = append(all, world.Measure{Name: n, Bounds: p.Rules[n].Bounds()})
	}
	return append(all, p.Rubric.Measures()...)
}

// Models names none. A kind that could name some needs no agents in its plan, and rules need none.
func (*definition) Models(*Params) map[string]string { return nil }

// Plan makes an episode for each one that is scored.
func (d *definition) Plan(p *Params, cell world.Spec, _ uint64) (world.Stages, error) {
	numbers, err := p.Scored.Numbers()
	if err != nil {
		return nil, fmt.Errorf("%w: start it with parley score RUN --with FILE", err)
	}
	s := &staged{Params: *p, cell: cell, of: d.of, numbers: numbers}
	if p.categorises() {
		return s, nil
	}
	specs, err := s.specs(*p, numbers, nil)
	return world.List(specs...), err
}

// World makes the world that scores one episode.
func (d *definition) World(p *Params, _ world.Lineup) (world.World, error) {
	c := &world.ParamErrors{Kind: RubricName}
	p.check(c)
	if err := c.Err(); err != nil {
		return nil, err
	}
	if d.played == nil {
		return nil, errors.New("rubric: start it with parley score RUN --with FILE")
	}
	return &scoring{Params: *p, played: d.played}, nil
}

// scoring is one episode: it scores another.
type scoring struct {
	Params
	played func(episode int) (*Episode, error)
	scores []world.Score
}

// Data is the data of an outcome.
type Data struct {
	Ratings []rubric.Rating `json:"ratings"`
	Failed  []failedRule    `json:"failed,omitempty"`
	// Categories are those that the judge made, by question.
	Categories map[string][]string `json:"categories,omitempty"`
}

// failedRule is a rule that has no score of a seat, or of the episode, since it failed.
type failedRule struct {
	Rule   string `json:"rule"`
	Seat   string `json:"seat,omitempty"`
	Reason string `json:"reason"`
}

// Play scores the episode by the rules, and then asks the judges and the seats. A rule that fails leaves out its own score.
func (s *scoring) Play(t *world.Table) world.Outcome {
	if len(s.Reasons) > 0 {
		return s.categorise(t)
	}
	of, err := s.played(s.Scored.Episode)
	if err != nil {
		return world.Outcome{Failed: err.Error()}
	}
	seats := slices.Sorted(maps.Keys(of.Lineup))
	data := Data{Ratings: []rubric.Rating{}}
	for _, n := range slices.Sorted(maps.Keys(s.Rules)) {
		data.Failed = append(data.Failed, s.rule(of, n, seats)...)
	}
	if len(s.Questions) > 0 {
		data.Ratings = s.ask(t, of, seats)
	}
	if len(data.Failed) > 0 && len(s.scores)+len(data.Ratings) == 0 {
		one := data.Failed[0]
		return world.Outcome{Failed: fmt.Sprintf("the rule %s: %s", one.Rule, one.Reason)}
	}
	return world.Outcome{Scores: s.scores, Data: data}
}

// rule adds the scores of one rule, and returns where it failed.
func (s *scoring) rule(of *Episode, n string, seats []string) (failed []failedRule) {
	compiled, err := s.Rules[n].Compile()
	if err != nil {
		return []failedRule{{Rule: n, Reason: err.Error()}}
	}
	if compiled.PerEpisode() {
		seats = []string{""}
	}
	for _, seat := range seats {
		value, ok, err := compiled.Eval(of, seat)
		if err != nil {
			failed = append(failed, failedRule{Rule: n, Seat: seat, Reason: err.Error()})
		} else if ok {
			s.scores = append(s.scores, world.Score{Seat: seat, Name: n, Value: value})
		}
	}
	return failed
}

// ask asks every judge about every seat and about the episode, and the seats themselves, and adds the scores.
func (s *scoring) ask(t *world.Table, of *Episode, seats []string) []rubric.Rating {
	record := s.reading(of)
	calls := s.Calls(slices.DeleteFunc(slices.Clone(seats), func(seat string) bool { return record.Length(seat) == 0 })) // it said nothing
	calls = append(calls, s.interviews(of, seats)...)
	if s.Again {
		for _, a := range slices.Clone(calls) {
			a.Again, a.Questions = true, slices.DeleteFunc(slices.Clone(a.Questions), func(n string) bool { return s.Questions[n].Categories == 0 })
			calls = append(calls, a)
		}
	}
	ratings, _ := s.Rubric.Ask(t, record, calls) // what a judge does not answer is left out
	s.scores = append(s.scores, s.Tally(append([]string{""}, seats...), ratings)...)
	return ratings
}

// InterviewSeat names the seat of the run of scores in which an agent of the scored run answers. It differs from the seats of that
// run, where the same agent can sit in several, or in another one in each episode.
func InterviewSeat(agent string) string { return rubric.Interviewing + " " + agent }

// Interviews reports whether params have questions that seats answer themselves.
func Interviews(params json.RawMessage) bool {
	var p Params
	return json.Unmarshal(params, &p) == nil && p.Asks(rubric.BySeat)
}

// interviews returns the calls of seats that answer themselves: those that a model answered for. What comes before the questions is what
// the seat itself has read and said, and nothing of the others.
func (s *scoring) interviews(of *Episode, seats []string) (all []rubric.Call) {
	for _, seat := range seats {
		for _, c := range slices.Backward(of.Calls) {
			if c.Seat != seat || !c.Reply.OK() || len(c.Messages) == 0 || !slices.Contains(s.Agents, c.Agent) {
				continue
			}
			stood := &llm.Request{Messages: slices.Clip(c.Messages), Tools: c.Tools}
			if said := (&llm.Response{Text: c.Reply.Text, JSON: c.Reply.JSON, ToolCalls: c.Reply.ToolCalls}).Words(); said != "" {
				stood.Messages = append(stood.Messages, llm.Assistant(said))
			}
			all = append(all, s.Interview(InterviewSeat(c.Agent), seat, stood))
			break
		}
	}
	return all
}
