package rules

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/part"
	"parley/world/rubric"
)

// JudgeParams say how a judge, a model, takes part in rewards: it scores an episode, or puts the episodes of a
// group in order. A score is within the scale. A judge that gives none leaves the reward missing, with a
// reason.
type JudgeParams struct {
	Rubric  string    `json:"rubric" doc:"What the judge looks for. Empty: no judge, the environment alone gives rewards."`
	By      string    `json:"by" doc:"What is judged in one call: episode gives each agent that is trained a score; group puts the episodes of a group in order, when all have ended." oneof:"episode,group"`
	Seat    string    `json:"seat" doc:"Name of the judge's seat, for the lineup. It is not an agent of the environment."`
	Scale   []float64 `json:"scale" doc:"Lowest and highest score. In a group, the best episode gets the highest, the worst the lowest, and the others lie evenly between them."`
	Combine string    `json:"combine" doc:"How the reward is made of the environment's reward and weight times the score: add is their sum, multiply their product, replace the score alone." oneof:"add,multiply,replace"`
	Weight  float64   `json:"weight" doc:"The score is multiplied by this."`
	MaxText int       `json:"max_text" doc:"Maximum number of characters that the judge reads, over all episodes of a call: 1000 to 1000000. The middle of longer records is left out."`
}

// What is judged in one call, and how rewards are combined.
const (
	judgeByEpisode = "episode"
	judgeByGroup   = "group"

	combineAdd      = "add"
	combineMultiply = "multiply"
	combineReplace  = "replace"
)

// judgeDefaults returns a judge that is off.
func judgeDefaults() JudgeParams {
	return JudgeParams{By: judgeByEpisode, Seat: "judge", Scale: []float64{0, 1}, Combine: combineAdd, Weight: 1, MaxText: 60_000}
}

// enabled reports whether there is a judge.
func (p JudgeParams) enabled() bool { return p.Rubric != "" }

// comparesGroups reports whether a judge compares the episodes of groups.
func (p JudgeParams) comparesGroups() bool { return p.enabled() && p.By == judgeByGroup }

// allSeats returns the seats of the environment, and that of the judge.
func (p JudgeParams) allSeats(seats []string) []string {
	if !p.enabled() {
		return seats
	}
	return append(slices.Clip(seats), p.Seat)
}

// check reports wrong values. seats are those of the environment, and named checks the name of one.
func (p JudgeParams) check(c *world.ParamErrors, seats []string, named func(string) bool) {
	c.OneOf("judge.by", p.By, []string{judgeByEpisode, judgeByGroup})
	c.OneOf("judge.combine", p.Combine, []string{combineAdd, combineMultiply, combineReplace})
	c.Between("judge.weight", p.Weight, -1e6, 1e6)
	c.IntRange("judge.max_text", p.MaxText, 1000, 1_000_000)
	if len(p.Scale) != 2 || !(p.Scale[0] < p.Scale[1]) || math.Abs(p.Scale[0]) > 1e6 || math.Abs(p.Scale[1]) > 1e6 {
		c.Addf("judge.scale", "%v: want the lowest and the highest score, such as [0, 1]", p.Scale)
	}
	if !p.enabled() {
		return
	}
	switch {
	case !named(p.Seat):
		c.Addf("judge.seat", "%.40q: want a name of letters, digits and _ . : -", p.Seat)
	case slices.Contains(seats, p.Seat):
		c.Addf("judge.seat", "%s is an agent of the environment: give the judge another name, and seat it in the lineup", p.Seat)
	}
	if p.By == judgeByGroup && len(seats) > 1 {
		c.Addf("judge.by", "group compares episodes of one agent, and params.seats has %d: use episode", len(seats))
	}
}

// reward returns the reward that a score makes of the environment's.
func (p JudgeParams) reward(environment, score float64) float64 {
	switch p.Combine {
	case combineMultiply:
		return environment * p.Weight * score
	case combineReplace:
		return p.Weight * score
	default:
		return environment + p.Weight*score
	}
}

// Verdict is what a judge said about one seat of an episode.
type Verdict = part.Verdict

// recordForm tells a judge how to read a record.
const recordForm = rubric.Form + " [shown] is what the agent before the colon was shown, by its environment or a tool. [said] is what it answered, with the tools that it called."

// score asks the judge about the seats of an episode and returns a score for each, and its reason. failed says why there
// are none.
func (p JudgeParams) score(t *world.Table, record *rubric.Record, seats []string) (scores map[string]float64, reason, failed string) {
	sheet := rubric.Sheet{Form: recordForm, Record: record.Text(p.MaxText)}
	for i, seat := range seats { // names of seats may not be names of answers
		name := "score"
		if len(seats) > 1 {
			name = fmt.Sprintf("score_%d", i+1)
		}
		sheet.Questions = append(sheet.Questions, rubric.Question{Name: name, Ask: "What " + seat + " did: " + p.Rubric, Scale: [2]float64(p.Scale)})
	}
	reason, answers, failed := p.ask(t, judgeLabel, &sheet)
	if failed != "" {
		return nil, "", failed
	}
	scores = map[string]float64{}
	for i, seat := range seats {
		answer, ok := answers[sheet.Questions[i].Name]
		if !ok {
			return nil, "", fmt.Sprintf("it gave %s no score from %g to %g", seat, p.Scale[0], p.Scale[1])
		}
		scores[seat] = answer.Value
	}
	return scores, reason, ""
}

