// Package results reads runs for those who look at them: reports, exports, pages and tables.
//
// Fold makes a Run of a journal: episodes, scores (scores.go, factors.go), costs and times (accounts.go), failures and what to do about
// them (failures.go), which episodes are independent evidence (units.go), and which count while a run is not complete (counted.go). ReadTranscript reads one episode in the order of a
// story. An Index lists, filters and searches a million episodes without folding the run.
//
// What it promises: the same run gives the same view, whatever its concurrency, because
// outcomes are folded in episode order and calls are counted in whole numbers. Memory grows
// with episodes, never with calls. It also reads a run that is being played, was cut off, or
// has just begun.
//
// It shows nothing: that is package report. It has no statistics of its own: world.Sample has them.
package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/world/part"
)

// ErrEmpty is returned for a journal without a run.
var ErrEmpty = errors.New("holds no run yet")

// Run is a run for readers.
type Run struct {
	File string
	Status
	Head      *journal.Head // its Begun is set
	Processes int
	Played    time.Duration // by all processes
	Episodes  journal.EpisodeCounts

	Accounts []KeyedAccount
	Times    []ModelTimes
	Failures []Failure
	Fault    *Fault // why most episodes failed; nil: none failed
	Timeline Timeline
	Batches  []Batch
	// Spent is the spending of each episode, by its number.
	Spent []journal.Spending
	took  []world.Took // by episode too
	units *runUnits    // nil: not found yet
	// Everything counts all episodes that ended, also if the run is not complete: see CountedNote.
	Everything bool
	// Bounds are the possible values of scores, by name, as far as the kind declares them: see Know.
	Bounds   map[string]world.Bounds
	Plans    []json.RawMessage // of the runs that it consists of, if several are read as one
	kind     world.Kind
	order    []string              // of the scores that it declares
	Labels   map[int][]world.Score // by episode: scores by people, which are not in the journal
	Added    map[int][]world.Score // by episode: scores by scorers, which are in journals of their own
	TagsLeft int                   // tags that are not among Labels, because there are too many
}

// Know sets the kind of the run, which is not in the journal; empty: it is not known. It gives the order and the bounds of scores,
// and what episodes were dealt beside chance. Without Know scores have no bounds.
func (r *Run) Know(kind world.Kind) {
	r.kind, r.units, r.Bounds, r.order = kind, nil, map[string]world.Bounds{}, nil
	for _, m := range r.Measures() {
		r.Bounds[m.Name] = m.Bounds
		r.order = append(r.order, m.Name)
	}
}

// Kind returns the kind that Know set.
func (r *Run) Kind() world.Kind { return r.kind }

// Recorded returns that part of the kind that Know set. ok is whether the run records what other programs asked. Other kinds
// note what their seats are shown; only the requests of a record show it.
func (r *Run) Recorded() (_ part.Recorded, ok bool) { return world.As[part.Recorded](r.kind) }

// Outcomes returns a run of which only the outcomes are known.
func Outcomes(head *journal.Head, kind world.Kind) *Run {
	r := &Run{Head: head, Episodes: head.Episodes()}
	r.Know(kind)
	return r
}

// Fold reads a run. file is its name.
func Fold(ctx context.Context, j journal.Journal, file string) (*Run, error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, err
	}
	if head.Begun == nil {
		return nil, fmt.Errorf("%s %w", file, ErrEmpty)
	}
	r := &Run{File: file, Head: head, Episodes: head.Episodes()}
	o, played := runfile.Outline{Open: head.Cut, Last: head.Last, Episodes: r.Episodes}, false
	if store, ok := j.(*runfile.Store); ok { // other journals are not played
		if o, err = store.Outline(ctx); err != nil {
			return nil, err
		}
		played = runfile.Played(store.Path())
	}
	r.Status = StatusOf(o, played)
	builder := newAccountBuilder(r)
	if b, ok := j.(journal.Briefer); ok {
		err = b.Brief(ctx, builder.add)
	} else {
		err = j.Read(ctx, journal.Whole(), builder.add)
	}
	if err != nil {
		return nil, err
	}
	builder.close()
	r.Fault, err = CommonestFault(ctx, j, head)
	return r, err
}

// Each calls f with every episode that ended and counts (see CountedNote), in episode order, with its Labels and Added scores, without the Data of its outcome.
func (r *Run) Each(f func(world.Played)) {
	r.each(func(p world.Played, _ world.Unit) { f(p) })
}

// each also passes what of its unit an episode shares with others.
func (r *Run) each(f func(p world.Played, shared world.Unit)) {
	r.FindUnits()
	i := -1
	for spec, e := range r.Head.Played() {
		if i++; r.leaves(i) {
			continue
		}
		unit, shared := r.units.of(i, spec, &e)
		p := r.played(spec, &e, unit)
		if added, labels := r.Added[p.Episode], r.Labels[p.Episode]; len(added)+len(labels) > 0 {
			p.Outcome.Scores = slices.Concat(p.Outcome.Scores, added, labels)
		}
		f(p, shared)
	}
}

// leaves reports whether an episode does not count. place is its place among those that ended.
func (r *Run) leaves(place int) bool { return !r.Everything && r.units.left.has(place) }

