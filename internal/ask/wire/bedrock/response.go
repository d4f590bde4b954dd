package bedrock

import (
	"encoding/json"
	"errors"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
)

var errImageURL = errors.New("an image with an address: Bedrock wants its bytes")

// wireResponse is a whole answer.
type wireResponse struct {
	Output struct {
		Message struct {
			Content json.RawMessage `json:"content"` // a list of wireBlock
		} `json:"message"`
	} `json:"output"`
	Stop  string     `json:"stopReason"`
	Usage *wireUsage `json:"usage"`
	Tier  wireTier   `json:"serviceTier"`
}

type wireTier struct {
	Type string `json:"type"`
}

type wireBlock struct {
	Text      string `json:"text"`
	Reasoning *struct {
		Text struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoningText"`
		Redacted string `json:"redactedContent"`
	} `json:"reasoningContent"`
	ToolUse *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
}

type wireUsage struct {
	Input  int `json:"inputTokens"`
	Output int `json:"outputTokens"`
	Read   int `json:"cacheReadInputTokens"`
	Write  int `json:"cacheWriteInputTokens"`
}

// usage returns the counts as llm.Usage has them. The format's input does not include what the cache read or wrote.
func (u *wireUsage) usage() llm.Usage {
	if least := min(u.Input, u.Output, u.Read, u.Write); least < 0 {
		return llm.Usage{Input: least}
	}
	return llm.Usage{Input: llm.AddTokens(u.Input, llm.AddTokens(u.Read, u.Write)), Cached: u.Read, CacheWrite: u.Write, Output: u.Output}
}

// wireEvent is the payload of any event.
type wireEvent struct {
	Index int `json:"contentBlockIndex"`
	Start struct {
		ToolUse *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta struct {
		Text    string `json:"text"`
		ToolUse *struct {
			Input string `json:"input"`
		} `json:"toolUse"`
		Reasoning *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
			Redacted  string `json:"redactedContent"`
		} `json:"reasoningContent"`
	} `json:"delta"`
	Stop  string     `json:"stopReason"`
	Usage *wireUsage `json:"usage"`
	Tier  wireTier   `json:"serviceTier"`
}

// DecodeResponse reads a whole answer.
func DecodeResponse(b []byte) (*llm.Response, error) {
	var w wireResponse
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fault.Malformed("the answer is not one of Converse", err)
	}
	a := Assembler{stop: w.Stop, done: true}
	if err := a.Decode(w.Output.Message.Content, "that of Converse", readBlock); err != nil {
		return nil, err
	}
	if w.Usage != nil {
		a.r.Usage = w.Usage.usage()
	}
	a.r.Tier = w.Tier.Type
	return a.Response()
}

func readBlock(raw []byte) (openai.Block, error) {
	var c wireBlock
	err := json.Unmarshal(raw, &c)
	switch {
	case c.ToolUse != nil:
		one := openai.Block{Kind: openai.CallBlock, ID: c.ToolUse.ID, Name: c.ToolUse.Name}
		if !body.IsNull(c.ToolUse.Input) {
			one.Text = string(c.ToolUse.Input)
		}
		return one, err
	case c.Reasoning != nil:
		t := &c.Reasoning.Text
		return openai.Block{Kind: openai.ThoughtBlock, Text: t.Text, Signature: t.Signature, Opaque: c.Reasoning.Redacted}, err
	}
	return openai.Block{Kind: openai.TextBlock, Text: c.Text}, err
}

// Assembler assembles an answer from its events.
type Assembler struct {
	openai.Blocks
	r    llm.Response
	stop string
	done bool // the last event came, or the answer was not streamed
}

// Event adds an event.
func (a *Assembler) Event(e sse.Event) (bool, error) {
	name := string(e.Name)
	if strings.HasSuffix(name, "Exception") {
		return false, exception(name, e.Data)
	}
	var w wireEvent
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return false, fault.Malformed("an event of the stream is not one of ConverseStream", err)
	}
	switch name {
	case "contentBlockStart", "contentBlockDelta":
		return false, a.add(&w)
	case "messageStop":
		a.stop = w.Stop
	case "metadata": // the last event
		if w.Usage != nil {
			a.r.Usage = a.r.Usage.Max(w.Usage.usage())
		}
		a.r.Tier, a.done = w.Tier.Type, true
		return true, nil
	}
	return false, nil
}

// exception returns the error that an exception describes.
func exception(name string, payload []byte) error {
	var w struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(payload, &w) != nil || w.Message == "" {
		w.Message = "the stream ended with an exception"
	}
	b := body.Str(body.Str([]byte{'{'}, "code", name), "message", w.Message)
	return fault.Classify(0, nil, append(b, '}'))
}

// add begins a block, or adds to it. Only that of a tool call begins with an event of its own.
func (a *Assembler) add(w *wireEvent) error {
	d, opaque := openai.Delta{Text: w.Delta.Text}, ""
	first := openai.Block{Kind: openai.TextBlock}
	switch call, r := w.Delta.ToolUse, w.Delta.Reasoning; {
	case w.Start.ToolUse != nil:
		first = openai.Block{Kind: openai.CallBlock, ID: w.Start.ToolUse.ID, Name: w.Start.ToolUse.Name}
	case call != nil:
		d = openai.Delta{Arguments: call.Input}
	case r != nil:
		d, opaque = openai.Delta{Thought: r.Text, Signature: r.Signature}, r.Redacted
	}
	if w.Index == a.Len() {
		if err := a.Begin(first); err != nil {
			return err
		}
	}
	if w.Delta.Reasoning != nil {
		a.Think(w.Index)
	}
	return a.Add(w.Index, d, opaque)
}

// Response returns the answer, or an error if it is incomplete.
func (a *Assembler) Response() (*llm.Response, error) {
	if a.stop == "" || !a.done {
		return nil, fault.Malformed("the answer ended without its stopReason or usage: it is incomplete", nil)
	}
	r := &a.r
	a.Fill(r)
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded":
		r.Finish = llm.FinishLength
	case "tool_use":
		r.Finish = llm.FinishTools
	case "guardrail_intervened", "content_filtered":
		r.Finish, r.Refusal = llm.FinishRefused, "the answer was blocked: "+a.stop
	case "malformed_tool_use", "malformed_model_output":
		return nil, fault.Malformed("the model's answer is not valid: "+a.stop, nil)
	default:
		r.Finish = llm.FinishStop
	}
	return r, nil
}
