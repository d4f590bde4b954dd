// Package merge reads several runs as one: it numbers their episodes consecutively, and an episode
// that is in two of them occurs once.
//
// What it promises: Runs is a journal that can only be read, so whatever reads a run can read
// several. Runs that do not belong to one experiment are refused with what differs. Episodes
// with the same seed and deal keep the same deal, and others never share one.
//
// It does not write a merged run file, and does not compare runs.
package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/internal/run/planner"
	"parley/journal"
	"parley/world"
)

// Source is a run to merge.
type Source struct {
	Name    string // for people
	Journal journal.Journal
	Kind    world.Kind // zero: unknown
}

// Shared is how many episodes are in two runs. They count once, as episodes of the first.
type Shared struct {
	First, Second string
	Episodes      int
}

// String returns a sentence about the shared episodes.
func (s Shared) String() string {
	if s.Episodes == 1 {
		return fmt.Sprintf("1 episode is in both %s and %s; it counts once", s.First, s.Second)
	}
	return fmt.Sprintf("%d episodes are in both %s and %s; they count once", s.Episodes, s.First, s.Second)
}

// Runs is several runs as one journal.
type Runs struct {
	members []*member
	head    *journal.Head
	Shared  []Shared
}

// member is one of the runs.
type member struct {
	Source
	head   *journal.Head
	cells  map[string]string // new names
	deals  int               // the offset of its deals
	kept   []int             // its episodes, by their number among all minus first
	first  int
	number map[int]int // among all, by episode
}

// New merges runs. It returns a *ConflictError if they do not belong to one experiment.
func New(ctx context.Context, sources []Source) (*Runs, error) {
	r := &Runs{}
	for _, s := range sources {
		head, err := s.Journal.Head(ctx)
		if err != nil {
			return nil, err
		}
		if head.Begun == nil {
			return nil, fmt.Errorf("%s holds no run yet", s.Name)
		}
		r.members = append(r.members, &member{Source: s, head: head, number: map[int]int{}})
	}
	if err := r.agree(); err != nil {
		return nil, err
	}
	if err := r.rename(); err != nil {
		return nil, err
	}
	if err := r.renumberDeals(); err != nil {
		return nil, err
	}
	var drop []map[int]bool
	drop, r.Shared = duplicates(r.members)
	r.join(drop)
	return r, nil
}

// Duplicates returns, by source, the episodes that are also in an earlier one, and their number.
// The runs need not belong to one experiment.
func Duplicates(ctx context.Context, sources []Source) ([]map[int]bool, []Shared, error) {
	var members []*member
	for _, s := range sources {
		head, err := s.Journal.Head(ctx)
		if err != nil {
			return nil, nil, err
		}
		members = append(members, &member{Source: s, head: head})
	}
	drop, shared := duplicates(members)
	return drop, shared, nil
}

// renumberDeals separates the deals of different seeds.
func (r *Runs) renumberDeals() error {
	const limit = 1 << 40
	from := map[uint64]int{}
	next := 0
	for _, p := range r.members { // deals of the first seed keep their numbers
		seed := p.head.Begun.Seed
		if _, ok := from[seed]; ok {
			continue
		}
		from[seed] = next
		high := 0
		for _, other := range r.members {
			if other.head.Begun.Seed != seed {
				continue
			}
			for _, st := range other.head.Stages {
				for _, s := range st.Specs.All() {
					if s.Deal < 0 || s.Deal > limit {
						return fmt.Errorf("%s: deal %d is out of range", other.Name, s.Deal)
					}
					high = max(high, s.Deal+1)
				}
			}
		}
		next += high
	}
	for _, p := range r.members {
		p.deals = from[p.head.Begun.Seed]
	}
	return nil
}

// join makes the head of all runs.
func (r *Runs) join(drop []map[int]bool) {
	first := r.members[0].head
	begun := *first.Begun
	begun.Run, begun.Agents, begun.Grown, begun.Cells, begun.Measures = "", nil, nil, nil, nil
	r.head = &journal.Head{Begun: &begun, Last: first.Last, Playing: map[int]journal.Progress{}, Batches: map[string]journal.OpenBatch{}}
	total := 0
	for i, p := range r.members {
		p.first = total
		total = p.joinEpisodes(r.head, drop[i])
		if !p.copy(i) {
			p.joinRun(r.head)
		}
	}
}

// copy reports whether an earlier run has all episodes of this one.
func (p *member) copy(i int) bool { return i > 0 && len(p.kept) == 0 }

// joinEpisodes adds the episodes of the run, and returns the total.
func (p *member) joinEpisodes(h *journal.Head, drop map[int]bool) int {
	total := p.first
	for _, st := range p.head.Stages {
		out := journal.Staged{Stage: len(h.Stages), First: total, Specs: st.Specs.Map(p.spec)}
		var some []world.Spec // if others are left out
		for j, spec := range st.Specs.All() {
			n := st.First + j
			if drop[n] {
				continue
			}
			if len(drop) > 0 {
				some = append(some, p.spec(spec))
			}
			p.number[n] = total
			p.kept = append(p.kept, n)
			if e, ok := p.head.Ended.Of(n); ok {
				e.Episode = total
				h.Ended.Put(total, &e)
			} else if playing, ok := p.head.Playing[n]; ok {
				h.Playing[total] = playing
			}
			total++
		}
		if len(drop) > 0 {
			out.Specs = world.List(some...)
		}
		if out.Specs.Len() > 0 {
			h.Stages = append(h.Stages, out)
		}
	}
	return total
}

