package training

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
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
	completed Status = "completed" // its environment ended
	truncated Status = "truncated" // it was cut off
	failed    Status = "failed"
)

// statuses lists them.
func statuses() []Status { return []Status{completed, truncated, failed} }

// ParseStatus reads one.
func ParseStatus(name string) (Status, error) {
	if s := Status(name); slices.Contains(statuses(), s) {
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
	// Advantage is how much better each seat that is trained did than in the other episodes of the group.
	Advantage map[string]float64
	Rows      []Row
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
	// Advantage is that of the seat in the episode, in each of its rows. It is missing if the episode is not trained on.
	Advantage *float64 `json:"advantage,omitempty" parquet:"advantage,optional"`
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

// trajectoryOf returns the trajectory of an episode that ended, without its rows.
func trajectoryOf(ended *journal.Ended) (*Trajectory, error) {
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
	asks, env := asksOf(entries, t.Attempt), readEnvRecord(entries, t.Attempt, t.Data.Tries-1)
	rows := make([]Row, len(t.Data.Rows))
	answers, places := map[string][]agentAnswer{}, map[string][]int{} // by seat
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
		row.Failed = validText(t.Failed)
		row.verdict(t)
		row.Return, row.Info, row.Dataset = t.Return[r.Seat], env.Info[r.Step], env.Dataset
		if advantage, ok := t.Advantage[r.Seat]; ok {
			row.Advantage = &advantage
		}
		answers[r.Seat], places[r.Seat] = append(answers[r.Seat], answer), append(places[r.Seat], i)
	}
	for _, seat := range slices.Sorted(maps.Keys(answers)) {
		parts, joins := joinAnswers(answers[seat])
		t.Joins.Add(joins)
		for n, part := range parts {
			completePart(rows, places[seat], n, part, t.trains(seat))
		}
	}
	t.Rows = slices.DeleteFunc(rows, func(r Row) bool { return f.Trainable && !r.IsTrainable || !f.earned(t, r.AgentID) })
	return nil
}

// completePart completes the rows of a part. The places of the seat's answers are given.
func completePart(rows []Row, places []int, number int, part tokenSequence, trains bool) {
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
		return failed
	case d.Stop == rules.StopTerminated || d.Stop == rules.StopEmpty:
		return completed
	default:
		return truncated
	}
}

