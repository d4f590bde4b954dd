// Package growth compares a plan with the plan that a run file recorded. A plan may ask for more episodes. It may not
// change those that were played.
package growth

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/internal/kit/text"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/planner"
	"parley/journal"
	"parley/world"
	"parley/world/part"
)

// Growth says how many episodes a plan adds to those of a run file.
type Growth struct {
	Recorded int `json:"recorded"`
	// New is how many episodes are new. Nil: it depends on their scores.
	New *int `json:"new"`
}

// Choice is what to play into a run file.
type Choice struct {
	Plan   *planfile.Plan
	Stages world.Stages
	Begun  *journal.Begun // to be recorded first; nil: the recorded one still holds
	Grown  *Growth        // nil: the plan is not larger than the recorded one
	// Recoded is how the run is played with code that is not the recorded one. It is to be recorded with the first entry that was
	// played with that code. Nil: the code is the same.
	Recoded *journal.Begun
	// Again is how many failed episodes are played again.
	Again int
}

// Continue chooses what to play of plan after what head has recorded of an earlier plan. It fails with a
// *ChangedError if plan would change what was played. With again, failed episodes are played again: then a program may change that has
// not played an episode to its end.
func Continue(recorded, plan *planfile.Plan, head *journal.Head, again bool) (*Choice, error) {
	larger := differs(designParts(recorded), designParts(plan))
	if d := differs(fixedParts(withPrograms(recorded, plan, head, again)), fixedParts(plan)); d != nil {
		if larger != nil && recorded.Kind.Name == plan.Kind.Name { // another kind has other params
			d.Differences = append(d.Differences, larger.Differences...)
		}
		return nil, d
	}
	if larger != nil && plan.Until != nil {
		if d := untilDiffers(recorded.Until, plan.Until); d != nil {
			return nil, d
		}
	}
	stages, err := plan.World()
	if err != nil {
		return nil, err
	}
	c := &Choice{Plan: plan, Stages: stages}
	g, err := grow(plan.Kind, head, stages)
	missing, lost := errors.AsType[*planner.MissingError](err)
	switch {
	case err == nil:
		c.Stages = g.Stages
	case larger != nil:
		larger.why = err
		return nil, larger
	case lost: // the plan is the same
		return nil, fmt.Errorf("%w: %w", engine.ErrDiverged, missing)
	case errors.Is(err, errFork):
		c.Stages = head.Stages[0].Specs
	case !errors.Is(err, planner.ErrCannotGrow):
		return nil, err
	}
	if larger != nil && g.Recorded > 0 && g.New != 0 {
		c.Grown = &Growth{Recorded: g.Recorded}
		if g.New > 0 {
			c.Grown.New = &g.New
		}
	}
	if c.Grown != nil || !bytes.Equal(recorded.JSON(), plan.JSON()) {
		c.Begun = c.begin(head.Begun, g)
		for old, name := range c.Begun.Cells {
			// The file keeps its names, so no name may mean two cells.
			if g != nil && larger != nil && slices.Contains(g.Cells, old) {
				larger.why = fmt.Errorf("the recorded cell %q is now %q, and another cell has its name: give that one a new name", old, name)
				return nil, larger
			}
		}
	}
	return c, nil
}

var errFork = errors.New("a fork plays the episodes that it was made with")

// grow returns a plan that plays what stages ask for and head has not recorded.
func grow(kind world.Kind, head *journal.Head, stages world.Stages) (*planner.Grown, error) {
	var recorded []world.Specs
	for _, st := range head.Stages {
		recorded = append(recorded, st.Specs)
	}
	if head.Begun.Fork != nil && len(recorded) > 0 {
		return nil, errFork
	}
	return planner.Grow(kind, recorded, stages)
}

// Measures returns the scores that the kind of a plan declares.
func Measures(plan *planfile.Plan) []world.Measure {
	asked, err := plan.Asked()
	if err != nil {
		return nil // whoever plays the plan reports it
	}
	all := planner.Measures(plan.Kind, asked.Next(nil))
	if nested := plan.Kind.Nested(plan.Params); nested != nil {
		all = planner.JoinMeasures(all, nested.Measures)
	}
	return all
}

