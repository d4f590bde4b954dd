package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"parley/llm"
)

// Action maps agents to their answers: messages of the assistant, with a text and calls of tools. In JSON an answer
// without calls is a text, and the answer of Default alone stands for itself.
type Action map[string]llm.Message

// UnmarshalJSON reads an answer, or agents with their answers.
func (a *Action) UnmarshalJSON(b []byte) error {
	*a = nil
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		return a.alone(b)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil || m == nil {
		return errors.New("action: want an answer, or agents with their answers; an answer is a text, or a message with tool_calls")
	}
	if calls := bytes.TrimSpace(m["tool_calls"]); len(calls) > 0 && calls[0] == '[' {
		return a.alone(b)
	}
	all := Action{}
	for agent, raw := range m {
		answer, err := answered(raw)
		if err != nil {
			return fmt.Errorf("action of %.40q: %w", agent, err)
		}
		all[agent] = answer
	}
	*a = all
	return nil
}

// alone reads the answer of Default.
func (a *Action) alone(b []byte) error {
	answer, err := answered(b)
	if err != nil {
		return fmt.Errorf("action: %w", err)
	}
	*a = Action{Default: answer}
	return nil
}

// answered reads one answer.
func answered(b json.RawMessage) (m llm.Message, err error) {
	if len(b) > 0 && b[0] == '"' {
		var text string
		err = json.Unmarshal(b, &text)
		return llm.Assistant(text), err
	}
	if err = json.Unmarshal(b, &m); err == nil && m.Role != llm.RoleAssistant {
		err = fmt.Errorf("a message of the role %q: want assistant", m.Role)
	}
	return m, err
}

// MarshalJSON writes the answer alone where only Default acts.
func (a Action) MarshalJSON() ([]byte, error) {
	all := make(map[string]any, len(a))
	for agent, m := range a {
		if all[agent] = m; len(m.ToolCalls) == 0 {
			all[agent] = m.Text()
		}
	}
	if answer, only := all[Default]; only && len(a) == 1 {
		return json.Marshal(answer)
	}
	return json.Marshal(all)
}
