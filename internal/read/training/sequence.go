package training

import (
	"reflect"
	"slices"

	"parley/llm"
)

// agentAnswer is one answer of an agent, and the prompt that it answers.
type agentAnswer struct {
	Messages []llm.Message
	Response *llm.Response

	gap     llm.Gap // of Response
	foreign bool    // the agent's model did not say it to this prompt: nothing is trained on it
}

// known reports whether the server returned token ids that can be used.
func (a *agentAnswer) known() bool { return !a.gap.Unusable() }

// tokenSequence is a prompt and the answers that continue it, as one list of tokens with a mask over what the
// model wrote. The token ids are exactly those that the server returned.
type tokenSequence struct {
	// Tokens and LossMask, which is 1 for the tokens of answers, are nil if the server returned no ids that can be used. Then messages decide whether an answer continues another.
	Tokens, LossMask []int
	// Logprobs has one number for each token: 0 for those that the model did not write. It is nil if the server
	// did not return them for every answer.
	Logprobs []float64
	// Answers are the answers in it, by their places in the list that was joined.
	Answers []int
	// Starts is where in Tokens each answer begins, and each part of an answer that was cut off and continued.
	Starts []int

	foreign bool
}

// Joins counts how answers followed each other.
type Joins struct {
	// Whole is how often a prompt began with everything that came before.
	Whole int `json:"whole"`
	// History is how often the messages themselves did not continue: the history was cut or changed.
	History int `json:"history"`
	// Drift is how often the messages continued but their tokens did not: a template rewrites what came before,
	// or the text of an answer has other tokens than the model wrote.
	Drift int `json:"drift"`
	// Foreign is how many answers another model gave, or had to be repaired. They are not trained on.
	Foreign int `json:"foreign,omitempty"`
	// Gaps is how many answers cannot be trained on as tokens, or have no log probabilities, by reason.
	Gaps map[llm.Gap]int `json:"gaps,omitempty"`
}

// Add adds the counts of o.
func (j *Joins) Add(o Joins) {
	j.Whole += o.Whole
	j.History += o.History
	j.Drift += o.Drift
	j.Foreign += o.Foreign
	for gap, n := range o.Gaps {
		j.lacks(gap, n)
	}
}

func (j *Joins) lacks(gap llm.Gap, n int) {
	if j.Gaps == nil {
		j.Gaps = map[llm.Gap]int{}
	}
	j.Gaps[gap] += n
}

// joinAnswers makes sequences of the answers of one agent, given in the order in which it gave them. Every answer
// is in exactly one sequence. It continues the latest sequence with all of which its prompt begins; if there is none, a new
// sequence begins, and joins counts why.
func joinAnswers(answers []agentAnswer) (all []tokenSequence, joins Joins) {
	for i := range answers {
		a := &answers[i]
		if a.gap = llm.Of(a.Response); a.gap != "" {
			joins.lacks(a.gap, 1)
		}
		if a.foreign {
			joins.Foreign++
			all = append(all, tokenSequence{Answers: []int{i}, foreign: true})
			continue
		}
		at, ok := joins.follow(answers, a, all)
		if !ok {
			all = append(all, tokenSequence{})
		}
		all[at].add(i, a)
	}
	for i := range all {
		if len(all[i].Logprobs) != len(all[i].Tokens) {
			all[i].Logprobs = nil
		}
	}
	return all, joins
}

// maxOpen is how many sequences an answer may continue: several conversations of one seat take turns.
const maxOpen = 32

// follow returns the sequence that a continues, and counts how. Without one it is the next.
func (j *Joins) follow(answers []agentAnswer, a *agentAnswer, all []tokenSequence) (at int, ok bool) {
	var latest *agentAnswer
	for i := len(all) - 1; i >= max(0, len(all)-maxOpen); i-- {
		s := &all[i]
		if s.foreign {
			continue
		}
		last := &answers[s.Answers[len(s.Answers)-1]]
		if latest == nil {
			latest = last
		}
		if last.known() == a.known() && (a.known() && begins(a.Response.PromptTokenIDs, s.Tokens) || !a.known() && continues(last, a)) {
			j.Whole++
			return i, true
		}
	}
	switch {
	case latest == nil || latest.known() != a.known():
	case continues(latest, a):
		j.Drift++
	default:
		j.History++
	}
	return len(all), false
}

func begins(all, with []int) bool {
	return len(all) >= len(with) && slices.Equal(all[:len(with)], with)
}

// add appends an answer whose prompt begins with s.
func (s *tokenSequence) add(i int, a *agentAnswer) {
	s.Answers = append(s.Answers, i)
	if !a.known() {
		return
	}
	r := a.Response
	known := len(s.Logprobs) == len(s.Tokens) && a.gap == ""
	at := len(r.PromptTokenIDs)
	s.Starts = append(s.Starts, at)
	for i, span := range r.Spans {
		if at += span.Tokens; i+1 < len(r.Spans) {
			s.Starts = append(s.Starts, at)
		}
	}
	s.Tokens = append(append(s.Tokens, r.PromptTokenIDs[len(s.Tokens):]...), r.TokenIDs...)
	s.LossMask = append(s.LossMask, make([]int, len(s.Tokens)-len(s.LossMask))...)
	for n := range r.TokenIDs {
		s.LossMask[len(r.PromptTokenIDs)+n] = 1
	}
	if !known {
		return
	}
	s.Logprobs = append(s.Logprobs, make([]float64, len(r.PromptTokenIDs)-len(s.Logprobs))...)
	for _, p := range r.Logprobs {
		s.Logprobs = append(s.Logprobs, p.Logprob)
	}
}

// continues reports whether the prompt of b begins with the prompt of a and what a answered.
func continues(a, b *agentAnswer) bool {
	n := len(a.Messages)
	if len(b.Messages) <= n {
		return false
	}
	for i := range n {
		if !reflect.DeepEqual(a.Messages[i], b.Messages[i]) {
			return false
		}
	}
	said := b.Messages[n]
	return said.Role == llm.RoleAssistant && said.Text() == a.Response.Text && slices.Equal(said.ToolCalls, a.Response.ToolCalls)
}