// EachWithData does the same with the Data of outcomes, which it reads from j, and without Labels, until f fails.
func (r *Run) EachWithData(ctx context.Context, j journal.Journal, f func(world.Played) error) error {
	r.FindUnits()
	i := -1
	return r.Head.PlayedOutcomes(ctx, j, func(spec world.Spec, e *journal.Ended) error {
		if i++; r.leaves(i) {
			return nil
		}
		end, _ := r.Head.Ended.Of(e.Episode) // its play is what the head says
		unit, _ := r.units.of(i, spec, &end)
		return f(r.played(spec, e, unit))
	})
}

func (r *Run) played(spec world.Spec, e *journal.Ended, unit world.Unit) world.Played {
	p := world.Played{Episode: e.Episode, Spec: spec, Outcome: e.Outcome, Unit: unit}
	if fork := r.Head.Begun.Fork; fork != nil {
		p.Past = fork.Turn
	}
	if e.Episode < len(r.took) {
		p.Took = r.took[e.Episode]
	}
	return p
}

// Model returns the model of an agent, as provider/model, or its bot, or "person".
func (r *Run) Model(agent string) string {
	for _, a := range r.Head.Begun.Agents {
		switch {
		case a.Name != agent:
		case a.Bot != "":
			return "bot " + a.Bot
		default:
			return world.ModelName(a.Model)
		}
	}
	return ""
}

// Episode is a summary of an episode: a row of every list of episodes.
type Episode struct {
	Number  int               `json:"episode"`
	Attempt int               `json:"attempt,omitempty"`
	Cell    string            `json:"cell,omitempty"`
	Lineup  map[string]string `json:"lineup"`
	Deal    int               `json:"deal"`
	State   string            `json:"state"` // waiting, playing, ended, failed
	Failed  string            `json:"failed,omitempty"`
	Scores  Scores            `json:"scores,omitempty"`
	journal.Spending
}

// NewEpisode returns an episode, without its spending.
func NewEpisode(l *runfile.Listed) Episode {
	e := Episode{Number: l.Episode, Attempt: l.Attempt, Cell: l.Spec.Cell, Lineup: l.Spec.Lineup, Deal: l.Spec.Deal, State: l.State()}
	if l.Ended != nil {
		e.Failed, e.Scores = l.Ended.Outcome.Failed, l.Ended.Outcome.Scores
	}
	return e
}

// Scores are scores that can be written as JSON.
type Scores []world.Score

// MarshalJSON writes a value that JSON has no number for as a text.
func (s Scores) MarshalJSON() ([]byte, error) {
	type row struct {
		Seat  string `json:"seat,omitempty"`
		Name  string `json:"name"`
		Value any    `json:"value"`
	}
	rows := make([]row, len(s))
	for i, one := range s {
		rows[i] = row{one.Seat, one.Name, JSONNumber(one.Value)}
	}
	return json.Marshal(rows)
}

// JSONNumber returns a number, or the name of one that JSON does not have: see NonFinite.
func JSONNumber(x float64) any {
	if name, ok := NonFinite(x); ok {
		return name
	}
	return x
}

// NonFinite returns the name of a number that JSON does not have, as Python, pandas and DuckDB read it.
func NonFinite(x float64) (name string, ok bool) {
	switch {
	case math.IsNaN(x):
		return "NaN", true
	case math.IsInf(x, 1):
		return "Infinity", true
	case math.IsInf(x, -1):
		return "-Infinity", true
	default:
		return "", false
	}
}

// LineupText returns a lineup as first=small second=large.
func LineupText(lineup map[string]string) string {
	parts := make([]string, 0, len(lineup))
	for _, seat := range slices.Sorted(maps.Keys(lineup)) {
		parts = append(parts, seat+"="+lineup[seat])
	}
	return strings.Join(parts, " ")
}

// All iterates over all episodes, in order.
func (r *Run) All() iter.Seq[Episode] {
	return func(yield func(Episode) bool) {
		for _, st := range r.Head.Stages {
			for i, spec := range st.Specs.All() {
				if !yield(r.episode(st.First+i, spec)) {
					return
				}
			}
		}
	}
}

// Spec returns the spec of an episode. ok is false if there is no such episode.
func (r *Run) Spec(episode int) (spec world.Spec, ok bool) {
	for _, st := range r.Head.Stages {
		if i := episode - st.First; i >= 0 && i < st.Specs.Len() {
			return st.Specs.At(i), true
		}
	}
	return spec, false
}

func (r *Run) episode(n int, spec world.Spec) Episode {
	progress, begun := r.Head.Playing[n]
	l := runfile.Listed{Episode: n, Spec: spec, Begun: begun, Attempt: progress.Attempt}
	if end, ok := r.Head.Ended.Of(n); ok {
		l.Ended, l.Attempt = &end, end.Attempt
	}
	e := NewEpisode(&l)
	if n < len(r.Spent) {
		e.Spending = r.Spent[n]
	}
	return e
}

// Plan returns the resolved plan of the run, indented.
func (r *Run) Plan() string {
	b, err := json.MarshalIndent(r.Head.Begun.Plan, "", "  ")
	if err != nil {
		return string(r.Head.Begun.Plan)
	}
	return string(b)
}
