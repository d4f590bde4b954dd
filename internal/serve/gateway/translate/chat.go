package translate

import (
	"encoding/json"
	"strings"

	"parley/internal/dialect/wire/body"
	"parley/internal/wire/sse"
	"parley/llm"
)

// chatReader reads the chunks of a chat completion.
type chatReader struct{}

type chatChunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content          *string `json:"content"`
			Refusal          *string `json:"refusal"`
			ReasoningContent *string `json:"reasoning_content"`
			Reasoning        *string `json:"reasoning"`
			ToolCalls        []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

// Read reads a chunk. What is none says nothing.
func (chatReader) Read(e sse.Event) (out []Delta) {
	var c chatChunk
	if json.Unmarshal(e.Data, &c) != nil {
		return nil
	}
	for i := range c.Choices {
		if c.Choices[i].Index != 0 {
			continue
		}
		d := &c.Choices[i].Delta
		thought := d.ReasoningContent
		if thought == nil {
			thought = d.Reasoning
		}
		if step := (Delta{Text: value(d.Content), Thought: value(thought), Refusal: value(d.Refusal)}); step != (Delta{}) {
			out = append(out, step)
		}
		for _, t := range d.ToolCalls {
			out = append(out, Delta{Call: t.Index, ID: t.ID, Name: t.Function.Name, Arguments: t.Function.Arguments})
		}
	}
	return out
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// chatWriter writes chunks.
type chatWriter struct{ meta Meta }

func (w *chatWriter) envelope(b []byte, object string) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", w.meta.ID), "object", object)
	return body.Str(body.Int(b, "created", w.meta.Created), "model", w.meta.Model)
}

func (w *chatWriter) chunk(b []byte, finish string, delta func([]byte) []byte) []byte {
	b = w.envelope(append(b, "data: "...), "chat.completion.chunk")
	b = append(b, `,"choices":[{"index":0,"delta":{`...)
	b = append(delta(b), '}')
	b = nullable(b, "finish_reason", finish)
	return append(b, "}]}\n\n"...)
}

// Begin says whose words follow.
func (w *chatWriter) Begin(b []byte) []byte {
	return w.chunk(b, "", func(b []byte) []byte { return body.Str(body.Str(b, "role", "assistant"), "content", "") })
}

// Add writes a chunk.
func (w *chatWriter) Add(b []byte, d Delta) []byte {
	return w.chunk(b, "", func(b []byte) []byte {
		switch {
		case d.isCall():
			b = body.Int(append(b, `"tool_calls":[{`...), "index", int64(d.Call))
			if d.ID != "" || d.Name != "" {
				b = body.Str(body.Str(b, "id", d.ID), "type", "function")
			}
			b = append(body.Key(b, "function"), '{')
			if d.Name != "" {
				b = body.Str(b, "name", d.Name)
			}
			return append(body.Str(b, "arguments", d.Arguments), "}}]"...)
		case d.Refusal != "":
			return body.Str(b, "refusal", d.Refusal)
		case d.Text != "":
			return body.Str(b, "content", d.Text)
		default:
			return body.Str(b, "reasoning_content", d.Thought)
		}
	})
}

// End writes the reason to stop, the usage where it is wanted, and the mark of the end.
func (w *chatWriter) End(b []byte, r *llm.Response) []byte {
	b = w.chunk(b, chatFinish(r), func(b []byte) []byte { return b })
	if w.meta.Usage {
		b = w.envelope(append(b, "data: "...), "chat.completion.chunk")
		b = append(b, `,"choices":[]`...)
		b = append(chatUsage(b, r.Usage), "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func appendChat(b []byte, m Meta, r *llm.Response) []byte {
	w := chatWriter{meta: m}
	b = w.envelope(b, "chat.completion")
	b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant"`...)
	if r.Text == "" && len(r.ToolCalls) > 0 {
		b = append(b, `,"content":null`...)
	} else {
		b = body.Str(b, "content", r.Text)
	}
	b = nullable(b, "refusal", r.Refusal)
	if words := thoughts(r); words != "" {
		b = body.Str(b, "reasoning_content", words)
	}
	if len(r.ToolCalls) > 0 {
		b = body.Open(body.Key(b, "tool_calls"), '[')
		for _, c := range r.ToolCalls {
			b = body.Str(body.Str(body.Open(b, '{'), "id", c.ID), "type", "function")
			b = append(body.Key(b, "function"), '{')
			b = append(body.Str(body.Str(b, "name", c.Name), "arguments", c.Arguments), '}', '}')
		}
		b = append(b, ']')
	}
	b = append(b, `},"logprobs":null`...)
	b = append(body.Str(b, "finish_reason", chatFinish(r)), '}', ']')
	return append(chatUsage(b, r.Usage), '}')
}

func thoughts(r *llm.Response) string {
	var words strings.Builder
	for _, t := range r.Thoughts {
		words.WriteString(t.Text)
	}
	return words.String()
}

func nullable(b []byte, key, s string) []byte {
	if s == "" {
		return append(body.Key(b, key), "null"...)
	}
	return body.Str(b, key, s)
}

func chatFinish(r *llm.Response) string {
	switch r.Finish {
	case llm.FinishLength:
		return "length"
	case llm.FinishTools:
		return "tool_calls"
	case llm.FinishRefused:
		return "content_filter"
	default:
		return "stop"
	}
}

func chatUsage(b []byte, u llm.Usage) []byte {
	b = append(body.Key(b, "usage"), '{')
	b = body.Int(body.Int(b, "prompt_tokens", int64(u.Input)), "completion_tokens", int64(u.Output))
	b = body.Int(b, "total_tokens", int64(u.Total()))
	b = append(body.Int(append(body.Key(b, "prompt_tokens_details"), '{'), "cached_tokens", int64(u.Cached)), '}')
	b = append(body.Int(append(body.Key(b, "completion_tokens_details"), '{'), "reasoning_tokens", int64(u.Reasoning)), '}')
	return append(b, '}')
}
