package export

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
)

// atifVersion is the version of the Agent Trajectory Interchange Format.
const atifVersion = "ATIF-v1.8"

// WriteATIF writes what each seat of each episode of a run did as a trajectory in the Agent Trajectory Interchange Format of Harbor, in a file of
// its own: an episode that ended or failed, or a session of a gateway, even if it was not closed. Seats that asked nothing and said nothing have no
// file. put writes a file of that name. It ends with a SizeError as Write does. Harbor's own models read the files: a test in test/sdk checks it.
func WriteATIF(ctx context.Context, store *runfile.Store, kind world.Kind, limit int64, put func(name string, write func(io.Writer) error) error) (done Written, err error) {
	about, err := outline(ctx, store)
	if err != nil {
		return done, err
	}
	done.LeftOut, err = eachWhole(ctx, store, kind, limit, func(e *runfile.Listed, entries []journal.Entry) error {
		names := map[string]bool{}
		for _, t := range trajectoriesOf(about.Begun, e, entries) {
			name := exhibit.FileName(fmt.Sprintf("%06d-%s", e.Episode, cmp.Or(t.seat, "seat")))
			for n := 2; names[strings.ToLower(name)]; n++ { // some file systems ignore case
				name = fmt.Sprintf("%06d-%d", e.Episode, n)
			}
			names[strings.ToLower(name)] = true
			done.Count++
			if err := put(name+".json", t.write); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

// atifTrajectory is a Trajectory: what one seat read, said and did.
type atifTrajectory struct {
	Schema  string         `json:"schema_version"`
	Session string         `json:"session_id"`
	ID      string         `json:"trajectory_id"`
	Agent   atifAgent      `json:"agent"`
	Steps   []*atifStep    `json:"steps"`
	Final   atifFinal      `json:"final_metrics"`
	Extra   map[string]any `json:"extra"`

	seat string
	said []string // what the last call that went on with the conversation had in it, its answer included
	ever map[string]bool
	fail int // calls that failed
}

type atifAgent struct {
	Name    string         `json:"name"`
	Version string         `json:"version"`
	Model   string         `json:"model_name,omitempty"`
	Tools   []atifTool     `json:"tool_definitions,omitempty"`
	Extra   map[string]any `json:"extra,omitempty"`
}

type atifTool struct {
	Type     string   `json:"type"`
	Function llm.Tool `json:"function"`
}

type atifStep struct {
	ID          int              `json:"step_id"`
	Timestamp   string           `json:"timestamp,omitempty"`
	Source      string           `json:"source"`
	Model       string           `json:"model_name,omitempty"`
	Effort      llm.Effort       `json:"reasoning_effort,omitempty"`
	Message     any              `json:"message"` // a text, or a list of atifPart
	Reasoning   string           `json:"reasoning_content,omitempty"`
	Calls       []atifCall       `json:"tool_calls,omitempty"`
	Observation *atifObservation `json:"observation,omitempty"`
	Metrics     *atifMetrics     `json:"metrics,omitempty"`
	Copied      bool             `json:"is_copied_context,omitempty"`
	Asked       *int             `json:"llm_call_count,omitempty"`
	Extra       map[string]any   `json:"extra,omitempty"`
}

type atifCall struct {
	ID        string         `json:"tool_call_id"`
	Name      string         `json:"function_name"`
	Arguments map[string]any `json:"arguments"`
	Extra     map[string]any `json:"extra,omitempty"`
}

type atifObservation struct {
	Results []atifResult `json:"results"`
}

type atifResult struct {
	Call    string         `json:"source_call_id"`
	Content any            `json:"content"`
	Extra   map[string]any `json:"extra,omitempty"`
}

type atifPart struct {
	Type   string      `json:"type"`
	Text   *string     `json:"text,omitempty"`
	Source *atifSource `json:"source,omitempty"`
}

type atifSource struct {
	Media string `json:"media_type"`
	Path  string `json:"path"`
}

type atifMetrics struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Cached     int            `json:"cached_tokens,omitempty"`
	Cost       float64        `json:"cost_usd"`
	PromptIDs  []int          `json:"prompt_token_ids,omitempty"`
	IDs        []int          `json:"completion_token_ids,omitempty"`
	Logprobs   []float64      `json:"logprobs,omitempty"`
	Extra      map[string]any `json:"extra,omitempty"`
}

type atifFinal struct {
	Prompt     int     `json:"total_prompt_tokens"`
	Completion int     `json:"total_completion_tokens"`
	Cached     int     `json:"total_cached_tokens"`
	Cost       float64 `json:"total_cost_usd"`
	Steps      int     `json:"total_steps"`
}

// write writes the trajectory.
func (t *atifTrajectory) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(t)
}

// trajectoriesOf returns the trajectories of an episode, of its last attempt, in the order in which the seats began.
func trajectoriesOf(b *journal.Begun, e *runfile.Listed, entries []journal.Entry) []*atifTrajectory {
	end := e.Ended
	if end == nil {
		end = &journal.Ended{Attempt: e.Attempt}
	}
	var all []*atifTrajectory
	spent := map[string]*journal.Spending{} // by seat, of all attempts: the last may have copied from them
	for _, entry := range entries {
		r, ok := entry.(*journal.Replied)
		if ok {
			if spent[r.Seat] == nil {
				spent[r.Seat] = &journal.Spending{}
			}
			spent[r.Seat].Add(r)
		}
		if !ok || r.Attempt != end.Attempt || r.Request == nil && (r.Act != nil || r.Response == nil) {
			continue
		}
		i := slices.IndexFunc(all, func(t *atifTrajectory) bool { return t.seat == r.Seat })
		if i < 0 {
			i = len(all)
			all = append(all, newTrajectory(b, e, end, r.Seat, cmp.Or(r.Agent, r.Seat, b.Kind)))
		}
		all[i].add(r)
	}
	all = slices.DeleteFunc(all, func(t *atifTrajectory) bool { return len(t.Steps) == 0 })
	for _, t := range all {
		of := spent[t.seat]
		t.Final = atifFinal{Prompt: of.Usage.Input, Completion: of.Usage.Output, Cached: of.Usage.Cached, Cost: of.Cost.Dollars(), Steps: len(t.Steps)}
		if t.fail > 0 {
			t.Extra["failed_calls"] = t.fail
		}
	}
	return all
}

func newTrajectory(b *journal.Begun, e *runfile.Listed, end *journal.Ended, seat, agent string) *atifTrajectory {
	t := &atifTrajectory{
		Schema: atifVersion, Session: fmt.Sprintf("%s-%d", b.Run, e.Episode), ID: fmt.Sprintf("%s-%d-%s", b.Run, e.Episode, seat),
		Agent: atifAgent{Name: agent, Version: "unknown"}, seat: seat, ever: map[string]bool{},
		Extra: map[string]any{"recorded_by": b.Tool, "kind": b.Kind, "seat": seat, "deal": e.Spec.Deal, "state": e.State()},
	}
	if e.Spec.Cell != "" {
		t.Extra["cell"] = e.Spec.Cell
	}
	if i := slices.IndexFunc(b.Agents, func(a world.Agent) bool { return a.Name == agent }); i >= 0 {
		t.Agent.Model = modelOf(b.Agents[i])
	}
	scores := map[string]any{}
	for _, s := range end.Outcome.Scores {
		if s.Seat == "" || s.Seat == seat {
			scores[s.Name] = results.JSONNumber(s.Value)
		}
	}
	if len(scores) > 0 {
		t.Extra["scores"] = scores
	}
	if end.Outcome.Failed != "" {
		t.Extra["error"] = end.Outcome.Failed
	}
	return t
}

// add adds a call: the messages that are new in it, and its answer.
func (t *atifTrajectory) add(r *journal.Replied) {
	if r.Request != nil {
		t.read(r.Request.Messages)
		if t.Agent.Model == "" {
			t.Agent.Model = r.Request.Model
		}
		if t.Agent.Tools == nil {
			for _, tool := range r.Request.Tools {
				t.Agent.Tools = append(t.Agent.Tools, atifTool{"function", tool})
			}
		}
	}
	if r.Response == nil {
		t.fail++
		return
	}
	a, asked := r.Response, 0
	m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: cmp.Or(a.Text, a.Refusal)}}, Thoughts: a.Thoughts, ToolCalls: a.ToolCalls}
	step := t.say(&m, keyOf(&m))
	step.Copied = false
	step.Timestamp = stampOf(r.At)
	step.Extra = map[string]any{"turn": r.Turn.Turn, "strand": r.Strand, "label": r.Label}
	if r.Request != nil {
		asked = 1
		step.Model, step.Effort = cmp.Or(a.Model, r.Request.Model), r.Request.Effort
		step.Extra["finish"] = a.Finish
		step.Metrics = measureOf(r)
	}
	step.Asked = &asked
}