// joinRun adds the agents, calls and costs of the run.
func (p *member) joinRun(h *journal.Head) {
	h.Begun.Run = strings.TrimPrefix(h.Begun.Run+"+"+p.head.Begun.Run, "+")
	for _, a := range p.head.Begun.Agents {
		if !slices.ContainsFunc(h.Begun.Agents, func(b world.Agent) bool { return a.Name == b.Name }) {
			h.Begun.Agents = append(h.Begun.Agents, a)
		}
	}
	h.Begun.Measures = planner.JoinMeasures(h.Begun.Measures, p.head.Begun.Measures)
	h.Calls += p.head.Calls
	h.Spent, h.Risked = h.Spent.Plus(p.head.Spent), h.Risked.Plus(p.head.Risked)
	h.Cut = h.Cut || p.head.Cut
	if p.head.Last.State != journal.Complete && h.Last.State == journal.Complete {
		h.Last = p.head.Last
	}
	for key, b := range p.head.Batches {
		b.Entry = 1
		h.Batches[key] = b
	}
}

// spec returns a spec with its cell and deal among all runs.
func (p *member) spec(s world.Spec) world.Spec {
	if name, ok := p.cells[s.Cell]; ok {
		s.Cell = name
	}
	s.Deal += p.deals
	return s
}

// Episodes returns the number of episodes of a run. They follow those of the runs before it.
func (r *Runs) Episodes(run int) int { return len(r.members[run].kept) }

// Number returns the number that an episode of one of the runs has among all. ok is false if an earlier run has it too.
func (r *Runs) Number(run, episode int) (n int, ok bool) {
	n, ok = r.members[run].number[episode]
	return n, ok
}

// Head returns the head of all runs.
func (r *Runs) Head(context.Context) (*journal.Head, error) { return r.head, nil }

// Append returns an error: Runs can only be read.
func (r *Runs) Append(context.Context, ...journal.Entry) error {
	return errors.New("runs that are read as one cannot be written")
}

// Read reads the entries of a span: all, or those of some episodes.
func (r *Runs) Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	if in.To <= 0 {
		return r.whole(each, func(p *member, each func(journal.Entry) error) error { return p.Journal.Read(ctx, in, each) })
	}
	for _, p := range r.members {
		from, to := max(0, in.From-p.first), min(len(p.kept), in.To-p.first)
		if from >= to {
			continue
		}
		own := in
		own.From, own.To = p.kept[from], p.kept[to-1]+1
		if err := p.Journal.Read(ctx, own, p.renumber(each)); err != nil {
			return err
		}
	}
	return nil
}

// Outcomes reads ends of episodes, given their numbers among all.
func (r *Runs) Outcomes(ctx context.Context, episodes []int, each func(*journal.Ended) error) error {
	for _, n := range episodes {
		i, _ := slices.BinarySearchFunc(r.members, n, func(p *member, n int) int { return cmp.Compare(p.first+len(p.kept), n+1) })
		if i == len(r.members) || n < r.members[i].first {
			return fmt.Errorf("no episode %d", n)
		}
		p := r.members[i]
		e, err := p.head.Ended.Outcome(ctx, p.Journal, p.kept[n-p.first])
		if err == nil && e == nil {
			err = fmt.Errorf("episode %d has not ended", n)
		}
		if err != nil {
			return err
		}
		own := *e
		own.Episode = n
		if err := each(&own); err != nil {
			return err
		}
	}
	return nil
}

// Brief reads all entries without texts, if the journals can.
func (r *Runs) Brief(ctx context.Context, each func(journal.Entry) error) error {
	return r.whole(each, func(p *member, each func(journal.Entry) error) error {
		if b, ok := p.Journal.(journal.Briefer); ok {
			return b.Brief(ctx, each)
		}
		return p.Journal.Read(ctx, journal.Whole(), each)
	})
}

// whole reads the runs one after the other.
func (r *Runs) whole(each func(journal.Entry) error, read func(*member, func(journal.Entry) error) error) error {
	if err := each(r.head.Begun); err != nil {
		return err
	}
	for i := range r.head.Stages {
		if err := each(&r.head.Stages[i]); err != nil {
			return err
		}
	}
	for i, p := range r.members {
		if p.copy(i) {
			continue
		}
		if err := read(p, p.renumber(each)); err != nil {
			return err
		}
	}
	return nil
}

// among passes an entry of an episode on with the episode's number among all, unless the episode
// is left out.
func (p *member) among(episode *int, e journal.Entry, each func(journal.Entry) error) error {
	n, ok := p.number[*episode]
	if !ok {
		return nil
	}
	*episode = n
	return each(e)
}

// renumber passes on the entries of the run's episodes, with their numbers among all.
func (p *member) renumber(each func(journal.Entry) error) func(journal.Entry) error {
	return func(e journal.Entry) error {
		switch e := e.(type) {
		case *journal.Begun, *journal.Staged:
			return nil // whole passes those of all runs
		case *journal.Turned:
			out := *e
			return p.among(&out.Episode, &out, each)
		case *journal.Replied:
			out := *e
			return p.among(&out.Episode, &out, each)
		case *journal.Ended:
			out := *e
			return p.among(&out.Episode, &out, each)
		default:
			return each(e)
		}
	}
}

var _ journal.Journal = (*Runs)(nil)
