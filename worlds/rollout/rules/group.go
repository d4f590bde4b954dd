package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/world"
)

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

// Order asks the judge for the order of the members and returns a verdict for each. failed says why there is none. The
// members are listed in an order of chance, so that none is first because it was played first.
func (p JudgeParams) Order(t *world.Table, g Group) (verdicts []Verdict, failed string) {
	n := len(g.Members)
	if n < 2 {
		return nil, fmt.Sprintf("%d episodes did not fail: there is nothing to compare", n)
	}
	places := t.Rand().Perm(n)
	var b strings.Builder
	fmt.Fprintf(&b, "Compare %d attempts at the same task.\n\n%s\n", n, p.Rubric)
	for i, m := range places {
		fmt.Fprintf(&b, "\nAttempt %d:\n%s\n", i+1, wrapped("record", bounded(g.Members[m].Text, p.MaxText/n)))
	}
	fmt.Fprintf(&b, "\nGive a reason, and then the numbers of all attempts in order, the best first, as JSON.")
	fields := map[string]any{
		"reason": map[string]any{"type": "string", "description": "Why, in a sentence or two."},
		"order": map[string]any{"type": "array", "description": "The numbers of all attempts, the best first.",
			"items": map[string]any{"type": "integer", "minimum": 1, "maximum": n}, "minItems": n, "maxItems": n, "uniqueItems": true},
	}
	got, failed := ask[struct {
		Reason string
		Order  []int
	}](t, p.Seat, "order", b.String(), fields, []string{"reason", "order"})
	if failed != "" {
		return nil, failed
	}
	if sorted := slices.Sorted(slices.Values(got.Order)); len(sorted) != n || sorted[0] != 1 || sorted[n-1] != n || len(slices.Compact(sorted)) != n {
		return nil, fmt.Sprintf("its order does not have each of %d attempts once", n)
	}
	verdicts = make([]Verdict, n)
	for place, number := range got.Order {
		m := places[number-1]
		score := p.Scale[0] + (p.Scale[1]-p.Scale[0])*float64(n-1-place)/float64(n-1)
		of := g.Members[m]
		verdicts[m] = Verdict{Seat: of.Seat, Episode: of.Episode, Environment: of.Environment, Score: score, Reward: p.Reward(of.Environment, score), Reason: world.Shorten(got.Reason, maxReason)}
	}
	return verdicts, ""
}

// sample returns a group of n members with made-up records, to estimate what a judgement costs.
func sample(n int) (g Group) {
	for i := range n {
		g.Members = append(g.Members, Member{Episode: i, Text: strings.Repeat("What an agent said. ", 50)})
	}
	return g
}

// JudgeMakeFunc makes the judgement of a group: an episode like those of spec.
type JudgeMakeFunc func(spec world.Spec, g Group) (world.Spec, error)

// judgedPlan returns a plan that plays the stages of another one, each followed by a stage of judgements, one for each group. The
// other plan gets the rewards that the judgements gave. member reads an outcome that did not fail.
func judgedPlan(of world.Plan, member func(world.Outcome) (Member, bool), make JudgeMakeFunc) world.Plan {
	return &judgePlan{of: of, member: member, make: make}
}

type judgePlan struct {
	of     world.Plan
	member func(world.Outcome) (Member, bool)
	make   JudgeMakeFunc

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
			if m, ok := p.member(e.Outcome); ok && e.Outcome.Failed == "" {
				m.Episode = e.Episode
				g.Members = append(g.Members, m)
			}
		}
		spec, err := p.make(last[from].Spec, g)
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
		for _, v := range Read(j.Outcome) {
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

// Read returns the verdicts in the outcome of a judgement. There are none if it failed.
func Read(o world.Outcome) []Verdict {
	raw, _ := o.Data.(json.RawMessage)
	var d struct{ Judgement Ordered }
	if o.Failed != "" || json.Unmarshal(raw, &d) != nil {
		return nil
	}
	return d.Judgement.Verdicts
}

// Err returns why the plan cannot continue, or nil.
func (p *judgePlan) Err() error {
	if failing, ok := p.of.(world.FailingPlan); ok && p.err == nil {
		return failing.Err()
	}
	return p.err
}

// Change changes the other plan, if it can be changed.
func (p *judgePlan) Change(raw json.RawMessage) error {
	changing, ok := p.of.(world.ChangingPlan)
	if !ok {
		return fmt.Errorf("the plan has no tasks that can be changed: set refill.useful")
	}
	return changing.Change(raw)
}
