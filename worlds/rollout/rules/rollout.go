// Package rules plays agents in environments for training: the environment asks, the agents answer, the
// environment steps, until the episode ends. The rewards are the outcome, and every answer is a row of
// training data.
//
// It promises that a step is sent once; that if its result is unknown, the episode starts over from a reset
// and what came before does not count; that every answer of an episode that ended is in exactly one row; that
// every episode that ended without a failure leaves a last row that is completed and trainable, so that no
// group waits forever; and that no row of a failure is trainable.
//
// It reaches no environment itself: it acts through its table, and package envhttp performs the acts. It does
// not train either: the trainer computes advantages.
//
// play.go plays one try at an episode, ledger.go assigns rewards to answers, and judge.go lets a model add to
// them. plan.go makes groups of episodes, from the tasks of a file (tasks.go) and, with a refill, from outcomes
// (refill.go). story.go describes an episode, and protocol.go has the data that a rollout and its environment
// exchange.
package rules

import (
	"cmp"
	_ "embed" // the example is a file, so that it can be read and run as one
	"encoding/json"
	"fmt"
	"slices"

	"parley/world"
	"parley/world/exhibit"
	"parley/world/rubric"
)

//go:embed example.yaml
var example string

// Definition is the kind of rollouts without what performs its acts, which package rollout adds.
type Definition struct{}

// About describes rollouts.
func (Definition) About() world.About {
	return world.About{
		Name: "rollout", Version: 2, Example: example,
		Doc: "Agents act in an environment, step by step, for rewards: training data.",
	}
}

// Seats checks params and returns the agents of the environment.
func (Definition) Seats(p *Params) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return append(slices.Clip(p.Seats), p.Judge.Seats()...), nil
}

// Measures returns the scores of an episode. Environments choose the range of their rewards.
func (Definition) Measures(p *Params) []world.Measure {
	if p.check() != nil {
		return nil
	}
	all := []world.Measure{{Name: rewardScore, Seats: p.Seats}, {Name: stepsScore, Bounds: world.Bounds{High: float64(p.MaxSteps)}}}
	if p.Judge.enabled() {
		all = append(all, world.Measure{Name: environmentReward, Seats: p.Seats})
	}
	if !p.Judge.comparesGroups() {
		all = append(all, p.Judge.Measures()...)
	}
	return all
}

// Story describes an episode step by step.
func (Definition) Story(p world.Played, entries []world.TranscriptEntry) []exhibit.Exhibit {
	return tellStory("rollout-story", p, entries)
}

// World returns an episode.
func (Definition) World(p *Params, lineup world.Lineup) (world.World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Judgement != nil {
		return &judgement{p}, nil
	}
	return &rollout{Params: *p, trains: trains(p.Seats, lineup)}, nil
}

// trains returns the seats whose rows may be trained on: those of marked agents or, if none is marked, all.
func trains(seats []string, lineup world.Lineup) map[string]bool {
	marked := map[string]bool{}
	for _, seat := range seats {
		if lineup[seat].Trainable {
			marked[seat] = true
		}
	}
	if len(marked) == 0 {
		for _, seat := range seats {
			marked[seat] = true
		}
	}
	return marked
}

// rollout is one episode.
type rollout struct {
	Params
	trains map[string]bool // by seat
}

// Play plays the episode. If the environment is lost, it starts over from a reset.
func (r *rollout) Play(t *world.Table) world.Outcome {
	opening := Opening{Env: r.Env, Params: r.EnvParams, Seed: int64(t.Rand().Uint32())}
	if r.Seed != nil {
		opening.Seed = *r.Seed
	}
	asks := 0
	for {
		p := &try{rollout: r, opening: opening, record: rubric.Record{Read: r.Judge.Read}, rewards: newLedger(r.Seats), past: Past{}, asks: &asks}
		p.play(t)
		if p.stop != StopFailed && p.steps > 0 && p.rejected == p.steps {
			p.fail("environment: it accepted no action: %.300s", p.rejectedWhy)
		}
		if p.lost && opening.Try < r.Retries {
			t.Note("again", "", map[string]any{"try": opening.Try + 1, "why": p.failed})
			opening.Try++
			continue
		}
		p.judge(t)
		return p.outcome()
	}
}

