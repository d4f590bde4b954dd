package rules

import (
	"encoding/json"
	"fmt"

	"parley/world"
	"parley/world/part"
)

// TrainingGroup returns the group of an episode: its task or, without an environments file, its environment and deal. Each
// cell of a matrix has its own groups. It implements part.Grouper.
func (Definition) TrainingGroup(spec world.Spec) (g part.TrainingGroup, err error) {
	var p struct {
		Env       string
		Task      *struct{ Group string }
		Judge     JudgeParams
		Judgement *struct{}
	}
	if spec.Kind == "" && spec.Params == nil {
		return g, nil // its spec was lost
	}
	if err := json.Unmarshal(spec.Params, &p); err != nil {
		return g, fmt.Errorf("rollout: params: %w", err)
	}
	g.Judgement = p.Judgement != nil
	g.Judged = !g.Judgement && p.Judge.comparesGroups()
	g.Name = fmt.Sprintf("%s:%d", p.Env, spec.Deal+1)
	if p.Task != nil {
		g.Name = p.Task.Group
	}
	if spec.Cell != "" {
		g.Name = spec.Cell + " " + g.Name
	}
	return g, nil
}

// Rewards implements part.Rewarder.
func (Definition) Rewards(o world.Outcome) (r part.Rewards, err error) {
	var d Data
	if raw, ok := o.Data.(json.RawMessage); ok && len(raw) > 0 {
		if err := json.Unmarshal(raw, &d); err != nil {
			return r, err
		}
	}
	ended := d.Stop == StopTerminated || d.Stop == StopEmpty
	return part.Rewards{Env: d.Env, Stop: string(d.Stop), Truncated: !ended, Score: rewardScore, Answers: d.Rows, Verdicts: d.Verdicts}, nil
}

// Surroundings reads the acts of the last try: the row of the dataset, and what the environment said about each step.
func (Definition) Surroundings(o world.Outcome, transcript []world.TranscriptEntry) part.Surroundings {
	var d struct{ Tries int }
	if raw, ok := o.Data.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &d) // Rewards has read it
	}
	try, out := d.Tries-1, part.Surroundings{Info: map[int]json.RawMessage{}}
	for _, e := range transcript {
		if e.Act == nil || !e.Reply.OK() {
			continue
		}
		switch e.Act.Name {
		case ActOpen:
			var opening Opening
			var params struct{ Dataset json.RawMessage }
			if json.Unmarshal(e.Act.Body, &opening) == nil && opening.Try == try && json.Unmarshal(opening.Params, &params) == nil {
				out.Dataset = params.Dataset
			}
		case ActStep:
			var step Stepping
			var stepped struct{ Info json.RawMessage }
			if json.Unmarshal(e.Act.Body, &step) == nil && step.Try == try && json.Unmarshal(e.Reply.JSON, &stepped) == nil {
				out.Info[step.Step] = stepped.Info
			}
		}
	}
	return out
}

// Overridable returns the params that a client of parley trainer may change. Addresses and files are not for clients to set.
func (Definition) Overridable() []string {
	return []string{"env", "env_params", "group", "max_steps", "message_cut", "retries", "seed", "tokens"}
}

// ReadChange implements part.Trainee.
func (Definition) ReadChange(raw []byte) (string, error) {
	c, err := ReadChange(raw)
	return c.String(), err
}
