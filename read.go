package parley

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"parley/internal/read/report"
	"parley/internal/run/merge"
	"parley/internal/run/results"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/stats"
	"parley/world"
)

// Reader reads a run. Each call reads the current state, so you can read a run while it is played. It may be
// used from several goroutines.
type Reader struct {
	journal journal.Journal
	kinds   []world.Kind
	files   []io.Closer
}

// Open opens a run file to read it. The kinds are your own: they give the ranges of their scores, which intervals depend on. You can also
// read a run of an unknown kind. The caller must call Close.
func Open(file string, kinds ...world.Kind) (*Reader, error) {
	store, err := runfile.OpenRead(file)
	if err != nil {
		return nil, wrap(err)
	}
	return &Reader{journal: store, kinds: withStandard(kinds), files: []io.Closer{store}}, nil
}

// OpenAll opens several run files as one run: parts of one experiment, with consecutive episode numbers. An episode
// that is in two files counts once. Runs that do not belong together are refused. It reads the state at the time of
// the call.
func OpenAll(ctx context.Context, files []string, kinds ...world.Kind) (*Reader, error) {
	if len(files) == 0 {
		return nil, errors.New("parley: no run files to read")
	}
	all := &Reader{kinds: withStandard(kinds)}
	var sources []merge.Source
	for _, file := range files {
		r, err := Open(file, kinds...)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.files = append(all.files, r.files...)
		head, err := r.journal.Head(ctx)
		if err != nil {
			return nil, errors.Join(wrap(err), all.Close())
		}
		sources = append(sources, merge.Source{Name: file, Journal: r.journal, Kind: r.kind(head)})
	}
	merged, err := merge.New(ctx, sources)
	if err != nil {
		return nil, errors.Join(wrap(err), all.Close())
	}
	all.journal = merged
	return all, nil
}

// Read reads a run in a journal, such as the *journal.Memory of Run. A nil journal holds no run.
func Read(j journal.Journal, kinds ...world.Kind) *Reader {
	if j == nil {
		j = &journal.Memory{}
	}
	return &Reader{journal: j, kinds: withStandard(kinds)}
}

// Close closes the run files.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	r.files = nil
	return errors.Join(errs...)
}

// kind returns the kind of a run, if r has it in the version that was played.
func (r *Reader) kind(head *journal.Head) world.Kind {
	return head.Begun.KindAmong(r.kinds)
}

// Head reads everything about the run except its calls: its plan, its agents, its episodes, and how it last stopped.
func (r *Reader) Head(ctx context.Context) (*journal.Head, error) {
	head, err := r.journal.Head(ctx)
	switch {
	case err != nil:
		return nil, wrap(err)
	case head.Begun == nil:
		return nil, fmt.Errorf("parley: the file %w", results.ErrEmpty)
	}
	return head, nil
}

// EpisodeState is the state of an episode.
type EpisodeState string

// The states of an episode.
const (
	Waiting EpisodeState = "waiting"
	Playing EpisodeState = "playing" // or it was, when the run was stopped
	Ended   EpisodeState = "ended"
	Failed  EpisodeState = "failed" // it ended without scores: Outcome.Failed says why
)

// Episode is one episode of a run.
type Episode struct {
	Number int
	// Spec is its kind, params, lineup and cell.
	Spec  world.Spec
	State EpisodeState
	// Outcome has the scores and, in Data, the world's own record as a json.RawMessage. It is empty until the episode ends.
	Outcome world.Outcome
}

