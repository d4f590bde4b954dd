package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

var answersDecoder = request.NewDecoder[wireResponse]()

// wireResponse is a whole answer, or a chunk of one.
type wireResponse struct {
	ID             string          `json:"id"`
	Model          string          `json:"model"`
	ServiceTier    string          `json:"service_tier"`
	Choices        []wireChoice    `json:"choices"`
	Usage          *wireUsage      `json:"usage"`
	PromptTokenIDs []int           `json:"prompt_token_ids"` // vLLM
	Error          json.RawMessage `json:"error"`
	WeightVersion  version         `json:"weight_version"`
	Metadata       versioned       `json:"metadata"` // SGLang
	XGroq          struct {
		Usage *wireUsage `json:"usage"`
	} `json:"x_groq"`
}

type wireChoice struct {
	Index        int             `json:"index"`
	Message      wireMessage     `json:"message"`
	Delta        wireMessage     `json:"delta"`
	Text         string          `json:"text"` // of a text completion
	FinishReason string          `json:"finish_reason"`
	Logprobs     *wireLogprobs   `json:"logprobs"`
	TokenIDs     []int           `json:"token_ids"`        // vLLM
	PromptIDs    []int           `json:"prompt_token_ids"` // SGLang
	MetaInfo     *metaInfo       `json:"meta_info"`        // SGLang
	Error        json.RawMessage `json:"error"`            // OpenRouter
}

type wireMessage struct {
	Content          content        `json:"content"`
	Refusal          string         `json:"refusal"`
	ReasoningContent string         `json:"reasoning_content"` // DeepSeek, vLLM, SGLang, xAI
	Reasoning        string         `json:"reasoning"`         // OpenRouter, Groq, Ollama, newer vLLM
	ToolCalls        []wireToolCall `json:"tool_calls"`
}

type wireToolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
	ExtraContent struct {
		Google struct {
			ThoughtSignature string `json:"thought_signature"`
		} `json:"google"`
	} `json:"extra_content"` // Gemini
}

type wireLogprobs struct {
	Content []Logprob `json:"content"`
	Refusal []Logprob `json:"refusal"`
	textLogprobs
}

type wireUsage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	TotalTokens         int `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens"`
		AudioTokens      int `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	PromptCacheHitTokens int `json:"prompt_cache_hit_tokens"` // DeepSeek
	ReasoningTokens      int `json:"reasoning_tokens"`        // SGLang
}

// DecodeResponse reads a whole answer. If the body reports an error with status 200, it returns
// that error.
//
// Gemini signs its tool calls. The signature becomes a Thought with the ID of the call, so that it
// is sent back with the message.
func DecodeResponse(b []byte) (*llm.Response, error) {
	w, err := answersDecoder.Decode(b)
	if err != nil {
		return nil, fault.Malformed("the answer is not a chat completion", err)
	}
	if !body.IsNull(w.Error) {
		return nil, fault.Classify(0, nil, b)
	}
	if len(w.Choices) == 0 {
		return nil, fault.Malformed("the answer has no choices", nil)
	}
	var a Assembler
	a.envelope(w)
	c := &w.Choices[0]
	a.choice(c, &c.Message)
	a.done = true
	return a.Response()
}

func (u *wireUsage) usage() llm.Usage {
	out := llm.Usage{
		Input:      u.PromptTokens,
		Cached:     llm.LargerTokens(u.PromptTokensDetails.CachedTokens, u.PromptCacheHitTokens),
		CacheWrite: u.PromptTokensDetails.CacheWriteTokens,
		Audio:      u.PromptTokensDetails.AudioTokens,
		Output:     u.CompletionTokens,
		Reasoning:  llm.LargerTokens(u.CompletionTokensDetails.ReasoningTokens, u.ReasoningTokens),
	}
	// Gemini and xAI bill thinking as output, but count it only in the total.
	if rest := u.TotalTokens - max(out.Total(), 0); rest > 0 && u.PromptTokens > 0 && u.CompletionTokens >= 0 {
		out.Output = llm.AddTokens(out.Output, rest)
		out.Reasoning = max(out.Reasoning, rest)
	}
	return out
}

func finishOf(reason string) llm.Finish {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length":
		return llm.FinishLength
	case "tool_calls", "function_call", "tool_use":
		return llm.FinishTools
	case "content_filter", "refusal", "safety":
		return llm.FinishRefused
	case "abort", "aborted", "cancelled":
		return llm.FinishAborted
	}
	return llm.FinishStop
}

// content is the content of a message: a string, null, or a list of parts. Mistral's parts may be
// thoughts.
type content struct{ text, thought string }

// UnmarshalJSON accepts all three forms.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		if request.Text(b, &c.text) {
			return nil
		}
		return json.Unmarshal(b, &c.text)
	}
	var parts []struct {
		Text     string  `json:"text"`
		Thinking thought `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var text, thoughts strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
		thoughts.WriteString(string(p.Thinking))
	}
	c.text, c.thought = text.String(), thoughts.String()
	return nil
}