// begin returns the entry that records how the run is played from now on.
func (c *Choice) begin(recorded *journal.Begun, g *planner.Grown) *journal.Begun {
	b := *recorded
	b.Plan, b.Agents, b.Measures = c.Plan.JSON(), c.Plan.Agents, Measures(c.Plan)
	if g == nil {
		return &b
	}
	if c.Grown != nil {
		b.Grown = append(slices.Clone(recorded.Grown), journal.Growth{At: time.Now(), Episodes: g.Recorded})
	}
	if len(g.Renamed) > 0 {
		b.Cells = maps.Clone(g.Renamed)
		for old, name := range recorded.Cells {
			if again, ok := g.Renamed[name]; ok {
				name = again
			}
			b.Cells[old] = name
		}
	}
	return &b
}

// ChangedError says that a plan would change what was played.
type ChangedError struct {
	// Differences are the keys that differ from the recorded plan, with both values.
	Differences []text.Difference
	// File is the run file, and Todo says what the user can do. The caller of Continue sets both.
	File, Todo string
	// Empty means that nothing was played: no reply is recorded, and no call can have cost anything.
	Empty bool
	why   error // nil: the first key must never change
}

// maxShown is how many differences an error lists.
const maxShown = 8

// Error names the file, the keys and their values, and says what to do.
func (e *ChangedError) Error() string {
	var keys []string
	for _, d := range e.Differences[:min(len(e.Differences), maxShown)] {
		keys = append(keys, fmt.Sprintf("%s was %s, and is %s in the plan", d.Key, text.BriefJSON(d.A), text.BriefJSON(d.B)))
	}
	text := e.File + " was recorded with another plan: " + strings.Join(keys, "; ")
	if more := len(e.Differences) - maxShown; more > 0 {
		text += fmt.Sprintf("; and %d more keys", more)
	}
	if e.why != nil {
		text += ": " + e.why.Error()
	}
	if e.Empty {
		return text + ". Nothing is recorded in " + e.File + " yet: delete it, or " + e.Todo
	}
	return text + ". A run can grow, but what was played cannot change: " + e.Todo
}

// planPart is a part of a plan with its key in a plan file.
type planPart struct {
	key   string
	value any
}