// read fills the row of an answer.
func (r *Row) read(of rules.Row, ask *journal.Replied) (a agentAnswer, err error) {
	if ask.Seat != of.Seat || ask.Response == nil {
		return a, fmt.Errorf("row %d is not of an answer of %s", of.Ask, of.Seat)
	}
	resp := ask.Response
	*r = Row{
		StepID: of.Step, AgentID: of.Seat, PolicyID: ask.Agent, LLMModel: resp.Model, FinishReason: string(resp.Finish),
		Response: validText(resp.Text), Reasoning: thoughts(resp),
		StepReward: of.StepReward, Reward: of.Reward, IsTerminal: of.Terminal, IsTruncated: of.Truncated, IsSessionCompleted: of.Completed,
		NoReward: of.NoReward, WeightVersion: resp.WeightVersion, At: ask.At.UTC().Truncate(time.Microsecond),
	}
	a.Response = resp
	if ask.Request != nil { // a bot has none
		a.Messages = ask.Request.Messages
		if r.Sampling, err = sampling(ask.Request); err != nil {
			return a, err
		}
		if tools := rules.ToolList(ask.Request.Tools); len(tools) > 0 {
			if r.Tools, err = json.Marshal(tools); err != nil {
				return a, err
			}
		}
		if r.LLMModel == "" {
			_, r.LLMModel = llm.SplitModel(ask.Request.Model)
		}
	}
	r.prompt, r.spans = len(a.Messages), resp.Spans
	if r.Messages, err = marshalConversation(a.Messages, resp); err != nil {
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

// asksOf returns the asks of an attempt in the order in which the world made them.
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

// envRecord is what the environment of an episode was made with, and what it said about each step.
type envRecord struct {
	Dataset json.RawMessage         // the row of the dataset, or nil
	Info    map[int]json.RawMessage // by step
}

// readEnvRecord reads the acts of a try.
func readEnvRecord(entries []journal.Entry, attempt, try int) envRecord {
	o := envRecord{Info: map[int]json.RawMessage{}}
	for _, e := range entries {
		r, ok := e.(*journal.Replied)
		if !ok || r.Act == nil || r.Attempt != attempt || r.Response == nil {
			continue
		}
		switch r.Act.Name {
		case rules.ActOpen:
			var opening rules.Opening
			var params struct{ Dataset json.RawMessage }
			if json.Unmarshal(r.Act.Body, &opening) == nil && opening.Try == try && json.Unmarshal(opening.Params, &params) == nil {
				o.Dataset = orNil(params.Dataset)
			}
		case rules.ActStep:
			var step rules.Stepping
			var stepped struct{ Info json.RawMessage }
			if json.Unmarshal(r.Act.Body, &step) == nil && step.Try == try && json.Unmarshal(r.Response.JSON, &stepped) == nil {
				o.Info[step.Step] = orNil(stepped.Info)
			}
		}
	}
	return o
}

// orNil returns a value, or nil if it says nothing.
func orNil(raw json.RawMessage) json.RawMessage {
	if text := string(raw); text == "" || text == "null" || text == "{}" {
		return nil
	}
	return raw
}

// sampling returns the parameters that an answer was drawn with, or nil if the request left all to the provider.
func sampling(r *llm.Request) (json.RawMessage, error) {
	b, err := json.Marshal(struct {
		Temperature      *float64   `json:"temperature,omitempty"`
		TopP             *float64   `json:"top_p,omitempty"`
		TopK             *int       `json:"top_k,omitempty"`
		MaxTokens        int        `json:"max_tokens,omitempty"`
		FrequencyPenalty *float64   `json:"frequency_penalty,omitempty"`
		PresencePenalty  *float64   `json:"presence_penalty,omitempty"`
		Seed             *int64     `json:"seed,omitempty"`
		Stop             []string   `json:"stop,omitempty"`
		Effort           llm.Effort `json:"effort,omitempty"`
	}{r.Temperature, r.TopP, r.TopK, r.MaxTokens, r.FrequencyPenalty, r.PresencePenalty, r.Seed, r.Stop, r.Effort})
	return orNil(b), err
}

// marshalConversation returns a prompt and its answer as a list of chat messages.
func marshalConversation(prompt []llm.Message, resp *llm.Response) (json.RawMessage, error) {
	said := any(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: resp.Text}}, ToolCalls: resp.ToolCalls})
	if resp.Text == "" && len(resp.ToolCalls) == 0 { // an empty answer has a content too
		said = map[string]string{"role": string(llm.RoleAssistant), "content": ""}
	}
	all := make([]any, 0, len(prompt)+1)
	for _, m := range prompt {
		all = append(all, m)
	}
	return json.Marshal(append(all, said))
}

// thoughts joins the thoughts of a model before its answer.
func thoughts(resp *llm.Response) string {
	var all []string
	for _, t := range resp.Thoughts {
		if t.Text != "" {
			all = append(all, t.Text)
		}
	}
	return validText(strings.Join(all, "\n"))
}

// validText replaces invalid UTF-8 by U+FFFD, which every format can hold.
func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// findJudgements finds the places of judgements: of a judge that compares the episodes of a group. Judgements
// are episodes of their own, in a later stage.
func (s *stage) findJudgements() error {
	s.judgements = map[int]string{}
	for i, spec := range s.Specs.All() {
		name, judged, err := rules.JudgedGroupOf(spec)
		if err != nil {
			return err
		}
		if judged == rules.Judgement {
			s.judgements[i] = name
		}
	}
	return nil
}

// judge gives the members of a group their rewards. It reports whether the judgement has ended.
func (g *groupIndex) judge(ctx context.Context, src journal.Parts, of *Group) (ended bool, err error) {
	episode, planned := g.judgements[of.ID]
	if !planned {
		return false, nil
	}
	page, err := src.Planned(ctx, episode, 1)
	if err != nil || len(page) == 0 || page[0].Ended == nil {
		return false, err
	}
	outcome := page[0].Ended.Outcome
	verdicts := rules.ReadVerdicts(outcome)
	for _, t := range of.Members {
		i := slices.IndexFunc(verdicts, func(v rules.Verdict) bool { return v.Episode == t.Episode })
		switch {
		case t.Status == failed:
		case i < 0:
			t.unjudged(cmp.Or(outcome.Failed, "judge: it said nothing about the episode"))
		default:
			t.judged(verdicts[i])
		}
	}
	return true, nil
}

