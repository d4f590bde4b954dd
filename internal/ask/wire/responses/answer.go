package responses

import (
	"fmt"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
)

// AppendResponse appends a whole answer.
func AppendResponse(b []byte, m openai.Meta, r *llm.Response) []byte {
	return appendObject(b, &m, status(r), r)
}

func status(r *llm.Response) string {
	if r.Finish == llm.FinishLength {
		return "incomplete"
	}
	return "completed"
}

// appendObject appends a response. While it is in progress r is nil, and it has no output and no
// usage.
func appendObject(b []byte, m *openai.Meta, status string, r *llm.Response) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", m.ID), "object", "response")
	b = body.Str(body.Int(b, "created_at", m.Created), "status", status)
	b = append(b, `,"background":false,"error":null,"incomplete_details":`...)
	if status == "incomplete" {
		b = append(b, `{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, "null"...)
	}
	asked := m.Request
	if asked == nil {
		asked = &llm.Request{}
	}
	b = append(b, `,"instructions":null,"max_output_tokens":`...)
	if asked.MaxTokens > 0 {
		b = fmt.Append(b, asked.MaxTokens)
	} else {
		b = append(b, "null"...)
	}
	b = append(body.Key(body.Str(b, "model", m.Model), "output"), '[')
	if r != nil {
		for _, it := range itemsOf(m, r) {
			b = it.append(body.Open(b, '{'), status, true)
		}
	}
	b = body.Bool(append(b, ']'), "parallel_tool_calls", !asked.OneTool)
	b = body.Nullable(append(b, `,"previous_response_id":null,"reasoning":{`...), "effort", string(asked.Effort))
	b = append(b, `,"summary":null}`...)
	if m.Tier != "" {
		b = body.Str(b, "service_tier", m.Tier)
	}
	b = body.Float(append(b, `,"store":false`...), "temperature", orOne(asked.Temperature))
	b = append(b, `,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[]`...)
	b = append(body.Float(b, "top_p", orOne(asked.TopP)), `,"truncation":"disabled","usage":`...)
	if r != nil {
		b = appendUsage(b, r.Usage)
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"user":null,"metadata":{}}`...)
}

func orOne(f *float64) float64 {
	if f == nil {
		return 1
	}
	return *f
}

func appendUsage(b []byte, u llm.Usage) []byte {
	b = body.Int(append(b, '{'), "input_tokens", int64(u.Input))
	b = append(body.Int(append(b, `,"input_tokens_details":{`...), "cached_tokens", int64(u.Cached)), '}')
	b = body.Int(b, "output_tokens", int64(u.Output))
	b = append(body.Int(append(b, `,"output_tokens_details":{`...), "reasoning_tokens", int64(u.Reasoning)), '}')
	return append(body.Int(b, "total_tokens", int64(u.Total())), '}')
}

// item is a piece of a response's output.
type item struct {
	kind     string // reasoning, message or function_call
	id       string
	text     string
	refuses  bool // text is a refusal
	logprobs []llm.Logprob
	call     llm.ToolCall
}

// newItem returns an item whose ID comes from its response. n is the number of a call.
func newItem(m *openai.Meta, kind string, n int) item {
	id := strings.TrimPrefix(m.ID, "resp_")
	switch kind {
	case "reasoning":
		return item{kind: kind, id: "rs_" + id}
	case "message":
		return item{kind: kind, id: "msg_" + id}
	default:
		return item{kind: kind, id: fmt.Sprintf("fc_%s%02d", id, n)}
	}
}

// itemsOf returns the items of an answer. The text of thoughts is not sent.
func itemsOf(m *openai.Meta, r *llm.Response) []item {
	var items []item
	if len(r.Thoughts) > 0 {
		items = append(items, newItem(m, "reasoning", 0))
	}
	if r.Text != "" || r.Refusal != "" || len(r.ToolCalls) == 0 {
		it := newItem(m, "message", 0)
		if it.text, it.logprobs = r.Text, r.Logprobs; r.Refusal != "" {
			it.text, it.refuses = r.Refusal, true
		}
		items = append(items, it)
	}
	for i, c := range r.ToolCalls {
		it := newItem(m, "function_call", i)
		it.call = c
		items = append(items, it)
	}
	return items
}

// append appends the members of the item and its closing brace. The content is empty unless full.
func (it *item) append(b []byte, status string, full bool) []byte {
	b = body.Str(body.Str(b, "id", it.id), "type", it.kind)
	if it.kind == "reasoning" {
		return append(b, `,"summary":[]}`...)
	}
	b = body.Str(b, "status", status)
	if it.kind == "function_call" {
		args := ""
		if full {
			args = it.call.Arguments
		}
		return append(body.Str(body.Str(body.Str(b, "arguments", args), "call_id", it.call.ID), "name", it.call.Name), '}')
	}
	b = append(b, `,"role":"assistant","content":[`...)
	if full {
		b = it.appendPart(b, true)
	}
	return append(b, "]}"...)
}

// appendPart appends the only part of the message. Its text is empty unless full.
func (it *item) appendPart(b []byte, full bool) []byte {
	text, logprobs := "", []llm.Logprob(nil)
	if full {
		text, logprobs = it.text, it.logprobs
	}
	if it.refuses {
		return append(body.Str(append(b, `{"type":"refusal"`...), "refusal", text), '}')
	}
	b = append(b, `{"type":"output_text","annotations":[],"logprobs":`...)
	return append(body.Str(openai.AppendLogprobs(b, logprobs), "text", text), '}')
}

// AppendErrorEvent appends an error as the last event of a stream.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	b = append(sse.Begin(b, "error"), `{"type":"error"`...)
	b = body.Str(body.Nullable(b, "code", e.Code), "message", e.Message)
	return sse.End(append(b, `,"param":null,"sequence_number":0}`...))
}
