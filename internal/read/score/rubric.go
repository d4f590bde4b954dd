package score

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/internal/run/results"
	"parley/llm"
	"parley/world"
	"parley/world/rubric"
)

// RubricName is the name of the kind in plan files.
const RubricName = "rubric"

// Params are the params of a plan. The doc tags explain each.
type Params struct {
	Rules     map[string]Rule     `json:"rules" doc:"Scores by rules, by name."`
	Questions map[string]Question `json:"questions" doc:"Questions for the judges or the seats, by the name of the score."`
	Judges    []string            `json:"judges" doc:"The seats of the judges: each of them answers every question that is for judges. Default: one, with the name judge, if there are such questions."`
	Agents    []string            `json:"agents" doc:"The agents of the run that answer questions themselves. parley score sets it."`
	Intro     string              `json:"intro" doc:"What judges read first."`
	MaxText   int                 `json:"max_text" doc:"The most characters of an episode that judges read: 1,000 to 10,000,000. The middle of a longer one is left out."`
	Read      string              `json:"read,omitempty" doc:"What judges read: answers (what the seats answered), messages (also what is new in each question to them), or all (also thoughts, acts with their results, failures and the notes of the world). Default: answers." oneof:",answers,messages,all"`
	Source    string              `json:"source" doc:"The digest of what decides scores in the plan file. parley score sets it."`
	Order     []string            `json:"order" doc:"The names of the questions in the order in which they are asked. parley score sets it to that of the plan file."`
	Reasons   map[string][]string `json:"reasons" doc:"The answers that categories are made of, by question. parley score sets it."`
	Again     bool                `json:"again" doc:"Whether judges choose categories twice. parley score sets it."`
	Scored    results.Scored      `json:"scored" doc:"What is scored. parley score sets it."`
}

// Question is asked of each judge, or of each seat. An answer is yes or no, unless there is a scale, there are choices or it is a text.
type Question struct {
	Ask        string   `json:"ask" doc:"The question. {seat} in it is the seat that it is about."`
	By         string   `json:"by,omitempty" doc:"Who answers: the judges, or the seat itself from where it stood at the end of the episode. Default: judges." oneof:",judges,seat"`
	Per        string   `json:"per,omitempty" doc:"What it is about: each seat, or the whole episode. Default: seat." oneof:",seat,episode"`
	Scale      []int    `json:"scale,omitempty" doc:"The lowest and the highest answer, such as [1, 5]."`
	Choices    []string `json:"choices,omitempty" doc:"The answers to choose from. Each call has them in another order."`
	Categories int      `json:"categories,omitempty" doc:"The judges choose a category of the answer, of at most so many that the first judge makes of a sample, 2 to 20. With choices, those are the categories."`
	Text       bool     `json:"text,omitempty" doc:"The answer is a text. It is recorded and gives no score."`
}

const (
	perSeat    = "seat"
	perEpisode = "episode"
	byJudges   = "judges"
	bySeat     = "seat"

	onlyJudge   = "judge"
	defaultText = 100_000
)

// limits of a plan.
const (
	maxMeasures = 200
	maxJudges   = 20
	maxChoices  = 50
	maxScale    = 1000
)

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
	return world.About{Name: RubricName, Version: 2, Doc: "Score the episodes of a run by rules and judges."}
}

// Defaults returns params that score nothing.
func (*definition) Defaults() *Params {
	return &Params{Rules: map[string]Rule{}, Questions: map[string]Question{}, Judges: []string{}, Agents: []string{}, Order: []string{}, Reasons: map[string][]string{}, Intro: rubric.Intro, MaxText: defaultText, Scored: results.Scored{Measures: []world.Measure{}}}
}

// Seats checks params and lists the judges and the seats of interviews.
func (*definition) Seats(p *Params) ([]string, error) {
	c := &world.ParamErrors{Kind: RubricName}
	p.check(c)
	all := p.judges()
	for _, a := range p.Agents {
		all = append(all, InterviewSeat(a))
	}
	return all, c.Err()
}

// asks reports whether there are questions that are answered by the judges, or by the seats.
func (p *Params) asks(by string) bool {
	for _, q := range p.Questions {
		if q.by() == by {
			return true
		}
	}
	return false
}

func (p *Params) judges() []string {
	if len(p.Judges) == 0 && p.asks(byJudges) {
		return []string{onlyJudge}
	}
	return slices.Clone(p.Judges)
}

