package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/run/engine"
	"parley/journal"
)

// Event is something that happened in a run: in the engine, between calls and providers, or at its ends. One field is set.
type Event struct {
	engine.Event
	Ask    dispatch.Event
	Opened *Opened  // the run is about to be played
	Over   *Summary // it is not played any more
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

// LogTo returns a function that writes events to a log: what happens to the run, its episodes and waves as information, failures and what
// the person who pays should know as warnings, calls and notes of worlds for debugging. Values may be hostile text: the handler must quote
// them. Nil: to none.
func LogTo(ctx context.Context, log *slog.Logger) func(Event) {
	if log == nil {
		return func(Event) {}
	}
	ctx = context.WithoutCancel(ctx) // the end of a run that was stopped is logged too
	return func(e Event) {
		if level, what, values := e.record(); what != "" {
			log.Log(ctx, level, what, values...)
		}
	}
}

// record returns an event as a log has it.
func (e Event) record() (level slog.Level, what string, values []any) {
	switch {
	case e.Opened != nil && e.Opened.Head.Begun == nil:
		return slog.LevelInfo, "run began", []any{"file", e.Opened.File, "kind", e.Opened.Plan.Kind.Name}
	case e.Opened != nil:
		return slog.LevelInfo, "run resumed", []any{"file", e.Opened.File, "kind", e.Opened.Plan.Kind.Name, "ended", e.Opened.Head.Ended.Len()}
	case e.Staged != nil:
		return slog.LevelInfo, "stage began", []any{"stage", e.Staged.Stage, "first", e.Staged.First, "episodes", e.Staged.Specs.Len()}
	case e.Began != nil:
		return slog.LevelInfo, "episode began", []any{"episode", e.Began.Episode, "attempt", e.Began.Attempt}
	case e.Ended != nil && e.Ended.Outcome.Failed != "":
		return slog.LevelWarn, "episode failed", []any{"episode", e.Ended.Episode, "attempt", e.Ended.Attempt, "why", e.Ended.Outcome.Failed}
	case e.Ended != nil:
		return slog.LevelInfo, "episode ended", []any{"episode", e.Ended.Episode, "attempt", e.Ended.Attempt, "scores", e.Ended.Outcome.Scores}
	case e.Replied != nil:
		return replied(e.Replied)
	case e.Noted != nil:
		return slog.LevelDebug, "turn noted", []any{"episode", e.Noted.Episode, "notes", e.Noted.Notes}
	case e.Wave > 0:
		return slog.LevelInfo, "wave sent", []any{"calls", e.Wave}
	case e.Batched != nil:
		return batched(e.Batched)
	case e.Steered != nil:
		return slog.LevelInfo, "run steered", []any{"verb", e.Steered.Verb, "by", e.Steered.By, "detail", e.Steered.Detail}
	case e.Closing > 0:
		return slog.LevelInfo, "no more episodes begin", []any{"playing", e.Closing}
	case e.Stops != nil:
		return slog.LevelInfo, "run stops", []any{"kind", e.Stops.Kind, "why", e.Stops.Detail}
	case e.Over != nil:
		return over(e.Over)
	case e.Idle != nil && e.Idle.Worker != "":
		return slog.LevelWarn, "worker does not play", []any{"worker", e.Idle.Worker, "why", e.Idle.Why}
	case e.Idle != nil && e.Idle.Why != "":
		return slog.LevelWarn, "hub is full", []any{"why", e.Idle.Why}
	case e.Idle != nil:
		return slog.LevelInfo, "hub has room", nil
	default:
		return asked(e.Ask)
	}
}

// replied is the record of a call that ended.
func replied(r *journal.Replied) (level slog.Level, what string, values []any) {
	values = []any{"episode", r.Episode, "seat", r.Seat, "agent", r.Agent}
	if r.Act != nil {
		values = append(values, "act", r.Act.Name)
	}
	if r.Request != nil {
		values = append(values, "model", r.Request.Model, "cost_usd", r.Cost().Dollars())
	}
	if a := r.Response; a != nil && r.Request != nil {
		values = append(values, "input_tokens", a.Usage.Input, "output_tokens", a.Usage.Output)
	}
	if r.Error != nil {
		return slog.LevelWarn, "call failed", append(values, "kind", r.Error.Kind, "why", r.Error.Message)
	}
	return slog.LevelDebug, "call ended", values
}

// batched is the record of a step of a batch.
func batched(b *journal.Batched) (level slog.Level, what string, values []any) {
	values = []any{"key", b.Key}
	switch b.Step {
	case journal.BatchIntended:
		values = append(values, "provider", b.Provider, "model", b.Model, "calls", len(b.Lines))
	case journal.BatchCreated:
		values = append(values, "batch", b.Batch)
	case journal.BatchClosed:
		values = append(values, "why", b.Why)
	}
	return slog.LevelInfo, "batch " + string(b.Step), values
}

// over is the record of the end of a run.
func over(s *Summary) (level slog.Level, what string, values []any) {
	values = []any{"state", s.State, "reason", s.Reason.String(), "episodes", s.Episodes.Total, "failed", s.Episodes.Failed, "digest", s.Digest}
	if s.Cost != nil {
		values = append(values, "cost_usd", s.Cost.Dollars())
	}
	return slog.LevelInfo, "run ended", values
}

// asked is the record of what happened between calls and providers.
func asked(a dispatch.Event) (level slog.Level, what string, values []any) {
	switch {
	case a.Notice != nil:
		return slog.LevelWarn, "notice", []any{"model", a.Notice.Model, "text", a.Notice.Text}
	case a.Short != nil:
		return slog.LevelInfo, "calls wait for the budget", []any{"model", a.Short.Model, "set_aside_usd", a.Short.Amount.Dollars(), "why", a.Short.Why, "room", a.Short.Room}
	case a.Outage != nil && a.Outage.Back:
		return slog.LevelInfo, "provider is back", []any{"provider", a.Outage.Provider}
	case a.Outage != nil:
		return slog.LevelWarn, "provider cannot be reached", []any{"provider", a.Outage.Provider, "text", a.Outage.Text(time.Now())}
	case a.Rest != nil && a.Rest.Why == nil:
		return slog.LevelInfo, "server is back", []any{"server", a.Rest.Name}
	case a.Rest != nil:
		return slog.LevelWarn, "server rests", []any{"server", a.Rest.Name, "why", a.Rest.Why.Error()}
	}
	return 0, "", nil
}