// Data is the data of an outcome.
type Data struct {
	Env string `json:"env"`
	// Group is the name of the task, and Task its number from 1, if an environments file made it. Otherwise
	// the episodes of one deal are a group.
	Group string `json:"group,omitempty"`
	Task  int    `json:"task,omitempty"`
	Stop  Stop   `json:"stop"`
	Steps int    `json:"steps"` // taken by the environment
	Tries int    `json:"tries"` // 1, and one more each time the environment was lost
	Rows  []Row  `json:"rows"`
	// Unmatched counts rewards for agents that had not acted.
	Unmatched int `json:"unmatched,omitempty"`
	// Verdicts are the parts of the rewards, if there is a judge. The rewards of rows are the whole ones: what a judge adds
	// is added to the last answer of its seat.
	Verdicts []Verdict       `json:"verdicts,omitempty"`
	Ratings  []rubric.Rating `json:"ratings,omitempty"` // the answers of judges
	// Record is what a judge of groups reads of the episode.
	Record string `json:"record,omitempty"`
	// Judgement means that the episode is a judgement: the verdicts are about the episodes of a group.
	Judgement bool `json:"judgement,omitempty"`
	// Info is the last info of the environment, if it is short.
	Info json.RawMessage `json:"info,omitempty"`
}

// StepNote is the note "step": the result of a step.
type StepNote struct {
	Step       int                `json:"step"`
	Reward     map[string]float64 `json:"reward"` // by seat
	Terminated bool               `json:"terminated,omitempty"`
	Truncated  bool               `json:"truncated,omitempty"`
}

// Stop is why an episode ended.
type Stop string

// The reasons.
const (
	StopTerminated Stop = "terminated"   // the environment ended it
	StopTruncated  Stop = "truncated"    // the environment cut it off
	StopEmpty      Stop = "empty_prompt" // the environment asked nobody
	StopLength     Stop = "length"       // an answer reached its maximum length
	StopTooLong    Stop = "too_long"     // a prompt did not fit the model
	StopMaxSteps   Stop = "max_steps"
	StopFailed     Stop = "failed"
)

// maxInfo is the size of the longest info that is kept.
const maxInfo = 16 << 10

// outcome returns the outcome of the last try.
func (p *try) outcome() world.Outcome {
	ending := ending{Failed: p.stop == StopFailed, Cut: p.stop == StopMaxSteps || p.stop == StopTooLong, Every: p.MessageCut > 0}
	d := Data{
		Env: p.Env, Stop: p.stop, Steps: p.steps, Tries: p.opening.Try + 1,
		Rows: p.rewards.close(ending, p.trains), Unmatched: p.rewards.unmatched,
		Verdicts: p.verdicts, Ratings: p.ratings,
	}
	size := p.Group
	if p.Task != nil {
		d.Group, d.Task, size = p.Task.Group, p.Task.Index, cmp.Or(p.Group, p.Task.Size)
	}
	if len(p.info) <= maxInfo {
		d.Info = p.info
	}
	if p.Judge.comparesGroups() && p.stop != StopFailed {
		d.Record = p.record.Text(p.Judge.MaxText / max(2, size))
	}
	o := world.Outcome{Data: d}
	if p.stop == StopFailed {
		o.Failed = p.failed
		if d.Tries > 1 {
			o.Failed += fmt.Sprintf(" (%d tries)", d.Tries)
		}
		return o
	}
	for _, seat := range p.Seats {
		if !p.rewards.known(seat) {
			continue
		}
		name := rewardScore
		if p.Judge.comparesGroups() {
			name = environmentReward // the judgement of the group gives the reward
		}
		o.Scores = append(o.Scores, world.Score{Seat: seat, Name: name, Value: p.rewards.total[seat]})
	}
	for _, v := range p.verdicts {
		o.Scores = append(o.Scores, world.Score{Seat: v.Seat, Name: environmentReward, Value: v.Environment})
	}
	o.Scores = append(append(o.Scores, p.Judge.Tally(append([]string{""}, p.Seats...), p.ratings)...), world.Score{Name: stepsScore, Value: float64(p.steps)})
	return o
}

// TaskName returns the environment and, for a task of a file, its params: tasks have the same numbers in any
// file. Everything else that an environment draws is chance, unless the plan sets a seed.
func (Definition) TaskName(p *Params) world.Task {
	about := struct {
		Env    string
		Params json.RawMessage
		Seed   *int64
	}{Env: p.Env, Seed: p.Seed}
	if p.Task != nil {
		about.Params = p.EnvParams
	}
	b, err := json.Marshal(about)
	if err != nil {
		return world.Task{Name: p.Env} // params that are no JSON
	}
	return world.Task{Name: string(b)}
}