// thought is the thinking in a part: a string, or a list of texts.
type thought string

// UnmarshalJSON accepts both forms.
func (t *thought) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, (*string)(t))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	*t = thought(text.String())
	return nil
}

// arguments are the arguments of a tool call: a string that holds JSON or, with some servers, the
// JSON itself.
type arguments string

// UnmarshalJSON accepts both forms.
func (a *arguments) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(a))
	}
	if !bytes.Equal(b, []byte("null")) {
		*a = arguments(b)
	}
	return nil
}

// Assembler assembles an answer from its chunks.
type Assembler struct {
	Steps
	r       llm.Response
	text    strings.Builder
	refusal strings.Builder
	thought strings.Builder
	calls   []toolCall
	finish  string
	done    bool // after [DONE], or if the answer was not streamed
	err     error
}

// maxCalls bounds the tool calls of an answer, since each piece is looked up among them.
const maxCalls = 1000

// toolCall is a tool call that is being assembled.
type toolCall struct {
	index     int
	id, name  string
	signature string
	arguments []byte
}

// Event adds a chunk.
func (a *Assembler) Event(e sse.Event) (bool, error) {
	if e.Done() {
		a.done = true
		return true, nil
	}
	if string(e.Name) == "error" {
		return false, fault.Classify(0, nil, e.Data)
	}
	w, err := answersDecoder.Decode(e.Data)
	if err != nil {
		return false, fault.Malformed("a chunk of the stream is not a chat completion chunk", err)
	}
	if !body.IsNull(w.Error) {
		return false, fault.Classify(0, nil, e.Data)
	}
	a.envelope(w)
	for i := range w.Choices {
		if c := &w.Choices[i]; c.Index == 0 {
			a.choice(c, &c.Delta)
		}
	}
	return false, a.err
}

func (a *Assembler) envelope(w *wireResponse) {
	set := func(dst *string, s string) {
		if s != "" {
			*dst = s
		}
	}
	set(&a.r.ID, w.ID)
	set(&a.r.Model, w.Model)
	set(&a.r.Tier, w.ServiceTier)
	set(&a.r.WeightVersion, string(w.WeightVersion))
	set(&a.r.WeightVersion, string(w.Metadata.version))
	if w.Usage != nil {
		a.r.Usage = a.r.Usage.Max(w.Usage.usage())
	} else if w.XGroq.Usage != nil {
		a.r.Usage = a.r.Usage.Max(w.XGroq.Usage.usage())
	}
	if len(w.PromptTokenIDs) > 0 {
		a.r.PromptTokenIDs = w.PromptTokenIDs
	}
}

