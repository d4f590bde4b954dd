package trajectory

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"parley/journal"
)

// Group is the episodes of one task.
type Group struct {
	ID      string
	Size    int // episodes that were planned
	Members []*Trajectory
	// Short says why there are fewer members than were planned, or is empty.
	Short string
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
	// be behind Version; one without a version is too far behind.
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
	LeftUnfinished = "unfinished"   // an episode has not ended
	LeftStatus     = "status"       // no episode of a status that is wanted
	LeftShort      = "short"        // fewer episodes than planned
	LeftEqual      = "equal reward" // everybody was paid the same
	LeftLag        = "weight lag"   // answered by weights that are too old
	LeftEmpty      = "no rows"      // nothing trainable
)

// Each hands over every group of the run in j that f wants, in the order they were planned.
// One group is held in memory at a time.
func Each(ctx context.Context, j journal.Journal, f Filter, each func(*Group) error) (Account, error) {
	a := Account{Left: map[string]int{}}
	head, err := j.Head(ctx)
	if err != nil {
		return a, err
	}
	p, err := planOf(head)
	if err != nil {
		return a, err
	}
	for _, id := range p.order {
		a.Groups++
		g, unfinished, err := p.read(ctx, j, head, id)
		if err != nil {
			return a, err
		}
		if unfinished {
			a.Left[LeftUnfinished]++
			continue
		}
		if why := f.apply(g); why != "" {
			a.Left[why]++
			continue
		}
		a.Kept++
		for _, m := range g.Members {
			a.Rows += len(m.Rows)
		}
		if err := each(g); err != nil {
			return a, err
		}
	}
	return a, nil
}

// read reads a group.
func (p *plan) read(ctx context.Context, j journal.Journal, head *journal.Head, id string) (g *Group, unfinished bool, err error) {
	g = &Group{ID: id}
	for _, n := range p.members(id) {
		g.Size++
		ended, ok := head.Ended[n]
		if !ok {
			return nil, true, nil
		}
		entries, err := journal.Episode(ctx, j, n)
		if err != nil {
			return nil, false, err
		}
		t, err := Of(head.Begun, p.specs[id][n], ended, entries)
		if err != nil {
			return nil, false, err
		}
		g.Members = append(g.Members, t)
	}
	return g, false, nil
}

// apply takes out of g what is not wanted. It returns why nothing is left.
func (f Filter) apply(g *Group) string {
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
	case f.Version > 0 && !f.fresh(g):
		return LeftLag
	case f.Trainable && !trainable(g):
		return LeftEmpty
	}
	return ""
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

// fresh says whether no answer that may be trained on is of weights that are too old.
func (f Filter) fresh(g *Group) bool {
	for _, m := range g.Members {
		for i := range m.Rows {
			if !m.Rows[i].IsTrainable {
				continue
			}
			v, err := strconv.Atoi(m.Rows[i].WeightVersion)
			if err != nil || f.Version-v > f.Lag {
				return false
			}
		}
	}
	return true
}

// trainable takes out rows that are not, and says whether any are left.
func trainable(g *Group) bool {
	left := false
	for _, m := range g.Members {
		m.Rows = slices.DeleteFunc(m.Rows, func(r Row) bool { return !r.IsTrainable })
		left = left || len(m.Rows) > 0
	}
	return left
}