// fixedParts returns what never changes in a run. How the run is played (limits, budget, pace, cache) may change.
func fixedParts(p *planfile.Plan) []planPart {
	parts := []planPart{{"kind", p.Kind.Name}, {"seed", p.Seed}, {"episode_budget", p.EpisodeBudget}} // the budget decides where episodes end
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

// withPrograms returns the recorded plan with the programs of plan that may differ: those that are the same program at another path and,
// with again, those that have not played an episode to its end.
func withPrograms(recorded, plan *planfile.Plan, head *journal.Head, again bool) *planfile.Plan {
	out := *recorded
	out.Agents = slices.Clone(recorded.Agents)
	for i := range out.Agents {
		was := out.Agents[i].Program
		now, ok := plan.Agent(out.Agents[i].Name)
		if !ok || was == nil || now.Program == nil {
			continue
		}
		moved := *was
		if len(was.Command) > 0 && len(now.Program.Command) > 0 && was.Label() == now.Program.Label() {
			moved.Command = append([]string{now.Program.Command[0]}, was.Command[1:]...)
		}
		if again && !played(head, out.Agents[i].Name) {
			moved = *now.Program
		}
		out.Agents[i].Program = &moved
	}
	return &out
}

// played reports whether an agent has a seat in an episode that ended and did not fail.
func played(head *journal.Head, agent string) bool {
	for spec, e := range head.Plays() {
		if e.Outcome.Failed == "" && slices.Contains(slices.Collect(maps.Values(spec.Lineup)), agent) {
			return true
		}
	}
	return false
}

// designParts returns what decides which episodes are played. It may ask for more.
func designParts(p *planfile.Plan) []planPart {
	var names []string
	for _, a := range p.Agents {
		names = append(names, a.Name)
	}
	return []planPart{
		{"params", p.Kind.Identity(p.ParamsJSON)}, {"lineup", p.Lineup}, {"episodes", p.Episodes}, {"plan.matrix", p.Matrix}, {"plan.until", p.Until},
		{"agents", names}, // last: an agent without a seat does not change the episodes
	}
}

// differs returns the differences between the parts that both plans have, or nil.
func differs(recorded, plan []planPart) *ChangedError {
	var all []text.Difference
	for _, a := range recorded {
		i := slices.IndexFunc(plan, func(b planPart) bool { return b.key == a.key })
		if i < 0 {
			continue
		}
		all = append(all, text.JSONDifferences(a.key, a.value, plan[i].value)...)
	}
	if len(all) == 0 {
		return nil
	}
	return &ChangedError{Differences: all}
}

// untilDiffers returns the difference that makes an until plan stop earlier or elsewhere: any except a smaller width
// and a larger max.
func untilDiffers(recorded, plan *planner.Until) *ChangedError {
	if recorded == nil {
		return differs([]planPart{{"plan.until", recorded}}, []planPart{{"plan.until", plan}})
	}
	same := *plan
	if plan.Width <= recorded.Width {
		same.Width = recorded.Width
	}
	if plan.Max >= recorded.Max {
		same.Max = recorded.Max
	}
	return differs([]planPart{{"plan.until", recorded}}, []planPart{{"plan.until", same}})
}

// CodeChanges says how code differs from the recorded code of the same name, file by file. Code that only one of them has
// is not compared: a larger plan may name more.
func CodeChanges(recorded, now []journal.Code) []string {
	var all []string
	for _, was := range recorded {
		i := slices.IndexFunc(now, func(c journal.Code) bool { return c.Name == was.Name })
		if i < 0 {
			continue
		}
		is := now[i].Files
		for _, file := range slices.Sorted(maps.Keys(was.Files)) {
			switch sum, there := is[file]; {
			case !there:
				all = append(all, fmt.Sprintf("%s is no longer part of %s", file, was.Name))
			case sum != was.Files[file]:
				all = append(all, file+" has changed")
			}
		}
		for _, file := range slices.Sorted(maps.Keys(is)) {
			if _, there := was.Files[file]; !there {
				all = append(all, fmt.Sprintf("%s is now part of %s", file, was.Name))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all) // two classes may be in one file
}

// Use chooses to play code, which may not be the recorded one. Other code is recorded with when episodes had been played before.
func (c *Choice) Use(code []journal.Code, head *journal.Head) {
	changes := CodeChanges(head.Begun.Code, code)
	switch {
	case len(changes) > 0:
		begun := *cmp.Or(c.Begun, head.Begun)
		begun.Code, begun.Measures = code, planner.JoinMeasures(slices.Clone(begun.Measures), Measures(c.Plan)) // some episodes are of the old code
		if played := head.Ended.Len() + len(head.Playing); played > 0 {
			begun.Edited = append(slices.Clone(head.Begun.Edited), journal.Growth{At: time.Now(), Episodes: played})
		}
		c.Recoded = &begun
	case c.Begun != nil && len(code) > 0:
		c.Begun.Code = code
	}
}

// PlayAgain chooses to play the failed episodes again too. If what the plan asks for depends on outcomes, only those of the last stage can
// be: it returns an error if there are others and none of these.
func (c *Choice) PlayAgain(head *journal.Head) error {
	from := 0
	if p, ok := c.Stages.(part.FixedStages); (!ok || !p.Fixed()) && len(head.Stages) > 0 {
		from = head.Stages[len(head.Stages)-1].First
	}
	n, through := head.Ended.LastFailure(from)
	if n == 0 {
		if all := head.Ended.Failed(); all > 0 {
			return fmt.Errorf("%d episodes failed, all of them before stage %d, which was chosen by their outcomes: they cannot be played again. Begin a new run file", all, len(head.Stages))
		}
		return nil
	}
	begun := *cmp.Or(c.Recoded, c.Begun, head.Begun)
	begun.Again = append(slices.Clone(head.Begun.Again), journal.Again{At: time.Now(), Episodes: n, Through: through, Edited: c.Recoded != nil})
	if c.Again = n; c.Recoded != nil {
		c.Recoded = &begun
	} else {
		c.Begun = &begun
	}
	return nil
}
