package trajectory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"parley/journal"
	"parley/world"
	"parley/worlds/rollout"
)

// Groups is which episodes of a run belong together, and which groups are complete, in the
// order in which they became so. It is a fold of the journal: whoever makes one again, after
// a crash too, gets the same groups at the same cursors. The zero value has seen nothing.
//
// It may be used from one goroutine at a time; a Complete is good for ever.
type Groups struct {
	run    string
	groups []*group // as they were planned
	of     []int    // by episode: its group
	ended  []bool   // by episode
	stage  int
	names  map[string]int // of the groups of the stage
	last   world.Spec     // that was planned, and
	name   string         // the name of its group

	complete []Complete
	seen     int // entries
}

type group struct {
	id      string
	members []int
	left    int // that have not ended
}

// Complete is a group all of whose episodes have ended.
type Complete struct {
	// Cursor is the number of the entry with which it became complete.
	Cursor int
	*group
}

// Run is the id of the run, once there is one.
func (g *Groups) Run() string { return g.run }

// Seen is the number of the last end that was folded in: no cursor is larger.
func (g *Groups) Seen() int { return g.seen }

// Count says how many groups were planned so far, and how many of them are complete.
func (g *Groups) Count() (planned, complete int) { return len(g.groups), len(g.complete) }

// After returns the first group that became complete after a cursor; false: none has yet.
func (g *Groups) After(cursor int) (Complete, bool) {
	i, _ := slices.BinarySearchFunc(g.complete, cursor+1, func(c Complete, n int) int { return c.Cursor - n })
	if i == len(g.complete) {
		return Complete{}, false
	}
	return g.complete[i], true
}

// Update folds in what was written since.
func (g *Groups) Update(ctx context.Context, src Source) error {
	ends, err := src.Ends(ctx, g.seen+1)
	if err != nil {
		return err
	}
	if err := g.plan(ctx, src); err != nil { // after the ends: whatever ended was planned
		return err
	}
	for _, e := range ends {
		g.seen = max(g.seen, e.Entry)
		if e.Episode < 0 || e.Episode >= len(g.of) {
			return fmt.Errorf("trajectory: episode %d ended and was never planned", e.Episode)
		}
		if g.ended[e.Episode] {
			continue
		}
		g.ended[e.Episode] = true
		of := g.groups[g.of[e.Episode]]
		if of.left--; of.left == 0 {
			g.complete = append(g.complete, Complete{e.Entry, of})
		}
	}
	return nil
}

// plannedAtOnce is how many episodes are listed at once.
const plannedAtOnce = 1024

// plan takes in the episodes that were planned since.
func (g *Groups) plan(ctx context.Context, src Source) error {
	if g.run == "" {
		begun, err := src.Begun(ctx)
		switch {
		case err != nil:
			return err
		case begun == nil:
			return ErrNoRun
		case begun.Kind != "rollout":
			return fmt.Errorf("trajectory: a run of %s has no trajectories: want one of rollout", begun.Kind)
		}
		g.run = begun.Run
	}
	for {
		page, err := src.Planned(ctx, len(g.of), plannedAtOnce)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := g.add(&page[i]); err != nil {
				return err
			}
		}
	}
}

// add puts an episode into its group. No group is of two stages: one that was complete must
// not grow.
func (g *Groups) add(p *Planned) error {
	if p.Episode != len(g.of) {
		return fmt.Errorf("trajectory: episode %d was planned after episode %d", p.Episode, len(g.of)-1)
	}
	if g.names == nil || p.Stage != g.stage {
		g.stage, g.names = p.Stage, map[string]int{}
	}
	if g.name == "" || p.Spec.Deal != g.last.Deal || p.Spec.Cell != g.last.Cell || !bytes.Equal(p.Spec.Params, g.last.Params) {
		name, err := GroupOf(p.Spec)
		if err != nil {
			return err
		}
		g.name, g.last = name, p.Spec
	}
	at, ok := g.names[g.name]
	if !ok {
		at = len(g.groups)
		g.names[g.name] = at
		g.groups = append(g.groups, &group{id: g.name})
	}
	of := g.groups[at]
	of.members, of.left = append(of.members, p.Episode), of.left+1
	g.of, g.ended = append(g.of, at), append(g.ended, false)
	return nil
}

// GroupOf names the group of an episode: its task or, without an environments file, its
// environment and deal. Cells of a matrix have groups of their own.
func GroupOf(spec world.Spec) (string, error) {
	var p struct {
		Env  string
		Task *rollout.Task
	}
	if err := json.Unmarshal(spec.Params, &p); err != nil {
		return "", fmt.Errorf("trajectory: params: %w", err)
	}
	name := fmt.Sprintf("%s:%d", p.Env, spec.Deal+1)
	if p.Task != nil {
		name = p.Task.Group
	}
	if spec.Cell != "" {
		name = spec.Cell + " " + name
	}
	return name, nil
}

// Read reads a complete group of the run in src, as far as f wants it: nil, and why, where it
// does not.
func (g *Groups) Read(ctx context.Context, src Source, c Complete, f Filter) (_ *Group, left string, _ error) {
	return c.read(ctx, src, g.run, f)
}

// read reads a group. What can be told of outcomes alone is looked at first: what is not
// wanted need not be read.
func (g *group) read(ctx context.Context, src Source, run string, f Filter) (_ *Group, left string, _ error) {
	out := &Group{ID: g.id, Size: len(g.members)}
	if err := g.outcomes(ctx, src, out); err != nil {
		return nil, "", err
	}
	if len(out.Members) < out.Size {
		return nil, LeftUnfinished, nil
	}
	if why := f.outcomes(out); why != "" {
		return nil, why, nil
	}
	of := stamp{run: run, group: g.id, size: out.Size}
	for _, t := range out.Members {
		entries, err := repliesOf(ctx, src, t.Episode)
		if err == nil {
			err = of.rows(t, entries, f)
		}
		if err != nil {
			return nil, "", err
		}
	}
	if why := f.stale(out); why != "" {
		return nil, why, nil
	}
	return out, "", nil
}

// outcomes reads what the episodes came to, of those that ended.
func (g *group) outcomes(ctx context.Context, src Source, out *Group) error {
	for i := 0; i < len(g.members); {
		page, err := src.Planned(ctx, g.members[i], together(g.members[i:]))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return fmt.Errorf("trajectory: episode %d is not there any more", g.members[i])
		}
		for _, p := range page {
			if p.Ended == nil {
				return nil
			}
			t, err := outcomeOf(p.Ended)
			if err != nil {
				return err
			}
			out.Members = append(out.Members, t)
		}
		i += len(page)
	}
	return nil
}

// together is how many of the first members have numbers one after the other.
func together(members []int) int {
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
