package rules

import (
	"cmp"
	"container/heap"
	"errors"
	"math"

	"parley/world"
)

// Refill are the params of a refill.
type Refill struct {
	Useful     int     `json:"useful" doc:"Number of groups with different rewards to play: other groups are replaced by new ones. 0: no refill, every task is played once."`
	Stage      int     `json:"stage" doc:"Maximum number of groups that are decided on together, from the outcomes of those before. 0: as many as useful."`
	MaxGroups  int     `json:"max_groups" doc:"Maximum number of groups, useful or not. 0: four times useful."`
	Pass       float64 `json:"pass" doc:"Reward from which an episode has passed: the mean over its seats."`
	Easy       float64 `json:"easy" doc:"A task is easy if at least this part of its last group passed: 0 to 1."`
	Hard       float64 `json:"hard" doc:"A task is hard if at most this part of its last group passed: 0 to 1."`
	EasyWeight float64 `json:"easy_weight" doc:"How often easy tasks are played, compared with others: 0 to 1000. 0: never again."`
	HardWeight float64 `json:"hard_weight" doc:"How often hard tasks are played, compared with others: 0 to 1000. 0: never again."`
	Advance    float64 `json:"advance" doc:"Entries of the environments file are levels. The next one opens when this part of the episodes of the last open one passes in a stage: 0 to 1. 0: all are open."`
}

// defaults returns a refill that is off, and draws all tasks equally often.
func defaults() Refill { return Refill{Pass: 1, Easy: 1, EasyWeight: 1, HardWeight: 1} }

// Check reports wrong values.
func (r Refill) Check(c *world.ParamErrors) {
	c.IntRange("refill.useful", r.Useful, 0, 1_000_000)
	c.IntRange("refill.stage", r.Stage, 0, 100_000)
	c.IntRange("refill.max_groups", r.MaxGroups, 0, 10_000_000)
	if r.MaxGroups > 0 && r.MaxGroups < r.Useful {
		c.Addf("refill.max_groups", "%d is less than refill.useful, %d", r.MaxGroups, r.Useful)
	}
	c.Between("refill.pass", r.Pass, -math.MaxFloat64, math.MaxFloat64)
	c.Between("refill.easy", r.Easy, 0, 1)
	c.Between("refill.hard", r.Hard, 0, 1)
	c.Between("refill.easy_weight", r.EasyWeight, 0, maxWeight)
	c.Between("refill.hard_weight", r.HardWeight, 0, maxWeight)
	c.Between("refill.advance", r.Advance, 0, 1)
}

// Bounds returns the maximum number of groups of a stage and of all stages.
func (r Refill) Bounds() (stage, all int) {
	stage, all = r.Stage, r.MaxGroups
	if stage == 0 {
		stage = min(r.Useful, 100_000)
	}
	if all == 0 {
		all = 4 * r.Useful
	}
	return stage, all
}

// MakeFunc makes the group of a task. deal is different for each.
type MakeFunc func(task Task, deal int) (world.Group, error)

// Plan returns a plan that plays groups until enough are useful. fresh says that the one task is different with each
// deal, so that it needs no name to be played again.
func (r Refill) Plan(tasks []Task, fresh bool, make MakeFunc) world.Plan {
	p := &plan{Refill: r, make: make, open: 1}
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

// plan is a refill in progress.
type plan struct {
	Refill
	make         MakeFunc
	pool         []*candidate
	levels, open int // levels of the file, and how many are open

	asked  []drawn // groups of the stage, in order
	groups int     // so far
	useful int     // of them
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

type drawn struct {
	of   *candidate
	size int
}

// Next takes the outcomes of a stage, and asks for as many groups as the useful ones that are missing may need.
func (p *plan) Next(last []world.Played) world.Specs {
	p.take(last)
	stage, limit := p.Bounds()
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
		p.asked = append(p.asked, drawn{c, g.Size})
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
func (p *plan) Err() error { return p.err }

// take adds the outcomes of a stage.
func (p *plan) take(last []world.Played) {
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
			if reward, ok := mean(e.Outcome); ok {
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
func (p *plan) advance() {
	next := p.first()
	for _, c := range p.pool {
		if c.level == p.open {
			c.at = next
		}
	}
	p.open++
}

// first returns the place of what is drawn next.
func (p *plan) first() int64 {
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
func (p *plan) drawable(c *candidate) bool { return c.level < p.open && p.weigh(c) > 0 }

// weigh returns how often a task is drawn, compared with others.
func (p *plan) weigh(c *candidate) float64 {
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
func (p *plan) stride(c *candidate) int64 {
	w := p.weigh(c)
	if w <= 0 {
		return 0
	}
	return int64(min(unit/w, unit*1e6))
}

// draw returns n tasks, or none if none may be drawn. If there are fewer, they come again.
func (p *plan) draw(n int) (all []*candidate) {
	var q order
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

// order is a heap of candidates, what is drawn next first.
type order []*candidate

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (o order) Len() int { return len(o) }

func (o order) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(o[i].at, o[j].at), cmp.Compare(o[i].turn, o[j].turn)) < 0
}

func (o order) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

func (o *order) Push(any) {} // not used

func (o *order) Pop() any { return nil } // not used

// task returns the task as it is played next.
func (c *candidate) task() Task {
	if c.fresh {
		return c.Task
	}
	return c.Nth(c.played)
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

// mean returns the mean reward of the seats.
func mean(o world.Outcome) (reward float64, ok bool) {
	n := 0
	for _, s := range o.Scores {
		if s.Name == rewardScore && o.Failed == "" {
			n++
			reward += (s.Value - reward) / float64(n)
		}
	}
	return reward, n > 0
}

var errNothing = errors.New(`nothing to change: want {"add": [{"name", "env_name", …}], "weights": {NAME: WEIGHT}, "remove": [NAME]}`)
