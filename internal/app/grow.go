package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"parley/engine"
	"parley/internal/config"
	"parley/internal/jsondiff"
	"parley/internal/planner"
	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/world"
)

// Growth is a plan that asks for more than a run file has recorded.
type Growth struct {
	Recorded int `json:"recorded"`
	// New is how many episodes are new. Nil: it depends on their scores.
	New *int `json:"new"`
}

// chosen is what to play into a run file.
type chosen struct {
	plan   *config.Plan
	stages world.Plan
	begun  *journal.Begun // to be recorded first; nil: it is recorded already
	grown  *Growth        // nil: the plan is not larger than before
}

// Growth says how the plan has grown since its run file was written. It writes nothing. Nil: it
// has not, or there is no run file.
func (p Play) Growth(ctx context.Context) (_ *Growth, err error) {
	store, err := sqlite.OpenRead(p.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	head, err := store.Head(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.choose(head)
	if err != nil {
		return nil, err
	}
	return c.grown, nil
}

// choose returns what to play: the plan given or, for a file that is resumed, the one it was
// last played with. A plan that would change what was played is refused.
func (p Play) choose(head *journal.Head) (*chosen, error) {
	if head.Begun == nil {
		if p.Plan == nil {
			return nil, usageError{fmt.Errorf("%s holds no run yet: play a plan into it with run", p.File)}
		}
		stages, err := p.Plan.World()
		return &chosen{plan: p.Plan, stages: stages}, err
	}
	for _, k := range p.kinds() {
		if k.Name != head.Begun.Kind {
			continue
		}
		if err := engine.SameKind(head.Begun, k); err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", p.File, err)}
		}
	}
	was, err := config.FromJSON(head.Begun.Plan, p.kinds(), nil)
	if err != nil {
		return nil, err
	}
	is := p.Plan
	if is == nil {
		if is, err = config.FromJSON(head.Begun.Plan, p.kinds(), p.Sets); err != nil {
			return nil, err
		}
		if err := reachable(p.File, p.Reach, head.Begun.Plan, is); err != nil {
			return nil, err
		}
	}
	if is.Budget == 0 && was.Budget > 0 && p.Plan != nil {
		kept := *is
		kept.Budget = was.Budget // what was last given holds, where the plan says nothing
		is = &kept
	}
	c, err := grow(was, is, head)
	if refused, ok := errors.AsType[*changedError](err); ok {
		todo := "give the plan a run file of its own with --out, resume the recorded plan with parley resume, or change one episode with parley fork"
		if p.Plan == nil {
			todo = "change one episode with parley fork, or begin a new run"
		}
		return nil, usageError{fmt.Errorf("%s: %w. A run can grow, but what was played cannot change: %s", p.File, refused, todo)}
	}
	return c, err
}

// grow makes is go on from what was recorded of a smaller plan, or of the same.
func grow(was, is *config.Plan, head *journal.Head) (*chosen, error) {
	if d := differs(keptParts(was), keptParts(is)); d != nil {
		return nil, d
	}
	larger := differs(designParts(was), designParts(is))
	if larger != nil && is.Until != nil {
		if d := untilDiffers(was.Until, is.Until); d != nil {
			return nil, d
		}
	}
	stages, err := is.World()
	if err != nil {
		return nil, err
	}
	c := &chosen{plan: is, stages: stages}
	g, err := goOn(is.Kind, head, stages)
	missing, lost := errors.AsType[*planner.MissingError](err)
	switch {
	case err == nil:
		c.stages = g.Plan
	case larger != nil:
		larger.why = err
		return nil, larger
	case lost: // the same plan
		return nil, fmt.Errorf("app: %w: %w", engine.ErrDiverged, missing)
	case errors.Is(err, errFork):
		c.stages = head.Stages[0].Specs
	case !errors.Is(err, planner.ErrCannotGrow):
		return nil, err
	}
	if larger != nil && g.Recorded > 0 && g.New != 0 {
		c.grown = &Growth{Recorded: g.Recorded}
		if g.New > 0 {
			c.grown.New = &g.New
		}
	}
	if c.grown != nil || !bytes.Equal(was.JSON(), is.JSON()) {
		c.begun = c.begin(head.Begun, g)
		for recorded, name := range c.begun.Cells {
			// Names in the file stay as they are, so that no name can be one of two cells.
			if g != nil && larger != nil && slices.Contains(g.Cells, recorded) {
				larger.why = fmt.Errorf("the recorded cell %q is now %q, and another cell has its name: give that one a new name", recorded, name)
				return nil, larger
			}
		}
	}
	return c, nil
}

var errFork = errors.New("a fork plays the episodes that it was made with")

// goOn makes a plan of stages that goes on from what is recorded.
func goOn(kind world.Kind, head *journal.Head, stages world.Plan) (*planner.Grown, error) {
	var recorded []world.Specs
	for _, st := range head.Stages {
		recorded = append(recorded, st.Specs)
	}
	if head.Begun.Fork != nil && len(recorded) > 0 {
		return nil, errFork
	}
	return planner.Grow(kind, recorded, stages)
}

// begin is how the run is played from now on.
func (c *chosen) begin(was *journal.Begun, g *planner.Grown) *journal.Begun {
	b := *was
	b.Plan, b.Agents = c.plan.JSON(), c.plan.Agents
	if g == nil {
		return &b
	}
	if c.grown != nil {
		b.Grown = append(slices.Clone(was.Grown), journal.Growth{At: time.Now(), Episodes: g.Recorded})
	}
	if len(g.Renamed) > 0 {
		b.Cells = maps.Clone(g.Renamed)
		for recorded, name := range was.Cells {
			if again, ok := g.Renamed[name]; ok {
				name = again
			}
			b.Cells[recorded] = name
		}
	}
	return &b
}

// changedError is a key of a plan that is not as it was.
type changedError struct {
	*jsondiff.Difference
	why error // that it is refused; nil: the key must never change
}

// Error names the key and both values.
func (e *changedError) Error() string {
	text := fmt.Sprintf("%s was %s, and is %s in the plan", e.Key, jsondiff.Brief(e.A), jsondiff.Brief(e.B))
	if e.why != nil {
		text += ": " + e.why.Error()
	}
	return text
}

// planPart is a part of a plan, by the key that people know it by.
type planPart struct {
	key   string
	value any
}

// keptParts are what must stay the same in a run, however it grows. How it is played (limits,
// budget, pace, cache) may change.
func keptParts(p *config.Plan) []planPart {
	parts := []planPart{{"kind", p.Kind.Name}, {"seed", p.Seed}, {"episode_budget", p.EpisodeBudget}} // where episodes end depends on the last
	for _, a := range p.Agents {
		parts = append(parts, planPart{"agents." + a.Name, a})
	}
	if p.Matrix != nil {
		for _, name := range slices.Sorted(maps.Keys(p.Matrix.Variations)) {
			parts = append(parts, planPart{"plan.matrix.variations." + name + ".tags", p.Matrix.Variations[name].Tags})
		}
	}
	return parts
}

// designParts are what says which episodes are played: more may be asked for.
func designParts(p *config.Plan) []planPart {
	return []planPart{
		{"params", p.Kind.Identity(p.ParamsJSON)}, {"lineup", p.Lineup}, {"episodes", p.Episodes}, {"plan.matrix", p.Matrix}, {"plan.until", p.Until},
		{"agents", namesOf(p.Agents)}, // last: whoever has no seat is not in the plan
	}
}

func namesOf(agents []world.Agent) (names []string) {
	for _, a := range agents {
		names = append(names, a.Name)
	}
	return names
}

// differs returns the first key under which two plans differ, of those that both have.
func differs(was, is []planPart) *changedError {
	for _, a := range was {
		i := slices.IndexFunc(is, func(b planPart) bool { return b.key == a.key })
		if i < 0 {
			continue
		}
		if d := jsondiff.First(a.key, a.value, is[i].value); d != nil {
			return &changedError{Difference: d}
		}
	}
	return nil
}

// untilDiffers returns what makes an until plan stop elsewhere than it did: all but a smaller
// width and a larger max.
func untilDiffers(was, is *planner.Until) *changedError {
	if was == nil {
		return differs([]planPart{{"plan.until", was}}, []planPart{{"plan.until", is}})
	}
	same := *is
	if is.Width <= was.Width {
		same.Width = was.Width
	}
	if is.Max >= was.Max {
		same.Max = was.Max
	}
	return differs([]planPart{{"plan.until", was}}, []planPart{{"plan.until", same}})
}