func (a *Assembler) choice(c *wireChoice, m *wireMessage) {
	a.text.WriteString(m.Content.text)
	a.refusal.WriteString(m.Refusal)
	thought := m.ReasoningContent // some servers send the same text in both
	if thought == "" {
		thought = m.Reasoning
	}
	a.thought.WriteString(m.Content.thought)
	a.thought.WriteString(thought)
	a.Step(Delta{Thought: m.Content.thought + thought})
	a.Step(Delta{Text: m.Content.text})
	a.Step(Delta{Refusal: m.Refusal})
	if c.Logprobs != nil {
		a.r.Logprobs = Logprobs(a.r.Logprobs, c.Logprobs.Content)
		a.r.Logprobs = Logprobs(a.r.Logprobs, c.Logprobs.Refusal)
	}
	a.completed(c)
	a.tokens(c)
	if c.FinishReason != "" {
		a.finish = c.FinishReason
	}
	a.err = faultOf(c)
	for i := range m.ToolCalls {
		a.addCall(&m.ToolCalls[i], i)
	}
}

// faultOf returns a failure that is reported as a finish reason.
func faultOf(c *wireChoice) error {
	switch {
	case !body.IsNull(c.Error):
		return fault.Classify(0, nil, c.Error)
	case c.FinishReason == "error":
		return &llm.Error{Kind: llm.KindServer, Message: "the provider failed while answering", Uncertain: true}
	case c.FinishReason == "insufficient_system_resource": // DeepSeek
		return &llm.Error{Kind: llm.KindOverloaded, Message: "the provider ran short of resources while answering", Code: c.FinishReason, Uncertain: true}
	}
	return nil
}

// addCall adds a piece to its tool call: the one with its index, unless the piece has another ID,
// since some servers give every call the index 0.
func (a *Assembler) addCall(w *wireToolCall, at int) {
	index := at
	if w.Index != nil {
		index = *w.Index
	}
	n := len(a.calls) - 1
	for ; n >= 0; n-- {
		if k := &a.calls[n]; k.index == index && (w.ID == "" || w.ID == k.id || k.id == "") {
			break
		}
	}
	if n < 0 {
		if len(a.calls) == maxCalls {
			a.err = fault.Malformed("the answer has too many tool calls", nil)
			return
		}
		n = len(a.calls)
		a.calls = append(a.calls, toolCall{index: index})
	}
	c := &a.calls[n]
	if w.ID != "" {
		c.id = w.ID
	}
	if w.Function.Name != "" {
		c.name = w.Function.Name
	}
	if s := w.ExtraContent.Google.ThoughtSignature; s != "" {
		c.signature = s
	}
	c.arguments = append(c.arguments, w.Function.Arguments...)
	a.Step(Delta{Call: n, ID: w.ID, Name: w.Function.Name, Arguments: string(w.Function.Arguments)})
}

// Received returns the number of bytes received.
func (a *Assembler) Received() int {
	n := a.text.Len() + a.refusal.Len() + a.thought.Len()
	for i := range a.calls {
		n += len(a.calls[i].name) + len(a.calls[i].arguments)
	}
	return n
}

// Response returns the answer, or an error if the stream is incomplete. A stream is complete after
// [DONE], or with a finish_reason and the usage, without which the cost is unknown.
func (a *Assembler) Response() (*llm.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	if !a.done && (a.finish == "" || a.r.Usage == llm.Usage{}) {
		return nil, fault.Malformed("the stream ended without [DONE], or without a finish_reason and the usage: the answer is incomplete", nil)
	}
	r := new(llm.Response) // which outlives the Assembler
	*r = a.r
	r.Text, r.Refusal = a.text.String(), a.refusal.String()
	if a.thought.Len() > 0 {
		r.Thoughts = append(r.Thoughts, llm.Thought{Text: a.thought.String()})
	}
	for i := range a.calls {
		c := &a.calls[i]
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: c.id, Name: c.name, Arguments: string(c.arguments)})
		if c.signature != "" && c.id != "" {
			r.Thoughts = append(r.Thoughts, llm.Thought{ID: c.id, Signature: c.signature})
		}
	}
	if a.finish == "" && r.Text == "" && r.Refusal == "" && len(r.ToolCalls) == 0 {
		return nil, fault.Malformed("the answer is empty and has no finish reason", nil)
	}
	r.Finish = finishOf(a.finish)
	switch {
	case r.Refusal != "":
		r.Finish = llm.FinishRefused
	case len(r.ToolCalls) > 0 && r.Finish == llm.FinishStop:
		r.Finish = llm.FinishTools
	}
	if len(r.Logprobs) == len(r.TokenIDs) {
		for i := range r.Logprobs {
			r.Logprobs[i].ID = r.TokenIDs[i]
		}
	}
	return r, nil
}

