package simhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/bedrock"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/llm"
)

// Ask is a request that the server accepts.
type Ask struct {
	Request *llm.Request
	Breaks  []sim.Break // where the client wants the prompt cached

	Stream       bool
	IncludeUsage bool // the stream ends with the usage
}

// rules say what the requests of a format may hold. What no vendor would accept is refused: unknown members, wrong types, values out
// of range, and conversations that make no sense. The errors have the vendor's form, but not its words.
type rules struct {
	read    func(r *request.Reader, key string, v []byte) bool
	members map[string]string  // that a request may have, with their types; "": any
	hottest float64            // the highest temperature
	least   int                // the lowest limit of an answer
	more    func(a *ask) error // what only this format refuses
	lax     bool               // unknown members and loose schemas are accepted
}

// Each line names the type of its members; the last, those that may be anything. A name with a dot is a member of an object.
const (
	chatMembers = `string: model reasoning_effort service_tier
boolean: stream logprobs parallel_tool_calls return_token_ids stream_options.include_usage stream_options.include_obfuscation
number: temperature top_p top_logprobs frequency_penalty presence_penalty max_tokens max_completion_tokens n seed top_k
array: messages tools
object: stream_options response_format
: stop metadata tool_choice prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier store user audio logit_bias
  modalities prediction verbosity web_search_options response_format.type response_format.json_schema cache_salt chat_template_kwargs ignore_eos
  include_stop_str_in_output min_p min_tokens priority repetition_penalty return_tokens_as_token_ids session_id skip_special_tokens
  stop_token_ids vllm_xargs`
	responsesMembers = `string: model instructions service_tier previous_response_id
boolean: stream parallel_tool_calls background
number: temperature top_p top_logprobs max_output_tokens
array: tools include
object: text reasoning
: input metadata tool_choice prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier store user client_metadata
  max_tool_calls stream_options truncation text.format text.verbosity reasoning.effort reasoning.summary reasoning.generate_summary`
	messagesMembers = `string: model service_tier speed
boolean: stream
number: max_tokens temperature top_p top_k
array: messages tools stop_sequences
object: tool_choice thinking output_config output_format cache_control
: system container context_management inference_geo metadata tool_choice.type tool_choice.name tool_choice.disable_parallel_tool_use
  thinking.type thinking.budget_tokens thinking.display output_config.format output_config.effort output_config.task_budget
  output_format.type output_format.schema cache_control.type cache_control.ttl`
	geminiMembers = `string: serviceTier generationConfig.responseMimeType
number: generationConfig.maxOutputTokens generationConfig.temperature generationConfig.topP generationConfig.topK generationConfig.seed
  generationConfig.frequencyPenalty generationConfig.presencePenalty generationConfig.logprobs generationConfig.candidateCount
boolean: generationConfig.responseLogprobs
array: contents tools generationConfig.stopSequences
object: systemInstruction toolConfig generationConfig generationConfig.thinkingConfig
: toolConfig.functionCallingConfig generationConfig.responseJsonSchema generationConfig.responseSchema generationConfig.responseModalities
  systemInstruction.role systemInstruction.parts safetySettings cachedContent labels model
  generationConfig.thinkingConfig.thinkingBudget generationConfig.thinkingConfig.thinkingLevel generationConfig.thinkingConfig.includeThoughts`
	bedrockMembers = `number: inferenceConfig.maxTokens inferenceConfig.temperature inferenceConfig.topP
array: messages system inferenceConfig.stopSequences toolConfig.tools
object: inferenceConfig toolConfig outputConfig serviceTier toolConfig.toolChoice outputConfig.textFormat
string: outputConfig.effort serviceTier.type
: additionalModelRequestFields additionalModelResponseFieldPaths guardrailConfig performanceConfig promptVariables requestMetadata
  toolConfig.toolChoice.auto toolConfig.toolChoice.any toolConfig.toolChoice.tool outputConfig.textFormat.type outputConfig.textFormat.structure`
)

