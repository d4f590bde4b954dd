package gemini

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

// ReadMember reads a member of a request, and reports whether r holds all of it.
func ReadMember(r *request.Reader, key string, v []byte) bool { return reader{r}.read(key, v) }

type reader struct{ *request.Reader }

func (c reader) read(key string, v []byte) bool {
	switch key {
	case "systemInstruction":
		return c.system(v)
	case "contents":
		return c.List(key, v, "a list of contents", c.turn)
	case "tools":
		return c.tools(v)
	case "toolConfig":
		return c.choice(request.Member(v, "functionCallingConfig"))
	case "generationConfig":
		all := true
		return ReadConfig(c.Reader, v, func(_, _ []byte) { all = false }) && all
	case "serviceTier":
		return request.Text(v, &c.Request.Tier)
	default:
		return false
	}
}

// system puts the system message first, whatever the order of the members.
func (c reader) system(v []byte) bool {
	m := llm.Message{Role: llm.RoleSystem}
	ok := body.Elements(request.Member(v, "parts"), func(p []byte) bool {
		var text string
		ok := request.Text(request.Member(p, "text"), &text)
		m.Parts = append(m.Parts, llm.Part{Text: text})
		return ok
	})
	if !ok {
		c.Note("systemInstruction")
		return false
	}
	c.Request.Messages = append([]llm.Message{m}, c.Request.Messages...)
	return true
}

// turn reads a message. Each result of a tool in it becomes its own message, before the rest.
func (c reader) turn(i int, b []byte) bool {
	m := llm.Message{Role: llm.RoleUser}
	if request.Str(b, "role") == "model" {
		m.Role = llm.RoleAssistant
	}
	open := c.openCalls()
	ok := body.Elements(request.Member(b, "parts"), func(p []byte) bool {
		if f := request.Member(p, "functionResponse"); f != nil {
			r := result(f)
			if r.ToolCallID == "" {
				r.ToolCallID = take(&open, request.Str(f, "name"))
			}
			if media := request.Member(f, "parts"); media != nil {
				c.unread(fmt.Sprintf("contents[%d].parts of a functionResponse", i), media)
				c.Unread += len(media)
			}
			c.Request.Messages = append(c.Request.Messages, r)
			return true
		}
		id := textID
		if f := request.Member(p, "functionCall"); f != nil {
			id = cmp.Or(request.Str(f, "id"), fmt.Sprintf("call-%d-%d", i, len(m.ToolCalls)))
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: id, Name: request.Str(f, "name"), Arguments: string(request.Member(f, "args"))})
		} else {
			part, known := readPart(p)
			if !known {
				c.unread(fmt.Sprintf("contents[%d]", i), p)
			}
			if u := request.Member(p, "fileData"); u != nil && !strings.HasPrefix(request.Str(u, "mimeType"), "image/") {
				c.Request.Refers = true // it may be of any size, as a video
			}
			if isThought(p) && part.IsText() {
				m.Thoughts = append(m.Thoughts, llm.Thought{Text: part.Text})
			} else {
				m.Parts = append(m.Parts, part)
			}
		}
		if s := request.Str(p, "thoughtSignature"); s != "" {
			m.Thoughts = append(m.Thoughts, llm.Thought{ID: id, Signature: s})
		}
		return true
	})
	if len(m.Parts)+len(m.ToolCalls) > 0 {
		c.Request.Messages = append(c.Request.Messages, m)
	}
	return ok
}

func isThought(p []byte) (is bool) { return request.Flag(request.Member(p, "thought"), &is) && is }

// unread notes a part that llm.Request cannot represent. Media that are neither images nor files are videos, which have sound.
func (c reader) unread(what string, p []byte) {
	c.Note(what)
	c.Refer(p)
	c.Audio = c.Audio || request.Member(p, "inlineData") != nil || request.Member(p, "fileData") != nil
}

// openCalls returns the tool calls of the last message. Older models give their calls no id, and results name the tool then.
func (c reader) openCalls() []llm.ToolCall {
	if n := len(c.Request.Messages); n > 0 {
		return slices.Clone(c.Request.Messages[n-1].ToolCalls)
	}
	return nil
}

