package gemini

import (
	"encoding/base64"
	"fmt"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// ReadMember reads a member of a request, and reports whether r holds all of it.
func ReadMember(r *request.Reader, key string, v []byte) bool { return reader{r}.read(key, v) }

type reader struct{ *request.Reader }

func (c reader) read(key string, v []byte) bool {
	switch key {
	case "systemInstruction":
		m := llm.Message{Role: llm.RoleSystem}
		ok := body.Elements(request.Member(v, "parts"), func(p []byte) bool {
			m.Parts = append(m.Parts, llm.Part{Text: request.Str(p, "text")})
			return true
		})
		c.Request.Messages = append([]llm.Message{m}, c.Request.Messages...)
		return ok
	case "contents":
		return c.List(v, c.turn)
	case "tools":
		return c.tools(v)
	case "toolConfig":
		return c.choice(request.Member(v, "functionCallingConfig"))
	case "generationConfig":
		return body.Members(v, c.config)
	case "serviceTier":
		return request.Text(v, &c.Request.Tier)
	default:
		return false
	}
}

// turn reads a message. Each result of a tool in it becomes its own message, before the rest.
func (c reader) turn(i int, b []byte) bool {
	m := llm.Message{Role: llm.RoleUser}
	if request.Str(b, "role") == "model" {
		m.Role = llm.RoleAssistant
	}
	ok := body.Elements(request.Member(b, "parts"), func(p []byte) bool {
		if f := request.Member(p, "functionResponse"); f != nil {
			c.Request.Messages = append(c.Request.Messages, result(f))
			return true
		}
		id := textID
		if f := request.Member(p, "functionCall"); f != nil {
			id = request.Str(f, "id")
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: id, Name: request.Str(f, "name"), Arguments: string(request.Member(f, "args"))})
		} else {
			part, known := readPart(p)
			if !known {
				c.Note(fmt.Sprintf("contents[%d]", i))
				c.Refer(p)
			}
			m.Parts = append(m.Parts, part)
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
		if err == nil && len(data) > 0 {
			return llm.Part{Image: &llm.Image{MediaType: request.Str(v, "mimeType"), Data: data}}, true
		}
	}
	if v := request.Member(p, "fileData"); v != nil {
		return llm.Part{Image: &llm.Image{URL: request.Str(v, "fileUri")}}, true
	}
	var text string
	if request.Text(request.Member(p, "text"), &text) {
		return llm.Part{Text: text}, true
	}
	return llm.Part{Text: string(p)}, false
}

func (c reader) tools(v []byte) bool {
	return body.Elements(v, func(t []byte) bool {
		return body.Elements(request.Member(t, "functionDeclarations"), func(f []byte) bool {
			tool, ok := request.Function(f, "parametersJsonSchema")
			if ok {
				c.Request.Tools = append(c.Request.Tools, tool)
			}
			return ok
		})
	})
}

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
	}
	return true
}

// config reads a member of generationConfig.
func (c reader) config(key, v []byte) bool {
	q := &c.Request
	switch string(key) {
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
	case "thinkingConfig":
		c.thinking(v)
	}
	return true
}

// thinking reads a level, or turns a budget of tokens into an effort: the reverse of budgets.
func (c reader) thinking(v []byte) {
	q, n := &c.Request, 0
	if level := request.Str(v, "thinkingLevel"); level != "" {
		q.Effort = llm.Effort(strings.ToLower(level))
		return
	}
	if !request.Whole(request.Member(v, "thinkingBudget"), &n) || n < 0 {
		return
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
}
