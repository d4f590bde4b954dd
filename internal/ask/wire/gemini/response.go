package gemini

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/llm"
)

// wireResponse is an answer, or an event of a stream.
type wireResponse struct {
	Candidates []wireCandidate `json:"candidates"`
	Feedback   struct {
		Reason  string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *wireUsage      `json:"usageMetadata"`
	Model string          `json:"modelVersion"`
	ID    string          `json:"responseId"`
	Error json.RawMessage `json:"error"`
}

type wireCandidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []wirePart `json:"parts"`
	} `json:"content"`
	Finish   string        `json:"finishReason"`
	Message  string        `json:"finishMessage"`
	Logprobs *wireLogprobs `json:"logprobsResult"`
}

type wirePart struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

type wireUsage struct {
	Prompt   int    `json:"promptTokenCount"`
	Tools    int    `json:"toolUsePromptTokenCount"`
	Cached   int    `json:"cachedContentTokenCount"`
	Output   int    `json:"candidatesTokenCount"`
	Thoughts int    `json:"thoughtsTokenCount"`
	Tier     string `json:"serviceTier"`
	Details  []struct {
		Modality string `json:"modality"`
		Count    int    `json:"tokenCount"`
	} `json:"promptTokensDetails"`
	Traffic string `json:"trafficType"` // Vertex AI's
}

type wireLogprobs struct {
	Top []struct {
		Candidates []wireToken `json:"candidates"`
	} `json:"topCandidates"`
	Chosen []wireToken `json:"chosenCandidates"`
}

type wireToken struct {
	Token   string  `json:"token"`
	ID      int     `json:"tokenId"`
	Logprob float64 `json:"logProbability"`
}

// usage returns the counts as llm.Usage has them. The format does not count thoughts as output, but they are billed as
// output.
func (u *wireUsage) usage() llm.Usage {
	if least := min(u.Prompt, u.Tools, u.Cached, u.Output, u.Thoughts); least < 0 {
		return llm.Usage{Input: least}
	}
	audio := 0
	for _, d := range u.Details {
		if d.Modality == "AUDIO" {
			audio = llm.AddTokens(audio, d.Count)
		}
	}
	return llm.Usage{Input: llm.AddTokens(u.Prompt, u.Tools), Audio: audio, Cached: u.Cached, Output: llm.AddTokens(u.Output, u.Thoughts), Reasoning: u.Thoughts}
}

// DecodeResponse reads a whole answer. If the body reports an error with status 200, it returns that error.
func DecodeResponse(b []byte) (*llm.Response, error) {
	var a Assembler
	if _, err := a.Event(sse.Event{Data: b}); err != nil {
		return nil, err
	}
	return a.Response()
}

// Assembler assembles an answer from its events. Each is an answer with a piece of the content, and the last one has the
// reason to stop. The step of a tool call has its signature too.
type Assembler struct {
	openai.Steps
	r            llm.Response
	text, thinks strings.Builder
	finish       string
	why          string // the server's explanation of finish
	blocked      bool   // the prompt was refused
	received     int
}

// maxCalls bounds the tool calls of an answer.
const maxCalls = 100_000

// Event adds an event. No event says that it is the last: the connection ends.
func (a *Assembler) Event(e sse.Event) (bool, error) {
	var w wireResponse
	if err := json.Unmarshal(e.Data, &w); err != nil {
		if f := fault.Classify(0, nil, e.Data); f.Status >= 400 { // errors may be in a list
			return false, f
		}
		return false, fault.Malformed("the answer is not one of generateContent", err)
	}
	if w.Usage != nil {
		a.r.Usage = a.r.Usage.Max(w.Usage.usage())
		if tier := w.Usage.tier(); tier != "" {
			a.r.Tier = tier
		}
	}
	if !body.IsNull(w.Error) {
		return false, fault.Classify(0, nil, e.Data)
	}
	if w.Model != "" {
		a.r.Model = w.Model
	}
	if w.ID != "" {
		a.r.ID = w.ID
	}
	if w.Feedback.Reason != "" {
		a.blocked, a.finish, a.why = true, w.Feedback.Reason, w.Feedback.Message
	}
	first := slices.IndexFunc(w.Candidates, func(c wireCandidate) bool { return c.Index == 0 }) // clients of the gateway may ask for several
	if first < 0 {
		return false, nil
	}
	c := &w.Candidates[first]
	for i := range c.Content.Parts {
		if err := a.part(&c.Content.Parts[i]); err != nil {
			return false, err
		}
	}
	a.logprobs(c.Logprobs)
	if c.Finish != "" {
		a.finish, a.why = c.Finish, c.Message
	}
	return false, nil
}

