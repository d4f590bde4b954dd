package responses

import (
	"bytes"
	"encoding/json"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/sse"
	"parley/llm"
)

var answersDecoder = request.NewDecoder[wireResponse]()

type wireResponse struct {
	ID          string          `json:"id"`
	Model       string          `json:"model"`
	Status      string          `json:"status"`
	ServiceTier string          `json:"service_tier"`
	Error       json.RawMessage `json:"error"`
	Incomplete  *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []wireItem `json:"output"`
	Usage  *struct {
		InputTokens  int `json:"input_tokens"`
		OutputTokens int `json:"output_tokens"`
		Input        struct {
			Cached int `json:"cached_tokens"`
			Write  int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Output struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

type wireItem struct {
	Type      string     `json:"type"`
	ID        string     `json:"id"`
	Content   []wirePart `json:"content"`
	CallID    string     `json:"call_id"`
	Name      string     `json:"name"`
	Arguments string     `json:"arguments"`
	Summary   []wirePart `json:"summary"`
	Encrypted string     `json:"encrypted_content"`
}

type wirePart struct {
	Type     string           `json:"type"`
	Text     string           `json:"text"`
	Refusal  string           `json:"refusal"`
	Logprobs []openai.Logprob `json:"logprobs"`
}

// DecodeResponse reads a whole answer. An answer that failed or is not finished is an error.
func DecodeResponse(b []byte) (*llm.Response, error) {
	w, err := answersDecoder.Decode(b)
	if err != nil {
		return nil, fault.Malformed("the answer is not in the responses format", err)
	}
	if !body.IsNull(w.Error) || w.Status == "failed" {
		e := fault.Classify(0, nil, b)
		e.Uncertain = w.Status == "failed"
		return nil, e
	}
	switch w.Status {
	case "completed", "incomplete":
	case "cancelled":
	case "":
		if w.Output == nil {
			return nil, fault.Malformed("the answer is not in the responses format: it has no status and no output", nil)
		}
	default:
		return nil, fault.Malformed("the answer is not finished: its status is "+w.Status, nil)
	}
	r := &llm.Response{ID: w.ID, Model: w.Model, Tier: w.ServiceTier}
	var text, refusal strings.Builder
	for i := range w.Output {
		addItem(r, &w.Output[i], &text, &refusal)
	}
	r.Text, r.Refusal = text.String(), refusal.String()
	if u := w.Usage; u != nil {
		r.Usage = llm.Usage{
			Input: u.InputTokens, Cached: u.Input.Cached, CacheWrite: u.Input.Write,
			Output: u.OutputTokens, Reasoning: u.Output.Reasoning,
		}
	}
	r.Finish = finishOf(w, r)
	return r, nil
}

func addItem(r *llm.Response, it *wireItem, text, refusal *strings.Builder) {
	switch it.Type {
	case "message":
		for i := range it.Content {
			p := &it.Content[i]
			text.WriteString(p.Text)
			refusal.WriteString(p.Refusal)
			r.Logprobs = openai.Logprobs(r.Logprobs, p.Logprobs)
		}
	case "function_call":
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: it.CallID, Name: it.Name, Arguments: it.Arguments})
	case "reasoning":
		parts := it.Summary
		if len(parts) == 0 {
			parts = it.Content
		}
		words := make([]string, len(parts))
		for i := range parts {
			words[i] = parts[i].Text
		}
		r.Thoughts = append(r.Thoughts, llm.Thought{ID: it.ID, Text: strings.Join(words, "\n\n"), Opaque: it.Encrypted})
	}
}

func finishOf(w *wireResponse, r *llm.Response) llm.Finish {
	switch {
	case w.Status == "cancelled":
		return llm.FinishAborted
	case w.Status == "incomplete" && w.Incomplete != nil && w.Incomplete.Reason == "content_filter", r.Refusal != "":
		return llm.FinishRefused
	case w.Status == "incomplete":
		return llm.FinishLength
	case len(r.ToolCalls) > 0:
		return llm.FinishTools
	}
	return llm.FinishStop
}

// Assembler waits for the last event of a stream, which holds the whole answer. It does not read
// the pieces before it.
type Assembler struct {
	r        *llm.Response
	err      error
	received int // bytes of the pieces, as JSON
}

// Event adds an event.
func (a *Assembler) Event(e sse.Event) (bool, error) {
	name := string(e.Name)
	if name == "" {
		name = typeOf(e.Data)
	}
	switch name {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		var w struct {
			Response json.RawMessage `json:"response"`
		}
		if err := json.Unmarshal(e.Data, &w); err != nil {
			return false, fault.Malformed("the last event of the stream is not in the responses format", err)
		}
		a.r, a.err = DecodeResponse(w.Response)
		return true, a.err
	case "error":
		return false, fault.Classify(0, nil, e.Data)
	}
	if strings.HasSuffix(name, ".delta") {
		a.received += pieceOf(e.Data)
	}
	return e.Done(), nil
}

// pieceOf returns the number of bytes that an event adds to the answer. It does not decode the
// event, since the piece itself is not needed.
func pieceOf(data []byte) int {
	_, rest, _ := bytes.Cut(data, []byte(`"delta":`))
	rest = bytes.TrimLeft(rest, " ")
	if len(rest) == 0 || rest[0] != '"' {
		return 0
	}
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return i - 1
		}
	}
	return 0
}

// Received returns the number of bytes received.
func (a *Assembler) Received() int {
	if a.r != nil {
		return max(a.received, len(a.r.Text))
	}
	return a.received
}

// typeOf returns the type in the data of an event without a name.
func typeOf(data []byte) string {
	var w struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &w) != nil {
		return ""
	}
	if w.Type == "" && !body.IsNull(w.Error) {
		return "error"
	}
	return w.Type
}

// Response returns the answer, or an error if the stream is incomplete.
func (a *Assembler) Response() (*llm.Response, error) {
	if a.r == nil && a.err == nil {
		return nil, fault.Malformed("the stream ended without response.completed: the answer is incomplete", nil)
	}
	return a.r, a.err
}
