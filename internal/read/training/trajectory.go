// Package training has the training data of any run: it reads rows from a run file, and writes them for other programs.
// docs/how-to/train.md describes them.
//
// A seat of an episode is what is trained, and a score is its reward. Kinds that know more, such as rewards of steps or names of
// groups, say it as a part.Rewarder and a part.Grouper; the package knows no kind.
//
// It promises that every answer of an episode that ended is in exactly one row; that prompts, answers, token ids and log
// probabilities are the recorded ones; that every token with mask 1 was sampled by the model at that position, and is in one
// trainable row; that a group is returned once, when all its episodes have ended; that dropped groups are counted by reason; and
// that the same run gives the same rows, all at once in planned order (Each, Write) or one by one as groups become complete
// (Index). It holds one group in memory, and a few numbers for each episode.
//
// trajectory.go makes rows of an episode, sequence.go joins answers, groups.go finds groups, and shape.go writes the records that
// other programs read.
package training

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/run/planner"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// Status is how an episode ended.
type Status string

// The statuses.
const (
	completed Status = "completed"
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
	// Return is what each seat was paid in all.
	Return map[string]float64
	// Advantage is how much better each seat that is trained did than in the other episodes of the group.
	Advantage map[string]float64
	Rows      []Row
	// Joins counts how the answers of each seat followed each other.
	Joins Joins

	rewards part.Rewards
	byStep  bool          // the kind says what each answer is worth
	outcome world.Outcome // for the kind
	asks    asks          // that the answers are of, if they were read
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

// about is what the rows of a run have in common.
type about struct {
	run, kind string
	// chosen is the score that the plan trains on, and reward the one that is the reward: the kind's own if none is chosen.
	chosen, reward string
	staleness      int // the most versions between the answers of an episode; -1: any
	agents         map[string]world.Agent
	rewarder       part.Rewarder // nil: a score at the end is the reward
	grouper        part.Grouper  // nil: groups are the episodes of a cell and a deal
	recorded       bool          // nobody played the episodes
}

// newAbout reads how a run began. The kind may be unknown.
func newAbout(begun *journal.Begun, kind world.Kind) about {
	var plan struct{ Train planner.Train }
	_ = json.Unmarshal(begun.Plan, &plan) // a record has another plan
	a := about{run: begun.Run, kind: begun.Kind, chosen: plan.Train.Reward, staleness: -1, agents: map[string]world.Agent{}}
	if a.reward = a.chosen; a.reward == "" {
		a.reward = planner.DefaultReward(begun.Measures)
	}
	if plan.Train.MaxStaleness != nil {
		a.staleness = *plan.Train.MaxStaleness
	}
	for _, agent := range begun.Agents {
		a.agents[agent.Name] = agent
	}
	a.rewarder, _ = world.As[part.Rewarder](kind)
	a.grouper, _ = world.As[part.Grouper](kind)
	_, a.recorded = world.As[part.Recorded](kind)
	return a
}

// groupOf returns the group of an episode.
func (a *about) groupOf(spec world.Spec) (part.TrainingGroup, error) {
	if a.grouper != nil {
		return a.grouper.TrainingGroup(spec)
	}
	name := a.kind + ":" + strconv.Itoa(spec.Deal+1)
	if spec.Cell != "" {
		name = spec.Cell + " " + name
	}
	return part.TrainingGroup{Name: name}, nil
}

// trajectoryOf returns the trajectory of an episode that ended, without its rows. entries reads its replies.
func (a *about) trajectoryOf(p runfile.Listed, entries func() ([]journal.Entry, error)) (*Trajectory, error) {
	ended := p.Ended
	t := &Trajectory{Episode: ended.Episode, Attempt: ended.Attempt, Failed: ended.Outcome.Failed, Return: map[string]float64{}, outcome: ended.Outcome}
	score := a.reward
	if a.rewarder != nil {
		r, err := a.rewarder.Rewards(ended.Outcome)
		if err != nil {
			return nil, fmt.Errorf("trajectory: episode %d: outcome: %w", ended.Episode, err)
		}
		if t.byStep = a.chosen == "" || a.chosen == r.Score; t.byStep {
			t.rewards, score = r, r.Score
		}
	}
	for _, s := range ended.Outcome.Scores {
		if s.Name == score && !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			t.Return[s.Seat] = s.Value
		}
	}
	if !t.byStep {
		all, err := entries()
		if err != nil {
			return nil, err
		}
		a.rewardAtEnd(t, p.Spec, all)
	}
	switch {
	case t.Failed != "":
		t.Status = failed
	case t.rewards.Truncated:
		t.Status = truncated
	default:
		t.Status = completed
	}
	return t, nil
}

