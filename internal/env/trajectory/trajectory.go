// Package trajectory is training data as a view of a run of rollouts: episodes as rows, in
// groups, with what was asked, answered and paid, exactly as it was recorded.
//
// What it promises: every answer of an episode that ended is in exactly one row; prompts,
// answers, token ids and log probabilities are the recorded ones, never made up or made
// again; a group is handed over once, when all its episodes have ended or, at the end of
// what there is, with the reason why it is not complete; what a filter leaves out is
// counted by reason, so that every group is accounted for. The same run gives the same rows.
//
// It is not for training: advantages are the trainer's. It is not for runs of other kinds.
package trajectory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout"
)

// Status is how an episode ended.
type Status string

// The statuses.
const (
	Completed Status = "completed" // its environment came to an end
	Truncated Status = "truncated" // it was cut off
	Failed    Status = "failed"
)

// Statuses lists them.
func Statuses() []Status { return []Status{Completed, Truncated, Failed} }

// Trajectory is one episode.
type Trajectory struct {
	Episode int
	Status  Status
	Failed  string // why
	Data    rollout.Data
	// Return is what each seat was paid in all.
	Return map[string]float64
	Rows   []Row
}

// Row is one answer of an agent, with the names that trainers know from other systems.
type Row struct {
	JobID     string `json:"job_id" parquet:"job_id,dict"` // the run
	SessionID string `json:"session_id" parquet:"session_id,dict"`
	StepID    int    `json:"step_id" parquet:"step_id"` // from 1
	Episode   int    `json:"episode" parquet:"episode"`
	Attempt   int    `json:"attempt" parquet:"attempt"`
	EnvName   string `json:"env_name" parquet:"env_name,dict"`
	GroupID   string `json:"group_id" parquet:"group_id,dict"`
	AgentID   string `json:"agent_id" parquet:"agent_id,dict"`   // the seat
	PolicyID  string `json:"policy_id" parquet:"policy_id,dict"` // who sat there
	LLMModel  string `json:"llm_model" parquet:"llm_model,dict"`
	// Messages is the prompt, a JSON list of chat messages as they were sent.
	Messages     json.RawMessage `json:"messages" parquet:"messages,json,zstd"`
	Response     string          `json:"response" parquet:"response,zstd"`
	FinishReason string          `json:"finish_reason" parquet:"finish_reason,dict"`

	StepReward         float64 `json:"step_reward" parquet:"step_reward"`
	Reward             float64 `json:"reward" parquet:"reward"` // of the seat, up to here
	Return             float64 `json:"return" parquet:"return"` // of the seat, in all
	IsTerminal         bool    `json:"is_terminal" parquet:"is_terminal"`
	IsTruncated        bool    `json:"is_truncated" parquet:"is_truncated"`
	IsSessionCompleted bool    `json:"is_session_completed" parquet:"is_session_completed"`
	IsTrainable        bool    `json:"is_trainable" parquet:"is_trainable"`
	Unpaid             bool    `json:"unpaid" parquet:"unpaid"` // no reward came for it
	Status             string  `json:"status" parquet:"status,dict"`
	Stop               string  `json:"stop" parquet:"stop,dict"`

	// EnvState is {"weight_version": v} where the server said which weights answered.
	EnvState      string `json:"env_state,omitempty" parquet:"env_state,dict"`
	WeightVersion string `json:"weight_version,omitempty" parquet:"weight_version,dict"`
	// Tokens are the ids of prompt and answer where the server gave both, LossMask is 1 for
	// those of the answer, and Logprobs are the answer's, as many as LossMask has ones.
	Tokens   []int     `json:"tokens,omitempty" parquet:"tokens,list"`
	LossMask []int     `json:"loss_mask,omitempty" parquet:"loss_mask,list"`
	Logprobs []float64 `json:"logprobs,omitempty" parquet:"logprobs,list"`

	At time.Time `json:"created_at" parquet:"created_at,timestamp(microsecond)"` // when the answer came
}

// GroupOf names the group of an episode: its task or, without an environments file, its
// environment and deal. Cells of a matrix have groups of their own.
func GroupOf(spec world.Spec) (string, error) {
	var p struct {
		Env  string
		Task *rollout.Task
	}
	if err := json.Unmarshal(spec.Params, &p); err != nil {
		return "", fmt.Errorf("trajectory: params: %w", err)
	}
	name := fmt.Sprintf("%s:%d", p.Env, spec.Deal+1)
	if p.Task != nil {
		name = p.Task.Group
	}
	if spec.Cell != "" {
		name = spec.Cell + " " + name
	}
	return name, nil
}

