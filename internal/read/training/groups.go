package training

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/zeebo/xxh3"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
	"parley/world/part"
)

// Source is a run file, which is read in parts to save memory. A *runfile.Store is one.
type Source interface {
	Plan(ctx context.Context, after int) (*journal.Begun, []journal.Staged, error)
	List(ctx context.Context, want runfile.Listing) ([]runfile.Listed, error)
	Ends(ctx context.Context, since int) ([]runfile.End, error)
	Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error
}

// Group is the episodes that are compared: of one task, with one deal.
type Group struct {
	ID      string
	Size    int // episodes that were planned
	Members []*Trajectory
	// Short says why there are fewer members than planned. It may be empty.
	Short string
}

// compare sets the advantage of each seat that is trained: (return − mean) / (standard deviation + 1e-6) over the episodes of
// the group. An episode counts once, whatever the number of its parts. Without another to compare it with, it has 0.
func (g *Group) compare() {
	of := map[string][]*Trajectory{}
	for _, t := range g.Members {
		t.Advantage = map[string]float64{}
		for seat := range t.Return {
			if t.trains(seat) {
				of[seat] = append(of[seat], t)
			}
		}
	}
	for seat, all := range of {
		n, unit, mean, squares := float64(len(all)), 1.0, 0.0, 0.0
		for _, t := range all {
			unit = max(unit, math.Abs(t.Return[seat])/1e100) // so that no sum of squares is too large
		}
		above := func(t *Trajectory) float64 { return t.Return[seat]/unit - all[0].Return[seat]/unit } // so that equal returns differ by exactly 0
		for _, t := range all {
			mean += above(t) / n
		}
		for _, t := range all {
			squares += math.Pow(above(t)-mean, 2)
		}
		for _, t := range all {
			t.Advantage[seat] = (above(t) - mean) / (math.Sqrt(squares/max(1, n-1)) + 1e-6)
		}
	}
}

// Failed counts the episodes of g that failed.
func (g *Group) Failed() (n int) {
	for _, m := range g.Members {
		if m.Status == failed {
			n++
		}
	}
	return n
}

// Filter selects groups and rows. The zero value selects all.
type Filter struct {
	// Trainable drops rows that are not trainable, and groups without any.
	Trainable bool
	// Statuses are the statuses of episodes to keep. Empty: all.
	Statuses []Status
	// Whole drops groups with missing members.
	Whole bool
	// MinReward, if set, drops the rows of agents that got a smaller reward in the episode, or none, and episodes without any
	// other.
	MinReward *float64
	// Unequal drops groups whose members of these statuses all got the same reward. Those that MinReward drops count.
	Unequal bool
	// Version, if set, is the current version of the weights, and Lag how far those of an answer may be behind it.
	// Every answer of a seat that is trained counts. Without a numeric version it is too old.
	Version *int
	Lag     int
}

// Account counts the groups of a run.
type Account struct {
	Groups int `json:"groups"`
	Kept   int `json:"kept"`
	Rows   int `json:"rows"`
	// Unpaid counts, in the groups that were kept, the episodes that did not fail and do not have the score Reward.
	Unpaid int    `json:"unpaid,omitempty"`
	Reward string `json:"reward"`
	// Joins counts, in the groups that were kept, how answers followed each other.
	Joins Joins `json:"joins"`
	// Left counts dropped groups by reason.
	Left map[string]int `json:"left,omitempty"`
	// Unmade counts, in the groups that were kept, the records that a Shape does not have, by reason.
	Unmade map[string]int `json:"unmade,omitempty"`
}

// Reasons to drop a group.
const (
	leftUnfinished = "unfinished"        // an episode has not ended
	leftStatus     = "status"            // no episode of a status that is wanted
	leftShort      = "short"             // fewer episodes than planned
	leftReward     = "reward"            // no agent got the reward that is wanted
	leftVersion    = "no weight version" // the version of the weights is unknown
	leftLag        = "weight lag"        // answered by weights that are too old
	leftEmpty      = "no rows"           // nothing trainable
)

// Each calls each with every group of a run that f selects, in planned order. It holds one group in
// memory at a time. A kind that is not known is read by its scores.
func Each(ctx context.Context, src Source, kind world.Kind, f Filter, each func(*Group) error) (Account, error) {
	a := Account{Left: map[string]int{}}
	all := &Index{Kind: kind}
	if err := all.plan(ctx, src); err != nil {
		return a, err
	}
	a.Reward = all.reward
	for i := range all.stages {
		for planned, err := range all.stages[i].all() {
			if err != nil {
				return a, err
			}
			a.Groups++
			g, why, err := all.read(ctx, src, planned, f)
			if err == nil && g != nil {
				a.keep(g)
				err = each(g)
			}
			if err != nil {
				return a, err
			}
			if g == nil {
				a.Left[why]++
			}
		}
	}
	return a, nil
}

