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
	"strconv"

	"parley/journal"
	"parley/worlds/rollout/rules"
)

// Group is the episodes of one task.
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
		n, first, mean, squares := float64(len(all)), all[0].Return[seat], 0.0, 0.0
		for _, t := range all { // from the first, so that equal returns differ by exactly 0
			mean += (t.Return[seat] - first) / n
		}
		for _, t := range all {
			squares += math.Pow(t.Return[seat]-first-mean, 2)
		}
		for _, t := range all {
			t.Advantage[seat] = 0
			if a := (t.Return[seat] - first - mean) / (math.Sqrt(squares/max(1, n-1)) + 1e-6); !math.IsNaN(a) { // of returns too large for the sum
				t.Advantage[seat] = a
			}
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

// Each calls each with every group of the run in j that f selects, in planned order. It holds one group in
// memory at a time.
func Each(ctx context.Context, j journal.Journal, f Filter, each func(*Group) error) (Account, error) {
	a := Account{Left: map[string]int{}}
	src, all := journal.InParts(j), &groupIndex{}
	if err := all.plan(ctx, src); err != nil {
		return a, err
	}
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
	return slices.ContainsFunc(t.Data.Rows, func(r rules.Row) bool { return r.Trainable })
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
		for _, r := range m.Data.Rows {
			if !m.trains(r.Seat) {
				continue
			}
			v, err := strconv.Atoi(r.Weights)
			switch {
			case err != nil:
				return leftVersion
			case *f.Version-v > f.Lag:
				return leftLag
			}
		}
	}
	return ""
}

// errNoRun means that the journal is empty.
var errNoRun = errors.New("trajectory: the file holds no run yet")

// groupIndex knows which episodes of a run belong together, and which groups are complete, in the order in which
// they became so. It is a fold of the journal: reading it again, also after a crash, gives the same groups at
// the same cursors. The zero value is empty.
//
// It is not safe for concurrent use; a completeGroup stays valid.
type groupIndex struct {
	run     string
	stages  []stage
	planned int
	groups  map[int]*group // by first episode: those with an episode that ended

	// judgements are the episodes in which a judge compares groups, by the name of the group, and judged the groups that
	// are compared, if an episode of theirs ended.
	judgements map[string]int
	judged     map[string]*group

	complete []completeGroup
	seen     int // entries

	walked struct{ stage, within, groups, episode int } // how far bound has counted
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

// completeGroup is a group whose episodes have all ended.
type completeGroup struct {
	// cursor is the number of the entry with which it became complete.
	cursor int
	*group
}

// count returns how many groups were planned and how many are complete.
func (g *groupIndex) count() (planned, complete int) { return g.planned, len(g.complete) }

// after returns the first group that became complete after a cursor, or false if no other is complete yet.
func (g *groupIndex) after(cursor int) (completeGroup, bool) {
	i, _ := slices.BinarySearchFunc(g.complete, cursor+1, func(c completeGroup, n int) int { return c.cursor - n })
	if i == len(g.complete) {
		return completeGroup{}, false
	}
	return g.complete[i], true
}

// before returns how many groups became complete up to a cursor.
func (g *groupIndex) before(cursor int) int {
	i, _ := slices.BinarySearchFunc(g.complete, cursor+1, func(c completeGroup, n int) int { return c.cursor - n })
	return i
}

// update reads what was written since.
func (g *groupIndex) update(ctx context.Context, src journal.Parts) error {
	ends, err := src.Ends(ctx, g.seen+1)
	if err != nil {
		return err
	}
	if err := g.plan(ctx, src); err != nil { // after the ends: whatever ended was planned
		return err
	}
	for _, e := range ends {
		g.seen = max(g.seen, e.Entry)
		of, err := g.groupOf(e.Episode)
		if err != nil {
			return err
		}
		if of == nil {
			continue // a judgement of a group that was lost
		}
		if i := slices.Index(of.open, e.Episode); i >= 0 { // else it ended before
			if of.open = slices.Delete(of.open, i, i+1); len(of.open) == 0 {
				g.complete = append(g.complete, completeGroup{e.Entry, of})
			}
		}
	}
	return nil
}

// groupOf finds the group of an episode that ended.
func (g *groupIndex) groupOf(episode int) (*group, error) {
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
	name, judged, err := rules.JudgedGroupOf(s.Specs.At(i))
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
func (g *groupIndex) plan(ctx context.Context, src journal.Parts) error {
	begun, stages, err := src.Plan(ctx, len(g.stages))
	switch {
	case err != nil:
		return err
	case g.run != "":
	case begun == nil:
		return errNoRun
	case begun.Kind == gatewayKind:
		s, err := sessionStage(stages)
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
		name, judged, err := rules.JudgedGroupOf(spec)
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

// read reads a group. It checks the outcomes first, so that it need not read a group that is dropped.
func (g *groupIndex) read(ctx context.Context, src journal.Parts, of *group, f Filter) (_ *Group, left string, _ error) {
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
	out.compare() // before members are dropped: what is written does not change what an episode is worth
	if why := f.dropMembers(out); why != "" {
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
		page, err := src.Planned(ctx, g.members[i], consecutive(g.members[i:]))
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
			t, err := trajectoryOf(p.Ended)
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

// consecutive returns how many of the first members have consecutive numbers.
func consecutive(members []int) int {
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

// bound returns the number below which the first n planned groups are, or false if nothing is planned yet. n must not
// shrink.
func (g *groupIndex) bound(n int) (episode int, ok bool) {
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
func (g *groupIndex) boundJudged(i int) int {
	if !g.stages[i].judged {
		return 0
	}
	end := g.stages[i].First + g.stages[i].Specs.Len()
	if i+1 < len(g.stages) && len(g.stages[i+1].judgements) > 0 {
		return end + g.stages[i+1].Specs.Len()
	}
	return end + g.stages[i].groups // the judgements to come
}
