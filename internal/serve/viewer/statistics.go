// Part statistics computes the statistics of runs for their pages.

package viewer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"parley/internal/read/report"
	"parley/internal/read/score"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
)

// statisticsState is the statistics of a run at some moment. Computing them reads all its calls, so it is done in the
// background, and again when the run has grown, but for at most a tenth of the time.
type statisticsState struct {
	Document *report.Document // nil: not computed yet
	Sections []report.Section // of the document, for the page of the run
	Short    bool             // the document has more
	Entries  int              // of the run, when Document was made
	Err      error
	Busy     bool
	Large    bool // it is computed only if asked for: see Ask

	asked bool
	at    time.Time     // when it was computed
	took  time.Duration // to compute it
}

// board keeps the statistics of runs.
type board struct {
	Tool string // the program's name and version
	// Background runs a function in the background.
	Background func(func(context.Context))
	// Wait means that Latest computes what is not there yet.
	Wait bool

	mu sync.Mutex
	of map[*Run]*statisticsState
}

// Latest returns the latest statistics of a run, and computes newer ones in the background if it has more entries.
func (b *board) Latest(ctx context.Context, r *Run, entries int) statisticsState {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of[r]
	if s == nil {
		if b.of == nil {
			b.of = map[*Run]*statisticsState{}
		}
		s = &statisticsState{}
		b.of[r] = s
	}
	s.Large = entries > maxEntries && !b.Wait
	if s.Large && !s.asked {
		return *s
	}
	due := s.at.Add(max(time.Second, 10*s.took))
	if s.Busy || s.Entries == entries || !time.Now().After(due) {
		return *s
	}
	s.Busy = true
	if b.Wait {
		b.mu.Unlock()
		b.compute(ctx, r, entries)
		b.mu.Lock()
		return *b.of[r]
	}
	b.Background(func(ctx context.Context) { b.compute(ctx, r, entries) })
	return *s
}

// maxEntries is of how many entries statistics are computed without asking. Those of a million episodes need gigabytes.
const maxEntries = 400_000

// Ask says that the statistics of a run are wanted, however large it is.
func (b *board) Ask(r *Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[*Run]*statisticsState{}
	}
	if b.of[r] == nil {
		b.of[r] = &statisticsState{}
	}
	b.of[r].asked = true
}

// compute computes the statistics of a run, and tells its pages.
func (b *board) compute(ctx context.Context, r *Run, entries int) {
	began := time.Now()
	document, err := build(ctx, r, report.Options{Tool: b.Tool})
	var sections []report.Section
	var short bool
	if err == nil {
		sections, short, err = brief(document)
	}
	b.mu.Lock()
	*b.of[r] = statisticsState{Document: document, Sections: sections, Short: short, Entries: entries, Err: err, at: time.Now(), took: time.Since(began), asked: b.of[r].asked, Large: b.of[r].Large}
	b.mu.Unlock()
	r.Tell()
	if entries > maxEntries {
		debug.FreeOSMemory()
	}
}

// build makes a report of a run.
func build(ctx context.Context, r *Run, o report.Options) (*report.Document, error) {
	folded, err := results.Fold(ctx, r.Store, r.Name)
	if errors.Is(err, runfile.ErrDamaged) && r.Store.Lost() == nil {
		if err = r.Store.Salvage(ctx); err == nil {
			folded, err = results.Fold(ctx, r.Store, r.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	folded.Know(r.Kind)
	labels, err := r.Labels(ctx)
	if err != nil {
		return nil, err
	}
	report.Attach(folded, labels)
	left := attachAdded(ctx, folded, r)
	judged, err := score.Judges(ctx, r.Path, folded.Head.Begun.Run, slices.Sorted(maps.Keys(folded.Labels)))
	if err != nil {
		left = append(left, "Scores by single judges are left out: "+err.Error())
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d, err := report.Build(ctx, []report.Source{{Run: folded, Journal: r.Store, Kind: r.Kind, Judged: judged}}, o)
	if err != nil {
		return nil, fmt.Errorf("statistics: %w", err)
	}
	note(d, left...)
	return d, nil
}

// note adds what is left out to the beginning of a document.
func note(d *report.Document, left ...string) {
	var notes []report.Block
	for _, text := range left {
		notes = append(notes, report.Block{Text: text})
	}
	d.Sections[0].Blocks = append(notes, d.Sections[0].Blocks...)
}

// attachAdded adds the scores that scorers gave to the run. If they cannot be read, it says so.
func attachAdded(ctx context.Context, v *results.Run, r *Run) (left []string) {
	set, err := score.Read(ctx, r.Path, v.Head.Begun.Run)
	if err != nil {
		return []string{"Added scores are left out: " + err.Error()}
	}
	set.Attach(v)
	return nil
}

// errNothing means that two runs have no score in common.
var errNothing = errors.New("there is nothing to compare yet: both runs need an episode that ended, with a score that the other has too")

// statisticsCompare compares two runs as parley compare does.
func statisticsCompare(ctx context.Context, tool string, two [2]*Run) (*report.Document, error) {
	var runs []*results.Run
	var sources []report.Source
	var left []string
	for _, r := range two {
		head, err := r.Store.Head(ctx)
		if err != nil {
			return nil, err
		}
		v := results.Outcomes(head, r.Kind)
		v.File = r.Path
		labels, err := r.Labels(ctx)
		if err != nil {
			return nil, err
		}
		report.Attach(v, labels)
		left = append(left, attachAdded(ctx, v, r)...)
		runs, sources = append(runs, v), append(sources, report.Source{Run: v})
	}
	result, err := report.Runs(runs, report.Names(sources), report.Config{})
	if errors.Is(err, report.ErrOne) {
		return nil, errNothing
	}
	if err != nil {
		return nil, err
	}
	d := result.Document(tool)
	for _, r := range runs {
		if text := report.LeftOut(r); text != "" {
			left = append(left, text)
		}
	}
	note(d, left...)
	return d, nil
}
