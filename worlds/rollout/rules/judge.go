package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/world"
	"parley/world/part"
	"parley/world/rubric"
)

// JudgeParams say how judges, models, take part in rewards: they answer questions about an episode, or put the episodes of a group in
// order. The score of an agent is the sum of the scores that a rubric gives it, without those of choices. A judge without a valid
// answer leaves the reward missing, with a reason.
type JudgeParams struct {
	rubric.Rubric
	Compare bool    `json:"compare" doc:"Compare the episodes of a group in one call, when all have ended: for each question, the best gets its highest answer, the worst the lowest, and the others lie evenly between them. They share max_text. Otherwise each agent that is trained is judged by itself."`
	Combine string  `json:"combine" doc:"How the reward is made of the environment's reward and weight times the score: add is their sum, multiply their product, replace the score alone." oneof:"add,multiply,replace"`
	Weight  float64 `json:"weight" doc:"The score is multiplied by this." range:"-1000000..1000000"`
}

// judgeDefaults returns a judge that is off.
func judgeDefaults() JudgeParams {
	of := rubric.Default()
	of.Read, of.MaxText = rubric.ReadMessages, 60_000
	return JudgeParams{Rubric: of, Combine: "add", Weight: 1}
}

// enabled reports whether there is a judge.
func (p *JudgeParams) enabled() bool { return len(p.Questions) > 0 }

// comparesGroups reports whether a judge compares the episodes of groups.
func (p *JudgeParams) comparesGroups() bool { return p.enabled() && p.Compare }

// check reports wrong values. seats are those of the environment.
func (p *JudgeParams) check(c *world.ParamErrors, seats []string) {
	p.Rubric.Check(c, "judge.", func(name string) bool {
		return slices.Contains([]string{rewardScore, stepsScore, environmentReward}, name)
	})
	for _, n := range slices.Sorted(maps.Keys(p.Questions)) {
		if q := p.Questions[n]; q.Categories > 0 || q.By == rubric.BySeat || p.Compare && (q.Text || len(q.Choices) > 0) {
			c.Addf("judge.questions."+n, "by: seat and categories are only for parley score; choices and text are not for compare")
		}
	}
	for _, seat := range p.Seats() {
		if slices.Contains(seats, seat) {
			c.Addf("judge.judges", "%s is an agent of the environment: give the judge another name, and seat it in the lineup", seat)
		}
	}
	if p.comparesGroups() && len(seats) > 1 {
		c.Addf("judge.compare", "it compares episodes of one agent, and params.seats has %d: leave it out", len(seats))
	}
}

// verdict returns what the judges make of the environment's reward of a seat: scores are those of the seat.
func (p *JudgeParams) verdict(seat string, environment float64, scores []world.Score) Verdict {
	v := Verdict{Seat: seat, Environment: environment}
	for _, s := range scores {
		if _, number := p.Questions[s.Name]; number {
			v.Score += s.Value
		}
	}
	switch p.Combine {
	case "multiply":
		v.Reward = environment * p.Weight * v.Score
	case "replace":
		v.Reward = p.Weight * v.Score
	default:
		v.Reward = environment + p.Weight*v.Score
	}
	return v
}

// Verdict is what the judges said about one seat of an episode.
type Verdict = part.Verdict

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

// order asks the judges for the order of the members and returns a verdict for each. failed says why there is none. The
// members are listed in an order of chance, so that none is first because it was played first.
func (p *JudgeParams) order(t *world.Table, g Group) (verdicts []Verdict, ratings []rubric.Rating, failed string) {
	n := len(g.Members)
	if n < 2 {
		return nil, nil, fmt.Sprintf("%d episodes did not fail: there is nothing to compare", n)
	}
	record := rubric.Record{Read: p.Read}
	places := t.Rand().Perm(n)
	for i, m := range places {
		record.Say("attempt", fmt.Sprint(i+1), g.Members[m].Text)
	}
	of := p.Rubric
	of.MaxText = math.MaxInt // their texts are short enough together
	of.Intro += " Each [attempt] in the record is an attempt at the same task, with its number: compare them."
	ratings, failed = of.Ask(t, &record, of.Comparison(n))
	if failed != "" {
		return nil, nil, failed
	}
	verdicts = make([]Verdict, n)
	for i, m := range places {
		verdicts[m] = p.verdict(g.Members[m].Seat, g.Members[m].Environment, p.Tally([]string{fmt.Sprint(i + 1)}, ratings))
		verdicts[m].Episode = g.Members[m].Episode
	}
	return verdicts, ratings, ""
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
		d, _ := readData(j.Outcome) // none if it failed
		for _, v := range d.Verdicts {
			scores[v.Episode] = world.Score{Seat: v.Seat, Name: rewardScore, Value: v.Reward}
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

// The scores of episodes besides those of judges.
const (
	stepsScore        = "steps"
	environmentReward = "environment_reward" // with a judge: its part of the reward
)

// judge asks the judges about the agents that are trained and answered, and pays them what that adds. A judge without a valid answer
// fails the episode: its rewards are not known.
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
	ratings, failed := p.Judge.Ask(t, &p.record, p.Judge.Calls(seats))
	if failed != "" {
		p.fail("%s: the reward is not known", failed)
		return
	}
	p.ratings = ratings
	for _, seat := range seats {
		v := p.Judge.verdict(seat, p.rewards.total[seat], p.Judge.Tally([]string{"", seat}, ratings))
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
					return nil, paramErrorf("group", "judge.compare compares the episodes of a group: set group to at least 2")
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

// readData returns the data of an outcome that was recorded.
func readData(o world.Outcome) (d Data, ok bool) {
	raw, _ := o.Data.(json.RawMessage)
	return d, json.Unmarshal(raw, &d) == nil
}

// member returns what a judge of groups gets of an outcome.
func member(o world.Outcome) (m Member, ok bool) {
	d, ok := readData(o)
	if !ok || d.Record == "" {
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

// Play asks the judges once. The reward of the judgement is the mean of those that it gives.
func (j *judgement) Play(t *world.Table) world.Outcome {
	verdicts, ratings, failed := j.Judge.order(t, *j.Judgement)
	o := world.Outcome{Data: Data{Env: j.Env, Judgement: true, Verdicts: verdicts, Ratings: ratings}}
	if failed != "" {
		o.Failed = failed + ": the rewards of the group are not known"
		return o
	}
	mean := 0.0
	for i, v := range verdicts {
		mean += (v.Reward - mean) / float64(i+1)
	}
	o.Scores = []world.Score{{Seat: j.Seats[0], Name: rewardScore, Value: mean}}
	return o
}