// take returns the id of the first call of a tool, and removes that call from the list.
func take(open *[]llm.ToolCall, name string) string {
	i := slices.IndexFunc(*open, func(c llm.ToolCall) bool { return c.Name == name })
	if i < 0 {
		return name
	}
	id := (*open)[i].ID
	*open = slices.Delete(*open, i, i+1)
	return id
}

// result reads the result of a tool: the reverse of writer.result.
func result(f []byte) llm.Message {
	response := request.Member(f, "response")
	m := llm.ToolResult(request.Str(f, "id"), string(response))
	for key, failed := range map[string]bool{"result": false, "error": true} {
		if v := request.Member(response, key); v != nil {
			if s := request.String(v); s != "" {
				m = llm.ToolResult(m.ToolCallID, s)
				m.ToolFailed = failed
			}
		}
	}
	return m
}

// readPart reads a text, an image or a file.
func readPart(p []byte) (llm.Part, bool) {
	for _, key := range []string{"inlineData", "fileData"} {
		v := request.Member(p, key)
		if f, ok := request.FileOf(request.Str(v, "mimeType"), request.Str(v, "fileUri"), request.Str(v, "data")); ok {
			return llm.Part{File: f}, true
		}
	}
	if v := request.Member(p, "inlineData"); v != nil {
		data, err := base64.StdEncoding.DecodeString(request.Str(v, "data"))
		if media := request.Str(v, "mimeType"); err == nil && len(data) > 0 && strings.HasPrefix(media, "image/") {
			return llm.Part{Image: &llm.Image{MediaType: media, Data: data}}, true
		}
	}
	if v := request.Member(p, "fileData"); v != nil && (strings.HasPrefix(request.Str(v, "mimeType"), "image/") || request.Member(v, "mimeType") == nil) {
		return llm.Part{Image: &llm.Image{URL: request.Str(v, "fileUri")}}, true
	}
	var text string
	if request.Text(request.Member(p, "text"), &text) {
		return llm.Part{Text: text}, true
	}
	return llm.Part{Text: string(p)}, false
}

// tools reads the tools. It returns false if the provider runs one of them, so that the caller keeps the whole list.
func (c reader) tools(v []byte) bool {
	all := true
	ok := body.Elements(v, func(t []byte) bool {
		body.Members(t, func(key, _ []byte) bool {
			if string(key) != "functionDeclarations" {
				c.Note("tool " + string(key))
				all = false
			}
			return true
		})
		declared := request.Member(t, "functionDeclarations")
		return declared == nil || body.Elements(declared, func(f []byte) bool {
			tool, ok := request.Function(f, "parametersJsonSchema")
			if schema := request.Member(f, "parameters_json_schema"); schema != nil { // of Google's SDKs
				tool.Parameters = request.Raw(schema)
			}
			if schema := request.Member(f, "parameters"); schema != nil && tool.Parameters == nil {
				tool.Parameters = jsonSchema(schema)
			}
			if ok {
				c.Request.Tools = append(c.Request.Tools, tool)
			}
			return ok
		})
	})
	return ok && all
}

// choice reads which tool the model must call. A choice of several cannot be represented.
func (c reader) choice(v []byte) bool {
	switch request.Str(v, "mode") {
	case "AUTO":
		c.Request.ToolChoice = "auto"
	case "NONE":
		c.Request.ToolChoice = "none"
	case "ANY":
		c.Request.ToolChoice = "required"
		var names []string
		if request.Texts(request.Member(v, "allowedFunctionNames"), &names) && len(names) == 1 {
			c.Request.ToolChoice = names[0]
		}
		return len(names) < 2
	default:
		return false
	}
	return true
}

// ReadConfig reads generationConfig, and calls keep with each member of it that r does not hold. It returns false if v is not an object.
func ReadConfig(r *request.Reader, v []byte, keep func(key, value []byte)) bool {
	schema := request.Member(v, "responseJsonSchema") != nil || request.Member(v, "responseSchema") != nil
	return body.Members(v, func(key, value []byte) bool {
		implied := schema && string(key) == "responseMimeType"
		if string(value) != "null" && !implied && !(reader{r}).config(string(key), value) {
			keep(key, value)
		}
		return true
	})
}

