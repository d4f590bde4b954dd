package openai

import (
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/kit/sse"
	"parley/llm"
)

// NewAssembler returns an Assembler of a stream.
func NewAssembler() *Assembler { return &Assembler{} }

// Each sets a function that is called with every step of the answer.
func (a *Assembler) Each(each func(Delta)) { a.each = each }

// Assembler assembles an answer from its chunks.
type Assembler struct {
	r       llm.Response
	text    strings.Builder
	refusal strings.Builder
	thought strings.Builder
	calls   []toolCall
	finish  string
	done    bool // after [DONE], or if the answer was not streamed
	err     error
	each    func(Delta) // may be nil
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
	w, err := body.Decode[wireResponse](e.Data)
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
	if a.each != nil {
		for _, d := range []Delta{{Thought: m.Content.thought + thought}, {Text: m.Content.text}, {Refusal: m.Refusal}} {
			if !d.IsEmpty() {
				a.each(d)
			}
		}
	}
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
	if a.each != nil {
		if d := (Delta{Call: n, ID: w.ID, Name: w.Function.Name, Arguments: string(w.Function.Arguments)}); !d.IsEmpty() {
			a.each(d)
		}
	}
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
