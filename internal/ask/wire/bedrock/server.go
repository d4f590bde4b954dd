package bedrock

import (
	"encoding/base64"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/eventstream"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// ReadMember reads a member of a request, and reports whether r holds all of it.
func ReadMember(r *request.Reader, key string, v []byte) bool { return reader{r}.read(key, v) }

type reader struct{ *request.Reader }

func (c reader) read(key string, v []byte) bool {
	switch key {
	case system:
		m := llm.Message{Role: llm.RoleSystem}
		ok := body.Elements(v, func(p []byte) bool {
			if request.Member(p, cachePoint) == nil {
				m.Parts = append(m.Parts, llm.Part{Text: request.Str(p, "text")})
			}
			return true
		})
		c.Request.Messages = append([]llm.Message{m}, c.Request.Messages...)
		return ok
	case messages:
		return c.List(key, v, "a list of messages", c.turn)
	case inference:
		return body.Members(v, c.inference)
	case tools:
		return c.tools(v)
	case output:
		s := request.Member(request.Member(request.Member(v, "textFormat"), "structure"), "jsonSchema")
		if text := request.Str(s, "schema"); text != "" {
			c.Request.Schema = &llm.Schema{Name: request.Str(s, "name"), JSON: []byte(text)}
		}
		c.Request.Effort = llm.Effort(request.Str(v, "effort"))
		return true
	case tier:
		c.Request.Tier = request.Str(v, "type")
		return true
	default:
		return false
	}
}

// turn reads a message. Each result of a tool in it becomes its own message, before the rest.
func (c reader) turn(_ int, b []byte) bool {
	m := llm.Message{Role: llm.RoleUser}
	if request.Str(b, "role") == "assistant" {
		m.Role = llm.RoleAssistant
	}
	ok := body.Elements(request.Member(b, "content"), func(p []byte) bool {
		if f := request.Member(p, "toolResult"); f != nil {
			r := llm.Message{Role: llm.RoleTool, ToolCallID: request.Str(f, "toolUseId"), ToolFailed: request.Str(f, "status") == "error"}
			body.Elements(request.Member(f, "content"), func(p []byte) bool {
				r.Parts = append(r.Parts, readPart(p))
				return true
			})
			c.Request.Messages = append(c.Request.Messages, r)
			return true
		}
		if f := request.Member(p, "toolUse"); f != nil {
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: request.Str(f, "toolUseId"), Name: request.Str(f, "name"), Arguments: string(request.Member(f, "input"))})
			return true
		}
		if f := request.Member(request.Member(p, "reasoningContent"), "reasoningText"); f != nil {
			m.Thoughts = append(m.Thoughts, llm.Thought{Text: request.Str(f, "text"), Signature: request.Str(f, "signature")})
			return true
		}
		if request.Member(p, cachePoint) == nil {
			m.Parts = append(m.Parts, readPart(p))
		}
		return true
	})
	if request.HasContent(&m) {
		c.Request.Messages = append(c.Request.Messages, m)
	}
	return ok
}

func readPart(p []byte) llm.Part {
	if v := request.Member(p, "image"); v != nil {
		data, err := base64.StdEncoding.DecodeString(request.Str(request.Member(v, "source"), "bytes"))
		if err == nil && len(data) > 0 {
			return llm.Part{Image: &llm.Image{MediaType: "image/" + request.Str(v, "format"), Data: data}}
		}
	}
	for key, media := range map[string]string{"document": "application/", "audio": "audio/"} {
		v := request.Member(p, key)
		if f, ok := request.FileOf(media+request.Str(v, "format"), "", request.Str(request.Member(v, "source"), "bytes")); ok {
			f.Name = request.Str(v, "name")
			return llm.Part{File: f}
		}
	}
	return llm.Part{Text: request.Str(p, "text")}
}

func (c reader) inference(key, v []byte) bool {
	q := &c.Request
	switch string(key) {
	case "maxTokens":
		return c.Tokens("maxTokens", v)
	case "temperature":
		return request.Number(v, &q.Temperature)
	case "topP":
		return request.Number(v, &q.TopP)
	case "stopSequences":
		return request.Texts(v, &q.Stop)
	}
	return false
}

func (c reader) tools(v []byte) bool {
	ok := body.Elements(request.Member(v, "tools"), func(t []byte) bool {
		s := request.Member(t, "toolSpec")
		if s == nil {
			return true // a cache point
		}
		c.Request.Tools = append(c.Request.Tools, llm.Tool{
			Name: request.Str(s, "name"), Description: request.Str(s, "description"), Parameters: request.Raw(request.Member(request.Member(s, "inputSchema"), "json")),
		})
		return true
	})
	choice := request.Member(v, "toolChoice")
	switch {
	case request.Member(choice, "auto") != nil:
		c.Request.ToolChoice = "auto"
	case request.Member(choice, "any") != nil:
		c.Request.ToolChoice = "required"
	case request.Member(choice, "tool") != nil:
		c.Request.ToolChoice = request.Str(request.Member(choice, "tool"), "name")
	}
	return ok
}