// tokens adds the tokens of a choice, or of a chunk of one.
func (a *Assembler) tokens(c *wireChoice) {
	a.r.TokenIDs = append(a.r.TokenIDs, c.TokenIDs...)
	if len(c.PromptIDs) > 0 {
		a.r.PromptTokenIDs = c.PromptIDs
	}
	m := c.MetaInfo
	if m == nil {
		return
	}
	if m.WeightVersion != "" {
		a.r.WeightVersion = string(m.WeightVersion)
	}
	if len(c.TokenIDs) > 0 {
		return // meta_info repeats them
	}
	whole := len(a.r.Logprobs) == len(m.Tokens)
	for i, t := range m.Tokens {
		a.r.TokenIDs = append(a.r.TokenIDs, t.id)
		if whole {
			a.r.Logprobs[i].Logprob = t.logprob
		} else {
			a.r.Logprobs = append(a.r.Logprobs, llm.Logprob{Logprob: t.logprob})
		}
	}
}

// metaInfo is the part of a choice that SGLang adds.
type metaInfo struct {
	Tokens        []token `json:"output_token_logprobs"`
	WeightVersion version `json:"weight_version"`
}

// token is the JSON list [log probability, ID, text]. Some servers leave the text out.
type token struct {
	logprob float64
	id      int
	text    string
}

// UnmarshalJSON reads the list.
func (t *token) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) < 2 {
		return errors.New("a token has no id")
	}
	if err := json.Unmarshal(parts[0], &t.logprob); err != nil {
		return fmt.Errorf("log probability of a token: %w", err)
	}
	if err := json.Unmarshal(parts[1], &t.id); err != nil {
		return fmt.Errorf("id of a token: %w", err)
	}
	if len(parts) > 2 {
		t.text = request.String(parts[2])
	}
	return nil
}

// version is the version of a model's weights: a string, or a number with some trainers.
type version string

// UnmarshalJSON accepts both forms, and ignores anything else.
func (v *version) UnmarshalJSON(b []byte) error {
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(b, &text) == nil:
		*v = version(text)
	case json.Unmarshal(b, &number) == nil:
		*v = version(number)
	}
	return nil
}

// versioned is an object that may have the version of the weights, among anything else.
type versioned struct{ version version }

// UnmarshalJSON ignores a value that is not such an object.
func (v *versioned) UnmarshalJSON(b []byte) error {
	var o struct {
		WeightVersion version `json:"weight_version"`
	}
	if json.Unmarshal(b, &o) == nil {
		v.version = o.WeightVersion
	}
	return nil
}

// textLogprobs are the log probabilities of a text completion.
type textLogprobs struct {
	Tokens        []string  `json:"tokens"`
	TokenLogprobs []float64 `json:"token_logprobs"`
}

// list returns them as chat completions have them.
func (o *textLogprobs) list() (all []Logprob) {
	for i, p := range o.TokenLogprobs {
		l := Logprob{Logprob: p}
		if i < len(o.Tokens) {
			l.Token = o.Tokens[i]
		}
		all = append(all, l)
	}
	return all
}

// completed adds what a text completion has.
func (a *Assembler) completed(c *wireChoice) {
	a.text.WriteString(c.Text)
	if c.Logprobs != nil {
		a.r.Logprobs = Logprobs(a.r.Logprobs, c.Logprobs.list())
	}
}
