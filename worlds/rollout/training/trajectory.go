// Part trajectory reads training data from a run of rollouts: episodes as rows, in groups, with prompts,
// answers and rewards as recorded.
//
// It promises that every answer of an episode that ended is in exactly one row; that prompts, answers, token
// ids and log probabilities are the recorded ones; that a group is returned once, when all its episodes have
// ended; that dropped groups are counted by reason; and that the same run gives the same rows, all at once in
// planned order (Each, Write) or one by one as groups become complete (Groups). It holds one group in memory,
// and a few numbers for each episode.
//
// It reads the record of a gateway as well: see session.go. It is not for training: the trainer computes advantages. It
// is not for other kinds.

package training

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// Status is how an episode ended.
type Status string

// The statuses.
const (
	completed        Status = "completed" // its environment ended
	truncated        Status = "truncated" // it was cut off
	TrajectoryFailed Status = "failed"
)

// Statuses lists them.
func Statuses() []Status { return []Status{completed, truncated, TrajectoryFailed} }

// ParseStatus reads one.
func ParseStatus(name string) (Status, error) {
	if s := Status(name); slices.Contains(Statuses(), s) {
		return s, nil
	}
	return "", fmt.Errorf("%.40q: use completed, truncated or failed", name)
}

// Trajectory is one episode.
type Trajectory struct {
	Episode, Attempt int
	Status           Status
	Failed           string // why
	Data             rules.Data
	// Return is what each seat was paid in all.
	Return map[string]float64
	Rows   []Row
	// Joins counts how the answers of each seat followed each other.
	Joins Joins
}

// Row is one answer of an agent. Its names are those of other training systems.
//
// The answers of an agent make parts: an answer belongs to the part of the one before if its prompt continues
// that. The last row of a part has everything to train on, and so it is the trainable one.
type Row struct {
	JobID     string `json:"job_id" parquet:"job_id,dict"` // the run
	SessionID string `json:"session_id" parquet:"session_id,dict"`
	StepID    int    `json:"step_id" parquet:"step_id"` // from 1
	Episode   int    `json:"episode" parquet:"episode"`
	Attempt   int    `json:"attempt" parquet:"attempt"`
	EnvName   string `json:"env_name" parquet:"env_name,dict"`
	GroupID   string `json:"group_id" parquet:"group_id,dict"`
	GroupSize int    `json:"group_size" parquet:"group_size"`    // episodes that were planned
	AgentID   string `json:"agent_id" parquet:"agent_id,dict"`   // the seat
	PolicyID  string `json:"policy_id" parquet:"policy_id,dict"` // the agent
	LLMModel  string `json:"llm_model" parquet:"llm_model,dict"`
	// Messages is the prompt as it was sent and the answer: a JSON list of chat messages.
	Messages json.RawMessage `json:"messages" parquet:"messages,json,zstd"`
	// Tools are those that the agent could call, in OpenAI's form.
	Tools        json.RawMessage `json:"tools,omitempty" parquet:"tools,optional,json,zstd"`
	Response     string          `json:"response" parquet:"response,zstd"`
	Reasoning    string          `json:"reasoning,omitempty" parquet:"reasoning,zstd"` // thoughts before the answer
	FinishReason string          `json:"finish_reason" parquet:"finish_reason,dict"`

	StepReward float64 `json:"step_reward" parquet:"step_reward"`
	Reward     float64 `json:"reward" parquet:"reward"` // of the seat, up to here
	Return     float64 `json:"return" parquet:"return"` // of the seat, in all
	// EnvironmentReward and JudgeScore are the parts of Return, if there is a judge.
	EnvironmentReward  *float64 `json:"environment_reward,omitempty" parquet:"environment_reward,optional"`
	JudgeScore         *float64 `json:"judge_score,omitempty" parquet:"judge_score,optional"`
	IsTerminal         bool     `json:"is_terminal" parquet:"is_terminal"`
	IsTruncated        bool     `json:"is_truncated" parquet:"is_truncated"`
	IsSessionCompleted bool     `json:"is_session_completed" parquet:"is_session_completed"`
	IsTrainable        bool     `json:"is_trainable" parquet:"is_trainable"`
	NoReward           bool     `json:"no_reward" parquet:"no_reward"` // it got no reward
	Status             string   `json:"status" parquet:"status,dict"`
	Stop               string   `json:"stop" parquet:"stop,dict"`
	Failed             string   `json:"failed,omitempty" parquet:"failed,dict"` // why, if the episode failed

	// Info is what the environment said about the step, Dataset the row of the dataset that it was made with, and Sampling
	// the parameters that the answer was drawn with.
	Info     json.RawMessage `json:"info,omitempty" parquet:"info,optional,json,zstd"`
	Dataset  json.RawMessage `json:"dataset,omitempty" parquet:"dataset,optional,json,zstd"`
	Sampling json.RawMessage `json:"sampling,omitempty" parquet:"sampling,optional,json,zstd"`

	// EnvState is {"weight_version": v} if the server reported which weights answered.
	EnvState      string `json:"env_state,omitempty" parquet:"env_state,dict"`
	WeightVersion string `json:"weight_version,omitempty" parquet:"weight_version,dict"`
	// Part is the number of the part, from 0.
	Part int `json:"part" parquet:"part"`
	// Tokens are the ids of the part up to here, in trainable rows, if the server returned them. LossMask is 1 for
	// those that the model wrote, and Logprobs has one number for each token: 0 where the model did not write it.
	Tokens   []int     `json:"tokens,omitempty" parquet:"tokens,list"`
	LossMask []int     `json:"loss_mask,omitempty" parquet:"loss_mask,list"`
	Logprobs []float64 `json:"logprobs,omitempty" parquet:"logprobs,list"`
	// Starts is where in Tokens each answer of the part begins, and where it goes on if it was cut off and continued. Versions
	// and Rewards are of the same spans.
	Starts   []int     `json:"answer_starts,omitempty" parquet:"answer_starts,list"`
	Versions []string  `json:"weight_versions,omitempty" parquet:"weight_versions,list"`
	Rewards  []float64 `json:"step_rewards,omitempty" parquet:"step_rewards,list"`

	prompt int // how many messages the first prompt of the part has
	spans  []llm.Span

	At time.Time `json:"created_at" parquet:"created_at,timestamp(microsecond)"` // when the answer came
}