// Of makes the trajectory of an episode that ended, out of its turns and replies.
func Of(begun *journal.Begun, spec world.Spec, ended journal.Ended, entries []journal.Entry) (*Trajectory, error) {
	raw, ok := ended.Outcome.Data.(json.RawMessage)
	t := &Trajectory{Episode: ended.Episode, Failed: ended.Outcome.Failed, Return: map[string]float64{}}
	if ok && len(raw) > 0 {
		if err := json.Unmarshal(raw, &t.Data); err != nil {
			return nil, fmt.Errorf("trajectory: episode %d: outcome: %w", ended.Episode, err)
		}
	}
	t.Status = statusOf(ended.Outcome, t.Data)
	for _, s := range ended.Outcome.Scores {
		if s.Name == "reward" {
			t.Return[s.Seat] = s.Value
		}
	}
	group, err := GroupOf(spec)
	if err != nil {
		return nil, err
	}
	asks := asksOf(entries, ended.Attempt)
	for _, r := range t.Data.Rows {
		if r.Ask < 0 || r.Ask >= len(asks) {
			return nil, fmt.Errorf("trajectory: episode %d: a row is of ask %d, and there are %d", ended.Episode, r.Ask, len(asks))
		}
		row, err := rowOf(r, asks[r.Ask])
		if err != nil {
			return nil, fmt.Errorf("trajectory: episode %d: %w", ended.Episode, err)
		}
		row.JobID, row.Episode, row.Attempt = begun.Run, ended.Episode, ended.Attempt
		row.SessionID = fmt.Sprintf("%s-%d-%d", begun.Run, ended.Episode, ended.Attempt)
		row.EnvName, row.GroupID, row.Status, row.Stop = t.Data.Env, group, string(t.Status), string(t.Data.Stop)
		row.Return = t.Return[r.Seat]
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func statusOf(o world.Outcome, d rollout.Data) Status {
	switch {
	case o.Failed != "":
		return Failed
	case d.Stop == rollout.StopTerminated || d.Stop == rollout.StopEmpty:
		return Completed
	default:
		return Truncated
	}
}

// asksOf lists the asks of an attempt in the order the world made them.
func asksOf(entries []journal.Entry, attempt int) (asks []*journal.Replied) {
	for _, e := range entries {
		if r, ok := e.(*journal.Replied); ok && r.Attempt == attempt && r.Act == nil {
			asks = append(asks, r)
		}
	}
	slices.SortFunc(asks, func(a, b *journal.Replied) int {
		return cmp.Or(cmp.Compare(a.Turn.Turn, b.Turn.Turn), cmp.Compare(a.Index, b.Index))
	})
	return asks
}

// rowOf joins what a world said of an answer with the answer.
func rowOf(r rollout.Row, ask *journal.Replied) (Row, error) {
	if ask.Seat != r.Seat || ask.Response == nil {
		return Row{}, fmt.Errorf("row %d is not of an answer of %s", r.Ask, r.Seat)
	}
	resp := ask.Response
	row := Row{
		StepID: r.Step, AgentID: r.Seat, PolicyID: ask.Agent, LLMModel: resp.Model, Response: resp.Text, FinishReason: string(resp.Finish),
		StepReward: r.StepReward, Reward: r.Reward, IsTerminal: r.Terminal, IsTruncated: r.Truncated, IsSessionCompleted: r.Completed,
		IsTrainable: r.Trainable, Unpaid: r.Unpaid, WeightVersion: resp.WeightVersion, At: ask.At.UTC(), Messages: json.RawMessage("[]"),
	}
	if ask.Request != nil { // a bot has none
		var err error
		if row.Messages, err = json.Marshal(ask.Request.Messages); err != nil {
			return Row{}, err
		}
		if row.LLMModel == "" {
			_, row.LLMModel = llm.SplitModel(ask.Request.Model)
		}
	}
	if row.WeightVersion != "" {
		state, err := json.Marshal(map[string]string{"weight_version": row.WeightVersion})
		if err != nil {
			return Row{}, err
		}
		row.EnvState = string(state)
	}
	row.tokens(resp)
	return row, nil
}

// tokens takes over token ids, where the server gave those of prompt and answer both.
func (r *Row) tokens(resp *llm.Response) {
	if len(resp.PromptTokenIDs) == 0 || len(resp.TokenIDs) == 0 {
		return
	}
	r.Tokens = slices.Concat(resp.PromptTokenIDs, resp.TokenIDs)
	r.LossMask = make([]int, len(r.Tokens))
	for i := range resp.TokenIDs {
		r.LossMask[len(resp.PromptTokenIDs)+i] = 1
	}
	if len(resp.Logprobs) == len(resp.TokenIDs) {
		for _, p := range resp.Logprobs {
			r.Logprobs = append(r.Logprobs, p.Logprob)
		}
	}
}

// plan is the groups of a run: which episodes are in each.
type plan struct {
	order []string
	specs map[string]map[int]world.Spec
}

func planOf(head *journal.Head) (*plan, error) {
	if head.Begun == nil {
		return nil, errors.New("trajectory: the file holds no run yet")
	}
	if head.Begun.Kind != "rollout" {
		return nil, fmt.Errorf("trajectory: a run of %s has no trajectories: want one of rollout", head.Begun.Kind)
	}
	p := &plan{specs: map[string]map[int]world.Spec{}}
	for _, stage := range head.Stages {
		for i, spec := range stage.Specs {
			name, err := GroupOf(spec)
			if err != nil {
				return nil, err
			}
			if p.specs[name] == nil {
				p.order = append(p.order, name)
				p.specs[name] = map[int]world.Spec{}
			}
			p.specs[name][stage.First+i] = spec
		}
	}
	return p, nil
}

// members lists the episodes of a group, in order.
func (p *plan) members(group string) []int { return slices.Sorted(maps.Keys(p.specs[group])) }