// keep counts a group that is kept.
func (a *Account) keep(g *Group) {
	a.Kept++
	for _, m := range g.Members {
		a.Rows += len(m.Rows)
		if m.Status != failed && len(m.Return) == 0 {
			a.Unpaid++
		}
		a.Joins.Add(m.Joins)
	}
}

// dropMembers drops members of g by their outcomes. It returns why nothing is left, or "".
func (f Filter) dropMembers(g *Group) string {
	if len(f.Statuses) > 0 {
		g.Members = slices.DeleteFunc(g.Members, func(t *Trajectory) bool { return !slices.Contains(f.Statuses, t.Status) })
	}
	same := f.Unequal && equalRewards(g) // of all rewards, also of those that are too small
	why, by := leftStatus, "status"
	if f.MinReward != nil && len(g.Members) > 0 {
		why, by = leftReward, "status or reward"
		g.Members = slices.DeleteFunc(g.Members, func(t *Trajectory) bool {
			return !slices.ContainsFunc(slices.Collect(maps.Keys(t.Return)), func(seat string) bool { return f.earned(t, seat) })
		})
	}
	if missing := g.Size - len(g.Members); missing > 0 {
		g.Short = fmt.Sprintf("%d of %d left out for their %s", missing, g.Size, by)
	}
	switch {
	case len(g.Members) == 0:
		return why
	case f.Whole && g.Short != "":
		return leftShort
	case same:
		return leftEqual
	case f.Trainable && !slices.ContainsFunc(g.Members, trainable):
		return leftEmpty
	}
	return f.stale(g)
}

// earned reports whether a seat got the reward that is wanted.
func (f Filter) earned(t *Trajectory, seat string) bool {
	if f.MinReward == nil {
		return true
	}
	paid, ok := t.Return[seat]
	return ok && paid >= *f.MinReward
}

// trainable reports whether an episode has a trainable row.
func trainable(t *Trajectory) bool {
	return slices.ContainsFunc(t.rewards.Answers, func(r part.Answer) bool { return r.Trainable })
}

// equalRewards reports whether all members got the same reward, seat by seat.
func equalRewards(g *Group) bool {
	for _, m := range g.Members {
		for seat, paid := range g.Members[0].Return {
			if m.Return[seat] != paid {
				return false
			}
		}
		if len(m.Return) != len(g.Members[0].Return) {
			return false
		}
	}
	return true
}

// stale returns what is wrong with the weights of answers that are trained on, or "".
func (f Filter) stale(g *Group) string {
	if f.Version == nil {
		return ""
	}
	for _, m := range g.Members {
		for _, r := range m.rewards.Answers {
			if !m.trains(r.Seat) {
				continue
			}
			v, ok := part.WeightNumber(r.Weights)
			switch {
			case !ok:
				return leftVersion
			case *f.Version-v > f.Lag:
				return leftLag
			}
		}
	}
	return ""
}

// ErrNoRun means that the journal is empty.
var ErrNoRun = errors.New("trajectory: the file holds no run yet")

// Index knows which episodes of a run belong together, and which groups are complete, in the order in which
// they became so. It is a fold of the journal: reading it again, also after a crash, gives the same groups at
// the same cursors. The zero value is empty.
//
// It is not safe for concurrent use; a Complete stays valid.
type Index struct {
	// Kind is that of the run. Without it, the run is read by its scores.
	Kind world.Kind

	about
	stages  []stage
	planned int
	groups  map[int]*group // by first episode: those with an episode that ended

	// judgements are the episodes in which a judge compares groups, by the name of the group, and judged the groups that
	// are compared, if an episode of theirs ended.
	judgements map[string]int
	judged     map[string]*group

	complete []Complete
	seen     int // entries

	walked struct{ stage, within, groups, episode int } // how far bound has counted
}

// stage is the groups of a stage. No group spans two stages, so a complete group does not grow.
type stage struct {
	journal.Staged
	*about
	// mixed means that episodes of one cell and deal have different params, and are no group.
	mixed bool
	// shared maps the names of groups to their episodes, and names lists them in order, if a group may consist
	// of specs that are not adjacent. Nil: groups are those of the specs.
	shared   map[string][]int
	names    []string
	sessions bool // of a record
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
	judged  bool  // a judge compares them
}

// Complete is a group whose episodes have all ended.
type Complete struct {
	// Cursor is the number of the entry with which it became complete.
	Cursor int
	*group
}

// Run returns the id of the run, or "" before Update has found one.
func (g *Index) Run() string { return g.run }

// Seen returns how many entries of the journal were looked at.
func (g *Index) Seen() int { return g.seen }

// Count returns how many groups were planned and how many are complete.
func (g *Index) Count() (planned, complete int) { return g.planned, len(g.complete) }

