package training

import (
	"strconv"
)

// Shape is what a record is: a row of ours, or what another program reads.
type Shape string

// The shapes. Those after Sequences are JSON lines only.
const (
	Rows      Shape = "rows"      // answers, as Row
	Sequences Shape = "sequences" // parts with token ids, as Sequence
	TRLSFT    Shape = "trl-sft"   // conversations, for TRL's SFTTrainer
	TRLDPO    Shape = "trl-dpo"   // the best and the worst of a group, for TRL's DPOTrainer
	TRLGRPO   Shape = "trl-grpo"  // the prompts of groups, for TRL's GRPOTrainer
	Slime     Shape = "slime"     // parts, with the names of slime's Sample
	VeRL      Shape = "verl"      // parts, with the names of veRL's AgentLoopOutput
	AReaL     Shape = "areal"     // parts, with the names of AReaL's trajectories
	OpenAIFT  Shape = "openai-ft" // conversations, for OpenAI's fine-tuning
)

// Shapes lists them.
func Shapes() []Shape {
	return []Shape{Rows, Sequences, TRLSFT, TRLDPO, TRLGRPO, Slime, VeRL, AReaL, OpenAIFT}
}

// Tokens reports whether records of this shape are made of token ids.
func (s Shape) Tokens() bool {
	return s == Sequences || s == Slime || s == VeRL || s == AReaL
}

// Sequence is a part of an episode for training: prompt and answers of one agent as tokens.
type Sequence struct {
	Run     string  `json:"run" parquet:"run,dict"`
	Group   string  `json:"group" parquet:"group,dict"`
	Episode int     `json:"episode" parquet:"episode"`
	Attempt int     `json:"attempt" parquet:"attempt"`
	Agent   string  `json:"agent" parquet:"agent,dict"`   // the seat
	Policy  string  `json:"policy" parquet:"policy,dict"` // the agent
	Part    int     `json:"part" parquet:"part"`
	Reward  float64 `json:"reward" parquet:"reward"` // of the seat, in all
	// EnvironmentReward and JudgeScore are the parts of Reward, if there is a judge.
	EnvironmentReward *float64 `json:"environment_reward,omitempty" parquet:"environment_reward,optional"`
	JudgeScore        *float64 `json:"judge_score,omitempty" parquet:"judge_score,optional"`
	Status            string   `json:"status" parquet:"status,dict"`
	// Tokens, LossMask and Logprobs have one length. Logprobs is missing if the server did not return them.
	Tokens   []int     `json:"tokens" parquet:"tokens,list"`
	LossMask []int     `json:"loss_mask" parquet:"loss_mask,list"`
	Logprobs []float64 `json:"logprobs,omitempty" parquet:"logprobs,list"`
	// Starts, Versions and Rewards have one value for each answer, or for each part of one that was continued.
	Starts   []int     `json:"answer_starts" parquet:"answer_starts,list"`
	Versions []string  `json:"weight_versions,omitempty" parquet:"weight_versions,list"`
	Rewards  []float64 `json:"step_rewards" parquet:"step_rewards,list"`
}

// sequences returns the parts of a group that have token ids.
func sequences(g *Group) (all []Sequence) {
	for _, r := range g.parts() {
		if len(r.Tokens) > 0 {
			all = append(all, Sequence{
				Run: r.JobID, Group: r.GroupID, Episode: r.Episode, Attempt: r.Attempt, Agent: r.AgentID, Policy: r.PolicyID, Part: r.Part,
				Reward: r.Return, EnvironmentReward: r.EnvironmentReward, JudgeScore: r.JudgeScore, Status: r.Status, Tokens: r.Tokens, LossMask: r.LossMask, Logprobs: r.Logprobs,
				Starts: r.Starts, Versions: r.Versions, Rewards: r.Rewards,
			})
		}
	}
	return all
}

// parts returns the trainable rows of g, in order.
func (g *Group) parts() (all []*Row) {
	for _, m := range g.Members {
		for i := range m.Rows {
			if m.Rows[i].IsTrainable {
				all = append(all, &m.Rows[i])
			}
		}
	}
	return all
}

// shaped returns what another program reads of a group. It calls left with the reason for each record that is not made.
func shaped(g *Group, as Shape, left func(why string)) (all []any, err error) {
	switch as {
	case TRLSFT, OpenAIFT:
		return g.conversations().Whole(as == OpenAIFT)
	case TRLDPO:
		return g.conversations().Pairs(left)
	case TRLGRPO:
		return g.conversations().Prompts(g.ID, left)
	default:
		for _, s := range sequences(g) {
			all = append(all, s.shaped(as))
		}
	}
	return all, nil
}

// conversations returns the trainable parts of g.
func (g *Group) conversations() (all conversationGroup) {
	for _, m := range g.Members {
		var parts []conversationPart
		for i := range m.Rows {
			if r := &m.Rows[i]; r.IsTrainable {
				parts = append(parts, conversationPart{Seat: r.AgentID, Env: r.EnvName, Messages: r.Messages, Tools: r.Tools, Prompt: r.prompt, Return: r.Return})
			}
		}
		all = append(all, parts)
	}
	return all
}

// shaped returns s with the names of another program.
func (s *Sequence) shaped(as Shape) any {
	from := s.Starts[0] // everything after the first prompt is the response
	tail := func(of []float64) []float64 { return of[min(from, len(of)):] }
	switch as {
	case Slime:
		return map[string]any{
			"group_index": s.Group, "index": s.Episode, "tokens": s.Tokens, "response_length": len(s.Tokens) - from, "loss_mask": s.LossMask[from:],
			"rollout_log_probs": tail(s.Logprobs), "weight_versions": s.Versions, "reward": s.Reward, "status": s.Status,
			"metadata": map[string]any{"run": s.Run, "group": s.Group, "agent": s.Agent, "part": s.Part},
		}
	case VeRL:
		return map[string]any{
			"prompt_ids": s.Tokens[:from], "response_ids": s.Tokens[from:], "response_mask": s.LossMask[from:], "response_logprobs": tail(s.Logprobs),
			"reward_score": s.Reward, "num_turns": 2 * s.answers(), "uid": s.Group,
			"extra_fields": map[string]any{"run": s.Run, "episode": s.Episode, "agent": s.Agent, "part": s.Part, "weight_versions": s.Versions},
		}
	default: // AReaL
		return map[string]any{
			"input_ids": s.Tokens, "loss_mask": s.LossMask, "logprobs": s.Logprobs, "versions": s.versions(), "attention_mask": ones(len(s.Tokens)),
			"rewards": s.Reward, "group": s.Group, "episode": s.Episode, "part": s.Part,
		}
	}
}

// answers counts the answers. What follows a token that the model wrote is a part of an answer that was continued.
func (s *Sequence) answers() (n int) {
	for _, at := range s.Starts {
		if at == 0 || s.LossMask[at-1] == 0 {
			n++
		}
	}
	return n
}

// versions returns the version of each token: -1 for those that the model did not write, or whose version is no number.
func (s *Sequence) versions() []int {
	out := make([]int, len(s.Tokens))
	answer, version := -1, -1
	for i := range out {
		if answer+1 < len(s.Starts) && i == s.Starts[answer+1] {
			answer++
			version = -1
			if answer < len(s.Versions) {
				if v, err := strconv.Atoi(s.Versions[answer]); err == nil {
					version = v
				}
			}
		}
		if out[i] = -1; s.LossMask[i] == 1 {
			out[i] = version
		}
	}
	return out
}

func ones(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 1
	}
	return out
}