// outcomeOf returns the trajectory of an episode that ended, without its rows.
func outcomeOf(ended *journal.Ended) (*Trajectory, error) {
	raw, ok := ended.Outcome.Data.(json.RawMessage)
	t := &Trajectory{Episode: ended.Episode, Attempt: ended.Attempt, Failed: ended.Outcome.Failed, Return: map[string]float64{}}
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
	return t, nil
}

// rows adds the rows of t that f selects, and the joins of its answers.
func (s *stamp) rows(t *Trajectory, entries []journal.Entry, f Filter) error {
	asks, env := Asks(entries, t.Attempt), outsideOf(entries, t.Attempt, t.Data.Tries-1)
	rows := make([]Row, len(t.Data.Rows))
	answers, places := map[string][]Answer{}, map[string][]int{} // by seat
	for i, r := range t.Data.Rows {
		if r.Ask < 0 || r.Ask >= len(asks) {
			return fmt.Errorf("trajectory: episode %d: a row is of ask %d, and there are %d", t.Episode, r.Ask, len(asks))
		}
		answer, err := rows[i].read(r, asks[r.Ask])
		if err != nil {
			return fmt.Errorf("trajectory: episode %d: %w", t.Episode, err)
		}
		row := &rows[i]
		row.JobID, row.Episode, row.Attempt = s.run, t.Episode, t.Attempt
		row.SessionID = fmt.Sprintf("%s-%d-%d", s.run, t.Episode, t.Attempt)
		row.GroupID, row.GroupSize = s.group, s.size
		row.EnvName, row.Status, row.Stop = t.Data.Env, string(t.Status), string(t.Data.Stop)
		row.Failed = valid(t.Failed)
		row.verdict(t)
		row.Return, row.Info, row.Dataset = t.Return[r.Seat], env.Info[r.Step], env.Dataset
		answers[r.Seat], places[r.Seat] = append(answers[r.Seat], answer), append(places[r.Seat], i)
	}
	for _, seat := range slices.Sorted(maps.Keys(answers)) {
		parts, joins := joinAnswers(answers[seat])
		t.Joins.Add(joins)
		for n, part := range parts {
			join(rows, places[seat], n, part, t.trains(seat))
		}
	}
	t.Rows = slices.DeleteFunc(rows, func(r Row) bool { return f.Trainable && !r.IsTrainable || !f.earned(t, r.AgentID) })
	return nil
}