// After returns the first group that became complete after a cursor, or false if no other is complete yet.
func (g *Index) After(cursor int) (Complete, bool) {
	i, _ := slices.BinarySearchFunc(g.complete, cursor+1, func(c Complete, n int) int { return c.Cursor - n })
	if i == len(g.complete) {
		return Complete{}, false
	}
	return g.complete[i], true
}

// Before returns how many groups became complete up to a cursor.
func (g *Index) Before(cursor int) int {
	i, _ := slices.BinarySearchFunc(g.complete, cursor+1, func(c Complete, n int) int { return c.Cursor - n })
	return i
}

// Update reads what was written since.
func (g *Index) Update(ctx context.Context, src Source) error {
	ends, err := src.Ends(ctx, g.seen+1)
	if err != nil {
		return err
	}
	if err := g.plan(ctx, src); err != nil { // after the ends: whatever ended was planned
		return err
	}
	for _, e := range ends {
		g.seen = max(g.seen, e.Entry)
		of, err := g.find(e.Episode)
		if err != nil {
			return err
		}
		if of == nil {
			continue // a judgement of a group that was lost
		}
		if i := slices.Index(of.open, e.Episode); i >= 0 { // else it ended before
			if of.open = slices.Delete(of.open, i, i+1); len(of.open) == 0 {
				g.complete = append(g.complete, Complete{e.Entry, of})
			}
		}
	}
	return nil
}

// find finds the group of an episode that ended.
func (g *Index) find(episode int) (*group, error) {
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
	named, err := s.groupOf(s.Specs.At(i))
	if err != nil {
		return nil, err
	}
	of := &group{id: named.Name, judged: named.Judged}
	if s.shared != nil {
		of.members = s.shared[named.Name]
		return of, nil
	}
	for from, to := s.Specs.Group(i); from < to; from++ {
		of.members = append(of.members, s.First+from)
	}
	return of, nil
}

