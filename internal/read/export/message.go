package export

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"parley/journal"
	"parley/llm"
)

// inspectMessage is a ChatMessage.
type inspectMessage struct {
	ID         string         `json:"id,omitempty"`
	Role       string         `json:"role"`
	Content    any            `json:"content"` // a text, or a list of content
	Source     string         `json:"source,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	ToolCalls  []toolCall     `json:"tool_calls,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	Model      string         `json:"model,omitempty"`
}

// content is a Content: a text, an image, a document, a recording, or the reasoning of a model.
type content struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	Image     string  `json:"image,omitempty"`
	Document  string  `json:"document,omitempty"`
	Filename  string  `json:"filename,omitempty"`
	MimeType  string  `json:"mime_type,omitempty"`
	Audio     string  `json:"audio,omitempty"`
	Format    string  `json:"format,omitempty"`
	Reasoning *string `json:"reasoning,omitempty"`
}

type toolCall struct {
	ID        string         `json:"id"`
	Function  string         `json:"function"`
	Arguments map[string]any `json:"arguments"`
	Type      string         `json:"type"`
	Error     string         `json:"parse_error,omitempty"`
}

// output is a ModelOutput.
type output struct {
	Model      string   `json:"model"`
	Choices    []choice `json:"choices"`
	Completion string   `json:"completion"`
	Usage      *usage   `json:"usage,omitempty"`
	Time       float64  `json:"time,omitempty"`
	Error      string   `json:"error,omitempty"`
}

type choice struct {
	Message inspectMessage `json:"message"`
	Stop    string         `json:"stop_reason"`
}

// event is a ModelEvent or an InfoEvent.
type event struct {
	Event     string         `json:"event"`
	Timestamp string         `json:"timestamp,omitempty"`
	Working   float64        `json:"working_start"`
	Metadata  map[string]any `json:"metadata,omitempty"`

	// Of a ModelEvent.
	Model      string           `json:"model,omitempty"`
	Role       string           `json:"role,omitempty"`
	Input      []inspectMessage `json:"input,omitempty"`
	Tools      []any            `json:"tools,omitempty"`
	ToolChoice string           `json:"tool_choice,omitempty"`
	Config     *generate        `json:"config,omitempty"`
	Output     *output          `json:"output,omitempty"`
	Retries    int              `json:"retries,omitempty"`
	Error      string           `json:"error,omitempty"`
	Cache      string           `json:"cache,omitempty"`
	Completed  string           `json:"completed,omitempty"`
	WorkTime   float64          `json:"working_time,omitempty"`

	// Of an InfoEvent.
	Source string         `json:"source,omitempty"`
	Data   map[string]any `json:"data,omitempty"`
}

// MarshalJSON writes the required fields of an event even if they are empty.
func (e event) MarshalJSON() ([]byte, error) {
	type plain event
	if e.Event != "model" {
		return json.Marshal(plain(e))
	}
	return json.Marshal(struct {
		plain
		Input []inspectMessage `json:"input"`
		Tools []any            `json:"tools"`
	}{plain(e), e.Input, []any{}})
}

// inform adds an InfoEvent.
func (s *sample) inform(data map[string]any, at time.Time) {
	s.Events = append(s.Events, event{Event: "info", Source: "parley", Timestamp: stamp(at), Working: s.since(at), Data: data})
}

// since returns how many seconds the sample had been played.
func (s *sample) since(at time.Time) float64 {
	if s.first.IsZero() || at.Before(s.first) {
		return 0
	}
	return at.Sub(s.first).Seconds()
}