// rewardAtEnd makes every answer of a model a row, and the score of a seat, or that of the episode, the reward of its last one. A seat
// without a score is not trained.
func (a *about) rewardAtEnd(t *Trajectory, spec world.Spec, entries []journal.Entry) {
	var end struct{ Truncated bool }
	if raw, ok := t.outcome.Data.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &end) // otherwise it was not cut off
	}
	whole, ofAll := t.Return[""]
	delete(t.Return, "")
	t.asks = asksOf(entries, t.Attempt)
	t.asks.replies = slices.DeleteFunc(t.asks.replies, func(r *journal.Replied) bool { return r.Response == nil })
	r := part.Rewards{Stop: "terminated", Truncated: end.Truncated}
	trains, last := a.trains(spec), map[string]int{}
	for i, ask := range t.asks.replies {
		last[ask.Seat] = i
		if _, paid := t.Return[ask.Seat]; !paid && ofAll {
			t.Return[ask.Seat] = whole
		}
		r.Answers = append(r.Answers, part.Answer{Ask: i, Step: i + 1, Seat: ask.Seat, Weights: ask.Response.WeightVersion})
	}
	if why := a.stale(t.asks.replies, trains); why != "" && t.Failed == "" {
		t.Failed = why
	}
	switch {
	case t.Failed != "":
		r.Stop = string(failed)
	case end.Truncated:
		r.Stop = string(truncated)
	}
	for i := range r.Answers {
		one := &r.Answers[i]
		reward, paid := t.Return[one.Seat]
		one.NoReward = !paid
		if i == last[one.Seat] {
			good := t.Failed == ""
			one.StepReward, one.Reward, one.Terminal, one.Truncated, one.Completed = reward, reward, good, good && end.Truncated, good
			one.Trainable = good && paid && trains(one.Seat)
		}
	}
	t.rewards = r
}

// trains returns which seats are trained: those of marked agents or, if none is marked, all.
func (a *about) trains(spec world.Spec) func(seat string) bool {
	marked := map[string]bool{}
	for seat, agent := range spec.Lineup {
		if a.agents[agent].Trainable {
			marked[seat] = true
		}
	}
	return func(seat string) bool { return len(marked) == 0 || marked[seat] }
}

// stale says that the weights that answered for trained seats are too far apart, or "". A version that is no number does not count.
func (a *about) stale(replies []*journal.Replied, trains func(string) bool) string {
	var all []int
	for _, r := range replies {
		if v, ok := part.WeightNumber(r.Response.WeightVersion); ok && trains(r.Seat) {
			all = append(all, v)
		}
	}
	if a.staleness < 0 || len(all) == 0 || slices.Max(all)-slices.Min(all) <= a.staleness {
		return ""
	}
	return fmt.Sprintf("weights: versions %d to %d answered: train.max_staleness is %d", slices.Min(all), slices.Max(all), a.staleness)
}

// foreign reports whether an answer is not what the agent's model said to the recorded prompt: a fallback answered, or the answer
// was repaired.
func (a *about) foreign(r *journal.Replied) bool {
	if r.Request == nil || r.Response == nil {
		return false
	}
	provider, model := llm.SplitModel(r.Request.Model)
	resp := r.Response
	if resp.Provider != "" && resp.Provider != provider || resp.Metadata.Parsed == "repaired" {
		return true
	}
	return resp.Model != model && slices.Contains(a.agents[r.Agent].Fallbacks, provider+"/"+resp.Model)
}