// plan reads the stages that were planned since.
func (g *Index) plan(ctx context.Context, src Source) error {
	begun, stages, err := src.Plan(ctx, len(g.stages))
	switch {
	case err != nil:
		return err
	case g.run != "":
	case begun == nil:
		return ErrNoRun
	default:
		g.about = newAbout(begun, g.Kind)
		g.groups, g.judgements, g.judged = map[int]*group{}, map[string]int{}, map[string]*group{}
	}
	if g.recorded { // its stages are sessions, and groups are of all stages
		return g.planSessions(stages)
	}
	for _, st := range stages {
		s := stage{Staged: st, about: &g.about}
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

// groupOf returns the group of an episode. Episodes with different params are no group.
func (s *stage) groupOf(spec world.Spec) (part.TrainingGroup, error) {
	of, err := s.about.groupOf(spec)
	if s.mixed {
		of.Name += fmt.Sprintf("#%08x", xxh3.Hash(spec.Params)>>32)
	}
	return of, err
}

// planSessions makes one stage of all sessions of a record.
func (g *Index) planSessions(stages []journal.Staged) error {
	if len(g.stages) == 0 {
		g.stages = []stage{{about: &g.about, shared: map[string][]int{}, sessions: true}}
	}
	s := &g.stages[0]
	for _, st := range stages {
		for i, spec := range st.Specs.All() {
			if err := s.share(spec, st.First+i); err != nil {
				return err
			}
		}
	}
	g.planned = len(s.names)
	return nil
}

// share adds an episode to the group of its name.
func (s *stage) share(spec world.Spec, episode int) error {
	of, err := s.groupOf(spec)
	if err != nil {
		return fmt.Errorf("trajectory: episode %d: %w", episode, err)
	}
	if s.shared[of.Name] == nil {
		s.names = append(s.names, of.Name)
	}
	s.shared[of.Name] = append(s.shared[of.Name], episode)
	return nil
}

// maxShared is the maximum number of episodes of a stage whose groups are not adjacent.
const maxShared = 10_000_000

// count returns how many groups there are, and fills shared if several groups of the specs may be one.
func (s *stage) count() (n int, err error) {
	seen := map[string]string{} // the params of each name
	shared, judgements := false, false
	for _, spec := range s.Specs.Distinct() {
		spec.Deal = 0 // rounds differ in it
		of, err := s.groupOf(spec)
		if err != nil {
			return 0, err
		}
		if of.Judgement {
			judgements = true
			continue
		}
		s.judged = s.judged || of.Judged
		params, known := seen[of.Name]
		shared = shared || known
		s.mixed = s.mixed || known && s.grouper == nil && params != string(spec.Params)
		seen[of.Name] = string(spec.Params)
	}
	if judgements {
		if err := s.findJudgements(); err != nil {
			return 0, err
		}
	}
	if shared {
		return s.groupByName()
	}
	for b := range s.Specs.Blocks() {
		n += len(b.Groups) * b.Rounds
	}
	return n - len(s.judgements), nil
}

func (s *stage) groupByName() (int, error) {
	if n := s.Specs.Len(); n > maxShared {
		return 0, fmt.Errorf("trajectory: stage %d has %d episodes, and groups that do not stand together: at most %d are looked at", s.Stage, n, maxShared)
	}
	s.shared = map[string][]int{}
	for i, spec := range s.Specs.All() {
		if s.judgements[i] != "" {
			continue
		}
		if err := s.share(spec, s.First+i); err != nil {
			return 0, err
		}
	}
	return len(s.names), nil
}

// all returns every planned group, in order.
func (s *stage) all() iter.Seq2[*group, error] {
	return func(yield func(*group, error) bool) {
		for _, name := range s.names {
			of := &group{id: name, members: s.shared[name]}
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

// Read reads a group that is complete, or says why f leaves it out.
func (g *Index) Read(ctx context.Context, src Source, c Complete, f Filter) (*Group, string, error) {
	out, left, err := g.read(ctx, src, c.group, f)
	if left == leftUnfinished { // an episode ends once
		err = fmt.Errorf("trajectory: the group at %d is being played again", c.Cursor)
	}
	return out, left, err
}

// read reads a group. It checks the outcomes first, so that it need not read a group that is dropped.
func (g *Index) read(ctx context.Context, src Source, of *group, f Filter) (_ *Group, left string, _ error) {
	out := &Group{ID: of.id, Size: len(of.members)}
	if err := of.outcomes(ctx, src, &g.about, out); err != nil {
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
	out.compare() // before members are dropped: what is written does not change what an episode is worth
	if why := f.dropMembers(out); why != "" {
		return nil, why, nil
	}
	shared := stamp{about: &g.about, group: of.id, size: out.Size}
	for _, t := range out.Members {
		var entries []journal.Entry
		var err error
		if t.byStep {
			entries, err = repliesOf(ctx, src, t.Episode)
		}
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
func (g *group) outcomes(ctx context.Context, src Source, a *about, out *Group) error {
	for i := 0; i < len(g.members); {
		page, err := src.List(ctx, runfile.Listing{From: g.members[i], Limit: consecutive(g.members[i:]), Lost: true})
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
			t, err := a.trajectoryOf(p, func() ([]journal.Entry, error) { return repliesOf(ctx, src, p.Episode) })
			if err != nil {
				return err
			}
			out.Members = append(out.Members, t)
		}
		i += len(page)
	}
	return nil
}

// consecutive returns how many of the first members have consecutive numbers.
func consecutive(members []int) int {
	n := 1
	for n < len(members) && members[n] == members[0]+n {
		n++
	}
	return n
}

// repliesOf reads the turns and replies of an episode.
func repliesOf(ctx context.Context, src Source, n int) (out []journal.Entry, err error) {
	err = src.Read(ctx, journal.Span{From: n, To: n + 1}, func(e journal.Entry) error {
		out = append(out, e)
		return nil
	})
	return out, err
}

// Bound returns the number below which the first n planned groups are, or false if nothing is planned yet. n must not
// shrink.
func (g *Index) Bound(n int) (episode int, ok bool) {
	if n >= g.planned {
		return math.MaxInt, len(g.stages) > 0
	}
	for w := &g.walked; w.groups < n; w.groups++ {
		for !g.stages[w.stage].skip(&w.within) {
			w.stage, w.within = w.stage+1, 0
		}
		w.episode = max(w.episode, g.stages[w.stage].bound(&w.within))
	}
	return max(g.walked.episode, g.boundJudged(g.walked.stage)), true
}

// skip moves a place beyond judgements, and reports whether there is a group.
func (s *stage) skip(place *int) bool {
	for s.shared == nil && s.judgements[*place] != "" {
		*place++
	}
	return *place < s.places()
}

// places returns how many places bound walks over.
func (s *stage) places() int {
	if s.shared != nil {
		return len(s.names)
	}
	return s.Specs.Len()
}

// bound returns the number that follows the group at a place, and moves the place to the next group.
func (s *stage) bound(place *int) int {
	if s.shared != nil {
		of := s.shared[s.names[*place]]
		*place++
		return of[len(of)-1] + 1
	}
	_, *place = s.Specs.Group(*place)
	return s.First + *place
}

// boundJudged returns the number that follows the judgements of a stage, or 0 if it has none. No group of such a stage is
// complete before all of it was played and judged, so it is bounded as a whole.
func (g *Index) boundJudged(i int) int {
	if !g.stages[i].judged {
		return 0
	}
	end := g.stages[i].First + g.stages[i].Specs.Len()
	if i+1 < len(g.stages) && len(g.stages[i+1].judgements) > 0 {
		return end + g.stages[i+1].Specs.Len()
	}
	return end + g.stages[i].groups // the judgements to come
}
