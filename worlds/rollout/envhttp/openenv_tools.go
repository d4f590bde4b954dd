package envhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"parley/llm"
	"parley/worlds/rollout/rules"
)

// list asks for the tools of an environment that has an MCP server, over a socket. Other servers refuse, and are not
// asked again.
func (s *session) list(ctx context.Context) error {
	if s.host.socket == "" || s.host.toolless.Load() {
		return nil
	}
	a, err := s.peer.send(ctx, "mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": map[string]any{}}, "")
	if e := llm.AsError(err); e != nil && e.Kind == llm.KindBadRequest {
		s.host.toolless.Store(true)
		return nil
	}
	if err != nil {
		return err
	}
	var listed struct {
		Tools rules.ProtocolTools `json:"tools"`
	}
	if err := json.Unmarshal(a.Result, &listed); err != nil {
		return invalid(s.host.Name(), fmt.Errorf("tools/list: %w", exchangeDescribe(a.Result, err)))
	}
	s.tools = listed.Tools
	return nil
}

// call carries out the calls of an answer, each as a step of its own. Their rewards are added up.
func (s *session) call(ctx context.Context, key string, answer llm.Message) (rules.Result, error) {
	s.talk = append(s.talk, answer)
	total, refused := 0.0, 0
	r := rules.Result{}
	for _, c := range answer.ToolCalls {
		if s.done {
			s.talk = append(s.talk, failed(c, "The episode has ended."))
			continue
		}
		arguments := json.RawMessage(c.Arguments)
		if strings.TrimSpace(c.Arguments) == "" {
			arguments = json.RawMessage("{}")
		}
		if !rules.IsObject(arguments) {
			refused, r.Rejected = refused+1, "the arguments are no JSON object"
			s.talk = append(s.talk, failed(c, "The arguments are no JSON object."))
			continue
		}
		got, err := s.peer.send(ctx, "step", map[string]any{"type": "call_tool", "tool_name": c.Name, "arguments": arguments}, key+"-"+c.ID)
		if e := llm.AsError(err); e != nil && e.Code == codeValidation {
			refused, r.Rejected = refused+1, e.Message
			s.talk = append(s.talk, failed(c, e.Message))
			continue
		}
		if err != nil {
			return rules.Result{}, err
		}
		s.done = got.Done
		if got.Reward != nil {
			for _, x := range *got.Reward {
				total += x
			}
		}
		r.Observation = got.Observation
		s.talk = append(s.talk, s.result(c, got.Observation))
	}
	if refused < len(answer.ToolCalls) {
		r.Rejected = ""
	}
	r.Reward, r.Terminated = rules.Rewards{rules.Default: total}, s.done
	return r, nil
}

// result returns the message with the result of a tool.
func (s *session) result(c llm.ToolCall, observation json.RawMessage) llm.Message {
	var got struct {
		Result json.RawMessage           `json:"result"`
		Error  *struct{ Message string } `json:"error"`
	}
	if json.Unmarshal(observation, &got) != nil || got.Result == nil && got.Error == nil {
		m := s.shown(observation)
		m.Role, m.ToolCallID = llm.RoleTool, c.ID
		return m
	}
	if got.Error != nil {
		return failed(c, got.Error.Message)
	}
	var inner struct {
		Content []struct{ Text string } `json:"content"`
		Data    json.RawMessage         `json:"data"`
	}
	text := asText(got.Result)
	if json.Unmarshal(got.Result, &inner) == nil && (len(inner.Content) > 0 || len(inner.Data) > 0) { // what MCP calls a result
		if text = asText(inner.Data); len(inner.Content) > 0 {
			text = ""
			for _, part := range inner.Content {
				text += part.Text
			}
		}
	}
	return llm.ToolResult(c.ID, text)
}

// asText returns a JSON text as what it says, and any other value as JSON.
func asText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func failed(c llm.ToolCall, why string) llm.Message {
	m := llm.ToolResult(c.ID, why)
	m.ToolFailed = true
	return m
}
