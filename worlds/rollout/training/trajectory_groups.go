package training

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"

	"parley/journal"
	"parley/worlds/rollout/rules"
)

// errNoRun means that the journal is empty.
var errNoRun = errors.New("trajectory: the file holds no run yet")

// trajectoryGroups knows which episodes of a run belong together, and which groups are complete, in the order in which
// they became so. It is a fold of the journal: reading it again, also after a crash, gives the same groups at
// the same cursors. The zero value is empty.
//
// It is not safe for concurrent use; a Complete stays valid.
type trajectoryGroups struct {
	run     string
	stages  []stage
	planned int
	groups  map[int]*group // by first episode: those with an episode that ended

	// judgements are the episodes in which a judge compares groups, by the name of the group, and judged the groups that
	// are compared, if an episode of theirs ended.
	judgements map[string]int
	judged     map[string]*group

	complete []TrajectoryComplete
	seen     int // entries

	walked struct{ stage, within, groups, episode int } // how far Bound has counted
}

// stage is the groups of a stage. No group spans two stages, so a complete group does not grow.
type stage struct {
	journal.Staged
	// shared maps the names of groups to their episodes, and names lists them in order, if a group may consist
	// of specs that are not adjacent. Nil: groups are those of the specs.
	shared   map[string][]int
	names    []string
	sessions bool // of a gateway
	// judgements are the places of judgements, with the names of their groups. judged means that a judge compares the
	// stage's groups, of which there are groups.
	judgements map[int]string
	judged     bool
	groups     int
}

type group struct {
	id      string
	members []int
	open    []int // members that have not ended
	session bool  // they are sessions of a gateway
	judged  bool  // a judge compares them
}

// TrajectoryComplete is a group whose episodes have all ended.
type TrajectoryComplete struct {
	// Cursor is the number of the entry with which it became complete.
	Cursor int
	*group
}

// Run is the id of the run, once there is one.
func (g *trajectoryGroups) Run() string { return g.run }

// Seen returns the number of the last end that was read: no cursor is larger.
func (g *trajectoryGroups) Seen() int { return g.seen }

// Count returns how many groups were planned and how many are complete.
func (g *trajectoryGroups) Count() (planned, complete int) { return g.planned, len(g.complete) }

// After returns the first group that became complete after a cursor, or false if no other is complete yet.
func (g *trajectoryGroups) After(cursor int) (TrajectoryComplete, bool) {
	i, _ := slices.BinarySearchFunc(g.complete, cursor+1, func(c TrajectoryComplete, n int) int { return c.Cursor - n })
	if i == len(g.complete) {
		return TrajectoryComplete{}, false
	}
	return g.complete[i], true
}

// Before returns how many groups became complete up to a cursor.
func (g *trajectoryGroups) Before(cursor int) int {
	i, _ := slices.BinarySearchFunc(g.complete, cursor+1, func(c TrajectoryComplete, n int) int { return c.Cursor - n })
	return i
}

// Update reads what was written since.
func (g *trajectoryGroups) Update(ctx context.Context, src journal.Parts) error {
	ends, err := src.Ends(ctx, g.seen+1)
	if err != nil {
		return err
	}
	if err := g.plan(ctx, src); err != nil { // after the ends: whatever ended was planned
		return err
	}
	for _, e := range ends {
		g.seen = max(g.seen, e.Entry)
		of, err := g.of(e.Episode)
		if err != nil {
			return err
		}
		if of == nil {
			continue // a judgement of a group that was lost
		}
		if i := slices.Index(of.open, e.Episode); i >= 0 { // else it ended before
			if of.open = slices.Delete(of.open, i, i+1); len(of.open) == 0 {
				g.complete = append(g.complete, TrajectoryComplete{e.Entry, of})
			}
		}
	}
	return nil
}

// of finds the group of an episode that ended.
func (g *trajectoryGroups) of(episode int) (*group, error) {
	i := sort.Search(len(g.stages), func(i int) bool { return episode < g.stages[i].First+g.stages[i].Specs.Len() })
	if i == len(g.stages) || episode < g.stages[i].First {
		return nil, fmt.Errorf("trajectory: episode %d ended and was never planned", episode)
	}
	s := &g.stages[i]
	if name := s.judgements[episode-s.First]; name != "" {
		of := g.judged[name]
		if of != nil {
			if k := slices.Index(of.open, -1); k >= 0 {
				of.open[k] = episode
			}
		}
		return of, nil
	}
	first, _ := s.Specs.Group(episode - s.First)
	if of := g.groups[s.First+first]; of != nil && s.shared == nil {
		return of, nil
	}
	of, err := s.group(episode - s.First)
	if err != nil {
		return nil, err
	}
	if known := g.groups[of.members[0]]; known != nil {
		return known, nil
	}
	of.open = slices.Clone(of.members)
	g.groups[of.members[0]] = of
	if of.judged {
		of.open = append(of.open, -1) // the judgement
		g.judged[of.id] = of
	}
	return of, nil
}

// group makes the group that place i is in.
func (s *stage) group(i int) (*group, error) {
	name, judged, err := rules.Grouped(s.Specs.At(i))
	if err != nil {
		return nil, err
	}
	of := &group{id: name, judged: judged == rules.InGroup}
	if s.shared != nil {
		of.members = s.shared[name]
		return of, nil
	}
	for from, to := s.Specs.Group(i); from < to; from++ {
		of.members = append(of.members, s.First+from)
	}
	return of, nil
}

