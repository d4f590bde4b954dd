package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/llm"
)

// This file has what a rollout and its environment exchange. Everything reads back as it was written, all forms
// that environments use are accepted, and nothing that an environment sends makes it panic.

// DefaultAgent is the agent of an environment with a single agent.
const DefaultAgent = "default"

// The acts of a rollout.
const (
	ActOpen  = "open"  // have an environment made and reset; Opening to Opened
	ActStep  = "step"  // do something in it; Stepping to Stepped
	ActClose = "close" // release it before its end; takes Closing, returns nothing

	ActList = "list" // list the tools of a server that is not the environment; Listing to Listed
	ActCall = "call" // call some of them; Calling to Called
)

// Listing asks for the tools of a server.
type Listing struct {
	Try int `json:"try,omitempty"`
}

// Listed is the tools of a server.
type Listed struct {
	Tools ToolList `json:"tools"`
}

// Calling calls tools, one after the other.
type Calling struct {
	Try   int            `json:"try,omitempty"`
	Seat  string         `json:"seat"`
	Calls []llm.ToolCall `json:"calls"`
}

// Called has a message of a tool for each call.
type Called struct {
	Results []llm.Message `json:"results"`
}

// Opening asks for an environment.
type Opening struct {
	Env    string          `json:"env"`
	Params json.RawMessage `json:"params,omitempty"`
	Seed   int64           `json:"seed"`
	// Try counts how often the episode has started over.
	Try int `json:"try,omitempty"`
}

// Opened is the result of a reset with the first prompt.
type Opened struct {
	Info   json.RawMessage `json:"info,omitempty"`
	Prompt Delta           `json:"prompt,omitempty"`
	Fault  *CodeError      `json:"fault,omitempty"`
}

// CodeError is an error in the code of an environment: it fails the episode.
type CodeError struct {
	Text  string `json:"text"` // what happened in which line
	Trace string `json:"trace,omitempty"`
}

// Error returns the text.
func (e *CodeError) Error() string { return e.Text }

// Stepping is an action.
type Stepping struct {
	Try    int    `json:"try,omitempty"`
	Step   int    `json:"step"` // from 1
	Action Action `json:"action"`
	// Last means that this is the last step.
	Last bool `json:"last,omitempty"`
}

