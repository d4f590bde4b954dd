package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/run/engine"
)

// Event is something that happened in a run: in the engine, or between calls and providers. One field of the two is set.
type Event struct {
	engine.Event
	Ask dispatch.Event
}

// inOrder makes a function that several goroutines call get one event at a time.
func inOrder(events func(Event)) func(Event) {
	if events == nil {
		return func(Event) {}
	}
	var mu sync.Mutex
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		events(e)
	}
}

// LogTo returns a function that writes events to a log: what happens to episodes and waves as information, failures and what the person
// who pays should know as warnings, calls and notes of worlds for debugging. Values may be hostile text: the handler must quote them.
func LogTo(ctx context.Context, log *slog.Logger) func(Event) {
	ctx = context.WithoutCancel(ctx) // the end of a run that was stopped is logged too
	return func(e Event) {
		if level, what, attrs := e.record(); what != "" {
			log.LogAttrs(ctx, level, what, attrs...)
		}
	}
}

// record returns an event as a log has it.
func (e Event) record() (level slog.Level, what string, attrs []slog.Attr) {
	switch {
	case e.Began != nil:
		return slog.LevelInfo, "episode began", []slog.Attr{slog.Int("episode", e.Began.Episode), slog.Int("attempt", e.Began.Attempt)}
	case e.Ended != nil:
		attrs = []slog.Attr{slog.Int("episode", e.Ended.Episode), slog.Int("attempt", e.Ended.Attempt)}
		if why := e.Ended.Outcome.Failed; why != "" {
			return slog.LevelWarn, "episode failed", append(attrs, slog.String("why", why))
		}
		return slog.LevelInfo, "episode ended", append(attrs, slog.Any("scores", e.Ended.Outcome.Scores))
	case e.Replied != nil:
		return e.replied()
	case e.Staged != nil:
		return slog.LevelInfo, "stage began", []slog.Attr{slog.Int("stage", e.Staged.Stage), slog.Int("first", e.Staged.First), slog.Int("episodes", e.Staged.Specs.Len())}
	case e.Noted != nil:
		return slog.LevelDebug, "turn noted", []slog.Attr{slog.Int("episode", e.Noted.Episode), slog.Any("notes", e.Noted.Notes)}
	case e.Wave > 0:
		return slog.LevelInfo, "wave sent", []slog.Attr{slog.Int("calls", e.Wave)}
	case e.Closing > 0:
		return slog.LevelInfo, "no more episodes begin", []slog.Attr{slog.Int("playing", e.Closing)}
	}
	return e.asked()
}

// replied is the record of a call that ended.
func (e Event) replied() (level slog.Level, what string, attrs []slog.Attr) {
	r := e.Replied
	attrs = []slog.Attr{slog.Int("episode", r.Episode), slog.String("seat", r.Seat), slog.String("agent", r.Agent)}
	if r.Act != nil {
		attrs = append(attrs, slog.String("act", r.Act.Name))
	}
	if r.Request != nil {
		attrs = append(attrs, slog.String("model", r.Request.Model), slog.Float64("cost_usd", r.Cost().Dollars()))
	}
	if a := r.Response; a != nil && r.Request != nil {
		attrs = append(attrs, slog.Int("input_tokens", a.Usage.Input), slog.Int("output_tokens", a.Usage.Output))
	}
	if r.Error != nil {
		return slog.LevelWarn, "call failed", append(attrs, slog.String("kind", string(r.Error.Kind)), slog.String("why", r.Error.Message))
	}
	return slog.LevelDebug, "call ended", attrs
}

// asked is the record of what happened between calls and providers.
func (e Event) asked() (level slog.Level, what string, attrs []slog.Attr) {
	switch a := e.Ask; {
	case a.Notice != nil:
		return slog.LevelWarn, "notice", []slog.Attr{slog.String("model", a.Notice.Model), slog.String("text", a.Notice.Text)}
	case a.Outage != nil && a.Outage.Back:
		return slog.LevelInfo, "provider is back", []slog.Attr{slog.String("provider", a.Outage.Provider)}
	case a.Outage != nil:
		return slog.LevelWarn, "provider cannot be reached", []slog.Attr{slog.String("provider", a.Outage.Provider), slog.String("text", a.Outage.Text(time.Now()))}
	case a.Rest != nil && a.Rest.Why == nil:
		return slog.LevelInfo, "server is back", []slog.Attr{slog.String("server", a.Rest.Name)}
	case a.Rest != nil:
		return slog.LevelWarn, "server rests", []slog.Attr{slog.String("server", a.Rest.Name), slog.String("why", a.Rest.Why.Error())}
	}
	return 0, "", nil
}
