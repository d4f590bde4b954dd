package viewer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/internal/report"
	"parley/internal/report/page"
	"parley/internal/serve/viewer/library"
	"parley/internal/store/sqlite"
	"parley/internal/view"
)

// statistics are the statistics of a run at some moment. Computing them reads all its calls, so it
// is done in the background, and again when the run has grown, for at most a tenth of the time.
type statistics struct {
	document *page.Document // nil: not computed yet
	entries  int            // of the run, when document was made
	err      error
	busy     bool
	at       time.Time     // when it was computed
	took     time.Duration // to compute it
}

// statistics returns the latest statistics, and computes newer ones in the background if there are more entries.
func (v *Viewer) statistics(r *library.Run, entries int) statistics {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.stats[r]
	if s == nil {
		s = &statistics{}
		v.stats[r] = s
	}
	due := s.at.Add(max(time.Second, 10*s.took))
	if !s.busy && s.entries != entries && time.Now().After(due) {
		s.busy = true
		v.wg.Go(func() { v.compute(r, entries) })
	}
	return *s
}

// compute computes the statistics of a run, and tells its pages.
func (v *Viewer) compute(r *library.Run, entries int) {
	began := time.Now()
	document, err := v.build(v.ctx, r, report.Options{Tool: v.cfg.Tool})
	v.mu.Lock()
	*v.stats[r] = statistics{document: document, entries: entries, err: err, at: time.Now(), took: time.Since(began)}
	v.mu.Unlock()
	r.Tell()
}

// build makes a report of a run.
func (v *Viewer) build(ctx context.Context, r *library.Run, o report.Options) (*page.Document, error) {
	folded, err := view.Fold(ctx, r.Store, r.Name)
	if errors.Is(err, sqlite.ErrDamaged) && r.Store.Lost() == nil {
		if salvaging := r.Store.Salvage(ctx); salvaging == nil {
			folded, err = view.Fold(ctx, r.Store, r.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	folded.Know(r.Kind)
	d, err := report.Build(ctx, []report.Source{{Run: folded, Journal: r.Store, Kind: r.Kind}}, o)
	if err != nil {
		return nil, fmt.Errorf("viewer: %w", err)
	}
	return d, nil
}