// judgeLabel is the label of a call that asks for scores. A story tells such a call in a frame of its own.
const judgeLabel = "judge"

// ask asks the judge.
func (p JudgeParams) ask(t *world.Table, label string, sheet *rubric.Sheet) (reason string, answers map[string]rubric.Answer, failed string) {
	reason, answers, failed = sheet.Read(t.One(world.Call{Seat: p.Seat, Label: label, Ask: sheet.Request()}))
	return exhibit.Shorten(reason, maxReason), answers, failed
}

// maxReason is how many bytes of a reason are kept: a model wrote it.
const maxReason = 1000

// Group is the episodes of a group, for a judge that puts them in order. It is what a judgement is made with: a judgement
// is an episode of its own, played when those of its group have ended.
type Group struct {
	Members []Member `json:"members"`
}

// Member is an episode of the group that did not fail.
type Member struct {
	Episode     int     `json:"episode"`
	Seat        string  `json:"seat"`
	Environment float64 `json:"environment"` // its reward
	Text        string  `json:"text"`        // its record
}

// Ordered is the data of the outcome of a judgement.
type Ordered struct {
	Verdicts []Verdict `json:"verdicts"`
}

// order asks the judge for the order of the members and returns a verdict for each. failed says why there is none. The
// members are listed in an order of chance, so that none is first because it was played first.
func (p JudgeParams) order(t *world.Table, g Group) (verdicts []Verdict, failed string) {
	n := len(g.Members)
	if n < 2 {
		return nil, fmt.Sprintf("%d episodes did not fail: there is nothing to compare", n)
	}
	places := t.Rand().Perm(n)
	var record rubric.Record
	for i, m := range places {
		record.Add("attempt", fmt.Sprint(i+1), rubric.Shorten(g.Members[m].Text, p.MaxText/n))
	}
	const order = "order"
	reason, answers, failed := p.ask(t, order, &rubric.Sheet{
		Form:   rubric.Form + " Each entry is an attempt at the same task, with its number. " + recordForm,
		Record: record.Text(math.MaxInt), Questions: []rubric.Question{{Name: order, Ask: "Compare the attempts: " + p.Rubric, Order: n}},
	})
	if failed != "" {
		return nil, failed
	}
	got, ok := answers[order]
	if !ok {
		return nil, fmt.Sprintf("its order does not have each of %d attempts once", n)
	}
	verdicts = make([]Verdict, n)
	for place, number := range got.Order {
		m := places[number-1]
		score := p.Scale[0] + (p.Scale[1]-p.Scale[0])*float64(n-1-place)/float64(n-1)
		of := g.Members[m]
		verdicts[m] = Verdict{Seat: of.Seat, Episode: of.Episode, Environment: of.Environment, Score: score, Reward: p.reward(of.Environment, score), Reason: reason}
	}
	return verdicts, ""
}

// sampleGroup returns a group of n members with made-up records, to estimate what a judgement costs.
func sampleGroup(n int) (g Group) {
	for i := range n {
		g.Members = append(g.Members, Member{Episode: i, Text: strings.Repeat("What an agent said. ", 50)})
	}
	return g
}

// judgePlan plays the stages of another plan, each followed by a stage of judgements, one for each group. The other
// plan gets the rewards that the judgements gave. It is a pure fold over outcomes, as world.Stages demands.
type judgePlan struct {
	of     world.Stages
	specs  world.Specs    // of the stage that is played
	played []world.Played // the stage before, whose groups are being judged; nil: none is
	err    error
}

// Next asks for judgements after a stage, and for the next stage after judgements.
func (p *judgePlan) Next(last []world.Played) world.Specs {
	if p.specs.Len() > 0 && p.played == nil && len(last) > 0 {
		specs, err := p.judgements(last)
		if p.err = err; err != nil {
			return world.Specs{}
		}
		p.played = last
		return specs
	}
	if p.played != nil {
		last, p.played = rewarded(p.played, last), nil
	}
	p.specs = p.of.Next(last)
	return p.specs
}

// judgements returns the judgements of the groups of a stage.
func (p *judgePlan) judgements(last []world.Played) (world.Specs, error) {
	var specs []world.Spec
	for from := 0; from < len(last); {
		_, to := p.specs.Group(from)
		to = min(to, len(last))
		var g Group
		for _, e := range last[from:to] {
			if m, ok := member(e.Outcome); ok && e.Outcome.Failed == "" {
				m.Episode = e.Episode
				g.Members = append(g.Members, m)
			}
		}
		spec, err := judgementOf(last[from].Spec, g)
		if err != nil {
			return world.Specs{}, err
		}
		specs = append(specs, spec)
		from = to
	}
	return world.List(specs...), nil
}

