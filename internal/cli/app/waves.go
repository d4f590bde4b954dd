package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/journal"
)

// waves connects a run with batch APIs. It has the batches that earlier
// processes left open, and records the events of batches in the journal.
type waves struct {
	open      []batch.Open
	collected []string // the keys of batches that must only be closed

	mu     sync.Mutex
	append func(first journal.Entry, more ...journal.Entry) error
}

// newWaves finds the batches that earlier processes left open. Only a run in waves collects
// them. A run at another pace would ask and pay for their calls again.
func newWaves(ctx context.Context, plan *planfile.Plan, j journal.Journal, head *journal.Head) (*waves, error) {
	w := &waves{}
	open, err := batch.ReadOpen(ctx, j, head, false)
	for _, o := range open {
		if o.Collected() {
			w.collected = append(w.collected, o.Key)
		} else {
			w.open = append(w.open, o)
		}
	}
	if err == nil && len(w.open) > 0 && plan.Pace != "wave" {
		are := "are still with their providers, and are paid for"
		if head.Accepted() == 0 {
			are = "were perhaps sent, and may be paid for"
		}
		err = usageError{fmt.Errorf("batches of the run (%d) %s: resume it with --pace wave to collect them (with --set batch.route=live it sends no new ones)", len(w.open), are)}
	}
	return w, err
}

// record writes an event of a batch into the journal, in order with the engine's entries.
func (w *waves) record(_ context.Context, m *journal.Batched) error {
	w.mu.Lock()
	add := w.append
	w.mu.Unlock()
	if add == nil {
		return errors.New("a batch has an event before the run began")
	}
	return add(m)
}

// begin makes the run record batches, and closes those of which an earlier process recorded every answer. If that fails, they
// stay open, at no cost.
func (w *waves) begin(s *engine.Steering) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.append = s.Keep
	for _, key := range w.collected {
		_ = s.Keep(&journal.Batched{Step: journal.BatchClosed, Key: key, At: time.Now(), Why: "collected"})
	}
	w.collected = nil
}

// setUp makes the run use batches, if its pace is wave and there are open batches or models with a batch API.
func (w *waves) setUp(c *engine.Config, plan *planfile.Plan, a *App) {
	whenBegun(c, w.begin)
	can := func(model string) bool { return a.Batched(model) }
	if c.Settings.Waves() && (len(w.open)+len(w.collected) > 0 || (plan.Batch.Route != "live" && slices.ContainsFunc(modelsOf(plan.Agents), can))) {
		c.Batches = a
	}
}

// cancelTime is how long an aborted run may take to cancel its batches.
const cancelTime = 30 * time.Second

// cancelBatches cancels the open batches of an aborted run, if the plan asks for that.
func cancelBatches(ctx context.Context, plan *planfile.Plan, a *App) error {
	if ctx.Err() == nil || !plan.Batch.Cancel || plan.Pace != "wave" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	return a.CancelBatches(ctx)
}
