package export

import (
	"archive/zip"
	"cmp"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

// samplesAtOnce is how many episodes are listed at once.
const samplesAtOnce = 256

// Written says what was written of a run.
type Written struct {
	Count   int // of samples, or of trajectories
	LeftOut int // episodes that have not ended
}

// WriteInspect writes the run in store as a log of Inspect, the evaluation framework of the UK AI Security Institute, for its viewer and
// its functions. inspect_ai reads the file: a test in test/sdk checks it.
//
// The log is in Inspect's .eval format: a zip archive with a header, a summary of every sample, and a file for each sample. A sample is an
// episode that ended or failed, or a session of a gateway, even if it was not closed. Its messages are what was said to and by each seat,
// its events are all calls and notes in order, its scores are those of the outcome. Samples are written as they are read, so memory holds
// only their summaries and scores. The same run gives the same bytes. It ends with a SizeError as Write does.
func WriteInspect(ctx context.Context, w io.Writer, store *runfile.Store, kind world.Kind, limit int64) (done Written, err error) {
	about, err := outline(ctx, store)
	if err != nil {
		return done, err
	}
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	l := &inspectLog{zip: z, about: about, summaries: []sampleSummary{}, usage: modelUsages{}, values: map[string][]float64{}}
	if err := l.put("_journal/start.json", l.header()); err != nil { // readers of an unfinished log begin with it
		return done, err
	}
	done.LeftOut, err = eachWhole(ctx, store, kind, limit, l.sample)
	if done.Count = len(l.summaries); err != nil {
		return done, err
	}
	if err := l.finish(); err != nil {
		return done, err
	}
	return done, z.Close()
}

// inspectLog is a WriteInspect in progress.
type inspectLog struct {
	zip   *zip.Writer
	about runfile.Outline

	summaries []sampleSummary
	completed int // samples that ended without an error
	usage     modelUsages
	values    map[string][]float64 // by score
	order     []string             // of values, as they first occur
}

// put writes a file of the archive.
func (l *inspectLog) put(name string, v any) error {
	// Without a time: the same run gives the same bytes.
	f, err := l.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// outline returns what a run is. It must have begun.
func outline(ctx context.Context, store *runfile.Store) (runfile.Outline, error) {
	about, err := store.Outline(ctx)
	if err == nil && about.Begun == nil {
		err = fmt.Errorf("%s holds no run yet", store.Path())
	}
	return about, err
}

// eachWhole reads every episode that can be shown as a whole, and calls do with it. It returns how many cannot. An episode of a plan must
// end first: until then it can be resumed. An episode of a record of other programs need not. limit is that of Write.
func eachWhole(ctx context.Context, store *runfile.Store, kind world.Kind, limit int64, do func(*runfile.Listed, []journal.Entry) error) (leftOut int, err error) {
	_, isRecord := world.As[part.Recorded](kind)
	allowed := newAllowance(limit, store)
	for from := 0; ; {
		list, err := store.List(ctx, runfile.Listing{From: from, Limit: samplesAtOnce})
		if err != nil || len(list) == 0 {
			return leftOut, err
		}
		for i := range list {
			e := &list[i]
			if from = e.Episode + 1; e.Ended == nil && !(e.Begun && isRecord) {
				leftOut++
				continue
			}
			entries, err := journal.Episode(ctx, store, e.Episode)
			if err != nil {
				return leftOut, err
			}
			for _, entry := range entries {
				if err := allowed.take(store.Path(), results.Size(entry)); err != nil {
					return leftOut, err
				}
			}
			if err := do(e, entries); err != nil {
				return leftOut, err
			}
		}
	}
}

// sample writes an episode.
func (l *inspectLog) sample(e *runfile.Listed, entries []journal.Entry) error {
	s := newSample(l.about.Begun, e)
	for _, entry := range entries {
		s.add(entry)
	}
	s.close()
	for name, used := range s.Usage {
		l.usage.of(name).Spending = l.usage.of(name).Plus(used.Spending)
	}
	if s.done && s.Error == nil {
		l.completed++
	}
	for _, name := range s.order {
		if _, known := l.values[name]; !known {
			l.values[name], l.order = nil, append(l.order, name)
		}
		if x, ok := s.Scores[name].Value.(float64); ok {
			l.values[name] = append(l.values[name], x)
		}
	}
	l.summaries = append(l.summaries, s.summary())
	return l.put(fmt.Sprintf("samples/%d_epoch_%d.json", s.ID, s.Epoch), s)
}

// finish writes the summaries and the complete header.
func (l *inspectLog) finish() error {
	if err := l.put("summaries.json", l.summaries); err != nil {
		return err
	}
	h := l.header()
	h["status"] = l.status()
	if l.about.Last.State == journal.Failed && !l.about.Open {
		h["error"] = evalError{Message: l.about.Last.Reason.String()}
	}
	h["results"] = map[string]any{"total_samples": l.about.Episodes.Total, "completed_samples": l.completed, "scores": l.scores()}
	h["stats"] = map[string]any{"started_at": stamp(l.about.Begun.At), "completed_at": stamp(l.about.Last.At), "model_usage": l.usage}
	return l.put("header.json", h)
}

// status returns the state of the run in Inspect's words.
func (l *inspectLog) status() string {
	words := map[journal.State]string{journal.Complete: "success", journal.Stopped: "cancelled", journal.Failed: "error"}
	if word := words[l.about.Last.State]; word != "" && !l.about.Open {
		return word
	}
	return "started"
}

// scores lists the EvalScores: the mean of each score, and its standard error.
func (l *inspectLog) scores() []map[string]any {
	all := []map[string]any{}
	for _, name := range l.order {
		metrics := map[string]any{}
		metric := func(name string, value float64) {
			metrics[name] = map[string]any{"name": name, "value": results.JSONNumber(value)}
		}
		scored := len(l.values[name])
		mean, stderr := meanOf(l.values[name])
		if scored > 0 {
			metric("mean", mean)
		}
		if scored > 1 {
			metric("stderr", stderr)
		}
		all = append(all, map[string]any{"name": name, "scorer": name, "scored_samples": scored, "unscored_samples": len(l.summaries) - scored, "metrics": metrics})
	}
	return all
}

// stopReason returns Inspect's word for why a model stopped.
func stopReason(f llm.Finish) string {
	switch f {
	case llm.FinishStop:
		return "stop"
	case llm.FinishLength:
		return "max_tokens"
	case llm.FinishTools:
		return "tool_calls"
	case llm.FinishRefused:
		return "content_filter"
	default:
		return "unknown"
	}
}

// inspectVersion is the version of Inspect's log format.
const inspectVersion = 2

// meanOf returns the mean of values, and its standard error.
func meanOf(values []float64) (mean, stderr float64) {
	squares := 0.0
	for i, x := range values { // as Welford has it: the mean of equal values is that value
		off := x - mean
		mean += off / float64(i+1)
		squares += off * (x - mean)
	}
	n := float64(len(values))
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// header returns an EvalLog without its samples, as far as it is known at the start.
func (l *inspectLog) header() map[string]any {
	b := l.about.Begun
	roles, models := map[string]any{}, []string(nil)
	for _, a := range b.Agents {
		name := modelOf(a)
		roles[a.Name] = map[string]any{"model": name, "config": generateConfig{Temperature: a.Temperature, TopP: a.TopP, MaxTokens: a.MaxTokens, Seed: a.Seed, Stop: a.Stop, System: a.System}}
		if !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	spec := evalSpec{
		EvalID: b.Run, RunID: b.Run, Created: stamp(b.At), Task: b.Kind, TaskID: b.Run, Version: b.KindVersion,
		Dataset: map[string]any{"name": b.Kind, "samples": l.about.Episodes.Total}, Model: strings.Join(models, ", "), Roles: roles, Config: map[string]any{"epochs": 1},
		Packages: map[string]any{"parley": b.Tool}, Metadata: map[string]any{"seed": b.Seed, "state": l.about.Last.State, "reason": l.about.Last.Reason.String()},
	}
	steps := []map[string]any{{"solver": b.Kind, "params": map[string]any{}}}
	return map[string]any{"version": inspectVersion, "eval": spec, "plan": map[string]any{"name": "plan", "steps": steps}}
}

// evalSpec is an EvalSpec.
type evalSpec struct {
	EvalID   string         `json:"eval_id"`
	RunID    string         `json:"run_id"`
	Created  string         `json:"created"`
	Task     string         `json:"task"`
	TaskID   string         `json:"task_id"`
	Version  int            `json:"task_version"`
	Dataset  map[string]any `json:"dataset"`
	Model    string         `json:"model"`
	Roles    map[string]any `json:"model_roles,omitempty"`
	Config   map[string]any `json:"config"`
	Packages map[string]any `json:"packages"`
	Metadata map[string]any `json:"metadata"`
}

// generateConfig is a GenerateConfig: the parameters of an agent or a call.
type generateConfig struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop_seqs,omitempty"`
	System      string   `json:"system_message,omitempty"`
}

type evalError struct {
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	Colored   string `json:"traceback_ansi"`
}

// modelOf returns the model of an agent, or its bot.
func modelOf(a world.Agent) string {
	if a.Bot != "" {
		return "bot/" + a.Bot
	}
	return world.ModelName(a.Model)
}

// stamp returns a time as Inspect writes it, or "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

// sampleHead is what an EvalSample and its EvalSampleSummary both have.
type sampleHead struct {
	ID        int                     `json:"id"`
	Epoch     int                     `json:"epoch"`
	Target    string                  `json:"target"`
	Scores    map[string]inspectScore `json:"scores"`
	Metadata  map[string]any          `json:"metadata"`
	Usage     modelUsages             `json:"model_usage"`
	Started   string                  `json:"started_at,omitempty"`
	Completed string                  `json:"completed_at,omitempty"`
	Time      float64                 `json:"total_time"`
	UUID      string                  `json:"uuid"`
}

// evalSample is an EvalSample: an episode.
type evalSample struct {
	sampleHead
	Input    []inspectMessage `json:"input"`
	Messages []inspectMessage `json:"messages"`
	Output   modelOutput      `json:"output"`
	Store    map[string]any   `json:"store"`
	Events   []inspectEvent   `json:"events"`
	Error    *evalError       `json:"error,omitempty"`

	done    bool // the episode has ended
	attempt int
	order   []string // of scores
	first   time.Time
	last    time.Time
	now     time.Time
	shown   map[string]bool // what is in Messages, by seat, role and text
}

// sampleSummary is an EvalSampleSummary.
type sampleSummary struct {
	sampleHead
	Input    string `json:"input"`
	Error    string `json:"error,omitempty"`
	Done     bool   `json:"completed"`
	Messages int    `json:"message_count"`
}

// inspectScore is a Score. A value that JSON has no number for is a text.
type inspectScore struct {
	Value    any            `json:"value"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// modelUsage is a ModelUsage: what calls of a model used and cost.
type modelUsage struct{ journal.Spending }

// MarshalJSON writes input without the tokens that were read from or written to a cache.
func (u *modelUsage) MarshalJSON() ([]byte, error) {
	t := u.Usage
	write := llm.AddTokens(t.CacheWrite, t.CacheWriteLong)
	return json.Marshal(struct {
		Input     int     `json:"input_tokens"`
		Output    int     `json:"output_tokens"`
		Total     int     `json:"total_tokens"`
		Write     int     `json:"input_tokens_cache_write"`
		Read      int     `json:"input_tokens_cache_read"`
		Reasoning int     `json:"reasoning_tokens"`
		Cost      float64 `json:"total_cost"`
	}{max(0, t.Input-t.Cached-write), t.Output, t.Total(), write, t.Cached, t.Reasoning, u.Cost.Dollars()})
}

// modelUsages is what calls used, by model.
type modelUsages map[string]*modelUsage

// of returns what calls of a model used.
func (u modelUsages) of(model string) *modelUsage {
	if u[model] == nil {
		u[model] = &modelUsage{}
	}
	return u[model]
}

// maxParams is the size of the largest params that a sample includes.
const maxParams = 16 << 10

// newSample returns the sample of an episode without its calls. One that has not ended has no scores.
func newSample(b *journal.Begun, e *runfile.Listed) *evalSample {
	end := e.Ended
	if end == nil {
		end = &journal.Ended{Episode: e.Episode, Attempt: e.Attempt}
	}
	s := &evalSample{
		sampleHead: sampleHead{
			ID: e.Episode, Epoch: 1, UUID: fmt.Sprintf("%s-%d", b.Run, e.Episode), Scores: map[string]inspectScore{}, Usage: modelUsages{},
			Metadata: map[string]any{"state": e.State(), "deal": e.Spec.Deal, "stage": e.Stage, "attempt": end.Attempt, "lineup": e.Spec.Lineup},
		},
		Input: []inspectMessage{}, Messages: []inspectMessage{}, Output: modelOutput{Choices: []outputChoice{}}, Events: []inspectEvent{}, Store: map[string]any{},
		done: e.Ended != nil, attempt: end.Attempt, shown: map[string]bool{}, last: end.At, now: b.At,
	}
	if e.Spec.Cell != "" {
		s.Metadata["cell"] = e.Spec.Cell
	}
	if n := len(e.Spec.Params); n > 0 && n <= maxParams {
		s.Metadata["params"] = e.Spec.Params
	}
	o := end.Outcome
	for _, sc := range o.Scores {
		name, meta := sc.Name, map[string]any(nil)
		if sc.Seat != "" {
			name, meta = sc.Seat+"."+sc.Name, map[string]any{"seat": sc.Seat, "agent": e.Spec.Lineup[sc.Seat]}
		}
		if _, twice := s.Scores[name]; !twice {
			s.order = append(s.order, name)
		}
		s.Scores[name] = inspectScore{Value: results.JSONNumber(sc.Value), Metadata: meta}
	}
	if data, ok := o.Data.(json.RawMessage); ok && len(data) > 0 {
		s.Store["outcome"] = data
	}
	if o.Failed != "" {
		s.Error = &evalError{Message: o.Failed, Traceback: end.Stack}
	}
	return s
}

// add adds an entry. What calls used is of all attempts, as the last may have copied from them; the rest is of the last.
func (s *evalSample) add(entry journal.Entry) {
	switch e := entry.(type) {
	case *journal.Turned:
		if e.Attempt == s.attempt {
			for _, n := range e.Notes {
				s.inform(map[string]any{"note": n.Kind, "seat": n.Seat, "data": n.Data}, s.now)
			}
		}
	case *journal.Replied:
		if e.Request != nil && !e.Reused() {
			s.Usage.of(e.Request.Model).Add(e)
		}
		if e.Attempt == s.attempt {
			s.reply(e)
		}
	}
}

func (s *evalSample) reply(e *journal.Replied) {
	if !e.At.IsZero() {
		began := e.At.Add(-e.Metadata().Latency - e.Metadata().Waited)
		if s.first.IsZero() || began.Before(s.first) {
			s.first = began
		}
		s.now = e.At
		if !s.done && e.At.After(s.last) {
			s.last = e.At
		}
	}
	switch {
	case e.Request != nil:
		s.ask(e)
	case e.Act != nil:
		data := map[string]any{"act": e.Act.Name, "seat": e.Seat, "body": e.Act.Body}
		if e.Response != nil && len(e.Response.JSON) > 0 {
			data["result"] = e.Response.JSON
		}
		if e.Error != nil {
			data["error"] = e.Error.Error()
		}
		s.inform(data, e.At)
	default:
		data := map[string]any{"bot": e.Agent, "seat": e.Seat, "label": e.Label}
		if e.Response != nil {
			data["text"] = e.Response.Text
		}
		if e.Error != nil {
			data["error"] = e.Error.Error()
		}
		s.inform(data, e.At)
	}
}

// close completes the sample.
func (s *evalSample) close() {
	s.Started, s.Completed = stamp(s.first), stamp(s.last)
	if !s.first.IsZero() && s.last.After(s.first) {
		s.Time = s.last.Sub(s.first).Seconds()
	}
}

func (s *evalSample) summary() sampleSummary {
	sum := sampleSummary{sampleHead: s.sampleHead, Done: s.done, Messages: len(s.Messages)}
	sum.Metadata = map[string]any{}
	for _, key := range []string{"cell", "deal", "lineup", "state"} {
		if v, ok := s.Metadata[key]; ok {
			sum.Metadata[key] = v
		}
	}
	if n := len(s.Input); n > 0 {
		sum.Input = excerpt(s.Input[n-1].text())
	}
	if s.Error != nil {
		sum.Error = cmp.Or(s.Error.Message, "failed")
	}
	return sum
}

// excerpt returns the beginning of a text.
func excerpt(text string) string {
	const limit = 200
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

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

// inspectContent is a Content: a text, an image, a document, a recording, or the reasoning of a model.
type inspectContent struct {
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

// modelOutput is a ModelOutput.
type modelOutput struct {
	Model      string         `json:"model"`
	Choices    []outputChoice `json:"choices"`
	Completion string         `json:"completion"`
	Usage      *modelUsage    `json:"usage,omitempty"`
	Time       float64        `json:"time,omitempty"`
	Error      string         `json:"error,omitempty"`
}

type outputChoice struct {
	Message inspectMessage `json:"message"`
	Stop    string         `json:"stop_reason"`
}

// inspectEvent is a ModelEvent or an InfoEvent.
type inspectEvent struct {
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
	Config     *generateConfig  `json:"config,omitempty"`
	Output     *modelOutput     `json:"output,omitempty"`
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
func (e inspectEvent) MarshalJSON() ([]byte, error) {
	type plain inspectEvent
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
func (s *evalSample) inform(data map[string]any, at time.Time) {
	s.Events = append(s.Events, inspectEvent{Event: "info", Source: "parley", Timestamp: stamp(at), Working: s.since(at), Data: data})
}

// since returns how many seconds the sample had been played.
func (s *evalSample) since(at time.Time) float64 {
	if s.first.IsZero() || at.Before(s.first) {
		return 0
	}
	return at.Sub(s.first).Seconds()
}

// ask adds a call of a model: an event with the whole request, and the messages that are new to the
// seat.
func (s *evalSample) ask(e *journal.Replied) {
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
	t := e.Metadata()
	ev := inspectEvent{
		Event: "model", Timestamp: stamp(e.At.Add(-t.Latency)), Working: s.since(e.At.Add(-t.Latency)), Metadata: where, Model: e.Request.Model, Role: e.Agent,
		Input: prompt, ToolChoice: "auto", Config: settings(e.Request), Retries: max(0, t.Attempts-1), Completed: stamp(e.At), WorkTime: t.Latency.Seconds(),
	}
	if t.Cached || t.Coalesced {
		ev.Cache = "read"
	}
	out := modelOutput{Model: e.Request.Model, Choices: []outputChoice{}, Time: t.Latency.Seconds()}
	switch {
	case e.Response != nil:
		answer := answerOf(e.Response)
		out.Completion = e.Response.Text
		out.Choices = append(out.Choices, outputChoice{Message: answer, Stop: stopReason(e.Response.Finish)})
		s.shown[e.Seat+"\x00"+string(llm.RoleAssistant)+"\x00"+e.Response.Text] = true
		answer.Metadata = where
		s.Messages = append(s.Messages, answer)
		s.Output = out
	case e.Error != nil:
		out.Error, ev.Error = e.Error.Error(), e.Error.Error()
	}
	if !e.Reused() {
		out.Usage = &modelUsage{}
		out.Usage.Add(e)
		if e.Response != nil {
			s.Output.Usage = out.Usage
		}
	}
	ev.Output = &out
	s.Events = append(s.Events, ev)
}

func settings(r *llm.Request) *generateConfig {
	return &generateConfig{Temperature: r.Temperature, TopP: r.TopP, MaxTokens: r.MaxTokens, Seed: r.Seed, Stop: r.Stop}
}

// messageOf converts a message of a prompt.
func messageOf(m *llm.Message) inspectMessage {
	out := inspectMessage{Role: string(m.Role), Content: m.Text(), ToolCallID: m.ToolCallID, ToolCalls: callsOf(m.ToolCalls)}
	var parts []inspectContent
	for _, t := range m.Thoughts {
		parts = append(parts, inspectContent{Type: "reasoning", Reasoning: new(t.Text)})
	}
	plain := len(parts) == 0
	for _, p := range m.Parts {
		plain = plain && p.IsText()
		switch {
		case p.Image != nil:
			parts = append(parts, inspectContent{Type: "image", Image: p.Image.DataURL()})
		case p.File != nil:
			parts = append(parts, fileOf(p.File))
		default:
			parts = append(parts, inspectContent{Type: "text", Text: new(p.Text)})
		}
	}
	if !plain {
		out.Content = parts
	}
	return out
}

func fileOf(f *llm.File) inspectContent {
	if f.IsAudio() {
		return inspectContent{Type: "audio", Audio: f.DataURL(), Format: f.Format()}
	}
	return inspectContent{Type: "document", Document: f.DataURL(), Filename: cmp.Or(f.Name, "document.pdf"), MimeType: f.MediaType}
}

// answerOf converts an answer of a model.
func answerOf(r *llm.Response) inspectMessage {
	out := messageOf(&llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: cmp.Or(r.Text, r.Refusal)}}, Thoughts: r.Thoughts, ToolCalls: r.ToolCalls})
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
	case []inspectContent:
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