// asks are what an attempt asked models, in the order of a transcript.
type asks struct {
	// replies has the calls of a program in place of the question to it.
	replies []*journal.Replied
	first   []int // the place of each question of the world in replies, and the end
	turns   []*results.Turn
	// loose are calls of a program that was started again: some of them are not of the start that counts.
	loose map[*journal.Replied]bool
}

func asksOf(entries []journal.Entry, attempt int) (a asks) {
	a.turns = results.Turns(entries, attempt)
	inner := map[string][]*journal.Replied{}
	for _, t := range a.turns {
		if journal.OfProgram(t.Strand) {
			inner[t.Strand] = append(inner[t.Strand], t.Replies...)
		}
	}
	a.loose = map[*journal.Replied]bool{}
	for _, t := range a.turns {
		for _, r := range t.Replies {
			if r.Act != nil || journal.OfProgram(t.Strand) {
				continue
			}
			a.first = append(a.first, len(a.replies))
			if r.Request == nil || !journal.ByProgram(r.Request.Model) {
				a.replies = append(a.replies, r)
				continue
			}
			calls := inner[journal.ProgramStrand(r.Turn, r.Index)]
			var done world.Done
			known := r.Response != nil && json.Unmarshal(r.Response.JSON, &done) == nil
			for _, c := range calls {
				if c.Response != nil {
					a.replies = append(a.replies, c)
					a.loose[c] = known && len(calls) > done.Calls
				}
			}
		}
	}
	a.first = append(a.first, len(a.replies))
	return a
}

// expand makes the answers of t answers of models: that of a program becomes those to its calls, and the last of them has its reward.
func (t *Trajectory) expand(entries []journal.Entry) error {
	t.asks = asksOf(entries, t.Attempt)
	first := t.asks.first
	var out []part.Answer
	for _, r := range t.rewards.Answers {
		if r.Ask < 0 || r.Ask+1 >= len(first) {
			return fmt.Errorf("trajectory: episode %d: a row is of ask %d, and there are %d", t.Episode, r.Ask, len(first)-1)
		}
		from, to := first[r.Ask], first[r.Ask+1]
		for i := from; i < to; i++ {
			one := r
			if one.Ask = i; i+1 < to {
				one = part.Answer{Ask: i, Step: r.Step, Seat: r.Seat, Reward: r.Reward - r.StepReward, Weights: r.Weights}
			}
			out = append(out, one)
		}
	}
	t.rewards.Answers = out
	return nil
}

// rows adds the rows of t that f selects, and the joins of its answers.
func (s *stamp) rows(t *Trajectory, entries []journal.Entry, f Filter) error {
	var around part.Surroundings
	if t.byStep {
		if err := t.expand(entries); err != nil {
			return err
		}
		around = s.rewarder.Surroundings(t.outcome, t.asks.transcript())
	}
	rows := make([]Row, len(t.rewards.Answers))
	answers, places := map[string][]agentAnswer{}, map[string][]int{} // by seat
	for i, r := range t.rewards.Answers {
		reply := t.asks.replies[r.Ask]
		answer, err := rows[i].read(r, reply)
		if err != nil {
			return fmt.Errorf("trajectory: episode %d: %w", t.Episode, err)
		}
		answer.foreign = t.asks.loose[reply] || s.foreign(reply)
		row := &rows[i]
		row.JobID, row.Episode, row.Attempt = s.run, t.Episode, t.Attempt
		row.SessionID = fmt.Sprintf("%s-%d-%d", s.run, t.Episode, t.Attempt)
		row.GroupID, row.GroupSize = s.group, s.size
		row.EnvName, row.Status, row.Stop = cmp.Or(t.rewards.Env, s.kind), string(t.Status), t.rewards.Stop
		row.Failed = validText(t.Failed)
		row.verdict(t)
		row.Return, row.Info, row.Dataset = t.Return[r.Seat], orNil(around.Info[r.Step]), orNil(around.Dataset)
		if advantage, ok := t.Advantage[r.Seat]; ok {
			row.Advantage = &advantage
		}
		answers[r.Seat], places[r.Seat] = append(answers[r.Seat], answer), append(places[r.Seat], i)
	}
	for _, seat := range slices.Sorted(maps.Keys(answers)) {
		parts, joins := joinAnswers(answers[seat])
		if t.trains(seat) {
			t.Joins.Add(joins)
		}
		for n, part := range parts {
			completePart(rows, places[seat], n, part, t.trains(seat) && !part.foreign)
		}
	}
	t.Rows = slices.DeleteFunc(rows, func(r Row) bool { return f.Trainable && !r.IsTrainable || !f.earned(t, r.AgentID) })
	return nil
}

