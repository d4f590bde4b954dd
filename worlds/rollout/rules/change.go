package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parley/world"
)

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
// world.ChangingPlan.
func (p *plan) Change(raw json.RawMessage) error {
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
