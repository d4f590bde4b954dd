// Part inspect writes a run as a log of Inspect, the evaluation framework of the UK AI Security
// Institute, for its viewer and its functions.
//
// A run is one file in Inspect's .eval format: a zip archive with a header, a summary of every
// sample, and a file for each sample. A sample is an episode that ended or failed, or a session
// of a gateway, even if it was not closed. Its messages are what was said to and by each seat,
// its events are all calls and notes in order, its scores are those of the outcome.
//
// What it promises: inspect_ai reads the file (a test in test/sdk checks it). Samples are
// written as they are read, so memory holds only their summaries. The same run gives the same
// bytes.
//
// It is not for tables: see package export.

package export

import (
	"archive/zip"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// atOnce is how many episodes are listed at once.
const atOnce = 256

// Written says what Write wrote.
type Written struct {
	Samples int
	LeftOut int // episodes that have not ended
}

// WriteInspect writes the run in store.
func WriteInspect(ctx context.Context, w io.Writer, store *runfile.Store, kind world.Kind) (Written, error) {
	about, err := store.Outline(ctx)
	if err != nil {
		return Written{}, err
	}
	if about.Begun == nil {
		return Written{}, fmt.Errorf("inspect: %s holds no run yet", store.Path())
	}
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	_, isRecord := world.As[world.Recorded](kind)
	l := &log{zip: z, store: store, about: about, isRecord: isRecord, usage: map[string]*usage{}, totals: map[string]*total{}}
	for _, step := range []func(context.Context) error{l.start, l.samples, l.finish} {
		if err := step(ctx); err != nil {
			return l.written(), err
		}
	}
	if err := z.Close(); err != nil {
		return l.written(), fmt.Errorf("inspect: %w", err)
	}
	return l.written(), nil
}

// log is a Write in progress.
type log struct {
	zip   *zip.Writer
	store *runfile.Store
	about runfile.Outline
	// isRecord is whether the run records other programs: see world.Recorded.
	isRecord bool

	summaries []summary
	completed int // samples that ended without an error
	leftOut   int // episodes that have not ended
	usage     map[string]*usage
	totals    map[string]*total // by score
	order     []string          // of totals, as they first occur
}

func (l *log) written() Written { return Written{Samples: len(l.summaries), LeftOut: l.leftOut} }

// whole reports whether an episode can be a sample. An episode of a plan must end first: until then
// it can be resumed. An episode of a record need not.
func (l *log) whole(e *runfile.Listed) bool {
	return e.Ended != nil || e.Begun && l.isRecord
}

// put writes a file of the archive.
func (l *log) put(name string, v any) error {
	// Without a time: the same run gives the same bytes.
	f, err := l.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err != nil {
		return fmt.Errorf("inspect: %s: %w", name, err)
	}
	e := json.NewEncoder(f)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("inspect: %s: %w", name, err)
	}
	return nil
}

// start writes what is known before the first sample. Readers of an unfinished log begin with it.
func (l *log) start(context.Context) error {
	return l.put("_journal/start.json", header{Version: version, Eval: l.spec(), Plan: l.plan()})
}

// samples writes every episode that can be a sample.
func (l *log) samples(ctx context.Context) error {
	for from := 0; ; {
		list, err := l.store.List(ctx, runfile.Listing{From: from, Limit: atOnce})
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if !l.whole(&list[i]) {
				l.leftOut++
				continue
			}
			if err := l.sample(ctx, &list[i]); err != nil {
				return err
			}
		}
		from = list[len(list)-1].Episode + 1
	}
}

// sample writes an episode.
func (l *log) sample(ctx context.Context, e *runfile.Listed) error {
	entries, err := journal.Episode(ctx, l.store, e.Episode)
	if err != nil {
		return err
	}
	s := newSample(l.about.Begun, e)
	for _, entry := range entries {
		s.add(entry)
	}
	s.close()
	for name, used := range s.Usage {
		if l.usage[name] == nil {
			l.usage[name] = &usage{}
		}
		l.usage[name].plus(used)
	}
	if s.done && s.Error == nil {
		l.completed++
	}
	for _, name := range s.order {
		if l.totals[name] == nil {
			l.totals[name] = &total{}
			l.order = append(l.order, name)
		}
		if x, ok := s.Scores[name].Value.(float64); ok {
			l.totals[name].add(x)
		}
	}
	l.summaries = append(l.summaries, s.summary())
	return l.put(fmt.Sprintf("samples/%d_epoch_%d.json", s.ID, s.Epoch), s)
}

// finish writes the summaries and the complete header.
func (l *log) finish(context.Context) error {
	if l.summaries == nil {
		l.summaries = []summary{}
	}
	if err := l.put("summaries.json", l.summaries); err != nil {
		return err
	}
	h := header{Version: version, Eval: l.spec(), Plan: l.plan(), Stats: &stats{Started: stamp(l.about.Begun.At), Completed: stamp(l.about.Last.At), Usage: l.usage}}
	h.Status, h.Error = l.status()
	h.Results = l.results()
	return l.put("header.json", h)
}

// status returns the state of the run in Inspect's words.
func (l *log) status() (string, *evalError) {
	if l.about.Open {
		return "started", nil
	}
	switch l.about.Last.State {
	case journal.Complete:
		return "success", nil
	case journal.Stopped:
		return "cancelled", nil
	case journal.Failed:
		return "error", &evalError{Message: l.about.Last.Reason.String()}
	default:
		return "started", nil
	}
}

func (l *log) results() *inspectResults {
	r := &inspectResults{Total: l.about.Episodes, Completed: l.completed, Scores: []evalScore{}}
	for _, name := range l.order {
		t := l.totals[name]
		s := evalScore{Name: name, Scorer: name, Scored: t.n, Unscored: len(l.summaries) - t.n, Metrics: map[string]metric{}}
		if t.n > 0 {
			s.Metrics["mean"] = metric{Name: "mean", Value: t.mean}
		}
		if t.n > 1 {
			s.Metrics["stderr"] = metric{Name: "stderr", Value: t.stderr()}
		}
		r.Scores = append(r.Scores, s)
	}
	return r
}

// finishes returns Inspect's word for why a model stopped.
func finishes(f llm.Finish) string {
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
