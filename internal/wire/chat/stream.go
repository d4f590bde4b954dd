package chat

import (
	"encoding/json"
	"strings"

	"parley/internal/wire/body"
	"parley/internal/wire/completion"
	"parley/internal/wire/fault"
	"parley/internal/wire/sse"
	"parley/llm"
)

// NewAssembler begins to read a stream.
func NewAssembler() *Assembler { return &Assembler{} }

// Each has every step of the answer handed to each as it comes.
func (a *Assembler) Each(each func(completion.Delta)) { a.each = each }

// Assembler gathers an answer, chunk by chunk or from a whole one.
type Assembler struct {
	r       llm.Response
	text    strings.Builder
	refusal strings.Builder
	thought strings.Builder
	calls   []call
	finish  string
	done    bool // [DONE] came, or the answer was whole
	err     error
	each    func(completion.Delta) // may be nil
}

// maxCalls bounds the tool calls of an answer: each piece is looked up among them.
const maxCalls = 1000

// call is a tool call in the making.
type call struct {
	index     int
	id, name  string
	signature string
	arguments []byte
}

// Event takes a chunk.
func (a *Assembler) Event(e sse.Event) (bool, error) {
	if e.Done() {
		a.done = true
		return true, nil
	}
	if string(e.Name) == "error" {
		return false, fault.Classify(0, nil, e.Data)
	}
	var w wireResponse
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return false, fault.Malformed("a chunk of the stream is not of the chat completions form", err)
	}
	if !body.IsNull(w.Error) {
		return false, fault.Classify(0, nil, e.Data)
	}
	a.envelope(&w)
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
	thought := m.ReasoningContent // some servers send both, and the same
	if thought == "" {
		thought = m.Reasoning
	}
	a.thought.WriteString(m.Content.thought)
	a.thought.WriteString(thought)
	if a.each != nil {
		for _, d := range []completion.Delta{{Thought: m.Content.thought + thought}, {Text: m.Content.text}, {Refusal: m.Refusal}} {
			if !d.IsEmpty() {
				a.each(d)
			}
		}
	}
	if c.Logprobs != nil {
		a.r.Logprobs = completion.Logprobs(a.r.Logprobs, c.Logprobs.Content)
		a.r.Logprobs = completion.Logprobs(a.r.Logprobs, c.Logprobs.Refusal)
	}
	a.tokens(c)
	if c.FinishReason != "" {
		a.finish = c.FinishReason
	}
	a.err = faultOf(c)
	for i := range m.ToolCalls {
		a.toolCall(&m.ToolCalls[i], i)
	}
}

// faultOf finds a failure told as a reason to finish.
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

// toolCall adds a piece to the call it belongs to: the one of its index, unless it
// has an id of its own, since some servers number every call 0.
func (a *Assembler) toolCall(w *wireToolCall, at int) {
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
			a.err = fault.Malformed("the answer holds more tool calls than any model makes", nil)
			return
		}
		n = len(a.calls)
		a.calls = append(a.calls, call{index: index})
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
	if a.each != nil {
		if d := (completion.Delta{Call: n, ID: w.ID, Name: w.Function.Name, Arguments: string(w.Function.Arguments)}); !d.IsEmpty() {
			a.each(d)
		}
	}
}

// Received says how much of the answer came.
func (a *Assembler) Received() int {
	n := a.text.Len() + a.refusal.Len() + a.thought.Len()
	for i := range a.calls {
		n += len(a.calls[i].name) + len(a.calls[i].arguments)
	}
	return n
}

// Response returns the answer. A stream that ended without saying so is an error. What
// says so is [DONE]; servers that do not send it must have given a finish_reason, and the
// usage that follows it, without which nobody knows what the answer cost.
func (a *Assembler) Response() (*llm.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	if !a.done && (a.finish == "" || a.r.Usage == llm.Usage{}) {
		return nil, fault.Malformed("the stream ended without [DONE], or a finish_reason and the usage: the answer is cut off", nil)
	}
	r := &a.r
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
		return nil, fault.Malformed("the answer is empty and says no reason", nil)
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