// join completes the rows of a part. The places of the seat's answers are given.
func join(rows []Row, places []int, number int, part tokenSequence, trains bool) {
	last := &rows[places[part.Answers[0]]]
	prompt := last.prompt
	var versions []string
	var rewards []float64
	reported := false
	for _, i := range part.Answers {
		last = &rows[places[i]]
		last.Part, last.prompt = number, prompt
		for _, span := range last.spans[:max(0, len(last.spans)-1)] {
			versions, rewards = append(versions, span.WeightVersion), append(rewards, 0) // the end of the answer has its reward
		}
		version := last.WeightVersion
		if n := len(last.spans); n > 0 {
			version = last.spans[n-1].WeightVersion
		}
		versions, rewards = append(versions, version), append(rewards, last.StepReward)
		reported = reported || last.WeightVersion != ""
	}
	if last.IsTrainable = trains; !trains {
		return
	}
	last.Tokens, last.LossMask, last.Logprobs, last.Starts, last.Rewards = part.Tokens, part.LossMask, part.Logprobs, part.Starts, rewards
	if reported {
		last.Versions = versions
	}
}

// trains reports whether the answers of a seat may be trained on.
func (t *Trajectory) trains(seat string) bool {
	return slices.ContainsFunc(t.Data.Rows, func(r rules.Row) bool { return r.Seat == seat && r.Trainable })
}

// stamp is what all rows of a group share.
type stamp struct {
	run, group string
	size       int
}

func statusOf(o world.Outcome, d rules.Data) Status {
	switch {
	case o.Failed != "":
		return TrajectoryFailed
	case d.Stop == rules.StopTerminated || d.Stop == rules.StopEmpty:
		return completed
	default:
		return truncated
	}
}

// read fills the row of an answer.
func (r *Row) read(of rules.Row, ask *journal.Replied) (a Answer, err error) {
	if ask.Seat != of.Seat || ask.Response == nil {
		return a, fmt.Errorf("row %d is not of an answer of %s", of.Ask, of.Seat)
	}
	resp := ask.Response
	*r = Row{
		StepID: of.Step, AgentID: of.Seat, PolicyID: ask.Agent, LLMModel: resp.Model, FinishReason: string(resp.Finish),
		Response: valid(resp.Text), Reasoning: thoughts(resp),
		StepReward: of.StepReward, Reward: of.Reward, IsTerminal: of.Terminal, IsTruncated: of.Truncated, IsSessionCompleted: of.Completed,
		NoReward: of.NoReward, WeightVersion: resp.WeightVersion, At: ask.At.UTC().Truncate(time.Microsecond),
	}
	a.Response = resp
	if ask.Request != nil { // a bot has none
		a.Messages = ask.Request.Messages
		if r.Sampling, err = sampling(ask.Request); err != nil {
			return a, err
		}
		if tools := rules.ProtocolTools(ask.Request.Tools); len(tools) > 0 {
			if r.Tools, err = json.Marshal(tools); err != nil {
				return a, err
			}
		}
		if r.LLMModel == "" {
			_, r.LLMModel = llm.SplitModel(ask.Request.Model)
		}
	}
	r.prompt, r.spans = len(a.Messages), resp.Spans
	if r.Messages, err = recordedConversation(a.Messages, resp); err != nil {
		return a, err
	}
	if r.WeightVersion != "" {
		state, err := json.Marshal(map[string]string{"weight_version": r.WeightVersion})
		if err != nil {
			return a, err
		}
		r.EnvState = string(state)
	}
	return a, nil
}