// rewarded returns the episodes of a stage with the rewards that judgements gave. Without one, an episode has none.
func rewarded(played, judged []world.Played) []world.Played {
	scores := map[int]world.Score{}
	for _, j := range judged {
		for _, v := range ReadVerdicts(j.Outcome) {
			scores[v.Episode] = world.Score{Seat: v.Seat, Name: "reward", Value: v.Reward}
		}
	}
	out := slices.Clone(played)
	for i, e := range out {
		if s, ok := scores[e.Episode]; ok && e.Outcome.Failed == "" {
			out[i].Outcome.Scores = append(slices.Clip(e.Outcome.Scores), s)
		}
	}
	return out
}

// ReadVerdicts returns the verdicts in the outcome of a judgement. There are none if it failed.
func ReadVerdicts(o world.Outcome) []Verdict {
	raw, _ := o.Data.(json.RawMessage)
	var d struct{ Judgement Ordered }
	if o.Failed != "" || json.Unmarshal(raw, &d) != nil {
		return nil
	}
	return d.Judgement.Verdicts
}

// Err returns why the plan cannot continue, or nil.
func (p *judgePlan) Err() error {
	if failing, ok := p.of.(part.FailingStages); ok && p.err == nil {
		return failing.Err()
	}
	return p.err
}

// Change changes the other plan, if it can be changed.
func (p *judgePlan) Change(raw json.RawMessage) error {
	changing, ok := p.of.(part.ChangingStages)
	if !ok {
		return fmt.Errorf("the plan has no tasks that can be changed: set refill.useful")
	}
	return changing.Change(raw)
}

// addShown adds messages that an agent was shown to a record.
func addShown(r *rubric.Record, seat string, messages []llm.Message) {
	for i := range messages {
		if m := &messages[i]; m.Role != llm.RoleAssistant { // its own were added when they were said
			r.Add("shown", seat, m.Words())
		}
	}
}

// Scores of episodes with a judge: the parts of the reward.
const (
	environmentReward = "environment_reward"
	judgeScore        = "judge_score"
)

// judge asks the judge about the agents that are trained and answered, and pays them what it adds. A judge that gives no
// score fails the episode: its rewards are not known.
func (p *try) judge(t *world.Table) {
	if !p.Judge.enabled() || p.Judge.comparesGroups() || p.stop == StopFailed {
		return
	}
	var seats []string
	for _, seat := range p.Seats {
		if p.trains[seat] && p.rewards.acted(seat) {
			seats = append(seats, seat)
		}
	}
	if len(seats) == 0 {
		return // nobody did anything
	}
	scores, reason, failed := p.Judge.score(t, &p.record, seats)
	if failed != "" {
		p.fail("judge: %s: the reward is not known", failed)
		return
	}
	for _, seat := range seats {
		v := Verdict{Seat: seat, Environment: p.rewards.total[seat], Score: scores[seat], Reason: reason}
		v.Reward = p.Judge.reward(v.Environment, v.Score)
		p.verdicts = append(p.verdicts, v)
		p.rewards.addToLast(seat, v.Reward-v.Environment)
	}
}

// judged returns a plan of groups with judgements of them.
func judged(of world.Stages) (world.Stages, error) {
	if list, ok := of.(world.Specs); ok {
		for b := range list.Blocks() {
			for _, g := range b.Groups {
				if g.Size < 2 {
					return nil, paramErrorf("group", "judge.by: group compares the episodes of a group: set group to at least 2")
				}
			}
		}
	}
	return &judgePlan{of: of}, nil
}

// judgementOf returns the spec of the judgement of a group with the episodes of spec.
func judgementOf(spec world.Spec, g Group) (world.Spec, error) {
	var of Params
	if err := json.Unmarshal(spec.Params, &of); err != nil {
		return spec, fmt.Errorf("rollout: params: %w", err)
	}
	of.Judgement = &g
	var err error
	spec.Params, err = json.Marshal(of)
	return spec, err
}

// member returns what a judge of groups gets of an outcome.
func member(o world.Outcome) (m Member, ok bool) {
	raw, _ := o.Data.(json.RawMessage)
	var d Data
	if json.Unmarshal(raw, &d) != nil || d.Record == "" {
		return m, false
	}
	for _, s := range o.Scores {
		if s.Name == environmentReward {
			return Member{Seat: s.Seat, Environment: s.Value, Text: d.Record}, true
		}
	}
	return m, false
}

// judgement is an episode in which the judge puts the episodes of a group in order.
type judgement struct{ *Params }

// Play asks the judge once. The reward of the judgement is the mean of those that it gives.
func (j *judgement) Play(t *world.Table) world.Outcome {
	verdicts, failed := j.Judge.order(t, *j.Judgement)
	if failed != "" {
		return world.Outcome{Data: Data{Env: j.Env, Judgement: &Ordered{}}, Failed: fmt.Sprintf("judge: %s: the rewards of the group are not known", failed)}
	}
	mean := 0.0
	for i, v := range verdicts {
		mean += (v.Reward - mean) / float64(i+1)
	}
	return world.Outcome{
		Data:   Data{Env: j.Env, Judgement: &Ordered{Verdicts: verdicts}},
		Scores: []world.Score{{Seat: j.Seats[0], Name: "reward", Value: mean}},
	}
}
