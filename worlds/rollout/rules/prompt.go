package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"parley/llm"
)

// Prompt maps agents to what they are asked. Empty: the episode has ended.
type Prompt map[string]Question

// Question is what one agent is asked: messages to answer, and tools that it may call.
type Question struct {
	Messages []llm.Message `json:"messages"`
	Tools    ProtocolTools `json:"tools,omitempty"`
}

// Ask returns the prompt of an environment with one agent.
func Ask(messages ...llm.Message) Prompt { return Prompt{Default: {Messages: messages}} }

// UnmarshalJSON reads a question or an object of agents with questions. A question is a list of messages, or an
// object with messages and tools. An agent without messages is not asked.
func (p *Prompt) UnmarshalJSON(b []byte) error {
	*p = Prompt{}
	if q, err := question(b); err == nil {
		p.add(Default, q)
		return nil
	} else if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return fmt.Errorf("prompt: %w", err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if _, one := m["messages"]; one {
		_, err := question(b)
		return fmt.Errorf("prompt: %w", err)
	}
	for agent, raw := range m {
		q, err := question(raw)
		if err != nil {
			return fmt.Errorf("prompt of %.40q: %w", agent, err)
		}
		p.add(agent, q)
	}
	return nil
}

func (p Prompt) add(agent string, q Question) {
	if len(q.Messages) > 0 {
		p[agent] = q
	}
}

// MarshalJSON writes the question alone where only Default is asked, and an empty list for nobody.
func (p Prompt) MarshalJSON() ([]byte, error) {
	if len(p) == 0 {
		return []byte("[]"), nil
	}
	if q, only := p[Default]; only && len(p) == 1 {
		return json.Marshal(q)
	}
	return json.Marshal(map[string]Question(p))
}

// MarshalJSON writes a list of messages where there are no tools.
func (q Question) MarshalJSON() ([]byte, error) {
	if len(q.Tools) == 0 {
		return json.Marshal(q.Messages)
	}
	type plain Question
	return json.Marshal(plain(q))
}

// question reads a list of messages, or an object that has one under messages.
func question(b []byte) (q Question, err error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || string(b) == "null" || string(b) == "{}":
		return q, nil
	case b[0] == '[':
		q.Messages, err = messages(b)
		return q, err
	case b[0] != '{':
		return q, errors.New("want a list of messages")
	}
	var in struct {
		Messages *json.RawMessage `json:"messages"`
		Tools    json.RawMessage  `json:"tools"`
	}
	if err := json.Unmarshal(b, &in); err != nil || in.Messages == nil {
		return q, errors.New(`want a list of messages, or {"messages": list}`)
	}
	if q.Messages, err = messages(*in.Messages); err == nil && len(in.Tools) > 0 {
		err = json.Unmarshal(in.Tools, &q.Tools)
	}
	return q, err
}

// messages reads a list of messages.
func messages(b []byte) (all []llm.Message, err error) {
	err = json.Unmarshal(b, &all)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf(`there is a JSON %s: want a list of messages, each with "role" and "content"`, wrong.Value)
	}
	return all, err
}

// ProtocolTools are tools that an agent may call. Their JSON form is that of OpenAI's chat completions.
type ProtocolTools []llm.Tool

// wireTool is a tool in OpenAI's form, or with its fields at the top, where MCP's name of the schema is accepted too.
type wireTool struct {
	Type     string    `json:"type"`
	Function *flatTool `json:"function"`
}

type flatTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	OldSchema   json.RawMessage `json:"input_schema,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
}

// MarshalJSON writes the tools in OpenAI's form.
func (t ProtocolTools) MarshalJSON() ([]byte, error) {
	all := make([]wireTool, len(t))
	for i, tool := range t {
		all[i] = wireTool{"function", &flatTool{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters, Strict: tool.Strict}}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads tools in OpenAI's form, or with their fields at the top, as MCP lists them.
func (t *ProtocolTools) UnmarshalJSON(b []byte) error {
	*t = nil
	var raw []json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return errors.New("tools: want a list of tools")
	}
	all := ProtocolTools{}
	seen := map[string]bool{}
	for i, one := range raw {
		tool, err := readTool(one)
		if err == nil && seen[tool.Name] {
			err = fmt.Errorf("%q is listed twice", tool.Name)
		}
		if err != nil {
			return fmt.Errorf("tools[%d]: %w", i, err)
		}
		seen[tool.Name] = true
		all = append(all, tool)
	}
	*t = all
	return nil
}

// anyArguments is the schema of a tool without one.
const anyArguments = `{"type":"object","properties":{}}`

func readTool(b json.RawMessage) (tool llm.Tool, err error) {
	var w wireTool
	if err := json.Unmarshal(b, &w); err != nil {
		return tool, errors.New(`want {"type": "function", "function": {"name", "description", "parameters"}}`)
	}
	if w.Function == nil {
		w.Function = &flatTool{}
		if err := json.Unmarshal(b, w.Function); err != nil {
			return tool, fmt.Errorf("want name, description and parameters: %w", err)
		}
	}
	f := w.Function
	if !toolName.MatchString(f.Name) {
		return tool, fmt.Errorf("name %.80q: want at most 64 letters, digits, _ and -", f.Name)
	}
	tool = llm.Tool{Name: f.Name, Description: f.Description, Strict: f.Strict, Parameters: json.RawMessage(anyArguments)}
	for _, schema := range []json.RawMessage{f.Parameters, f.InputSchema, f.OldSchema} {
		if len(schema) > 0 && string(schema) != "null" {
			tool.Parameters = schema
			break
		}
	}
	if !IsObject(tool.Parameters) {
		return tool, fmt.Errorf("parameters of %s: want a JSON Schema of type object", f.Name)
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, tool.Parameters); err != nil {
		return tool, err
	}
	tool.Parameters = buf.Bytes()
	return tool, nil
}
