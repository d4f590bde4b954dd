package gemini

import (
	"net/http"
	"strconv"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

// AppendResponse appends a whole answer.
func AppendResponse(b []byte, m openai.Meta, r *llm.Response) []byte {
	b = open(b)
	for _, t := range r.Thoughts {
		if t.Text != "" {
			b = appendPiece(b, openai.Delta{Thought: t.Text})
		}
	}
	if r.Text != "" {
		b = appendPiece(b, openai.Delta{Text: r.Text})
	}
	for i, c := range r.ToolCalls {
		b = appendCall(b, c, sign(i, r))
	}
	return finish(b, &m, r)
}

// sign returns the signature of a tool call: as in the real format, only the first of an answer has one.
func sign(i int, r *llm.Response) string {
	if i > 0 {
		return ""
	}
	for _, t := range r.Thoughts {
		if t.Signature != "" {
			return t.Signature
		}
	}
	return ""
}

// open appends the beginning of an answer, up to its parts.
func open(b []byte) []byte { return append(b, `{"candidates":[{"content":{"parts":[`...) }

// finish appends the end of an answer.
func finish(b []byte, m *openai.Meta, r *llm.Response) []byte {
	b = append(b, `],"role":"model"}`...)
	b = append(body.Int(body.Str(b, "finishReason", finishReason(r)), "index", 0), '}', ']')
	return end(b, m, &r.Usage)
}

// end appends what follows the candidates.
func end(b []byte, m *openai.Meta, u *llm.Usage) []byte {
	b = append(body.Key(b, "usageMetadata"), '{')
	b = body.Int(b, "promptTokenCount", int64(u.Input))
	if u.Cached > 0 {
		b = body.Int(b, "cachedContentTokenCount", int64(u.Cached))
	}
	b = body.Int(b, "candidatesTokenCount", int64(u.Output-u.Reasoning))
	if u.Reasoning > 0 {
		b = body.Int(b, "thoughtsTokenCount", int64(u.Reasoning))
	}
	b = body.Int(b, "totalTokenCount", int64(u.Total()))
	if u.Audio > 0 {
		b = body.Int(append(body.Key(b, "promptTokensDetails"), `[{"modality":"TEXT"`...), "tokenCount", int64(u.Input-u.Audio))
		b = append(body.Int(append(b, `},{"modality":"AUDIO"`...), "tokenCount", int64(u.Audio)), '}', ']')
	}
	switch {
	case strings.HasPrefix(m.Tier, Traffic("")):
		b = body.Str(b, "trafficType", m.Tier)
	case m.Tier != "":
		b = body.Str(b, "serviceTier", m.Tier)
	}
	b = body.Str(append(b, '}'), "modelVersion", m.Model)
	return append(body.Str(b, "responseId", m.ID), '}')
}

func finishReason(r *llm.Response) string {
	switch r.Finish {
	case llm.FinishLength:
		return "MAX_TOKENS"
	case llm.FinishRefused:
		return "SAFETY"
	default:
		return "STOP"
	}
}

func appendPiece(b []byte, d openai.Delta) []byte {
	b = body.Str(body.Open(b, '{'), "text", d.Text+d.Thought)
	if d.Thought != "" {
		b = body.Bool(b, "thought", true)
	}
	return append(b, '}')
}

func appendCall(b []byte, c llm.ToolCall, signature string) []byte {
	b = append(body.Open(b, '{'), `"functionCall":{`...)
	b = body.Str(body.Str(b, "id", c.ID), "name", c.Name)
	b = append(request.AppendObject(body.Key(b, "args"), c.Arguments, "malformed"), '}')
	if signature != "" {
		b = body.Str(b, "thoughtSignature", signature)
	}
	return append(b, '}')
}

// Writer writes an answer as events. Tool calls are not split: they come with the last event.
type Writer struct{ meta openai.Meta }

// NewWriter returns a Writer of a stream.
func NewWriter(m openai.Meta) *Writer { return &Writer{m} }

// Begin writes nothing.
func (*Writer) Begin(b []byte) []byte { return b }

// Add writes a piece of the text or of a thought.
func (w *Writer) Add(b []byte, d openai.Delta) []byte {
	if d.IsCall() || d.Text == "" && d.Thought == "" {
		return b
	}
	b = append(appendPiece(open(sse.Begin(b, "")), d), `],"role":"model"}}]`...)
	return sse.End(end(b, &w.meta, &w.meta.Prompt))
}

// End writes the last event, with the tool calls.
func (w *Writer) End(b []byte, r *llm.Response) []byte {
	b = open(sse.Begin(b, ""))
	for i, c := range r.ToolCalls {
		b = appendCall(b, c, sign(i, r))
	}
	return sse.End(finish(b, &w.meta, r))
}

// AppendError appends the body of an error. Code is the status of HTTP, and Type its name. Param is the time to wait.
func AppendError(b []byte, e openai.Error) []byte {
	code, err := strconv.Atoi(e.Code)
	if err != nil {
		code = http.StatusInternalServerError
	}
	b = body.Int(append(b, `{"error":{`...), "code", int64(code))
	b = body.Str(body.Str(b, "message", e.Message), "status", e.Type)
	if e.Param != "" {
		b = append(body.Key(b, "details"), `[{"@type":"type.googleapis.com/google.rpc.RetryInfo"`...)
		b = append(body.Str(b, "retryDelay", e.Param), '}', ']')
	}
	return append(b, '}', '}')
}

// AppendErrorEvent appends an error as the last event of a stream.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	return sse.End(AppendError(sse.Begin(b, ""), e))
}