// measureOf returns the metrics of an answer. What the run did not pay for is marked, and is not among those of the trajectory.
func measureOf(r *journal.Replied) *atifMetrics {
	a := r.Response
	m := &atifMetrics{Prompt: a.Usage.Input, Completion: a.Usage.Output, Cached: a.Usage.Cached, Cost: r.Cost().Dollars(), PromptIDs: a.PromptTokenIDs, IDs: a.TokenIDs, Extra: map[string]any{}}
	if len(a.Logprobs) > 0 && (len(a.TokenIDs) == 0 || len(a.TokenIDs) == len(a.Logprobs)) {
		for _, l := range a.Logprobs {
			m.Logprobs = append(m.Logprobs, l.Logprob)
		}
	}
	if a.Usage.Reasoning > 0 {
		m.Extra["reasoning_tokens"] = a.Usage.Reasoning
	}
	if a.WeightVersion != "" {
		m.Extra["weight_version"] = a.WeightVersion
	}
	if r.Reused() {
		m.Extra["unpaid"] = true
	}
	return m
}

// keyOf returns what identifies a message: programs repeat their conversation with every call.
func keyOf(m *llm.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s\x00%s", m.Role, m.ToolCallID, strings.TrimSpace(m.Text()))
	for _, c := range m.ToolCalls {
		fmt.Fprintf(&b, "\x00%s\x00%s", c.ID, c.Name)
	}
	for _, p := range m.Parts {
		if !p.IsText() {
			b.WriteString("\x00file")
		}
	}
	return b.String()
}