// membersOf reads one of the lists above.
func membersOf(list string) map[string]string {
	out, kind := map[string]string{}, ""
	for line := range strings.Lines(list) {
		names := line
		if of, rest, begins := strings.Cut(line, ":"); begins {
			kind, names = of, rest
		}
		for name := range strings.FieldsSeq(names) {
			out[name] = kind
		}
	}
	return out
}

func chatRules() *rules {
	return &rules{read: openai.ReadMember, members: membersOf(chatMembers), hottest: 2, least: 1, more: (*ask).chat}
}

func responsesRules() *rules {
	return &rules{read: responses.ReadMember, members: membersOf(responsesMembers), hottest: 2, least: 16, more: (*ask).responses}
}

func messagesRules() *rules {
	return &rules{read: anthropic.ReadMember, members: membersOf(messagesMembers), hottest: 1, least: 1, more: (*ask).messages}
}

func geminiRules() *rules {
	return &rules{read: gemini.ReadMember, members: membersOf(geminiMembers), hottest: 2, least: 1}
}

func bedrockRules() *rules {
	return &rules{read: bedrock.ReadMember, members: membersOf(bedrockMembers), hottest: 1, least: 1, more: (*ask).bedrock}
}

// ask is a request that is being checked.
type ask struct {
	Ask
	request.Reader
	members map[string][]byte // those that are not null
	lax     bool
}

// decode reads a request and checks it.
func (f *rules) decode(b []byte) (*Ask, *Error) {
	a := &ask{members: map[string][]byte{}, lax: f.lax}
	if err := f.check(a, bytes.TrimSpace(b)); err != nil {
		return nil, invalid("", "%s", err)
	}
	return &a.Ask, nil
}

func (f *rules) check(a *ask, b []byte) error {
	if !body.Valid(b) || b[0] != '{' {
		return fmt.Errorf("the body is not a JSON object, or nested too deeply")
	}
	if err := f.object(b, "", a.members); err != nil {
		return err
	}
	for key, v := range a.members {
		f.read(&a.Reader, key, v)
	}
	a.Ask.Request, a.Ask.Stream, a.Ask.IncludeUsage = &a.Reader.Request, a.Reader.Stream, a.Reader.Usage
	if a.Err != nil {
		return a.Err
	}
	for _, what := range a.Strange {
		if !strings.HasPrefix(what, "tool ") { // tools that the provider runs are never called here
			return fmt.Errorf("%s cannot be read", what)
		}
	}
	if err := f.ranges(a); err != nil {
		return err
	}
	if f.more != nil {
		if err := f.more(a); err != nil {
			return err
		}
	}
	return conversation(a.Ask.Request)
}

// object checks the names and types of members, and keeps them.
func (f *rules) object(b []byte, at string, keep map[string][]byte) (err error) {
	body.Members(b, func(key, v []byte) bool {
		name := at + string(key)
		kind, known := f.members[name]
		switch {
		case !known && !f.lax:
			err = fmt.Errorf("%s: unknown parameter", name)
		case !known || string(v) == "null":
		case kind != "" && kindOf(v) != kind:
			err = fmt.Errorf("%s: want a value of type %s, but got %s", name, kind, kindOf(v))
		case kind == "object":
			err = f.object(v, name+".", nil)
		}
		if known && keep != nil && string(v) != "null" {
			keep[name] = v
		}
		return err == nil
	})
	return err
}

func kindOf(v []byte) string {
	switch v[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case '[':
		return "array"
	case '{':
		return "object"
	case 'n':
		return "null"
	}
	return "number"
}