var name = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// check reports what is wrong with params.
func (p *Params) check(c *world.ParamErrors) {
	if len(p.Rules)+len(p.Questions) == 0 {
		c.Addf("rules", "there is nothing to score: add rules or questions")
	}
	c.IntRange("max_text", p.MaxText, 1000, 10_000_000)
	c.OneOf("read", p.scope(), []string{readAnswers, readMessages, readAll})
	if n := len(p.Rules) + len(p.Questions); n > maxMeasures {
		c.Addf("rules", "%d rules and questions: want at most %d", n, maxMeasures)
	}
	if len(p.Judges) > maxJudges {
		c.Addf("judges", "%d judges: want at most %d", len(p.Judges), maxJudges)
	}
	for i, j := range p.Judges {
		if !name.MatchString(j) || slices.Contains(p.Judges[:i], j) {
			c.Addf(fmt.Sprintf("judges[%d]", i), "%.40q: want a new word of letters, digits, - and _", j)
		}
	}
	if len(p.Judges) > 0 && !p.asks(byJudges) {
		c.Addf("judges", "there are no questions for them: add questions")
	}
	for _, n := range slices.Sorted(maps.Keys(p.Rules)) {
		checkName(c, "rules", n)
		if _, err := p.Rules[n].Compile(); err != nil {
			c.Addf("rules."+n, "%w", err)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(p.Questions)) {
		checkName(c, "questions", n)
		if _, both := p.Rules[n]; both || n == rubric.Reason {
			c.Addf("questions."+n, "the name %s is taken: want another", n)
		}
		p.Questions[n].check(c, "questions."+n)
	}
}

func checkName(c *world.ParamErrors, param, n string) {
	if !name.MatchString(n) {
		c.Addf(param, "the name %.40q: want letters, digits, - and _, and a letter first", n)
	}
}

func (q Question) check(c *world.ParamErrors, param string) {
	if q.Ask == "" {
		c.Addf(param+".ask", "there is no question")
	}
	c.OneOf(param+".per", q.per(), []string{perSeat, perEpisode})
	c.OneOf(param+".by", q.by(), []string{byJudges, bySeat})
	switch {
	case q.by() == bySeat && q.per() == perEpisode:
		c.Addf(param+".per", "a seat answers for itself: remove per, or by: seat")
	case q.Categories != 0 && (q.Categories < 2 || q.Categories > maxCategories):
		c.Addf(param+".categories", "%d: want 2 to %d", q.Categories, maxCategories)
	case q.Categories > 0 && (q.Text || len(q.Scale) > 0 || q.by() == bySeat):
		c.Addf(param+".categories", "judges choose a category: remove text, scale and by: seat")
	case q.Text && len(q.Scale)+len(q.Choices) > 0:
		c.Addf(param+".text", "a text has no scale and no choices: remove them, or text")
	case len(q.Scale) > 0 && len(q.Choices) > 0:
		c.Addf(param+".scale", "want a scale or choices, not both")
	case len(q.Scale) > 0 && (len(q.Scale) != 2 || q.Scale[0] >= q.Scale[1] || q.Scale[0] < -maxScale || q.Scale[1] > maxScale):
		c.Addf(param+".scale", "%v: want the lowest and the highest answer, such as [1, 5], within ±%d", q.Scale, maxScale)
	case len(q.Choices) == 1 || len(q.Choices) > maxChoices:
		c.Addf(param+".choices", "%d choices: want 2 to %d", len(q.Choices), maxChoices)
	}
	for i, s := range q.Choices {
		if s == "" || slices.Contains(q.Choices[:i], s) {
			c.Addf(fmt.Sprintf("%s.choices[%d]", param, i), "%.40q: want a new text", s)
		}
	}
}

func (q Question) per() string {
	if q.Per == "" {
		return perSeat
	}
	return q.Per
}

func (q Question) by() string { return cmp.Or(q.By, byJudges) }

// Measures lists the scores.
func (*definition) Measures(p *Params) (all []world.Measure) {
	for _, n := range slices.Sorted(maps.Keys(p.Rules)) {
		all = append(all, world.Measure{Name: n, Bounds: p.Rules[n].Bounds()})
	}
	for _, n := range slices.Sorted(maps.Keys(p.Questions)) {
		switch q := p.Questions[n]; {
		case q.Text || q.Categories > 0 && len(q.Choices) == 0: // categories are not known yet
		case len(q.Choices) > 0:
			for _, c := range q.Choices {
				all = append(all, world.Measure{Name: choiceName(n, c), Bounds: world.Share()})
			}
		case len(q.Scale) == 2:
			all = append(all, world.Measure{Name: n, Bounds: world.Bounds{Low: float64(q.Scale[0]), High: float64(q.Scale[1])}})
		default:
			all = append(all, world.Measure{Name: n, Bounds: world.Share()})
		}
	}
	return all
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
	Ratings []Rating     `json:"ratings"`
	Failed  []failedRule `json:"failed,omitempty"`
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
	data := Data{Ratings: []Rating{}}
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

// Rating is the answer of one judge, or of a seat, to one question.
type Rating struct {
	Question string  `json:"question"`
	Seat     string  `json:"seat,omitempty"` // what it is about; empty: the whole episode
	Judge    string  `json:"judge"`          // who answers: a seat of the run of scores
	Value    float64 `json:"value"`          // with choices: the number of the choice in the plan
	Text     string  `json:"text,omitempty"` // the answer to a question for a text, or the reason for a category
	// Again means that the judge chose a category for the second time. It is not part of the score.
	Again bool `json:"again,omitempty"`
	// Position is where the choice was in the list that the judge saw, from 1. 0: there was no list.
	Position int `json:"position,omitempty"`
	// Length is how many characters the seat wrote, or all seats together.
	Length int `json:"length"`
}

// judgeCall is one call: the questions about one subject for one judge, or for the seat itself.
type judgeCall struct {
	judge, seat string
	questions   []string
	order       map[string][]int // by question with choices: the order in which they are listed
	stood       *Call            // where the seat stood, if it answers itself
	again       bool             // for the second time
	sheet       rubric.Sheet
}

// ask asks every judge about every seat and about the episode, and the seats themselves, and adds the scores.
func (s *scoring) ask(t *world.Table, of *Episode, seats []string) []Rating {
	text, lengths := s.reading(of)
	var asks []judgeCall
	for _, judge := range s.judges() {
		asks = append(asks, judgeCall{judge: judge, questions: s.about(byJudges, perEpisode)})
		for _, seat := range seats {
			if lengths[seat] > 0 { // otherwise it said nothing
				asks = append(asks, judgeCall{judge: judge, seat: seat, questions: s.about(byJudges, perSeat)})
			}
		}
	}
	asks = append(asks, s.interviews(of, seats)...)
	if s.Again {
		for _, a := range slices.Clone(asks) {
			a.again, a.questions = true, slices.DeleteFunc(slices.Clone(a.questions), func(n string) bool { return s.Questions[n].Categories == 0 })
			asks = append(asks, a)
		}
	}
	asks = slices.DeleteFunc(asks, func(a judgeCall) bool { return len(a.questions) == 0 })
	var calls []world.Call
	for i := range asks {
		a := &asks[i]
		a.order = map[string][]int{}
		for _, n := range a.questions {
			if k := len(s.Questions[n].Choices); k > 0 {
				a.order[n] = t.Rand().Perm(k)
			}
		}
		a.sheet = s.sheet(*a, text)
		calls = append(calls, s.call(*a))
	}
	ratings := []Rating{}
	for i, r := range t.Ask(calls...) {
		ratings = append(ratings, s.read(t, asks[i], r, lengths[asks[i].seat])...)
	}
	s.tally(slices.Sorted(maps.Keys(s.Questions)), append([]string{""}, seats...), ratings)
	return ratings
}

// about lists the questions by who answers and what they are about.
func (s *scoring) about(by, per string) (all []string) {
	for _, n := range s.ordered() {
		if q := s.Questions[n]; q.by() == by && q.per() == per {
			all = append(all, n)
		}
	}
	return all
}

// ordered lists the questions in their order. Those that it does not name are at the end.
func (p *Params) ordered() (all []string) {
	for _, n := range slices.Concat(p.Order, slices.Sorted(maps.Keys(p.Questions))) {
		if _, ok := p.Questions[n]; ok && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// sheet returns the questions of a call.
func (s *scoring) sheet(a judgeCall, record string) rubric.Sheet {
	sheet := rubric.Sheet{Intro: s.Intro, Form: s.form(), Record: record}
	if a.stood != nil {
		sheet = rubric.Sheet{Intro: interviewIntro}
	}
	for _, n := range a.questions {
		q := s.Questions[n]
		one := rubric.Question{Name: n, Ask: strings.ReplaceAll(q.Ask, "{seat}", a.seat), Text: q.Text}
		if len(q.Scale) == 2 {
			one.Whole, one.Scale = true, [2]float64{float64(q.Scale[0]), float64(q.Scale[1])}
		}
		for _, k := range a.order[n] {
			one.Choices = append(one.Choices, q.Choices[k])
		}
		sheet.Questions = append(sheet.Questions, one)
	}
	return sheet
}

// call returns the call of a judge, or of a seat.
func (s *scoring) call(a judgeCall) world.Call {
	c := world.Call{Seat: a.judge, Label: onlyJudge, Ask: a.sheet.Request()}
	if a.stood != nil {
		c.Label = interview
		continued(&c.Ask, a.stood)
	}
	return c
}

// read returns the ratings in an answer. A call that failed has none.
func (s *scoring) read(t *world.Table, a judgeCall, r world.Reply, length int) (all []Rating) {
	reason, answers, _ := a.sheet.Read(r)
	if reason != "" {
		t.Note("reason", a.judge, map[string]string{"about": a.seat, "text": reason})
	}
	for _, n := range a.questions {
		answer, ok := answers[n]
		if !ok {
			continue
		}
		one := Rating{Question: n, Seat: a.seat, Judge: a.judge, Value: answer.Value, Text: answer.Text, Length: length, Again: a.again}
		if s.Questions[n].Categories > 0 {
			one.Text = reason
		}
		if order := a.order[n]; len(order) > 0 {
			one.Value, one.Position = float64(order[int(answer.Value)]), int(answer.Value)+1
		}
		all = append(all, one)
	}
	return all
}

// tally adds a score for each question and subject: the mean of the judges or, for a choice, the share that chose it.
func (s *scoring) tally(questions, subjects []string, ratings []Rating) {
	for _, n := range questions {
		for _, seat := range subjects {
			var values []float64
			for _, r := range ratings {
				if r.Question == n && r.Seat == seat && !r.Again {
					values = append(values, r.Value)
				}
			}
			if len(values) == 0 || s.Questions[n].Text {
				continue
			}
			choices := s.Questions[n].Choices
			if len(choices) == 0 {
				s.scores = append(s.scores, world.Score{Seat: seat, Name: n, Value: mean(values)})
			}
			for k, c := range choices {
				s.scores = append(s.scores, world.Score{Seat: seat, Name: choiceName(n, c), Value: mean(chose(values, k))})
			}
		}
	}
}

// chose returns 1 for each answer that is a choice, and 0 for the others.
func chose(answers []float64, choice int) []float64 {
	out := make([]float64, len(answers))
	for i, v := range answers {
		if int(v) == choice {
			out[i] = 1
		}
	}
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

const (
	interview      = "interview"
	interviewIntro = "It is over. Here are questions about it for you. Answer them from where you stand now, with what you know and think. Nobody who took part sees your answers, and they change nothing."
)

// InterviewSeat names the seat of the run of scores in which an agent of the scored run answers. It differs from the seats of that
// run, where the same agent can sit in several, or in another one in each episode.
func InterviewSeat(agent string) string { return interview + " " + agent }

// Interviews reports whether params have questions that seats answer themselves.
func Interviews(params json.RawMessage) bool {
	var p Params
	return json.Unmarshal(params, &p) == nil && p.asks(bySeat)
}

// interviews returns the calls of seats that answer themselves: those that a model answered for.
func (s *scoring) interviews(of *Episode, seats []string) (all []judgeCall) {
	questions := s.about(bySeat, perSeat)
	for _, seat := range seats {
		for i, c := range slices.Backward(of.Calls) {
			if c.Seat != seat || !c.Reply.OK() || len(c.Messages) == 0 || !slices.Contains(s.Agents, c.Agent) {
				continue
			}
			all = append(all, judgeCall{judge: InterviewSeat(c.Agent), seat: seat, questions: questions, stood: &of.Calls[i]})
			break
		}
	}
	return all
}

// continued puts a request after the last thing that a seat was asked and answered: what the seat itself has read and said, and
// nothing of the others.
func continued(ask *llm.Request, stood *Call) {
	messages := slices.Clone(stood.Messages)
	if said := (&llm.Response{Text: stood.Reply.Text, JSON: stood.Reply.JSON, ToolCalls: stood.Reply.ToolCalls}).Words(); said != "" {
		messages = append(messages, llm.Assistant(said))
	}
	ask.Messages = append(messages, ask.Messages...)
	if len(stood.Tools) > 0 { // some providers refuse messages about tools that they do not know
		ask.Tools, ask.ToolChoice = stood.Tools, "none"
	}
}
