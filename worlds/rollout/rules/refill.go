package rules

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"parley/world"
)

// Refill are the params of a refill.
type Refill struct {
	Useful     int     `json:"useful" doc:"Number of groups with different rewards to play: other groups are replaced by new ones. 0: no refill, every task is played once." range:"0..1000000"`
	Stage      int     `json:"stage" doc:"Maximum number of groups that are decided on together, from the outcomes of those before. 0: as many as useful." range:"0..100000"`
	MaxGroups  int     `json:"max_groups" doc:"Maximum number of groups, useful or not. 0: four times useful." range:"0..10000000"`
	Pass       float64 `json:"pass" doc:"Reward from which an episode has passed: the mean over its seats."`
	Easy       float64 `json:"easy" doc:"A task is easy if at least this part of its last group passed." range:"0..1"`
	Hard       float64 `json:"hard" doc:"A task is hard if at most this part of its last group passed." range:"0..1"`
	EasyWeight float64 `json:"easy_weight" doc:"How often easy tasks are played, compared with others. 0: never again." range:"0..1000"`
	HardWeight float64 `json:"hard_weight" doc:"How often hard tasks are played, compared with others. 0: never again." range:"0..1000"`
	Advance    float64 `json:"advance" doc:"Entries of the environments file are levels. The next one opens when this part of the episodes of the last open one passes in a stage. 0: all are open." range:"0..1"`
}

// refillDefaults returns a refill that is off, and draws all tasks equally often.
func refillDefaults() Refill { return Refill{Pass: 1, Easy: 1, EasyWeight: 1, HardWeight: 1} }

// check reports wrong values.
func (r Refill) check(c *world.ParamErrors) {
	if r.MaxGroups > 0 && r.MaxGroups < r.Useful {
		c.Addf("refill.max_groups", "%d is less than refill.useful, %d", r.MaxGroups, r.Useful)
	}
}

// limits returns the maximum number of groups of a stage and of all stages.
func (r Refill) limits() (stage, all int) {
	stage, all = r.Stage, r.MaxGroups
	if stage == 0 {
		stage = min(r.Useful, 100_000)
	}
	if all == 0 {
		all = 4 * r.Useful
	}
	return stage, all
}

// makeGroupFunc makes the group of a task. deal is different for each.
type makeGroupFunc func(task Task, deal int) (world.Group, error)

// plan returns a plan that plays groups until enough are useful. fresh says that the one task is different with each
// deal, so that it needs no name to be played again.
func (r Refill) plan(tasks []Task, fresh bool, make makeGroupFunc) world.Stages {
	p := &refillPlan{Refill: r, make: make, open: 1}
	levels := map[string]int{}
	for _, t := range tasks {
		level, known := levels[t.entry()]
		if !known {
			level = len(levels)
			levels[t.entry()] = level
		}
		p.pool = append(p.pool, &candidate{Task: t, fresh: fresh, level: level, weight: 1})
	}
	p.levels = len(levels)
	if r.Advance == 0 {
		p.open = p.levels
	}
	return p
}

// refillPlan is a refill in progress: a pure fold over outcomes and recorded changes, as world.Stages demands. It
// ends after at most max_groups groups, and each of them has a name of its own.
type refillPlan struct {
	Refill
	make         makeGroupFunc
	pool         []*candidate
	levels, open int // levels of the file, and how many are open

	asked  []drawnGroup // groups of the stage, in order
	groups int          // so far
	useful int          // of them
	err    error
}

// candidate is a task that can be drawn.
type candidate struct {
	Task
	fresh         bool
	level         int     // of the file; -1: it was added
	weight        float64 // as a client set it
	tried, passed int     // episodes of its last group
	played        int     // groups

	// at is its place in the order of draws: the lowest is drawn next. Each draw moves it on, the farther the less its
	// weight is. from is its place before the last draw.
	at, from int64
	turn     int // among those with the same place
}

type drawnGroup struct {
	of   *candidate
	size int
}

// Next takes the outcomes of a stage, and asks for as many groups as the useful ones that are missing may need.
func (p *refillPlan) Next(last []world.Played) world.Specs {
	p.take(last)
	stage, limit := p.limits()
	missing := p.Useful - p.useful
	if missing <= 0 || p.groups >= limit {
		return world.Specs{}
	}
	// As many as there would have to be if they are useful as often as those before, of which one more was useful than
	// known: so the first stage has just as many as are missing.
	want := math.Ceil(float64(missing) * float64(p.groups+1) / float64(p.useful+1))
	n := min(int(min(want, float64(stage))), limit-p.groups)
	b := world.Block{Rounds: 1}
	for _, c := range p.draw(n) {
		g, err := p.make(c.task(), p.groups)
		if err != nil {
			p.err = err
			return world.Specs{}
		}
		c.played++
		p.groups++
		p.asked = append(p.asked, drawnGroup{c, g.Size})
		b.Groups = append(b.Groups, g)
	}
	if len(b.Groups) == 0 {
		return world.Specs{}
	}
	specs, err := world.Blocks(b)
	p.err = err
	return specs
}