// ranges checks the parameters that all formats have.
func (f *rules) ranges(a *ask) error {
	q := a.Ask.Request
	for name, v := range map[string]*float64{"temperature": q.Temperature, "top_p": q.TopP, "frequency_penalty": q.FrequencyPenalty, "presence_penalty": q.PresencePenalty} {
		low, high := 0.0, 1.0
		switch name {
		case "temperature":
			high = f.hottest
		case "frequency_penalty", "presence_penalty":
			low, high = -2, 2
		}
		if v != nil && (*v < low || *v > high) {
			return fmt.Errorf("%s: want a number from %v to %v, but got %v", name, low, high, *v)
		}
	}
	named := func(name string) bool {
		return slices.ContainsFunc(q.Tools, func(t llm.Tool) bool { return t.Name == name })
	}
	switch {
	case a.Unlimited || q.MaxTokens > 0 && q.MaxTokens < f.least:
		return fmt.Errorf("the limit of the answer: want at least %d tokens", f.least)
	case q.TopLogprobs < 0 || q.TopLogprobs > 20:
		return fmt.Errorf("top_logprobs: want 0 to 20, but got %d", q.TopLogprobs)
	case a.Choices > 1:
		return fmt.Errorf("this simulation gives one answer to a request, not %d", a.Choices)
	case q.Effort != "" && !slices.Contains(llm.Efforts(), q.Effort):
		return fmt.Errorf("the effort %q is unknown", q.Effort)
	case q.ToolChoice != "" && !slices.Contains([]string{"auto", "none", "required"}, q.ToolChoice) && !named(q.ToolChoice):
		return fmt.Errorf("tool_choice: there is no tool %q", q.ToolChoice)
	}
	return nil
}