// config reads a member of generationConfig.
func (c reader) config(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "candidateCount":
		return c.Answers(key, v, &c.Choices)
	case "maxOutputTokens":
		return c.Tokens("maxOutputTokens", v)
	case "temperature":
		return request.Number(v, &q.Temperature)
	case "topP":
		return request.Number(v, &q.TopP)
	case "topK":
		return request.Integer(v, &q.TopK)
	case "frequencyPenalty":
		return request.Number(v, &q.FrequencyPenalty)
	case "presencePenalty":
		return request.Number(v, &q.PresencePenalty)
	case "seed":
		return request.Integer(v, &q.Seed)
	case "stopSequences":
		return request.Texts(v, &q.Stop)
	case "responseLogprobs":
		return request.Flag(v, &q.Logprobs)
	case "logprobs":
		return request.Whole(v, &q.TopLogprobs)
	case "responseJsonSchema":
		q.Schema = &llm.Schema{Name: "answer", JSON: request.Raw(v)}
	case "responseSchema":
		if q.Schema == nil {
			q.Schema = &llm.Schema{Name: "answer", JSON: jsonSchema(v)}
		}
	case "thinkingConfig":
		return c.thinking(v)
	default:
		return false
	}
	return true
}

// jsonSchema returns Google's own form of a schema, whose types are in upper case, as a JSON Schema.
func jsonSchema(b []byte) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return request.Raw(b) // it is refused later
	}
	lowerTypes(v)
	out, err := json.Marshal(v)
	if err != nil {
		return request.Raw(b) // not reached: it was JSON before
	}
	return out
}

func lowerTypes(v any) {
	switch v := v.(type) {
	case map[string]any:
		if kind, ok := v["type"].(string); ok {
			v["type"] = strings.ToLower(kind)
		}
		for _, member := range v {
			lowerTypes(member)
		}
	case []any:
		for _, element := range v {
			lowerTypes(element)
		}
	}
}

// thinking reads a level, or turns a budget of tokens into an effort: the reverse of budgets. It returns false if an effort says less.
func (c reader) thinking(v []byte) bool {
	q, n := &c.Request, 0
	if level := request.Str(v, "thinkingLevel"); level != "" {
		q.Effort = llm.Effort(strings.ToLower(level))
		return true
	}
	if !request.Whole(request.Member(v, "thinkingBudget"), &n) || n < 0 {
		return false
	}
	switch {
	case n == 0:
		q.Effort = llm.EffortNone
	case n <= 1024:
		q.Effort = llm.EffortLow
	case n <= 8192:
		q.Effort = llm.EffortMedium
	default:
		q.Effort = llm.EffortHigh
	}
	return int64(n) == budgets(string(q.Effort))
}

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
	b = body.Str(b, "finishReason", finishReason(r))
	if r.Refusal != "" {
		b = body.Str(b, "finishMessage", r.Refusal)
	}
	b = append(body.Int(b, "index", 0), '}', ']')
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

// Status returns Google's name of a status of HTTP.
func Status(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status < http.StatusInternalServerError {
		return "FAILED_PRECONDITION"
	}
	return "INTERNAL"
}

// AppendError appends the body of an error. Code is the status of HTTP, and Type its name. Param is the time to wait.
func AppendError(b []byte, e openai.Error) []byte {
	code, err := strconv.Atoi(e.Code)
	if err != nil {
		code = http.StatusInternalServerError
	}
	b = body.Int(append(b, `{"error":{`...), "code", int64(code))
	b = body.Str(body.Str(b, "message", e.Message), "status", e.Type)
	if e.Param+e.Reason != "" {
		b = body.Open(body.Key(b, "details"), '[')
		if e.Reason != "" {
			b = append(body.Open(b, '{'), `"@type":"type.googleapis.com/google.rpc.ErrorInfo"`...)
			b = append(body.Str(b, "reason", e.Reason), '}')
		}
		if e.Param != "" {
			b = append(body.Open(b, '{'), `"@type":"type.googleapis.com/google.rpc.RetryInfo"`...)
			b = append(body.Str(b, "retryDelay", e.Param), '}')
		}
		b = append(b, ']')
	}
	return append(b, '}', '}')
}

// AppendErrorEvent appends an error as the last event of a stream.
func AppendErrorEvent(b []byte, e openai.Error) []byte {
	return sse.End(AppendError(sse.Begin(b, ""), e))
}
