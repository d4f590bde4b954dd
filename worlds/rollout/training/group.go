package training

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// Failed counts the episodes of g that failed.
func (g *Group) Failed() (n int) {
	for _, m := range g.Members {
		if m.Status == TrajectoryFailed {
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
	LeftStatus     = "status"            // no episode of a status that is wanted
	LeftShort      = "short"             // fewer episodes than planned
	LeftReward     = "reward"            // no agent got the reward that is wanted
	LeftVersion    = "no weight version" // the version of the weights is unknown
	LeftLag        = "weight lag"        // answered by weights that are too old
	LeftEmpty      = "no rows"           // nothing trainable
)

// Each calls each with every group of the run in j that f selects, in planned order. It holds one group in
// memory at a time.
func Each(ctx context.Context, j journal.Journal, f Filter, each func(*Group) error) (Account, error) {
	a := Account{Left: map[string]int{}}
	src, all := journal.InParts(j), &trajectoryGroups{}
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

// outcomes drops members of g by their outcomes. It returns why nothing is left, or "".
func (f Filter) outcomes(g *Group) string {
	if len(f.Statuses) > 0 {
		g.Members = slices.DeleteFunc(g.Members, func(t *Trajectory) bool { return !slices.Contains(f.Statuses, t.Status) })
	}
	same := f.Unequal && equal(g) // of all rewards, also of those that are too small
	why, by := LeftStatus, "status"
	if f.MinReward != nil && len(g.Members) > 0 {
		why, by = LeftReward, "status or reward"
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
		return LeftShort
	case same:
		return leftEqual
	case f.Trainable && !slices.ContainsFunc(g.Members, trainable):
		return LeftEmpty
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

// equal reports whether all members got the same reward, seat by seat.
func equal(g *Group) bool {
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
				return LeftVersion
			case *f.Version-v > f.Lag:
				return LeftLag
			}
		}
	}
	return ""
}