// conversation checks that there are messages, that their files can be read, and that the results of tools follow their calls.
func conversation(q *llm.Request) error {
	open, asked := map[string]bool{}, false
	for i := range q.Messages {
		m := &q.Messages[i]
		asked = asked || m.Role != llm.RoleSystem
		switch {
		case m.Role == llm.RoleTool && !open[m.ToolCallID]:
			return fmt.Errorf("messages: the result of tool call %q has no call before it", m.ToolCallID)
		case m.Role == llm.RoleTool:
			delete(open, m.ToolCallID)
		case len(open) > 0:
			return fmt.Errorf("messages: a tool call is not followed by its result")
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || c.Name == "" || m.Role != llm.RoleAssistant {
				return fmt.Errorf("messages: a tool call has no id or name, or is not the assistant's")
			}
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

// required returns an error for the first member that is missing.
func (a *ask) required(names ...string) error {
	for _, name := range names {
		if v := a.members[name]; v == nil || string(v) == `""` {
			return fmt.Errorf("%s: it is required", name)
		}
	}
	return nil
}

// anyObject is the schema of JSON mode.
const anyObject = `{"type":"object","additionalProperties":{"type":["string","number","boolean"]}}`

func (a *ask) chat() error {
	if f := a.members["response_format"]; f != nil {
		if err := a.openAISchema(f, request.Member(f, "json_schema")); err != nil {
			return err
		}
	}
	for _, m := range a.Ask.Request.Messages {
		if m.Role != llm.RoleAssistant && len(m.Parts) == 0 {
			return fmt.Errorf("messages: one of the %s has no content", m.Role)
		}
	}
	switch q := a.Ask.Request; {
	case a.members["stream_options"] != nil && !a.Ask.Stream:
		return fmt.Errorf("stream_options: it is only allowed with stream")
	case a.members["reasoning_effort"] != nil && q.Effort == "":
		return fmt.Errorf("reasoning_effort: want one of %v", llm.Efforts())
	case len(q.Stop) > 4:
		return fmt.Errorf("stop: want at most 4, but got %d", len(q.Stop))
	case len(q.Tools) == 0 && a.members["tools"] == nil && (q.ToolChoice != "" || a.members["parallel_tool_calls"] != nil):
		return fmt.Errorf("tool_choice, parallel_tool_calls: they are only allowed with tools")
	}
	if err := a.strictTools(); err != nil {
		return err
	}
	return a.required("model", "messages")
}

func (a *ask) responses() error {
	q := a.Ask.Request
	if f := request.Member(a.members["text"], "format"); f != nil {
		if err := a.openAISchema(f, f); err != nil {
			return err
		}
	}
	if id := request.String(a.members["previous_response_id"]); id != "" {
		return fmt.Errorf("previous_response_id: there is no response %s: responses are not stored", id)
	}
	if string(a.members["background"]) == "true" {
		return fmt.Errorf("background: it is not simulated")
	}
	q.Logprobs = bytes.Contains(a.members["include"], []byte(`"message.output_text.logprobs"`))
	q.Messages = joinCalls(q.Messages)
	if len(q.Messages) > 0 && q.Messages[0].Role == llm.RoleSystem && string(a.members["instructions"]) == `""` {
		q.Messages = q.Messages[1:]
	}
	if len(q.Tools) == 0 { // unlike chat completions, it takes a tool_choice without tools
		q.ToolChoice = ""
	}
	if err := a.strictTools(); err != nil {
		return err
	}
	return a.required("model", "input")
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

// openAISchema checks the format of an answer, f. s has the schema, if the format is one.
func (a *ask) openAISchema(f, s []byte) error {
	switch kind, name := request.Str(f, "type"), request.Str(s, "name"); {
	case kind == "text":
	case kind == "json_object":
		a.Ask.Request.Schema = &llm.Schema{JSON: []byte(anyObject)}
	case kind != "json_schema" || request.Member(s, "schema") == nil:
		return fmt.Errorf("the format of the answer: want the type text, json_object, or json_schema with a schema")
	case name == "" || body.SchemaName(name) != name:
		return fmt.Errorf("the name of a schema: want at most 64 letters, digits, - and _, but got %q", name)
	case !a.lax && string(request.Member(s, "strict")) == "true" && !body.Strict(request.Member(s, "schema")):
		return fmt.Errorf("the schema %q is not strict: every object needs additionalProperties: false, and requires all properties", name)
	}
	return nil
}

// strictTools checks the tools of OpenAI's formats.
func (a *ask) strictTools() error {
	for _, t := range a.Ask.Request.Tools {
		if body.SchemaName(t.Name) != t.Name || !a.lax && t.Strict && !body.Strict(t.Parameters) {
			return fmt.Errorf("the tool %q has a wrong name, or a schema that is not strict", t.Name)
		}
	}
	return nil
}

// maxBreaks is the maximum number of cache breakpoints in a request.
const maxBreaks = 4

func (a *ask) messages() error {
	q := a.Ask.Request
	f := request.Member(a.members["output_config"], "format")
	if f == nil {
		f = a.members["output_format"] // its name in the beta
	}
	if f != nil {
		q.Schema = &llm.Schema{JSON: request.Raw(request.Member(f, "schema"))}
		if !a.lax && !closed(q.Schema.JSON) {
			return fmt.Errorf("output_config.format: every object of the schema needs additionalProperties: false")
		}
	}
	for _, t := range q.Tools {
		if t.Parameters == nil || !a.lax && t.Strict && !closed(t.Parameters) {
			return fmt.Errorf("the tool %q has no input_schema, or a strict one that is not closed", t.Name)
		}
	}
	if len(q.Tools) == 0 && q.ToolChoice != "" {
		return fmt.Errorf("tool_choice: it is only allowed with tools")
	}
	for _, m := range q.Messages {
		if m.Role != llm.RoleTool && m.Text() == "" && !request.HasContent(&m) && len(m.Thoughts) == 0 {
			return fmt.Errorf("messages: content must not be empty")
		}
	}
	if i := slices.IndexFunc(q.Messages, func(m llm.Message) bool { return m.Role != llm.RoleSystem }); i < 0 || q.Messages[i].Role == llm.RoleAssistant {
		return fmt.Errorf("messages: the first must be the user's")
	}
	q.Tier = ""
	a.Breaks = breaks(a.members["tools"], a.members["system"], a.members["messages"])
	if c := a.members["cache_control"]; c != nil {
		a.Breaks = append(a.Breaks, sim.Break{Message: len(q.Messages) - 1, Part: 1 << 20, Long: request.Str(c, "ttl") == "1h"})
	}
	if len(a.Breaks) > maxBreaks {
		return fmt.Errorf("cache_control: want at most %d, but got %d", maxBreaks, len(a.Breaks))
	}
	if err := a.thinking(); err != nil {
		return err
	}
	return a.required("model", "messages", "max_tokens")
}

// thinking checks the budget and sets the effort. An effort without thinking changes only the
// tone of an answer, which is not simulated.
func (a *ask) thinking() error {
	q, t := a.Ask.Request, a.members["thinking"]
	budget := 0
	request.Whole(request.Member(t, "budget_tokens"), &budget)
	q.Effort = ""
	switch kind := request.Str(t, "type"); {
	case t == nil || kind == "disabled":
		return nil
	case kind != "adaptive" && (kind != "enabled" || budget < 1024 || budget >= q.MaxTokens && q.MaxTokens > 0):
		return fmt.Errorf("thinking: want the type disabled, adaptive, or enabled with budget_tokens from 1024 to less than max_tokens")
	case q.ToolChoice != "" && q.ToolChoice != "auto" && q.ToolChoice != "none":
		return fmt.Errorf("thinking: it is not allowed with a tool_choice that forces a tool")
	}
	q.Effort = llm.Effort(request.Str(a.members["output_config"], "effort"))
	if q.Effort == "" {
		q.Effort = llm.EffortMedium
	}
	return nil
}

func (a *ask) bedrock() error {
	i := 0
	alternate := true
	body.Elements(a.members["messages"], func(m []byte) bool {
		alternate = request.Str(m, "role") == [2]string{"user", "assistant"}[i%2]
		i++
		return alternate
	})
	if !alternate {
		return fmt.Errorf("messages: want those of user and assistant in turn, the user's first")
	}
	if a.Breaks = breaks(request.Member(a.members["toolConfig"], "tools"), a.members["system"], a.members["messages"]); len(a.Breaks) > maxBreaks {
		return fmt.Errorf("cachePoint: want at most %d, but got %d", maxBreaks, len(a.Breaks))
	}
	return a.required("messages")
}

// breaks finds the cache breakpoints: blocks with cache_control in Anthropic's format, and blocks that are a cachePoint in Bedrock's. It counts
// messages as the readers of the formats do: each result of a tool is its own message, and comes before the rest of the message that holds it.
func breaks(tools, system, messages []byte) (out []sim.Break) {
	mark := func(b []byte, message, part int) {
		if c := request.Member(b, "cache_control"); c != nil || request.Member(b, "cachePoint") != nil {
			out = append(out, sim.Break{Message: message, Part: max(0, part), Long: request.Str(c, "ttl") == "1h"})
		}
	}
	body.Elements(tools, func(t []byte) bool { mark(t, -1, 0); return true })
	next, parts := min(len(system), 1), 0 // the message after those before, and parts of the one before
	body.Elements(system, func(b []byte) bool {
		if request.Member(b, "cachePoint") == nil {
			parts++
		}
		mark(b, 0, parts-1)
		return true
	})
	body.Elements(messages, func(m []byte) bool {
		parts, blocks := 0, 0
		list := body.Elements(request.Member(m, "content"), func(b []byte) bool {
			switch kind := request.Str(b, "type"); {
			case kind == "tool_result" || request.Member(b, "toolResult") != nil:
				mark(b, next, 0)
				next++
			case request.Member(b, "cachePoint") != nil:
				mark(b, max(0, next-1+min(blocks, 1)), parts-1)
			default:
				blocks++
				if kind == "text" || kind == "image" || kind == "document" || kind == "" && request.Member(b, "toolUse") == nil && request.Member(b, "reasoningContent") == nil {
					parts++
				}
				mark(b, next, parts-1)
			}
			return true
		})
		if !list || blocks > 0 {
			next++
		}
		return true
	})
	return out
}

// closed reports whether every object in a schema has additionalProperties: false.
func closed(schema []byte) bool {
	var node any
	return json.Unmarshal(schema, &node) == nil && closedNode(node)
}

func closedNode(node any) bool {
	if list, ok := node.([]any); ok {
		return !slices.ContainsFunc(list, func(v any) bool { return !closedNode(v) })
	}
	m, ok := node.(map[string]any)
	if !ok {
		return true
	}
	if kind := fmt.Sprint(m["type"]); m["properties"] != nil || strings.Contains(kind, "object") {
		if m["additionalProperties"] != false {
			return false
		}
	}
	for key, v := range m {
		switch key {
		case "properties", "$defs", "definitions":
			all, _ := v.(map[string]any)
			for _, one := range all {
				if !closedNode(one) {
					return false
				}
			}
		case "items", "anyOf", "oneOf", "allOf", "prefixItems":
			if !closedNode(v) {
				return false
			}
		}
	}
	return true
}