// Err returns why the plan cannot continue, or nil.
func (p *refillPlan) Err() error { return p.err }

// take adds the outcomes of a stage.
func (p *refillPlan) take(last []world.Played) {
	tried, passed := 0, 0 // of the last open level
	for _, d := range p.asked {
		n := min(d.size, len(last))
		group := last[:n]
		last = last[n:]
		if differ(group) {
			p.useful++
		}
		c := d.of
		c.tried, c.passed = 0, 0
		for _, e := range group {
			if reward, ok := meanReward(e.Outcome); ok {
				c.tried++
				if reward >= p.Pass {
					c.passed++
				}
			}
		}
		if c.level == p.open-1 {
			tried, passed = tried+c.tried, passed+c.passed
		}
		c.at = c.from + p.stride(c)
	}
	p.asked = nil
	if p.open < p.levels && tried > 0 && float64(passed) >= p.Advance*float64(tried) {
		p.advance()
	}
}

// advance opens the next level. Its tasks come next.
func (p *refillPlan) advance() {
	next := p.first()
	for _, c := range p.pool {
		if c.level == p.open {
			c.at = next
		}
	}
	p.open++
}

// first returns the place of what is drawn next.
func (p *refillPlan) first() int64 {
	first := int64(math.MaxInt64)
	for _, c := range p.pool {
		if p.drawable(c) {
			first = min(first, c.at)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return first
}

// drawable reports whether a task may be drawn.
func (p *refillPlan) drawable(c *candidate) bool { return c.level < p.open && p.weigh(c) > 0 }

// weigh returns how often a task is drawn, compared with others.
func (p *refillPlan) weigh(c *candidate) float64 {
	switch rate := float64(c.passed) / float64(max(1, c.tried)); {
	case c.tried == 0 || c.fresh:
		return c.weight
	case rate >= p.Easy:
		return c.weight * p.EasyWeight
	case rate <= p.Hard:
		return c.weight * p.HardWeight
	default:
		return c.weight
	}
}

// maxWeight is the largest weight of a task or a pool, and unit the way of a task of weight 1.
const (
	maxWeight = 1000
	unit      = 1 << 30
)

// stride returns how far a draw moves a task on.
func (p *refillPlan) stride(c *candidate) int64 {
	w := p.weigh(c)
	if w <= 0 {
		return 0
	}
	return int64(min(unit/w, unit*1e6))
}

// draw returns n tasks, or none if none may be drawn. If there are fewer, they come again.
func (p *refillPlan) draw(n int) (all []*candidate) {
	var q drawOrder
	for {
		for i, c := range p.pool {
			if c.turn = i; p.drawable(c) {
				q = append(q, c)
			}
		}
		if len(q) > 0 || p.open >= p.levels {
			break
		}
		p.advance() // nothing of the open levels is left
	}
	heap.Init(&q)
	for len(q) > 0 && len(all) < n {
		c := q[0]
		c.from = c.at
		c.at += p.stride(c)
		c.turn = len(p.pool) + len(all)
		all = append(all, c)
		heap.Fix(&q, 0)
	}
	return all
}

// drawOrder is a heap of candidates, what is drawn next first.
type drawOrder []*candidate

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (o drawOrder) Len() int { return len(o) }

func (o drawOrder) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(o[i].at, o[j].at), cmp.Compare(o[i].turn, o[j].turn)) < 0
}

func (o drawOrder) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

func (o *drawOrder) Push(any) {} // not used

func (o *drawOrder) Pop() any { return nil } // not used

// task returns the task as it is played next.
func (c *candidate) task() Task {
	if c.fresh {
		return c.Task
	}
	return c.nth(c.played)
}

// differ reports whether the rewards of the episodes that did not fail differ, in any seat.
func differ(group []world.Played) bool {
	paid := map[string]float64{}
	for _, e := range group {
		if e.Outcome.Failed != "" {
			continue
		}
		for _, s := range e.Outcome.Scores {
			if s.Name != rewardScore {
				continue
			}
			if was, known := paid[s.Seat]; known && was != s.Value {
				return true
			}
			paid[s.Seat] = s.Value
		}
	}
	return false
}

const rewardScore = "reward"

// meanReward returns the mean reward of the seats.
func meanReward(o world.Outcome) (reward float64, ok bool) {
	n := 0
	for _, s := range o.Scores {
		if s.Name == rewardScore && o.Failed == "" {
			n++
			reward += (s.Value - reward) / float64(n)
		}
	}
	return reward, n > 0
}