// AppendResponse appends a whole answer.
func AppendResponse(b []byte, m openai.Meta, r *llm.Response) []byte {
	b = append(b, `{"output":{"message":{"role":"assistant","content":[`...)
	for _, t := range r.Thoughts {
		b = appendThought(b, t.Text, t.Signature)
	}
	if r.Text != "" {
		b = append(body.Str(body.Open(b, '{'), "text", r.Text), '}')
	}
	for _, c := range r.ToolCalls {
		b = appendCall(b, c)
	}
	b = body.Str(append(b, `]}}`...), "stopReason", stopReason(&m, r))
	return append(appendUsage(b, &m, &r.Usage), '}')
}

func stopReason(m *openai.Meta, r *llm.Response) string {
	return m.StopReason(r, "content_filtered")
}

func appendUsage(b []byte, m *openai.Meta, u *llm.Usage) []byte {
	b = append(body.Key(b, "usage"), '{')
	b = body.Int(b, "inputTokens", int64(u.Input-u.Cached-u.CacheWrite))
	b = body.Int(b, "outputTokens", int64(u.Output))
	b = body.Int(b, "totalTokens", int64(u.Total()))
	if u.Cached > 0 {
		b = body.Int(b, "cacheReadInputTokens", int64(u.Cached))
	}
	if u.CacheWrite > 0 {
		b = body.Int(b, "cacheWriteInputTokens", int64(u.CacheWrite))
	}
	b = append(b, `},"metrics":{"latencyMs":1}`...)
	if m.Tier != "" {
		b = append(body.Str(append(body.Key(b, tier), '{'), "type", m.Tier), '}')
	}
	return b
}

// Writer writes an answer as events.
type Writer struct {
	meta  openai.Meta
	index int              // of the block
	open  openai.BlockKind // of the open block, or OtherBlock if there is none
	call  int              // number of the open tool call
}

// NewWriter returns a Writer of a stream.
func NewWriter(m openai.Meta) *Writer { return &Writer{meta: m} }

// Begin writes the first event.
func (*Writer) Begin(b []byte) []byte {
	return eventstream.Append(b, "messageStart", []byte(`{"role":"assistant"}`))
}

// Add writes a piece of a block.
func (w *Writer) Add(b []byte, d openai.Delta) []byte {
	switch {
	case d.IsCall():
		if w.open != openai.CallBlock || w.call != d.Call {
			b = w.next(b, openai.CallBlock)
			w.call = d.Call
			p := append(w.at(), `,"start":{"toolUse":{`...)
			p = append(body.Str(body.Str(p, "toolUseId", d.ID), "name", d.Name), `}}}`...)
			b = eventstream.Append(b, "contentBlockStart", p)
		}
		if d.Arguments != "" {
			b = w.delta(b, append(body.Str([]byte(`{"toolUse":{`), "input", d.Arguments), '}', '}'))
		}
	case d.Thought != "" || d.Signature != "":
		b = w.next(b, openai.ThoughtBlock)
		for _, piece := range [][2]string{{"text", d.Thought}, {"signature", d.Signature}} {
			if piece[1] != "" {
				b = w.delta(b, append(body.Str([]byte(`{"reasoningContent":{`), piece[0], piece[1]), '}', '}'))
			}
		}
	case d.Text != "":
		b = w.delta(w.next(b, openai.TextBlock), append(body.Str([]byte{'{'}, "text", d.Text), '}'))
	}
	return b
}

// at begins a payload with the number of the block.
func (w *Writer) at() []byte { return body.Int([]byte{'{'}, "contentBlockIndex", int64(w.index)) }

func (w *Writer) delta(b, delta []byte) []byte {
	return eventstream.Append(b, "contentBlockDelta", append(body.Raw(w.at(), "delta", delta), '}'))
}

// next makes sure that the open block is of a kind. Each tool call has its own.
func (w *Writer) next(b []byte, kind openai.BlockKind) []byte {
	if w.open == kind && kind != openai.CallBlock {
		return b
	}
	b = w.stop(b)
	w.open = kind
	return b
}

func (w *Writer) stop(b []byte) []byte {
	if w.open == openai.OtherBlock {
		return b
	}
	b = eventstream.Append(b, "contentBlockStop", append(w.at(), '}'))
	w.index, w.open = w.index+1, openai.OtherBlock
	return b
}

// End writes the last events.
func (w *Writer) End(b []byte, r *llm.Response) []byte {
	b = w.stop(b)
	b = eventstream.Append(b, "messageStop", append(body.Str([]byte{'{'}, "stopReason", stopReason(&w.meta, r)), '}'))
	return eventstream.Append(b, "metadata", append(appendUsage([]byte{'{'}, &w.meta, &r.Usage), '}'))
}

// AppendError appends the body of an error. Its type is in a header.
func AppendError(b []byte, e openai.Error) []byte {
	return append(body.Str(append(b, '{'), "message", e.Message), '}')
}

// AppendErrorEvent appends an exception that ends a stream.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	return eventstream.AppendException(b, e.Type, AppendError(nil, e))
}
