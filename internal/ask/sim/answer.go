package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"parley/internal/ask/sim/jsongen"
	"parley/llm"
	"parley/world/part"
)

// The purposes of a case's generators.
const (
	forText = iota
	forThought
	forFault
)

// Answer is the answer of the model.
type Answer struct {
	Text    string
	Refusal string
	Thought string
	// ToolCalls have IDs without a prefix: each format adds its own.
	ToolCalls []llm.ToolCall
	Finish    llm.Finish
	Stop      string // the stop sequence that was met, or ""
	Output    int    // tokens, Reasoning included
	Reasoning int
	Fault     Fault // of the answer, or ""
}

// Answer makes up the answer to a case. It depends on nothing else.
func (b *Brain) Answer(c *Case) Answer {
	req := c.Request
	a := Answer{Finish: llm.FinishStop}
	r := c.rand(forText)
	fault := drawFault(b.content, hash(c.Digest).str("content").end())
	if fault == FaultRefuse {
		a.Refusal = "I will not help with that."
		a.Finish, a.Fault = llm.FinishRefused, fault
		a.Output = CountTokens(a.Refusal) + 1
		return a
	}
	b.think(&a, c)
	if text, calls, ok := b.askStandIns(c); ok {
		a.Text = text
		a.addCalls(c, calls)
	} else if n := c.callCount(r); n > 0 {
		a.callTools(c, r, n)
	} else if c.schema != nil {
		out := c.schema.schema.Append(make([]byte, 0, 256), r)
		if fault == faultBadJSON {
			out = spoil(out, c.rand(forFault))
			a.Fault = fault
		}
		a.Text = string(out)
	} else {
		a.Text = b.text(c, r)
	}
	a.cut(req)
	return a
}

// askStandIns asks the stand-ins, each with its own copy of the request.
func (b *Brain) askStandIns(c *Case) (text string, calls []llm.ToolCall, ok bool) {
	req := c.asked
	if n := len(req.Messages); c.Model == "echo" && n > 0 {
		return req.Messages[n-1].Text(), nil, true
	}
	for _, s := range b.cfg.StandIns {
		if caller, may := s.(part.ToolCaller); may && len(req.Tools) > 0 && req.ToolChoice != "none" {
			if calls, ok := caller.StandInCalls(c.Model, req.Clone(), c.Digest); ok {
				return "", calls, true
			}
		}
		if text, ok := s.StandIn(c.Model, req.Clone(), c.Digest); ok {
			return text, nil, true
		}
	}
	return "", nil, false
}

// addCalls adds the tool calls of a stand-in, with ids.
func (a *Answer) addCalls(c *Case, calls []llm.ToolCall) {
	for k, call := range calls {
		call.ID = callID(c, k)
		a.ToolCalls = append(a.ToolCalls, call)
		a.Finish = llm.FinishTools
	}
}

func callID(c *Case, k int) string { return fmt.Sprintf("%016x%02x", c.Digest, k) }

// text makes up plain text that mentions a word of the last message.
func (b *Brain) text(c *Case, r *rand.Rand) string {
	topic := ""
	if n := len(c.asked.Messages); n > 0 {
		topic = jsongen.Topic(r, c.asked.Messages[n-1].Text())
	}
	tokens := b.cfg.MinTokens + r.IntN(b.cfg.MaxTokens-b.cfg.MinTokens+1)
	switch c.Model {
	case "small":
		tokens = b.cfg.MinTokens + (tokens-b.cfg.MinTokens)/2
	case "large":
		tokens += tokens / 2
	}
	size := tokens * 5 // bytes, about
	out := append(make([]byte, 0, size+96), received(c.asked)...)
	out = b.words.AppendText(out, r, topic, size-40)
	return string(out)
}

// meanThought returns the mean number of reasoning tokens at an effort.
func meanThought(e llm.Effort) int {
	if e == "" {
		return 0
	}
	return map[llm.Effort]int{
		llm.EffortMinimal: 16, llm.EffortLow: 64, llm.EffortMedium: 256, llm.EffortHigh: 1024, llm.EffortXHigh: 2048, llm.EffortMax: 4096,
	}[e]
}