// Stepped is the result of a step with the next prompt, which is empty at the end of the episode.
type Stepped struct {
	Reward     Rewards         `json:"reward,omitempty"`
	Terminated bool            `json:"terminated,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	Info       json.RawMessage `json:"info,omitempty"`
	Prompt     Delta           `json:"prompt,omitempty"`
	Fault      *CodeError      `json:"fault,omitempty"`
	// Rejected is why the environment did not accept the action, if it did not.
	Rejected string `json:"rejected,omitempty"`
}

// Closing closes an environment.
type Closing struct {
	Try int `json:"try,omitempty"`
}

// Result is the result of a step as environments send it.
type Result struct {
	Observation json.RawMessage `json:"observation"`
	Reward      Rewards         `json:"reward"`
	Terminated  bool            `json:"terminated"`
	Truncated   bool            `json:"truncated"`
	Info        json.RawMessage `json:"info"`
	Rejected    string          `json:"-"` // why the environment did not accept the action
}

// Done reports whether the step ended the episode.
func (r Result) Done() bool { return r.Terminated || r.Truncated }

// Rewarded returns the rewards by agent: info.reward_dict if there is one, otherwise the reward.
func (r Result) Rewarded() Rewards {
	var info struct {
		RewardDict Rewards `json:"reward_dict"`
	}
	if json.Unmarshal(r.Info, &info) == nil && len(info.RewardDict) > 0 {
		return info.RewardDict
	}
	return r.Reward
}

// Rewards maps agents to rewards. In JSON a number is the reward of Default.
type Rewards map[string]float64

// UnmarshalJSON reads a number, or agents with their numbers; null is no reward. An object with two members for it, such
// as reward and Reward, sets it twice: which one counts must not depend on their order.
func (r *Rewards) UnmarshalJSON(b []byte) error {
	if *r != nil {
		return errors.New("reward is given twice, or in two spellings: want it once")
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || string(b) == "null" {
		return nil
	}
	if b[0] != '{' {
		var x float64
		if json.Unmarshal(b, &x) != nil {
			return fmt.Errorf("reward is %.40s: want a number, or agents with their numbers", string(b))
		}
		*r = Rewards{DefaultAgent: x}
		return nil
	}
	var m map[string]float64
	if json.Unmarshal(b, &m) != nil {
		return fmt.Errorf("reward is %.40s: want agents with their numbers", string(b))
	}
	*r = m
	return nil
}

// MarshalJSON writes a number if only Default has a reward. NaN and infinities are errors.
func (r Rewards) MarshalJSON() ([]byte, error) {
	for agent, x := range r {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("reward of %.40q: %v is no number", agent, x)
		}
	}
	if x, only := r[DefaultAgent]; only && len(r) == 1 {
		return json.Marshal(x)
	}
	if len(r) == 0 {
		return []byte("0"), nil
	}
	return json.Marshal(map[string]float64(r))
}

// Prompt maps agents to what they are asked. Empty: the episode has ended.
type Prompt map[string]Question

// Question is what one agent is asked: messages to answer, and tools that it may call.
type Question struct {
	Messages []llm.Message `json:"messages"`
	Tools    ToolList      `json:"tools,omitempty"`
}

// Ask returns the prompt of an environment with one agent.
func Ask(messages ...llm.Message) Prompt { return Prompt{DefaultAgent: {Messages: messages}} }

// UnmarshalJSON reads a question or an object of agents with questions. A question is a list of messages, or an
// object with messages and tools. An agent without messages is not asked.
func (p *Prompt) UnmarshalJSON(b []byte) error {
	*p = Prompt{}
	if q, err := readQuestion(b); err == nil {
		p.add(DefaultAgent, q)
		return nil
	} else if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return fmt.Errorf("prompt: %w", err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if _, one := m["messages"]; one {
		_, err := readQuestion(b)
		return fmt.Errorf("prompt: %w", err)
	}
	for agent, raw := range m {
		q, err := readQuestion(raw)
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
	if q, only := p[DefaultAgent]; only && len(p) == 1 {
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

// readQuestion reads a list of messages, or an object that has one under messages.
func readQuestion(b []byte) (q Question, err error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || string(b) == "null" || string(b) == "{}":
		return q, nil
	case b[0] == '[':
		q.Messages, err = readMessages(b)
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
	if q.Messages, err = readMessages(*in.Messages); err == nil && len(in.Tools) > 0 {
		err = json.Unmarshal(in.Tools, &q.Tools)
	}
	return q, err
}

// readMessages reads a list of messages.
func readMessages(b []byte) (all []llm.Message, err error) {
	err = json.Unmarshal(b, &all)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf(`there is a JSON %s: want a list of messages, each with "role" and "content"`, wrong.Value)
	}
	return all, err
}

// ToolList are tools that an agent may call. Their JSON form is that of OpenAI's chat completions.
type ToolList []llm.Tool

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
func (t ToolList) MarshalJSON() ([]byte, error) {
	all := make([]wireTool, len(t))
	for i, tool := range t {
		all[i] = wireTool{"function", &flatTool{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters, Strict: tool.Strict}}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads tools in OpenAI's form, or with their fields at the top, as MCP lists them.
func (t *ToolList) UnmarshalJSON(b []byte) error {
	*t = nil
	var raw []json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return errors.New("tools: want a list of tools")
	}
	all := ToolList{}
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
		answer, err := readAnswer(raw)
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
	answer, err := readAnswer(b)
	if err != nil {
		return fmt.Errorf("action: %w", err)
	}
	*a = Action{DefaultAgent: answer}
	return nil
}

// readAnswer reads one answer.
func readAnswer(b json.RawMessage) (m llm.Message, err error) {
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
	if answer, only := all[DefaultAgent]; only && len(a) == 1 {
		return json.Marshal(answer)
	}
	return json.Marshal(all)
}

// Delta is the changes of a prompt by agent, so that a conversation is recorded once and not again at every
// step.
type Delta map[string]PromptChange

// PromptChange is the question to one agent: how many messages of its last one stay, and what follows them.
type PromptChange struct {
	Keep int           `json:"keep,omitempty"`
	Add  []llm.Message `json:"add,omitempty"`
	// Tools are the tools from now on. Nil: as before.
	Tools *ToolList `json:"tools,omitempty"`
}

// Past is the last question to each agent.
type Past map[string]Question

// Delta returns the changes in next, and remembers it.
func (p Past) Delta(next Prompt) Delta {
	d := Delta{}
	for agent, q := range next {
		was, keep := p[agent], 0
		for keep < len(was.Messages) && keep < len(q.Messages) && sameMessage(&was.Messages[keep], &q.Messages[keep]) {
			keep++
		}
		c := PromptChange{Keep: keep, Add: q.Messages[keep:]}
		if !slices.EqualFunc(was.Tools, q.Tools, sameTool) {
			c.Tools = &q.Tools
		}
		d[agent], p[agent] = c, q
	}
	return d
}

// Apply returns the prompt that d describes, and remembers it. Prompts do not share memory that is written to.
func (p Past) Apply(d Delta) (Prompt, error) {
	next := Prompt{}
	for agent, c := range d {
		q := p[agent]
		if c.Keep < 0 || c.Keep > len(q.Messages) {
			return nil, fmt.Errorf("prompt of %.40q: keeps %d messages of %d", agent, c.Keep, len(q.Messages))
		}
		q.Messages = append(slices.Clip(q.Messages[:c.Keep]), c.Add...)
		if c.Tools != nil {
			q.Tools = append(ToolList(nil), *c.Tools...)
		}
		next.add(agent, q)
		p[agent] = q
	}
	return next, nil
}

func sameTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Strict == b.Strict && bytes.Equal(a.Parameters, b.Parameters)
}

// sameMessage reports whether two messages are equal.
func sameMessage(a, b *llm.Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.ToolFailed == b.ToolFailed &&
		slices.Equal(a.ToolCalls, b.ToolCalls) && slices.Equal(a.Thoughts, b.Thoughts) && slices.EqualFunc(a.Parts, b.Parts, samePart)
}

func samePart(a, b llm.Part) bool {
	if x, y := a.File, b.File; x != nil && y != nil {
		return x.Name == y.Name && x.URL == y.URL && x.MediaType == y.MediaType && bytes.Equal(x.Data, y.Data)
	}
	if a.Image == nil || b.Image == nil {
		return a == b
	}
	x, y := a.Image, b.Image
	return a.Text == b.Text && x.URL == y.URL && x.MediaType == y.MediaType && x.Detail == y.Detail && bytes.Equal(x.Data, y.Data)
}

// cutMessages keeps the leading system message and the last 2n-1 others, or all if n is not above 0. It keeps more if the
// result of a tool would lose its call.
func cutMessages(ms []llm.Message, n int) []llm.Message {
	if n <= 0 {
		return ms
	}
	kept, rest := []llm.Message(nil), ms
	if len(ms) > 0 && ms[0].Role == llm.RoleSystem {
		kept, rest = append(kept, ms[0]), ms[1:]
	}
	from := max(0, len(rest)-(2*n-1))
	for from > 0 && rest[from].Role == llm.RoleTool {
		from--
	}
	return append(kept, rest[from:]...)
}
