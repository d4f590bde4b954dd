package simhttp

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// ask is a request. Only what cannot be answered is refused: this server does not play the vendors' checks,
// which change and which we cannot try. The errors have the vendor's form, but not its words.
type ask struct {
	request.Reader
	members map[string][]byte // those that are not null, while it is checked
}

// decode reads a request and checks it.
func (f *format) decode(b []byte) (*ask, *Error) {
	if f.rewrite != nil {
		var err *Error
		if b, err = f.rewrite(b); err != nil {
			return nil, err
		}
	}
	a := &ask{members: map[string][]byte{}}
	if err := f.check(a, bytes.TrimSpace(b)); err != nil {
		return nil, invalid("", "%s", err)
	}
	a.members = nil // they are not copied
	return a, nil
}

func (f *format) check(a *ask, b []byte) error {
	if !body.Valid(b) || b[0] != '{' {
		return fmt.Errorf("the body is not a JSON object, or nested too deeply")
	}
	body.Members(b, func(key, v []byte) bool {
		if !body.IsNull(v) {
			a.members[string(key)] = v
		}
		return true
	})
	for key, v := range a.members {
		f.read(&a.Reader, key, v)
	}
	if a.Err != nil {
		return a.Err
	}
	for _, what := range a.Strange {
		if !strings.HasPrefix(what, "tool ") { // tools that the provider runs are never called here
			return fmt.Errorf("%s cannot be read", what)
		}
	}
	for _, name := range f.required {
		if v := a.members[name]; v == nil || string(v) == `""` {
			return fmt.Errorf("%s: it is required", name)
		}
	}
	if f.more != nil {
		if err := f.more(a); err != nil {
			return err
		}
	}
	return answerable(&a.Request, a.Choices)
}

// answerable checks that one answer of bounded size is wanted, that there are messages, that their files can be read, and that the results of
// tools follow their calls.
func answerable(q *llm.Request, choices int) error {
	if choices > 1 {
		return fmt.Errorf("this simulation gives one answer to a request, not %d", choices)
	}
	if q.MaxTokens < 0 || q.TopLogprobs < 0 || q.TopLogprobs > 20 {
		return fmt.Errorf("want a limit of the answer above 0, and top_logprobs from 0 to 20, but got %d and %d", q.MaxTokens, q.TopLogprobs)
	}
	open := map[string]bool{}
	for i := range q.Messages {
		m := &q.Messages[i]
		switch {
		case m.Role == llm.RoleTool && !open[m.ToolCallID]:
			return fmt.Errorf("messages: the result of tool call %q has no call before it", m.ToolCallID)
		case m.Role == llm.RoleTool:
			delete(open, m.ToolCallID)
		case len(open) > 0:
			return fmt.Errorf("messages: a tool call is not followed by its result")
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
		for _, p := range m.Parts {
			if p.File != nil {
				if err := p.File.Check(); err != nil {
					return fmt.Errorf("messages: %w", err)
				}
			}
		}
	}
	switch {
	case len(open) > 0:
		return fmt.Errorf("messages: a tool call is not followed by its result")
	case len(q.Messages) == 0:
		return fmt.Errorf("messages: at least one is required")
	}
	return nil
}

// anyObject is the schema of JSON mode.
const anyObject = `{"type":"object","additionalProperties":{"type":["string","number","boolean"]}}`

func (a *ask) chat() error {
	f := a.members["response_format"]
	return a.openAISchema(f, request.Member(f, "json_schema"))
}

func (a *ask) responses() error {
	f := request.Member(a.members["text"], "format")
	if err := a.openAISchema(f, f); err != nil {
		return err
	}
	if a.members["previous_response_id"] != nil || string(a.members["background"]) == "true" {
		return fmt.Errorf("previous_response_id, background: responses are not stored")
	}
	q := &a.Request
	q.Logprobs = bytes.Contains(a.members["include"], []byte(`"message.output_text.logprobs"`))
	q.Messages = joinCalls(q.Messages)
	if len(q.Messages) > 0 && q.Messages[0].Role == llm.RoleSystem && string(a.members["instructions"]) == `""` {
		q.Messages = q.Messages[1:]
	}
	return nil
}

// joinCalls moves each call into the assistant's message before it, as the other formats have it,
// and drops reasoning.
func joinCalls(messages []llm.Message) (out []llm.Message) {
	for _, m := range messages {
		n := len(out)
		switch {
		case len(m.Thoughts) > 0 && len(m.Parts)+len(m.ToolCalls) == 0:
		case len(m.ToolCalls) > 0 && n > 0 && out[n-1].Role == llm.RoleAssistant:
			out[n-1].ToolCalls = append(out[n-1].ToolCalls, m.ToolCalls...)
		default:
			out = append(out, m)
		}
	}
	return out
}

// openAISchema reads the format of an answer, f. s has the schema, if the format is one.
func (a *ask) openAISchema(f, s []byte) error {
	switch kind := request.Str(f, "type"); {
	case f == nil || kind == "text":
	case kind == "json_object":
		a.Request.Schema = &llm.Schema{JSON: []byte(anyObject)}
	case kind != "json_schema" || request.Member(s, "schema") == nil:
		return fmt.Errorf("the format of the answer: want the type text, json_object, or json_schema with a schema")
	}
	return nil
}

func (a *ask) messages() error {
	q := &a.Request
	f := request.Member(a.members["output_config"], "format")
	if f == nil {
		f = a.members["output_format"] // its name in the beta
	}
	if f != nil {
		q.Schema = &llm.Schema{JSON: request.Raw(request.Member(f, "schema"))}
	}
	q.Tier, q.Effort = "", "" // an effort without thinking changes only the tone of an answer, which is not simulated
	if kind := request.Str(a.members["thinking"], "type"); kind == "adaptive" || kind == "enabled" {
		q.Effort = cmp.Or(llm.Effort(request.Str(a.members["output_config"], "effort")), llm.EffortMedium)
	}
	return nil
}