// Change changes the tasks of a refill while it is played.
type Change struct {
	// Add are more tasks. They are drawn next.
	Add []Added `json:"add,omitempty"`
	// Weights are how often tasks are drawn, by name: a task such as maze:3, or all of an entry, such as maze.
	Weights map[string]float64 `json:"weights,omitempty"`
	// Remove are names of tasks that are not drawn any more.
	Remove []string `json:"remove,omitempty"`
}

// Added is a task that was not in the file.
type Added struct {
	Name      string          `json:"name"`
	EnvName   string          `json:"env_name"`
	EnvParams json.RawMessage `json:"env_params,omitempty"`
	EnvNum    int             `json:"env_num,omitempty"` // episodes of its groups, if the plan has no group; 0: 1
	Weight    *float64        `json:"weight,omitempty"`  // nil: 1
}

// addedName is a name that no task of a file has.
var addedName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

var errNothing = errors.New(`nothing to change: want {"add": [{"name", "env_name", …}], "weights": {NAME: WEIGHT}, "remove": [NAME]}`)

// ReadChange reads a change and checks what does not depend on the plan.
func ReadChange(raw []byte) (c Change, err error) {
	if err := world.DecodeStrict(raw, &c); err != nil {
		return c, fmt.Errorf("the change cannot be read: %w: %w", err, errNothing)
	}
	if len(c.Add)+len(c.Weights)+len(c.Remove) == 0 {
		return c, errNothing
	}
	for i := range c.Add {
		if err := c.Add[i].check(); err != nil {
			return c, fmt.Errorf("add[%d].%w", i, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Weights)) {
		if w := c.Weights[name]; !(w >= 0 && w <= maxWeight) {
			return c, fmt.Errorf("weights: %.80q: %v: want 0 to %d", name, w, maxWeight)
		}
	}
	return c, nil
}

// check checks a task and fills in its defaults.
func (a *Added) check() error {
	if len(a.EnvParams) == 0 {
		a.EnvParams = json.RawMessage("{}")
	}
	if a.EnvNum == 0 {
		a.EnvNum = 1
	}
	if a.Weight == nil {
		one := 1.0
		a.Weight = &one
	}
	nameErr := checkName(a.EnvName)
	switch {
	case !addedName.MatchString(a.Name):
		return fmt.Errorf("name: %.80q: want a name of letters, digits and _ . -", a.Name)
	case nameErr != nil:
		return fmt.Errorf("env_name: %w", nameErr)
	case !IsObject(a.EnvParams):
		return errors.New("env_params: want an object of the environment's own keys")
	case a.EnvNum < 1 || a.EnvNum > maxEnvNum:
		return fmt.Errorf("env_num: %d: want 1 to %d", a.EnvNum, maxEnvNum)
	case !(*a.Weight >= 0 && *a.Weight <= maxWeight):
		return fmt.Errorf("weight: %v: want 0 to %d", *a.Weight, maxWeight)
	}
	return nil
}

// String says what changes, without names: those are a client's.
func (c Change) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{len(c.Add), "added"}, {len(c.Weights), "weighted"}, {len(c.Remove), "removed"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return "tasks: " + strings.Join(parts, ", ")
}

// Change changes which tasks later stages draw, or changes nothing and returns why it cannot. It implements
// part.ChangingStages.
func (p *refillPlan) Change(raw json.RawMessage) error {
	c, err := ReadChange(raw)
	if err != nil {
		return err
	}
	if len(p.pool)+len(c.Add) > maxTasks {
		return fmt.Errorf("add: the run would have more than %d tasks", maxTasks)
	}
	names := map[string][]*candidate{}
	for _, t := range p.pool {
		names[t.Group] = append(names[t.Group], t)
		if t.entry() != t.Group {
			names[t.entry()] = append(names[t.entry()], t)
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(c.Weights)), c.Remove...) {
		if names[name] == nil {
			return fmt.Errorf("there is no task %.80q", name)
		}
	}
	for i, a := range c.Add {
		if names[a.Name] != nil || slices.ContainsFunc(c.Add[:i], func(other Added) bool { return other.Name == a.Name }) {
			return fmt.Errorf("add[%d].name: there is a task %.80q already", i, a.Name)
		}
	}
	next := p.first()
	for _, name := range slices.Sorted(maps.Keys(c.Weights)) { // an entry comes before its tasks
		for _, t := range names[name] {
			t.weight, t.at, t.from = c.Weights[name], next, next
		}
	}
	for _, name := range c.Remove {
		for _, t := range names[name] {
			t.weight = 0
		}
	}
	for _, a := range c.Add {
		t := Task{Env: a.EnvName, Params: a.EnvParams, Group: a.Name, Index: len(p.pool) + 1, Size: a.EnvNum}
		p.pool = append(p.pool, &candidate{Task: t, level: -1, weight: *a.Weight, at: next, from: next})
	}
	return nil
}
