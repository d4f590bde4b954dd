package gateway

import (
	"fmt"
	"net/http"
	"sync"

	"parley/internal/run/planner"
	"parley/world"
)

// stopRule says of which sessions no more are wanted, as `until` says it of episodes: those of an agent, under a condition and with tags, whose
// score is known precisely enough. Sessions of one task are not independent. A nil rule wants all.
type stopRule struct {
	until planner.Until

	mu    sync.Mutex
	cells map[string]*stopCell
	tasks map[string]int // their numbers
}

// stopCell is what sessions have in common that are compared with others.
type stopCell struct {
	sample world.Sample
	ended  int
	enough string // why no more are wanted; empty: more are
}

// newStopRule returns the rule after the sessions that have ended.
func newStopRule(u *planner.Until, s *ledgerContents) (*stopRule, error) {
	if u == nil {
		return nil, nil
	}
	r := &stopRule{until: u.WithDefaults(), cells: map[string]*stopCell{}, tasks: map[string]int{}}
	if err := r.until.Check(); err != nil {
		return nil, err
	}
	for e := range s.Ended.All() {
		r.ended(s.About[e.Episode], e.Outcome)
	}
	return r, nil
}

// cell returns the cell of a session.
func (r *stopRule) cell(a about) *stopCell {
	name := fmt.Sprintf("%q %q %q", a.Agent, a.Condition, a.Tags) // maps are written in order
	c := r.cells[name]
	if c == nil {
		c = &stopCell{}
		r.cells[name] = c
	}
	return c
}

// ended takes the end of a session. An aborted one does not count.
func (r *stopRule) ended(a about, o world.Outcome) {
	if r == nil || o.Failed != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cell(a)
	if c.enough != "" {
		return
	}
	unit := world.Unit{}
	if a.Task != "" {
		if r.tasks[a.Task] == 0 {
			r.tasks[a.Task] = len(r.tasks) + 1
		}
		unit.Deal = r.tasks[a.Task]
	}
	for _, s := range o.Scores {
		if s.Name == r.until.Score {
			c.sample.Add(unit, s.Value)
		}
	}
	if c.ended++; c.ended < r.until.Max && !r.until.Enough(c.ended, &c.sample) {
		return
	}
	q := c.sample.Estimate(r.until.Confidence)
	c.enough = fmt.Sprintf("%s of %s is %s after %d sessions: no more are wanted (--until)", r.until.Score, a.words(), q, c.ended)
	if c.sample.Episodes() == 0 {
		c.enough = fmt.Sprintf("none of %d sessions of %s has a score %s: no more are wanted (--until)", c.ended, a.words(), r.until.Score)
	}
}

// refusal returns why no session like this is wanted, or nil.
func (r *stopRule) refusal(a about) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.cell(a).enough; why != "" {
		return &refusedError{http.StatusConflict, "question_answered", why}
	}
	return nil
}
