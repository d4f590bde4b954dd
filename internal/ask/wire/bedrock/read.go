package bedrock

import (
	"encoding/base64"

	"parley/internal/ask/wire/body"
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
		return c.List(v, c.turn)
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
