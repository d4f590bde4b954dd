// Package rules plays agents in environments for training: an environment asks, the
// agents answer, the environment steps, until it ends; what it paid is the outcome, and
// every answer is a row of training data.
//
// What it promises: a step is asked for once and never again; where nobody knows whether
// it was taken, the episode begins again from a reset, and what came before is not
// counted; every answer of an episode that ended is in exactly one row; every episode that
// ended by itself, by max_steps or by an answer that was cut off leaves a last row that is
// completed and trainable, so that no group waits for ever; a failure is marked as one and
// none of its rows is trainable.
//
// It is not for reaching environments: it acts through its table, and package envhttp
// carries the acts out. It is not for training: advantages are the trainer's.
//
// The flow: Play tries, a try asks and steps (play.go), the ledger gives rewards to answers
// (rewards.go), and the outcome holds the rows. Package protocol has the words between the
// two sides; plan.go makes groups and tasks into episodes; experience.go picks what agents
// are told of earlier ones. For readers: exhibit.go and what begins like it are the report,
// story.go an episode step by step.
package rules

import (
	_ "embed" // the example is a file, so that it can be read and run as one
	"encoding/json"
	"fmt"

	"parley/world"
	"parley/worlds/rollout/rules/protocol"
)

//go:embed example.yaml
var example string

// Definition is the kind of rollouts, but for what carries out their acts: package rollout adds it.
type Definition struct{}

// About says what rollouts are.
func (Definition) About() world.About {
	return world.About{
		Name: "rollout", Version: 1, Example: example,
		Doc: "Agents act in an environment, step by step, for rewards: training data.",
	}
}

// Seats checks params and returns the agents of the environment.
func (Definition) Seats(p *Params) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return p.Seats, nil
}

// Measures are the scores of an episode. What environments pay is theirs to say.
func (Definition) Measures(p *Params) []world.Measure {
	if p.check() != nil {
		return nil
	}
	return []world.Measure{{Name: "reward", Seats: p.Seats}, {Name: "steps", Bounds: world.Bounds{High: float64(p.MaxSteps)}}}
}

// World makes an episode.
func (Definition) World(p *Params, lineup world.Lineup) (world.World, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return &rollout{Params: *p, trains: trains(p.Seats, lineup)}, nil
}

// trains says whose rows may be trained on: those of agents that are marked, or of all where
// none is.
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

// Play plays the episode, again from a reset where an environment was lost on the way.
func (r *rollout) Play(t *world.Table) world.Outcome {
	opening := protocol.Opening{Env: r.Env, Params: r.EnvParams, Seed: int64(t.Rand().Uint32())}
	if r.Seed != nil {
		opening.Seed = *r.Seed
	}
	asks := 0
	for {
		p := &try{rollout: r, opening: opening, ledger: newLedger(r.Seats), past: protocol.Past{}, asks: &asks}
		p.play(t)
		if p.lost && opening.Try < r.Retries {
			t.Note("again", "", map[string]any{"try": opening.Try + 1, "why": p.failed})
			opening.Try++
			continue
		}
		return p.outcome()
	}
}

// Data is the record of an episode: what Outcome.Data holds.
type Data struct {
	Env string `json:"env"`
	// Group names the task, where an environments file made it, and Task is its number, from
	// 1. Elsewhere episodes of one deal are a group.
	Group string `json:"group,omitempty"`
	Task  int    `json:"task,omitempty"`
	Stop  Stop   `json:"stop"`
	Steps int    `json:"steps"` // that the environment took
	Tries int    `json:"tries"` // 1, and one more each time the environment was lost
	Rows  []Row  `json:"rows"`
	// Experience names the lessons that agents were told.
	Experience []string `json:"experience,omitempty"`
	// Unmatched counts rewards that came for agents who had done nothing.
	Unmatched int `json:"unmatched,omitempty"`
	// Info is what the environment said last beside its reward, where that is short.
	Info json.RawMessage `json:"info,omitempty"`
}

// Stepped is the note "step": what the environment said of a step.
type Stepped struct {
	Step       int                `json:"step"`
	Reward     map[string]float64 `json:"reward"` // by seat
	Terminated bool               `json:"terminated,omitempty"`
	Truncated  bool               `json:"truncated,omitempty"`
}

// Stop is why an episode ended.
type Stop string

// The reasons.
const (
	StopTerminated Stop = "terminated"   // the environment: it has come to its end
	StopTruncated  Stop = "truncated"    // the environment: it was cut off
	StopEmpty      Stop = "empty_prompt" // the environment asked nobody
	StopLength     Stop = "length"       // an answer was cut off for its length
	StopTooLong    Stop = "too_long"     // a prompt did not fit the model any more
	StopMaxSteps   Stop = "max_steps"
	StopFailed     Stop = "failed"
)

// maxInfo is the longest info that is kept.
const maxInfo = 16 << 10

// outcome is what the last try came to.
func (p *try) outcome() world.Outcome {
	d := Data{
		Env: p.Env, Stop: p.stop, Steps: p.steps, Tries: p.opening.Try + 1,
		Rows: p.ledger.close(p.stop, p.MessageCut > 0, p.trains), Unmatched: p.ledger.unmatched,
		Experience: p.Experience.names(),
	}
	if p.Task != nil {
		d.Group, d.Task = p.Task.Group, p.Task.Index
	}
	if len(p.info) <= maxInfo {
		d.Info = p.info
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
		if !p.ledger.known(seat) {
			continue
		}
		o.Scores = append(o.Scores, world.Score{Seat: seat, Name: "reward", Value: p.ledger.total[seat]})
	}
	o.Scores = append(o.Scores, world.Score{Name: "steps", Value: float64(p.steps)})
	return o
}