// transcript returns the calls of the attempt, for the kind.
func (a *asks) transcript() (all []world.TranscriptEntry) {
	for _, t := range a.turns {
		for _, e := range t.Replies {
			all = append(all, world.TranscriptEntry{Turn: t.Name(), Seat: e.Seat, Agent: e.Agent, Label: e.Label, Act: e.Act, Reply: e.Reply()})
		}
	}
	return all
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
	return slices.ContainsFunc(t.rewards.Answers, func(r part.Answer) bool { return r.Seat == seat && r.Trainable })
}

// stamp is what all rows of a group share.
type stamp struct {
	*about
	group string
	size  int
}

// read fills the row of an answer.
func (r *Row) read(of part.Answer, ask *journal.Replied) (a agentAnswer, err error) {
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
		if len(ask.Request.Tools) > 0 {
			if r.Tools, err = marshalTools(ask.Request.Tools); err != nil {
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

// marshalTools writes tools in OpenAI's form.
func marshalTools(tools []llm.Tool) (json.RawMessage, error) {
	type wireTool struct {
		Type     string   `json:"type"`
		Function llm.Tool `json:"function"`
	}
	all := make([]wireTool, len(tools))
	for i, t := range tools {
		all[i] = wireTool{"function", t}
	}
	return json.Marshal(all)
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
		g, err := s.groupOf(spec)
		if err != nil {
			return err
		}
		if g.Judgement {
			s.judgements[i] = g.Name
		}
	}
	return nil
}

// judge gives the members of a group their rewards. It reports whether the judgement has ended.
func (g *Index) judge(ctx context.Context, src Source, of *Group) (ended bool, err error) {
	episode, planned := g.judgements[of.ID]
	if !planned {
		return false, nil
	}
	page, err := src.List(ctx, runfile.Listing{From: episode, Limit: 1, Lost: true})
	if err != nil || len(page) == 0 || page[0].Ended == nil {
		return false, err
	}
	outcome := page[0].Ended.Outcome
	given, err := g.rewarder.Rewards(outcome)
	if err != nil || outcome.Failed != "" {
		given.Verdicts = nil
	}
	for _, t := range of.Members {
		i := slices.IndexFunc(given.Verdicts, func(v part.Verdict) bool { return v.Episode == t.Episode })
		switch {
		case t.Status == failed:
		case i < 0:
			t.unjudged(cmp.Or(outcome.Failed, "judge: it said nothing about the episode"))
		default:
			t.judged(given.Verdicts[i])
		}
	}
	return true, nil
}

// judged adds what a judge gave to the last answer.
func (t *Trajectory) judged(v part.Verdict) {
	t.rewards.Verdicts = []part.Verdict{v}
	t.Return[v.Seat] = v.Reward
	for i := range slices.Backward(t.rewards.Answers) {
		if r := &t.rewards.Answers[i]; r.Seat == v.Seat {
			r.StepReward += v.Reward - v.Environment
			r.Reward, r.NoReward = v.Reward, false
			if math.IsInf(r.StepReward, 0) {
				r.StepReward = 0
				t.unjudged("judge: the reward is too large for a number")
			}
			return
		}
	}
}

// unjudged marks an episode whose reward is not known as failed.
func (t *Trajectory) unjudged(why string) {
	t.Status, t.Failed = failed, why
	for i := range t.rewards.Answers {
		t.rewards.Answers[i].Completed, t.rewards.Answers[i].Trainable = false, false
	}
}

// verdict sets the parts of the reward of a row.
func (r *Row) verdict(t *Trajectory) {
	for _, v := range t.rewards.Verdicts {
		if v.Seat == r.AgentID {
			r.EnvironmentReward, r.JudgeScore = &v.Environment, &v.Score
		}
	}
}