// plan reads the stages that were planned since.
func (g *trajectoryGroups) plan(ctx context.Context, src journal.Parts) error {
	begun, stages, err := src.Plan(ctx, len(g.stages))
	switch {
	case err != nil:
		return err
	case g.run != "":
	case begun == nil:
		return errNoRun
	case begun.Kind == gatewayKind:
		s, err := sessions(stages)
		g.run, g.stages, g.planned = begun.Run, []stage{s}, len(s.names)
		return err
	case begun.Kind != "rollout":
		return fmt.Errorf("trajectory: a run of %s has no trajectories: want a run of rollout, or the record of a gateway", begun.Kind)
	default:
		g.run, g.groups, g.judgements, g.judged = begun.Run, map[int]*group{}, map[string]int{}, map[string]*group{}
	}
	for _, st := range stages {
		s := stage{Staged: st}
		n, err := s.count()
		if err != nil {
			return err
		}
		s.groups = n
		for place, name := range s.judgements {
			g.judgements[name] = s.First + place
		}
		g.planned += n
		g.stages = append(g.stages, s)
	}
	return nil
}

// maxShared is the maximum number of episodes of a stage whose groups are not adjacent.
const maxShared = 10_000_000

// count returns how many groups there are, and fills shared if several groups of the specs may be one.
func (s *stage) count() (n int, err error) {
	seen := map[string]bool{}
	shared, judgements := false, false
	for _, spec := range s.Specs.Distinct() {
		spec.Deal = 0 // rounds differ in it
		name, judged, err := rules.Grouped(spec)
		if err != nil {
			return 0, err
		}
		if judged == rules.Judgement {
			judgements = true
			continue
		}
		s.judged = s.judged || judged == rules.InGroup
		shared = shared || seen[name]
		seen[name] = true
	}
	if judgements {
		if err := s.findJudgements(); err != nil {
			return 0, err
		}
	}
	if shared {
		return s.share()
	}
	for b := range s.Specs.Blocks() {
		n += len(b.Groups) * b.Rounds
	}
	return n - len(s.judgements), nil
}

func (s *stage) share() (int, error) {
	if n := s.Specs.Len(); n > maxShared {
		return 0, fmt.Errorf("trajectory: stage %d has %d episodes, and groups that do not stand together: at most %d are looked at", s.Stage, n, maxShared)
	}
	s.shared = map[string][]int{}
	for i, spec := range s.Specs.All() {
		if s.judgements[i] != "" {
			continue
		}
		name, err := rules.GroupOf(spec)
		if err != nil {
			return 0, err
		}
		if s.shared[name] == nil {
			s.names = append(s.names, name)
		}
		s.shared[name] = append(s.shared[name], s.First+i)
	}
	return len(s.names), nil
}

// all returns every planned group, in order.
func (s *stage) all() iter.Seq2[*group, error] {
	return func(yield func(*group, error) bool) {
		for _, name := range s.names {
			of := &group{id: name, members: s.shared[name], session: s.sessions}
			var err error
			if !s.sessions {
				of, err = s.group(of.members[0] - s.First)
			}
			if !yield(of, err) || err != nil {
				return
			}
		}
		if s.shared != nil {
			return
		}
		for i := 0; s.skip(&i); {
			of, err := s.group(i)
			if !yield(of, err) || err != nil {
				return
			}
			i += len(of.members)
		}
	}
}

// Read reads a complete group of the run in src. If f does not select it, it returns nil and why.
func (g *trajectoryGroups) Read(ctx context.Context, src journal.Parts, c TrajectoryComplete, f Filter) (_ *Group, left string, _ error) {
	return g.read(ctx, src, c.group, f)
}

// read reads a group. It checks the outcomes first, so that it need not read a group that is dropped.
func (g *trajectoryGroups) read(ctx context.Context, src journal.Parts, of *group, f Filter) (_ *Group, left string, _ error) {
	out := &Group{ID: of.id, Size: len(of.members)}
	if err := of.outcomes(ctx, src, out); err != nil {
		return nil, "", err
	}
	if len(out.Members) < out.Size {
		return nil, leftUnfinished, nil
	}
	if of.judged {
		if ended, err := g.judge(ctx, src, out); err != nil || !ended {
			return nil, leftUnfinished, err
		}
	}
	if why := f.outcomes(out); why != "" {
		return nil, why, nil
	}
	shared := stamp{run: g.run, group: of.id, size: out.Size}
	for _, t := range out.Members {
		entries, err := repliesOf(ctx, src, t.Episode)
		if err == nil {
			err = shared.rows(t, entries, f)
		}
		if err != nil {
			return nil, "", err
		}
	}
	return out, "", nil
}

// outcomes reads the outcomes of the members that ended.
func (g *group) outcomes(ctx context.Context, src journal.Parts, out *Group) error {
	for i := 0; i < len(g.members); {
		page, err := src.Planned(ctx, g.members[i], together(g.members[i:]))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("trajectory: episode %d is no longer in the run file", g.members[i])
		}
		for _, p := range page {
			if p.Ended == nil {
				return nil
			}
			t, err := outcomeOf(p.Ended)
			if err == nil && g.session {
				var entries []journal.Entry
				entries, err = repliesOf(ctx, src, p.Episode)
				t.session(p.Ended, entries)
			}
			if err != nil {
				return err
			}
			out.Members = append(out.Members, t)
		}
		i += len(page)
	}
	return nil
}

// together returns how many of the first members have consecutive numbers.
func together(members []int) int {
	n := 1
	for n < len(members) && members[n] == members[0]+n {
		n++
	}
	return n
}

// repliesOf reads the turns and replies of an episode.
func repliesOf(ctx context.Context, src journal.Parts, n int) (out []journal.Entry, err error) {
	err = src.Read(ctx, journal.Span{From: n, To: n + 1}, func(e journal.Entry) error {
		out = append(out, e)
		return nil
	})
	return out, err
}