// judged adds what a judge gave to the last answer.
func (t *Trajectory) judged(v rules.Verdict) {
	t.Data.Verdicts = []rules.Verdict{v}
	t.Return[v.Seat] = v.Reward
	for i := range slices.Backward(t.Data.Rows) {
		if r := &t.Data.Rows[i]; r.Seat == v.Seat {
			r.StepReward += v.Reward - v.Environment
			r.Reward, r.NoReward = v.Reward, false
			return
		}
	}
}

// unjudged marks an episode whose reward is not known as failed.
func (t *Trajectory) unjudged(why string) {
	t.Status, t.Failed = failed, why
	for i := range t.Data.Rows {
		t.Data.Rows[i].Completed, t.Data.Rows[i].Trainable = false, false
	}
}

// verdict sets the parts of the reward of a row.
func (r *Row) verdict(t *Trajectory) {
	for _, v := range t.Data.Verdicts {
		if v.Seat == r.AgentID {
			r.EnvironmentReward, r.JudgeScore = &v.Environment, &v.Score
		}
	}
}

// gatewayKind is the kind of a gateway's record. Its episodes are the sessions of other programs. Nobody played
// them, so what the outcome of a rollout says about its answers is made from the calls and the closing score.
const gatewayKind = "gateway"

// numberedName is a session's name with a number at its end, such as task7-2.
var numberedName = regexp.MustCompile(`^(.+)-[0-9]+$`)

// sessionStage makes one stage of all sessions. Sessions are one group if their names differ only in the number at the end.
func sessionStage(stages []journal.Staged) (stage, error) {
	s := stage{shared: map[string][]int{}, sessions: true}
	for _, st := range stages {
		for i, spec := range st.Specs.All() {
			var p struct{ Session string }
			if err := json.Unmarshal(spec.Params, &p); err != nil {
				return s, fmt.Errorf("trajectory: episode %d: params: %w", st.First+i, err)
			}
			name := p.Session
			if m := numberedName.FindStringSubmatch(name); m != nil {
				name = m[1]
			}
			if s.shared[name] == nil {
				s.names = append(s.names, name)
			}
			s.shared[name] = append(s.shared[name], st.First+i)
		}
	}
	return s, nil
}

// session sets what a rollout's outcome would say: every answer, and the closing score "reward" for the last one. Without
// that score, nothing is trainable.
func (t *Trajectory) session(ended *journal.Ended, entries []journal.Entry) {
	var end struct{ Truncated bool }
	if raw, ok := ended.Outcome.Data.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &end) // otherwise it was not cut off
	}
	t.Data = rules.Data{Env: gatewayKind, Stop: rules.StopTerminated}
	switch {
	case t.Failed != "":
		t.Data.Stop = rules.StopFailed
	case end.Truncated:
		t.Data.Stop = rules.StopTruncated
	}
	t.Status = statusOf(ended.Outcome, t.Data)
	reward, paid := t.Return[""]
	delete(t.Return, "")
	for i, ask := range asksOf(entries, t.Attempt) {
		if ask.Response != nil {
			t.Data.Rows = append(t.Data.Rows, rules.Row{Ask: i, Step: len(t.Data.Rows) + 1, Seat: ask.Seat, Weights: ask.Response.WeightVersion, NoReward: !paid})
		}
	}
	t.Data.Steps = len(t.Data.Rows)
	if t.Data.Steps == 0 {
		return
	}
	last := &t.Data.Rows[t.Data.Steps-1]
	last.StepReward, last.Reward, last.Terminal, last.Truncated, last.Completed = reward, reward, true, end.Truncated, true
	last.Trainable = paid && t.Failed == ""
	if paid {
		t.Return[last.Seat] = reward
	}
}
