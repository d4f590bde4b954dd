package journaltest

import (
	"encoding/json"
	"time"

	"parley/llm"
)

func (g *generator) request() *llm.Request {
	q := &llm.Request{
		Model: "sim/small", Temperature: g.float(), TopP: g.float(), FrequencyPenalty: g.float(), PresencePenalty: g.float(),
		MaxTokens: g.IntN(3) * 100, Sample: g.IntN(1 << 30), Prefix: g.IntN(3), Order: g.Int64() - g.Int64(), Deadline: time.Duration(g.IntN(3)) * time.Second,
		Logprobs: g.IntN(2) > 0, TopLogprobs: g.IntN(3), TokenIDs: g.IntN(5) == 0, OneTool: g.IntN(5) == 0,
	}
	for range g.IntN(6) {
		q.Messages = append(q.Messages, g.message())
	}
	if g.IntN(3) == 0 {
		q.Schema = &llm.Schema{Name: "move", Description: g.utf(), JSON: json.RawMessage(`{"type":"object","title":"<x>"}`)}
		q.Effort, q.Tier, q.Session = llm.EffortHigh, "flex", g.text()
		q.Fallbacks, q.Stop = []string{"sim/other"}, []string{"\n", "END"}
	}
	if g.IntN(3) == 0 {
		k, seed := g.IntN(9), g.Int64()
		q.TopK, q.Seed = &k, &seed
		q.Tools = []llm.Tool{{Name: "look", Description: g.utf(), Parameters: json.RawMessage(`{"type":"object"}`), Strict: true}}
		q.ToolChoice = "required"
		q.Extra = map[string]json.RawMessage{"b": json.RawMessage(`[1,2]`), "a": json.RawMessage(`"x"`)}
	}
	return q
}

func (g *generator) message() llm.Message {
	roles := []llm.Role{llm.RoleSystem, llm.RoleUser, llm.RoleAssistant, llm.RoleTool, "odd"}
	m := llm.Message{Role: roles[g.IntN(len(roles))]}
	switch g.IntN(7) {
	case 0:
	case 1:
		m.Parts = []llm.Part{{Text: g.utf()}, {Image: &llm.Image{MediaType: "image/png", Data: []byte{1, 2, 3, byte(g.Uint32())}, Detail: "low"}}, {Text: g.utf()}}
	case 2:
		m.Parts = []llm.Part{{Image: &llm.Image{URL: "https://example.org/" + g.word()}}}
		m.ToolCallID, m.ToolFailed = g.utf(), true
	case 3:
		m.Parts = []llm.Part{{File: &llm.File{Name: g.utf(), MediaType: llm.MediaPDF, Data: []byte{9, byte(g.Uint32())}}}, {File: &llm.File{URL: "https://example.org/" + g.word(), MediaType: llm.MediaMP3}}}
	case 4:
		m.Parts = []llm.Part{{Text: g.text()}}
		m.Thoughts, m.ToolCalls = g.thoughts(), g.toolCalls()
	default:
		m.Parts = []llm.Part{{Text: g.text()}}
	}
	return m
}

func (g *generator) thoughts() []llm.Thought {
	if g.IntN(2) == 0 {
		return nil
	}
	return []llm.Thought{{Text: g.utf(), Signature: "s"}, {ID: "i", Opaque: g.utf()}}
}

func (g *generator) toolCalls() []llm.ToolCall {
	if g.IntN(2) == 0 {
		return nil
	}
	return []llm.ToolCall{{ID: "c1", Name: "look", Arguments: `{"not": json`}, {ID: g.utf(), Name: "go", Arguments: g.utf()}}
}

func (g *generator) response() *llm.Response {
	a := &llm.Response{Text: g.text(), Finish: llm.FinishStop, Model: "small-2", Provider: "sim", ID: g.word(), RequestID: g.word(), Tier: g.word(), Usage: g.usage(), Metadata: g.metadata()}
	switch g.IntN(4) {
	case 0:
		a.Text = `{"move": "e4"}`
		a.JSON = json.RawMessage(a.Text)
	case 1:
		a.JSON = json.RawMessage(`1`)
		a.Usage.Audio = g.IntN(99)
	case 2:
		a.Refusal, a.Thoughts, a.ToolCalls, a.Dropped, a.WeightVersion = g.utf(), g.thoughts(), g.toolCalls(), []string{"top_k"}, "v9"
		a.TokenIDs, a.PromptTokenIDs = []int{1, g.IntN(1 << 30)}, []int{5}
		a.Spans = []llm.Span{{Tokens: 1, WeightVersion: "v9"}, {Tokens: 1}}
		a.Logprobs = []llm.Logprob{{Token: g.utf(), ID: 4, Logprob: -g.Float64(), Top: []llm.Logprob{{Token: "b", Logprob: -3}}}}
	}
	return a
}

func (g *generator) failure() *llm.Error {
	kinds := llm.Kinds()
	return &llm.Error{
		Kind: kinds[g.IntN(len(kinds))], Message: g.text(), Status: g.IntN(2) * 529, Code: g.word(), Provider: "sim", Model: g.word(),
		RequestID: g.word(), RetryAfter: time.Duration(g.IntN(9)) * time.Second, Final: g.IntN(2) > 0, Uncertain: g.IntN(2) > 0,
		Usage: g.usage(), Metadata: g.metadata(),
	}
}

func (g *generator) usage() llm.Usage {
	return llm.Usage{Input: g.IntN(9999), Cached: g.IntN(99), CacheWrite: g.IntN(99), CacheWriteLong: g.IntN(99), Output: g.IntN(999), Reasoning: g.IntN(99)}
}

func (g *generator) metadata() llm.Metadata {
	return llm.Metadata{
		Attempts: g.IntN(5), Cached: g.IntN(2) > 0, Coalesced: g.IntN(2) > 0, Estimated: g.IntN(2) > 0, Parsed: g.word(),
		Cost: llm.Money(g.Int64N(1 << 40)), FirstByte: time.Duration(g.Int64N(1 << 40)), Latency: time.Duration(g.Int64N(1 << 40)), Waited: time.Duration(g.Int64N(1 << 40)),
	}
}
