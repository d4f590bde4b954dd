package trajectory

import (
	"context"
	"fmt"
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
	// Short says why there are fewer members than were planned, or is empty.
	Short string
}

// Failed counts the episodes of g that failed.
func (g *Group) Failed() (n int) {
	for _, m := range g.Members {
		if m.Status == Failed {
			n++
		}
	}
	return n
}

// Filter says what is wanted. The zero value wants all of it.
type Filter struct {
	// Trainable leaves out rows that are not trainable, and groups without any.
	Trainable bool
	// Statuses are those of episodes to keep. None: all.
	Statuses []Status
	// Whole leaves out groups that are short of members.
	Whole bool
	// Unequal leaves out groups whose members were all paid the same: there is nothing to
	// learn from between them.
	Unequal bool
	// Lag, where Version is set, is the most that the version of the weights of any answer may
	// be behind Version; one without a version, as a number, is not wanted either.
	Version, Lag int
}

// Account is what became of the groups of a run.
type Account struct {
	Groups int `json:"groups"`
	Kept   int `json:"kept"`
	Rows   int `json:"rows"`
	// Left counts groups that were left out, by reason.
	Left map[string]int `json:"left,omitempty"`
}

// Reasons to leave a group out.
const (
	LeftUnfinished = "unfinished"        // an episode has not ended
	LeftStatus     = "status"            // no episode of a status that is wanted
	LeftShort      = "short"             // fewer episodes than planned
	LeftEqual      = "equal reward"      // everybody was paid the same
	LeftVersion    = "no weight version" // nobody knows which weights answered
	LeftLag        = "weight lag"        // answered by weights that are too old
	LeftEmpty      = "no rows"           // nothing trainable
)

// Each hands over every group of the run in j that f wants, in the order they were planned.
// One group is held in memory at a time.
func Each(ctx context.Context, j journal.Journal, f Filter, each func(*Group) error) (Account, error) {
	a := Account{Left: map[string]int{}}
	src, all := journal.InParts(j), &Groups{}
	if err := all.plan(ctx, src); err != nil {
		return a, err
	}
	for i := range all.stages {
		for planned, err := range all.stages[i].all() {
			if err != nil {
				return a, err
			}
			a.Groups++
			g, why, err := planned.read(ctx, src, all.run, f)
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

// keep counts a group that is handed over.
func (a *Account) keep(g *Group) {
	a.Kept++
	for _, m := range g.Members {
		a.Rows += len(m.Rows)
	}
}

// outcomes takes episodes out of g that are not wanted. It returns why nothing is left.
func (f Filter) outcomes(g *Group) string {
	if len(f.Statuses) > 0 {
		g.Members = slices.DeleteFunc(g.Members, func(t *Trajectory) bool { return !slices.Contains(f.Statuses, t.Status) })
	}
	if missing := g.Size - len(g.Members); missing > 0 {
		g.Short = fmt.Sprintf("%d of %d left out for their status", missing, g.Size)
	}
	switch {
	case len(g.Members) == 0:
		return LeftStatus
	case f.Whole && g.Short != "":
		return LeftShort
	case f.Unequal && equal(g):
		return LeftEqual
	case f.Trainable && !slices.ContainsFunc(g.Members, trainable):
		return LeftEmpty
	}
	return ""
}

// trainable says whether an episode has a row that is.
func trainable(t *Trajectory) bool {
	return slices.ContainsFunc(t.Data.Rows, func(r rules.Row) bool { return r.Trainable })
}

// equal says whether all members were paid the same, seat by seat.
func equal(g *Group) bool {
	for _, m := range g.Members[1:] {
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

// stale says what is wrong with the weights of answers that may be trained on, or "".
func (f Filter) stale(g *Group) string {
	if f.Version == 0 {
		return ""
	}
	for _, m := range g.Members {
		for i := range m.Rows {
			if !m.Rows[i].IsTrainable {
				continue
			}
			v, err := strconv.Atoi(m.Rows[i].WeightVersion)
			switch {
			case err != nil:
				return LeftVersion
			case f.Version-v > f.Lag:
				return LeftLag
			}
		}
	}
	return ""
}
