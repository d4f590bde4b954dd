package training

import (
	"reflect"
	"slices"
	"testing"

	"parley/llm"
)

// answerOf returns an answer with tokens.
func answerOf(text string, prompt, tokens []int, before ...llm.Message) agentAnswer {
	r := &llm.Response{Text: text, PromptTokenIDs: prompt, TokenIDs: tokens}
	for _, id := range tokens {
		r.Logprobs = append(r.Logprobs, llm.Logprob{Logprob: -float64(id)})
	}
	return agentAnswer{Messages: before, Response: r}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	one := answerOf("b", []int{1, 2}, []int{3, 4}, llm.User("a"))
	two := answerOf("d", []int{1, 2, 3, 4, 5}, []int{6}, llm.User("a"), llm.Assistant("b"), llm.User("c"))
	drifted := answerOf("d", []int{1, 2, 34, 5}, []int{6}, llm.User("a"), llm.Assistant("b"), llm.User("c"))
	fresh := answerOf("y", []int{8}, []int{9}, llm.User("x"))
	silent := agentAnswer{Messages: []llm.Message{llm.User("a")}, Response: &llm.Response{Text: "b"}}
	went := agentAnswer{Messages: two.Messages, Response: &llm.Response{Text: "d"}}
	unsure := answerOf("b", []int{1, 2}, []int{3, 4}, llm.User("a"))
	unsure.Response.Logprobs = nil
	short := answerOf("b", []int{1, 2}, []int{3, 4}, llm.User("a"))
	short.Response.Logprobs = short.Response.Logprobs[:1]
	promptless := answerOf("b", nil, []int{3, 4})
	type gaps = map[llm.Gap]int
	parted := answerOf("b", []int{1, 2}, []int{3, 4}, llm.User("a"))
	parted.Response.Spans = []llm.Span{{Tokens: 1}, {Tokens: 1}}
	whole := tokenSequence{
		Tokens: []int{1, 2, 3, 4, 5, 6}, LossMask: []int{0, 0, 1, 1, 0, 1}, Logprobs: []float64{0, 0, -3, -4, 0, -6},
		Answers: []int{0, 1}, Starts: []int{2, 5},
	}
	first := tokenSequence{Tokens: []int{1, 2, 3, 4}, LossMask: []int{0, 0, 1, 1}, Logprobs: []float64{0, 0, -3, -4}, Answers: []int{0}, Starts: []int{2}}
	parts := whole
	parts.Starts = []int{2, 3, 5}
	blind := whole
	blind.Logprobs = nil
	for _, c := range []struct {
		name  string
		in    []agentAnswer
		want  []tokenSequence
		joins Joins
	}{
		{"nothing", nil, nil, Joins{}},
		{"whole", []agentAnswer{one, two}, []tokenSequence{whole}, Joins{Whole: 1}},
		{"other tokens of the same text", []agentAnswer{one, drifted}, []tokenSequence{first, {
			Tokens: []int{1, 2, 34, 5, 6}, LossMask: []int{0, 0, 0, 0, 1}, Logprobs: []float64{0, 0, 0, 0, -6}, Answers: []int{1}, Starts: []int{4},
		}}, Joins{Drift: 1}},
		{"another history", []agentAnswer{one, fresh}, []tokenSequence{first, {
			Tokens: []int{8, 9}, LossMask: []int{0, 1}, Logprobs: []float64{0, -9}, Answers: []int{1}, Starts: []int{1},
		}}, Joins{History: 1}},
		{"without ids", []agentAnswer{silent, silent}, []tokenSequence{{Answers: []int{0}}, {Answers: []int{1}}}, Joins{Gaps: gaps{llm.NoTokenIDs: 2}, History: 1}},
		{"without ids, continued", []agentAnswer{silent, went}, []tokenSequence{{Answers: []int{0, 1}}}, Joins{Gaps: gaps{llm.NoTokenIDs: 2}, Whole: 1}},
		{"ids from now on", []agentAnswer{silent, one}, []tokenSequence{{Answers: []int{0}}, {
			Tokens: first.Tokens, LossMask: first.LossMask, Logprobs: first.Logprobs, Answers: []int{1}, Starts: []int{2},
		}}, Joins{Gaps: gaps{llm.NoTokenIDs: 1}}},
		{"cut off and continued", []agentAnswer{parted, two}, []tokenSequence{parts}, Joins{Whole: 1}},
		{"one without log probabilities", []agentAnswer{unsure, two}, []tokenSequence{blind}, Joins{Gaps: gaps{llm.NoLogprobs: 1}, Whole: 1}},
		{"one with too few log probabilities", []agentAnswer{short, two}, []tokenSequence{blind}, Joins{Gaps: gaps{llm.UnevenLogprobs: 1}, Whole: 1}},
		{"without ids of the prompt", []agentAnswer{promptless}, []tokenSequence{{Answers: []int{0}}}, Joins{Gaps: gaps{llm.NoPromptIDs: 1}}},
		{"negative ids", []agentAnswer{answerOf("b", []int{1, -2}, []int{3}), answerOf("b", []int{1}, []int{-3})}, []tokenSequence{{Answers: []int{0}}, {Answers: []int{1}}}, Joins{Gaps: gaps{llm.NegativeIDs: 2}, History: 1}},
	} {
		got, joins := joinAnswers(c.in)
		if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(joins, c.joins) {
			t.Errorf("%s: %+v %+v\nwant %+v %+v", c.name, got, joins, c.want, c.joins)
		}
	}
}

// FuzzJoin: whatever a server returns, every answer with ids is in one sequence, unchanged.
func FuzzJoin(f *testing.F) {
	f.Add([]byte{2, 1, 1, 2, 3, 3, 1, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		var answers []agentAnswer
		take := func(n int) (ids []int) {
			for range n {
				if len(b) == 0 {
					break
				}
				ids, b = append(ids, int(b[0]%3)), b[1:]
			}
			return ids
		}
		for len(b) > 2 {
			p, n := int(b[0]%9), int(b[1]%3)
			b = b[2:]
			answers = append(answers, answerOf("x", take(p), take(n)))
		}
		all, joins := joinAnswers(answers)
		seen := 0
		for _, s := range all {
			written := 0
			seen += len(s.Answers)
			if s.Tokens == nil {
				continue
			}
			for k, i := range s.Answers {
				r := answers[i].Response
				from, to := s.Starts[k], s.Starts[k]+len(r.TokenIDs)
				if !slices.Equal(s.Tokens[from:to], r.TokenIDs) || !slices.Equal(s.Tokens[:from], r.PromptTokenIDs) || slices.Contains(s.LossMask[from:to], 0) {
					t.Fatalf("answer %d in %+v", i, s)
				}
				written += len(r.TokenIDs)
			}
			sum := 0
			for _, m := range s.LossMask {
				sum += m
			}
			if sum != written || len(s.LossMask) != len(s.Tokens) || len(s.Logprobs) != len(s.Tokens) {
				t.Fatalf("%+v", s)
			}
		}
		if seen != len(answers) || joins.Whole != seen-len(all) {
			t.Fatalf("%d answers, %d in sequences, %+v", len(answers), seen, joins)
		}
	})
}