// read adds what is new in a prompt. A prompt that goes on with the conversation adds what follows it; in any other, such as that of a second
// agent, what was said before at any time is not new.
func (t *atifTrajectory) read(ms []llm.Message) {
	same := 0
	for same < len(ms) && same < len(t.said) && keyOf(&ms[same]) == t.said[same] {
		same++
	}
	goesOn := same == len(t.said)
	t.said = slices.Clone(t.said[:same])
	for i := same; i < len(ms); i++ {
		key := keyOf(&ms[i])
		if !goesOn && t.ever[key] {
			t.said = append(t.said, key)
			continue
		}
		t.say(&ms[i], key)
	}
}

// say adds a message. The result of a tool is added to the step that called it; without such a step it is one of the user.
func (t *atifTrajectory) say(m *llm.Message, key string) *atifStep {
	t.ever[key] = true
	if step := t.caller(m); step != nil {
		if step.Observation == nil {
			step.Observation = &atifObservation{}
		}
		r := atifResult{Call: m.ToolCallID, Content: contentOf(m)}
		if m.ToolFailed {
			r.Extra = map[string]any{"failed": true}
		}
		step.Observation.Results = append(step.Observation.Results, r)
		t.said = append(t.said, key)
		return step
	}
	step := &atifStep{ID: len(t.Steps) + 1, Source: "user", Message: contentOf(m)}
	switch m.Role {
	case llm.RoleSystem:
		step.Source = "system"
	case llm.RoleAssistant:
		step.Source, step.Copied = "agent", true // unless it is an answer of this run
		for _, thought := range m.Thoughts {
			step.Reasoning += thought.Text
		}
		for i, c := range m.ToolCalls {
			step.Calls = append(step.Calls, atifCallOf(c, fmt.Sprintf("call-%d-%d", step.ID, i)))
		}
	case llm.RoleTool:
		step.Extra = map[string]any{"tool_call_id": m.ToolCallID}
	}
	t.Steps = append(t.Steps, step)
	t.said = append(t.said, key)
	return step
}

// caller returns the last step that called the tool whose result a message is, or nil.
func (t *atifTrajectory) caller(m *llm.Message) *atifStep {
	if m.Role != llm.RoleTool {
		return nil
	}
	for _, s := range slices.Backward(t.Steps) {
		if slices.ContainsFunc(s.Calls, func(c atifCall) bool { return c.ID == m.ToolCallID }) {
			return s
		}
	}
	return nil
}

func atifCallOf(c llm.ToolCall, unnamed string) atifCall {
	out := atifCall{ID: cmp.Or(c.ID, unnamed), Name: c.Name, Arguments: map[string]any{}}
	if err := json.Unmarshal([]byte(c.Arguments), &out.Arguments); (err != nil || out.Arguments == nil) && c.Arguments != "" {
		out.Extra = map[string]any{"malformed_arguments": c.Arguments}
		out.Arguments = map[string]any{}
	}
	return out
}

// contentOf returns the content of a message: a text or, with pictures or sound, a list of parts. Other files are named.
func contentOf(m *llm.Message) any {
	var parts []atifPart
	media := false
	for _, p := range m.Parts {
		words := p.Text
		switch {
		case p.Image != nil && slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, p.Image.MediaType):
			media = true
			parts = append(parts, atifPart{Type: "image", Source: &atifSource{p.Image.MediaType, p.Image.DataURL()}})
			continue
		case p.Image != nil:
			words = "[image: " + p.Image.URL + "]"
		case p.File != nil && p.File.IsAudio() && len(p.File.Data) > 0:
			media = true
			kind := p.File.MediaType
			if kind == "audio/mp3" {
				kind = "audio/mpeg"
			}
			parts = append(parts, atifPart{Type: "audio", Source: &atifSource{kind, p.File.DataURL()}})
			continue
		case p.File != nil:
			words = fmt.Sprintf("[file: %s]", cmp.Or(p.File.Name, p.File.URL, p.File.MediaType))
		}
		parts = append(parts, atifPart{Type: "text", Text: &words})
	}
	if media {
		return parts
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(*p.Text)
	}
	return b.String()
}

// stampOf returns a time in ISO 8601, or "" for the zero time and for years that it does not have.
func stampOf(t time.Time) string {
	if y := t.UTC().Year(); t.IsZero() || y < 1 || y > 9999 {
		return ""
	}
	return stamp(t)
}