// part adds a part of the content.
func (a *Assembler) part(p *wirePart) error {
	a.received += len(p.Text)
	id, step := textID, openai.Delta{Text: p.Text}
	switch {
	case p.Call != nil:
		if len(a.r.ToolCalls) == maxCalls {
			return fault.Malformed("the answer has too many tool calls", nil)
		}
		if id = p.Call.ID; id == "" {
			id = "call-" + strconv.Itoa(len(a.r.ToolCalls))
		}
		args := "{}"
		if !body.IsNull(p.Call.Args) {
			args = string(p.Call.Args)
		}
		a.received += len(args)
		step = openai.Delta{Call: len(a.r.ToolCalls), ID: id, Name: p.Call.Name, Arguments: args, Signature: p.Signature}
		a.r.ToolCalls = append(a.r.ToolCalls, llm.ToolCall{ID: id, Name: p.Call.Name, Arguments: args})
	case p.Thought:
		a.thinks.WriteString(p.Text)
		step = openai.Delta{Thought: p.Text}
	default:
		a.text.WriteString(p.Text)
	}
	if p.Signature != "" {
		a.r.Thoughts = append(a.r.Thoughts, llm.Thought{ID: id, Signature: p.Signature})
	}
	a.Step(step)
	return nil
}

func (a *Assembler) logprobs(w *wireLogprobs) {
	if w == nil {
		return
	}
	for i, t := range w.Chosen {
		p := llm.Logprob{Token: t.Token, ID: t.ID, Logprob: t.Logprob}
		if i < len(w.Top) {
			for _, o := range w.Top[i].Candidates {
				p.Top = append(p.Top, llm.Logprob{Token: o.Token, ID: o.ID, Logprob: o.Logprob})
			}
		}
		a.r.Logprobs = append(a.r.Logprobs, p)
	}
}

// Received returns the number of bytes received.
func (a *Assembler) Received() int { return a.received }

// Response returns the answer, or an error if it is incomplete.
func (a *Assembler) Response() (*llm.Response, error) {
	r := &a.r
	r.Text = a.text.String()
	if a.thinks.Len() > 0 {
		r.Thoughts = append([]llm.Thought{{Text: a.thinks.String()}}, r.Thoughts...)
	}
	switch a.finish {
	case "":
		return nil, fault.Malformed("the answer ended without a finishReason: it is incomplete", nil)
	case "STOP":
		r.Finish = llm.FinishStop
		if len(r.ToolCalls) > 0 {
			r.Finish = llm.FinishTools
		}
	case "MAX_TOKENS", "CONTINUATION":
		r.Finish = llm.FinishLength
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return nil, fault.Malformed("the model's tool call is not valid: "+fault.Clean(strings.TrimSpace(a.finish+" "+a.why), fault.MaxMessage), nil)
	default:
		r.Finish, r.Refusal = llm.FinishRefused, a.refusal()
	}
	return r, nil
}

// refusal returns why there is no answer.
func (a *Assembler) refusal() string {
	what := "the answer was blocked: "
	if a.blocked {
		what = "the prompt was blocked: "
	}
	return what + fault.Clean(strings.TrimSpace(a.finish+" "+a.why), fault.MaxMessage)
}
