package openai

import (
	"fmt"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

// AppendResponse appends a whole answer.
func AppendResponse(b []byte, m Meta, r *llm.Response) []byte {
	b = append(head(b, &m, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant"`...)
	if r.Text == "" && (r.Refusal != "" || len(r.ToolCalls) > 0) {
		b = append(b, `,"content":null`...)
	} else {
		b = body.Str(b, "content", r.Text)
	}
	b = body.Nullable(b, "refusal", r.Refusal)
	if len(r.ToolCalls) > 0 {
		b = body.Open(body.Key(b, "tool_calls"), '[')
		for _, c := range r.ToolCalls {
			b = append(appendCall(body.Open(b, '{'), c.ID, c.Name, c.Arguments), '}')
		}
		b = append(b, ']')
	}
	if words := thoughts(r); words != "" {
		b = body.Str(b, "reasoning_content", words)
	}
	b = append(b, `,"annotations":[]}`...)
	b = appendLogprobs(b, r.Logprobs)
	if r.TokenIDs != nil {
		b = body.Ints(b, "token_ids", r.TokenIDs)
	}
	b = append(body.Str(b, "finish_reason", finishReason(r)), '}', ']')
	b = appendUsage(b, r.Usage)
	if r.PromptTokenIDs != nil {
		b = body.Ints(b, "prompt_token_ids", r.PromptTokenIDs)
	}
	return append(b, '}')
}

// head appends the beginning of an object, up to its choices.
func head(b []byte, m *Meta, object string) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", m.ID), "object", object)
	b = body.Str(body.Int(b, "created", m.Created), "model", m.Model)
	if m.Tier != "" {
		b = body.Str(b, "service_tier", m.Tier)
	}
	if m.Fingerprint != "" {
		b = body.Str(b, "system_fingerprint", m.Fingerprint)
	}
	return b
}

// appendCall appends the members of a tool call, without braces.
func appendCall(b []byte, id, name, arguments string) []byte {
	b = body.Str(body.Str(b, "id", id), "type", "function")
	b = body.Str(append(body.Key(b, "function"), '{'), "name", name)
	return append(body.Str(b, "arguments", arguments), '}')
}

func thoughts(r *llm.Response) string {
	var words strings.Builder
	for _, t := range r.Thoughts {
		words.WriteString(t.Text)
	}
	return words.String()
}

func appendLogprobs(b []byte, list []llm.Logprob) []byte {
	if list == nil {
		return append(b, `,"logprobs":null`...)
	}
	b = append(b, `,"logprobs":{"content":`...)
	return append(AppendLogprobs(b, list), `,"refusal":null}`...)
}

func finishReason(r *llm.Response) string {
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

func appendUsage(b []byte, u llm.Usage) []byte {
	b = body.Int(append(body.Key(b, "usage"), '{'), "prompt_tokens", int64(u.Input))
	b = body.Int(body.Int(b, "completion_tokens", int64(u.Output)), "total_tokens", int64(u.Total()))
	b = body.Int(append(b, `,"prompt_tokens_details":{`...), "cached_tokens", int64(u.Cached))
	b = append(body.Int(b, "audio_tokens", int64(u.Audio)), `},"completion_tokens_details":{`...)
	b = body.Int(b, "reasoning_tokens", int64(u.Reasoning))
	return append(b, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}

// Writer writes an answer in chunks.
type Writer struct {
	meta          Meta
	head          []byte // of every chunk
	ids, logprobs int    // number that was written
}

// NewWriter returns a Writer of a stream.
func NewWriter(m Meta) *Writer {
	return &Writer{meta: m, head: head(sse.Begin(nil, ""), &m, "chat.completion.chunk")}
}

// Begin writes a chunk with the role.
func (w *Writer) Begin(b []byte) []byte {
	b = append(w.open(b), `"role":"assistant","content":"","refusal":null}`...)
	return w.close(b, "", nil, w.meta.PromptTokenIDs)
}

func (w *Writer) open(b []byte) []byte {
	return append(append(b, w.head...), `,"choices":[{"index":0,"delta":{`...)
}

// close writes the rest of a chunk after its delta.
func (w *Writer) close(b []byte, finish string, logprobs []llm.Logprob, prompt []int) []byte {
	b = body.Nullable(appendLogprobs(b, logprobs), "finish_reason", finish)
	b = append(b, '}', ']')
	if prompt != nil {
		b = body.Ints(b, "prompt_token_ids", prompt)
	}
	if w.meta.Usage {
		b = append(b, `,"usage":null`...)
	}
	return sse.End(append(b, '}'))
}

// Add writes a chunk.
func (w *Writer) Add(b []byte, d Delta) []byte {
	if d.Signature = ""; d.IsEmpty() { // the format has no signatures
		return b
	}
	b = w.open(b)
	switch {
	case d.IsCall():
		b = body.Int(append(b, `"tool_calls":[{`...), "index", int64(d.Call))
		if d.ID != "" || d.Name != "" {
			b = appendCall(b, d.ID, d.Name, d.Arguments)
		} else {
			b = append(body.Str(append(b, `,"function":{`...), "arguments", d.Arguments), '}')
		}
		b = append(b, '}', ']')
	case d.Refusal != "":
		b = body.Str(b, "refusal", d.Refusal)
	case d.Text != "":
		b = body.Str(b, "content", d.Text)
	default:
		b = body.Str(b, "reasoning_content", d.Thought)
	}
	b = append(b, '}')
	if d.TokenIDs != nil {
		b = body.Ints(b, "token_ids", d.TokenIDs)
	}
	w.ids, w.logprobs = w.ids+len(d.TokenIDs), w.logprobs+len(d.Logprobs)
	return w.close(b, "", d.Logprobs, nil)
}

// End writes the finish reason with the tokens that no step had, the usage if it is wanted, and
// [DONE].
func (w *Writer) End(b []byte, r *llm.Response) []byte {
	b = append(w.open(b), '}')
	var logprobs []llm.Logprob
	if w.ids < len(r.TokenIDs) {
		b = body.Ints(b, "token_ids", r.TokenIDs[w.ids:])
		if w.logprobs < len(r.Logprobs) {
			logprobs = r.Logprobs[w.logprobs:]
		}
	}
	b = w.close(b, finishReason(r), logprobs, nil)
	if w.meta.Usage {
		b = append(append(b, w.head...), `,"choices":[]`...)
		b = sse.End(append(appendUsage(b, r.Usage), '}'))
	}
	return append(b, "data: [DONE]\n\n"...)
}

// AppendError appends the body of an error, which is the same for all of OpenAI's endpoints.
func AppendError(b []byte, e Error) []byte {
	b = body.Str(append(b, `{"error":{`...), "message", e.Message)
	b = body.Nullable(body.Str(b, "type", e.Type), "param", e.Param)
	return append(body.Nullable(b, "code", e.Code), '}', '}')
}

// AppendErrorEvent appends an error as the last event of a stream.
func AppendErrorEvent(b []byte, e Error) []byte {
	return sse.End(AppendError(sse.Begin(b, ""), e))
}

// ReadMember reads a member of a request, and reports whether r holds all of it.
func ReadMember(r *request.Reader, key string, v []byte) bool { return reader{r}.read(key, v) }

type reader struct{ *request.Reader }

func (c reader) read(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "messages":
		return c.List(key, v, "a list of messages", c.message)
	case "max_tokens", "max_completion_tokens":
		return c.Tokens(key, v)
	case "n":
		return c.Answers(key, v, &c.Choices) && c.Choices == 1 // Extra keeps more than one
	case "best_of":
		c.Answers(key, v, &c.Drafts)
		return false
	case "stream_options":
		return request.Flag(request.Member(v, "include_usage"), &c.Usage)
	case "reasoning_effort":
		return request.Effort(v, &q.Effort)
	case "response_format":
		return c.responseFormat(v)
	case "tools":
		return c.ReadTools(v, func(t []byte) (llm.Tool, bool) { return request.Function(request.Member(t, "function"), "parameters") }, "function")
	case "tool_choice":
		return c.ReadToolChoice(v, func(v []byte) string { return request.Str(request.Member(v, "function"), "name") })
	case "return_token_ids":
		return request.Flag(v, &q.TokenIDs)
	case "frequency_penalty":
		return request.Number(v, &q.FrequencyPenalty)
	case "presence_penalty":
		return request.Number(v, &q.PresencePenalty)
	case "top_k":
		return request.Integer(v, &q.TopK)
	case "seed":
		return request.Integer(v, &q.Seed)
	case "stop":
		return request.Texts(v, &q.Stop)
	case "logprobs":
		return request.Flag(v, &q.Logprobs)
	default:
		return c.OpenAI(key, v)
	}
}

func (c reader) message(i int, b []byte) bool {
	var m llm.Message
	ok := body.Members(b, func(key, v []byte) bool {
		if string(v) == "null" {
			return true
		}
		switch string(key) {
		case "role":
			return request.Role(request.Str(b, "role"), &m.Role)
		case "content":
			parts, ok := c.Parts(v, fmt.Sprintf("messages[%d].content", i))
			m.Parts = append(m.Parts, parts...)
			return ok
		case "refusal":
			var words string
			ok := request.Text(v, &words)
			m.Parts = append(m.Parts, llm.Part{Text: words})
			return ok
		case "reasoning_content", "reasoning":
			var words string
			if request.Text(v, &words) && len(m.Thoughts) == 0 {
				m.Thoughts = []llm.Thought{{Text: words}}
			}
		case "tool_call_id":
			return request.Text(v, &m.ToolCallID)
		case "tool_calls":
			return body.Elements(v, func(t []byte) bool {
				f := request.Member(t, "function")
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: request.Str(t, "id"), Name: request.Str(f, "name"), Arguments: request.Str(f, "arguments")})
				return f != nil
			})
		default:
			c.Unread += len(v)
			c.Refer(v)
		}
		return true
	})
	if !ok || m.Role == "" {
		return false
	}
	c.Request.Messages = append(c.Request.Messages, m)
	return true
}

// responseFormat reads the format of the answer, if it is a schema.
func (c reader) responseFormat(v []byte) bool {
	if request.Str(v, "type") != "json_schema" {
		return request.Str(v, "type") == "text"
	}
	return c.ReadSchema(request.Member(v, "json_schema"))
}