// Episodes yields the episodes of the run, in order. It ends after an error.
func (r *Reader) Episodes(ctx context.Context) iter.Seq2[Episode, error] {
	return func(yield func(Episode, error) bool) {
		head, err := r.Head(ctx)
		if err != nil {
			yield(Episode{}, err)
			return
		}
		for _, st := range head.Stages {
			for i, spec := range st.Specs.All() {
				e, err := r.episode(ctx, head, st.First+i, spec)
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

func (r *Reader) episode(ctx context.Context, head *journal.Head, n int, spec world.Spec) (Episode, error) {
	end, err := head.Ended.Outcome(ctx, r.journal, n)
	if err != nil {
		return Episode{}, wrap(err)
	}
	_, playing := head.Playing[n]
	e := Episode{Number: n, Spec: spec, State: EpisodeState(runfile.StateOf(playing, end))}
	if end != nil {
		e.Outcome = end.Outcome
	}
	return e, nil
}

// Transcript returns the notes, calls and acts of an episode, in reading order.
func (r *Reader) Transcript(ctx context.Context, episode int) ([]world.TranscriptEntry, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	run := results.Outcomes(head, r.kind(head))
	if _, ok := run.Spec(episode); !ok {
		return nil, fmt.Errorf("parley: no episode %d: the run has %d, numbered from 0", episode, run.Episodes.Total)
	}
	t, err := results.ReadTranscript(ctx, r.journal, run.Head, run.Kind(), episode)
	if err != nil {
		return nil, wrap(err)
	}
	return t.Entries, nil
}

// errEnough ends the reading of a journal.
var errEnough = errors.New("enough")

// Calls yields the calls that were answered or failed: request, response or error, cost, tokens and times. Calls of one
// episode come in order. With episode numbers, it yields only their calls. It ends after an error.
func (r *Reader) Calls(ctx context.Context, episodes ...int) iter.Seq2[*journal.Replied, error] {
	return func(yield func(*journal.Replied, error) bool) {
		each := func(e journal.Entry) error {
			if call, ok := e.(*journal.Replied); ok && !yield(call, nil) {
				return errEnough
			}
			return nil
		}
		err := r.readCalls(ctx, episodes, each)
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, wrap(err))
		}
	}
}

func (r *Reader) readCalls(ctx context.Context, episodes []int, each func(journal.Entry) error) error {
	if len(episodes) == 0 {
		return r.journal.Read(ctx, journal.Whole(), each)
	}
	for _, n := range episodes {
		if n < 0 || n >= world.MaxEpisodes {
			return fmt.Errorf("no episode %d", n)
		}
		if err := r.journal.Read(ctx, journal.Span{From: n, To: n + 1}, each); err != nil {
			return err
		}
	}
	return nil
}

// Part is something that scores can be grouped by.
type Part string

// The parts of groups.
const (
	ByCell  Part = "cell"
	ByAgent Part = "agent"
	ByModel Part = "model"
	BySeat  Part = "seat"
)

// Estimates returns the means of the scores of all episodes that did not fail, with 95% intervals, by score and by these
// parts. They are the numbers of parley report, without labels and scores that were added later: while the run is not complete, whole deals count, in the order of the plan.
func (r *Reader) Estimates(ctx context.Context, by ...Part) ([]Estimate, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkParts(by...); err != nil {
		return nil, err
	}
	only := func(part Part, value string) string {
		if slices.Contains(by, part) {
			return value
		}
		return ""
	}
	return estimatesOf(results.Outcomes(head, r.kind(head)).Estimates(func(g results.Group) results.Group {
		return results.Group{Score: g.Score, Cell: only(ByCell, g.Cell), Agent: only(ByAgent, g.Agent), Model: only(ByModel, g.Model), Seat: only(BySeat, g.Seat)}
	})), nil
}

// Comparison compares one score of two groups.
type Comparison struct {
	Score string
	Of    string // the seat whose score it is, if the groups do not name it
	A, B  string // the groups
	// Paired means that the groups are compared deal by deal.
	Paired bool
	// Difference is by how much A is above B.
	Difference stats.Quantity
	Test       stats.Test
	// Adjusted is P corrected for the number of comparisons; NaN if it is not known. Below 0.05, the groups differ.
	Adjusted float64
}

// Compare compares every two groups: cells, agents, models or seats. It is parley compare.
func (r *Reader) Compare(ctx context.Context, by Part) ([]Comparison, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkParts(by); err != nil {
		return nil, err
	}
	result, err := report.Compare([]*results.Run{results.Outcomes(head, r.kind(head))}, []string{"run"}, report.CompareConfig{By: string(by), All: true})
	if err != nil {
		return nil, wrap(err)
	}
	out := make([]Comparison, len(result.Comparisons))
	for i, c := range result.Comparisons {
		out[i] = Comparison{Score: c.Score, Of: c.Of, A: c.A, B: c.B, Paired: c.Paired, Difference: c.Difference, Test: c.Test, Adjusted: c.Adjusted}
	}
	return out, nil
}

// checkParts refuses unknown parts.
func checkParts(parts ...Part) error {
	for _, part := range parts {
		if !slices.Contains([]Part{ByCell, ByAgent, ByModel, BySeat}, part) {
			return fmt.Errorf("parley: unknown part %q; want one of cell, agent, model, seat", part)
		}
	}
	return nil
}