// think adds reasoning tokens, at most half of the limit.
func (b *Brain) think(a *Answer, c *Case) {
	mean := meanThought(c.Request.Effort)
	if mean == 0 {
		return
	}
	r := c.rand(forThought)
	a.Reasoning = mean/2 + r.IntN(mean+1)
	if limit := c.Request.MaxTokens; limit > 0 {
		a.Reasoning = min(a.Reasoning, limit/2)
	}
	a.Thought = string(b.words.AppendText(nil, r, "", min(a.Reasoning*4, 400)))
}

// callCount returns how many tools the answer calls.
func (c *Case) callCount(r *rand.Rand) int {
	req := c.asked
	if len(req.Tools) == 0 || req.ToolChoice == "none" {
		return 0
	}
	if req.ToolChoice == "" || req.ToolChoice == "auto" {
		often := 2 // of four
		if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == llm.RoleTool {
			often = 1 // so that conversations end
		}
		if r.IntN(4) >= often {
			return 0
		}
	}
	if req.OneTool || r.IntN(3) > 0 {
		return 1
	}
	return 2
}

// callTools adds n tool calls, with arguments that follow the tools' schemas.
func (a *Answer) callTools(c *Case, r *rand.Rand, n int) {
	forced := -1
	for i, t := range c.Request.Tools {
		if t.Name == c.Request.ToolChoice {
			forced, n = i, 1
		}
	}
	for k := range n {
		i := r.IntN(len(c.tools))
		if forced >= 0 {
			i = forced
		}
		args := "{}"
		if c.tools[i].schema != nil {
			args = string(c.tools[i].schema.Append(nil, r))
		}
		a.ToolCalls = append(a.ToolCalls, llm.ToolCall{
			ID: callID(c, k), Name: c.Request.Tools[i].Name, Arguments: args,
		})
	}
	a.Finish = llm.FinishTools
}

// cut ends the answer at the first stop sequence or at the token limit, and counts its tokens.
func (a *Answer) cut(req *llm.Request) {
	at := len(a.Text)
	for _, s := range req.Stop {
		if i := strings.Index(a.Text[:at], s); s != "" && i >= 0 {
			at, a.Stop = i, s
		}
	}
	a.Text = a.Text[:at]
	room := 1 << 30
	if req.MaxTokens > 0 {
		room = max(1, req.MaxTokens-a.Reasoning)
	}
	text, n := cutTokens(a.Text, room)
	for i := range a.ToolCalls {
		t := &a.ToolCalls[i]
		var k int
		n += CountTokens(t.Name)
		t.Arguments, k = cutTokens(t.Arguments, max(0, room-n))
		n += k
	}
	a.Output = a.Reasoning + min(n+1, room)
	if n >= room { // no room is left for the end token
		a.Finish = llm.FinishLength
		if len(text) < len(a.Text) {
			a.Stop = ""
		}
	}
	a.Text = text
}

// received says which files a request has, so that a plan can be tried without a model that reads them.
func received(req *llm.Request) string {
	documents, recordings := 0, 0
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch {
			case p.File == nil:
			case p.File.IsAudio():
				recordings++
			default:
				documents++
			}
		}
	}
	if documents+recordings == 0 {
		return ""
	}
	return fmt.Sprintf("I was given %s and %s. ", counted(documents, "document"), counted(recordings, "recording"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// spoil wraps a JSON answer into words or a fence, or breaks it, as models sometimes do.
func spoil(out []byte, r *rand.Rand) []byte {
	switch r.IntN(4) {
	case 0:
		return []byte("```json\n" + string(out) + "\n```")
	case 1:
		return []byte("Here is my answer:\n\n" + string(out) + "\n\nI hope this helps.")
	case 2:
		if i := bytes.LastIndexAny(out, "}]"); i > 1 && out[i-1] != '{' && out[i-1] != '[' {
			return []byte(string(out[:i]) + ",\n" + string(out[i:]))
		}
		return []byte("```\n" + string(out) + "\n```")
	default:
		return []byte("Let me think about {this} first.\n```json\n" + string(out) + "\n```\nDone.")
	}
}