// ask adds a call of a model: an event with the whole request, and the messages that are new to the
// seat.
func (s *sample) ask(e *journal.Replied) {
	where := map[string]any{"seat": e.Seat, "agent": e.Agent, "label": e.Label, "strand": e.Strand, "turn": e.Turn.Turn}
	prompt := make([]inspectMessage, len(e.Request.Messages))
	for i := range e.Request.Messages {
		m := &e.Request.Messages[i]
		prompt[i] = messageOf(m)
		if key := e.Seat + "\x00" + string(m.Role) + "\x00" + m.Text(); !s.shown[key] {
			s.shown[key] = true
			shown := prompt[i]
			shown.Source, shown.Metadata = "input", where
			s.Messages = append(s.Messages, shown)
		}
	}
	if len(s.Input) == 0 {
		s.Input = prompt
	}
	t := metadata(e)
	ev := event{
		Event: "model", Timestamp: stamp(e.At.Add(-t.Latency)), Working: s.since(e.At.Add(-t.Latency)), Metadata: where, Model: e.Request.Model, Role: e.Agent,
		Input: prompt, ToolChoice: "auto", Config: settings(e.Request), Retries: max(0, t.Attempts-1), Completed: stamp(e.At), WorkTime: t.Latency.Seconds(),
	}
	if t.Cached || t.Coalesced {
		ev.Cache = "read"
	}
	out := output{Model: e.Request.Model, Choices: []choice{}, Time: t.Latency.Seconds()}
	var used llm.Usage
	switch {
	case e.Response != nil:
		answer := answerOf(e.Response)
		used, out.Completion = e.Response.Usage, e.Response.Text
		out.Choices = append(out.Choices, choice{Message: answer, Stop: finishes(e.Response.Finish)})
		s.shown[e.Seat+"\x00"+string(llm.RoleAssistant)+"\x00"+e.Response.Text] = true
		answer.Metadata = where
		s.Messages = append(s.Messages, answer)
		s.Output = out
	case e.Error != nil:
		used, out.Error, ev.Error = e.Error.Usage, e.Error.Error(), e.Error.Error()
	}
	if !e.Copied && !t.Cached && !t.Coalesced {
		out.Usage = usageOf(used, e.Cost())
		if s.Usage[e.Request.Model] == nil {
			s.Usage[e.Request.Model] = &usage{}
		}
		s.Usage[e.Request.Model].plus(out.Usage)
		if e.Response != nil {
			s.Output.Usage = out.Usage
		}
	}
	ev.Output = &out
	s.Events = append(s.Events, ev)
}

func settings(r *llm.Request) *generate {
	return &generate{Temperature: r.Temperature, TopP: r.TopP, MaxTokens: r.MaxTokens, Seed: r.Seed, Stop: r.Stop}
}

// messageOf converts a message of a prompt.
func messageOf(m *llm.Message) inspectMessage {
	out := inspectMessage{Role: string(m.Role), Content: m.Text(), ToolCallID: m.ToolCallID, ToolCalls: callsOf(m.ToolCalls)}
	var parts []content
	for _, t := range m.Thoughts {
		parts = append(parts, content{Type: "reasoning", Reasoning: new(t.Text)})
	}
	plain := len(parts) == 0
	for _, p := range m.Parts {
		plain = plain && p.IsText()
		switch {
		case p.Image != nil:
			parts = append(parts, content{Type: "image", Image: p.Image.DataURL()})
		case p.File != nil:
			parts = append(parts, fileOf(p.File))
		default:
			parts = append(parts, content{Type: "text", Text: new(p.Text)})
		}
	}
	if !plain {
		out.Content = parts
	}
	return out
}

func fileOf(f *llm.File) content {
	if f.IsAudio() {
		return content{Type: "audio", Audio: f.DataURL(), Format: f.Format()}
	}
	return content{Type: "document", Document: f.DataURL(), Filename: cmp.Or(f.Name, "document.pdf"), MimeType: f.MediaType}
}

// answerOf converts an answer of a model.
func answerOf(r *llm.Response) inspectMessage {
	text := r.Text
	if text == "" {
		text = r.Refusal
	}
	out := messageOf(&llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: text}}, Thoughts: r.Thoughts, ToolCalls: r.ToolCalls})
	out.Source, out.Model = "generate", r.Model
	return out
}

func callsOf(calls []llm.ToolCall) []toolCall {
	var out []toolCall
	for _, c := range calls {
		t := toolCall{ID: c.ID, Function: c.Name, Type: "function", Arguments: map[string]any{}}
		if err := json.Unmarshal([]byte(c.Arguments), &t.Arguments); err != nil || t.Arguments == nil {
			t.Arguments, t.Error = map[string]any{}, "not a JSON object: "+c.Arguments
		}
		out = append(out, t)
	}
	return out
}

// text returns the text of a message.
func (m *inspectMessage) text() string {
	switch c := m.Content.(type) {
	case string:
		return c
	case []content:
		var b strings.Builder
		for _, p := range c {
			if p.Text != nil {
				b.WriteString(*p.Text)
			}
		}
		return b.String()
	}
	return ""
}
