// Part curriculum decides which tasks rollouts play: those of an environments file and, with refill, more of
// them until enough groups have rewards that differ.
//
// It promises that a refill is a pure fold over outcomes and recorded changes, as world.Plan demands; that it
// ends, after at most max_groups groups; and that every group of a run has a name of its own.
//
// It is not for playing: package rules makes episodes of tasks.

package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Task is one environment to be played a number of times: a group.
type Task struct {
	Env    string          `json:"env"`
	Params json.RawMessage `json:"params,omitempty"`
	// Group is the name of the task: the environment and the task's number in its entry, such as maze:3; for a
	// second entry of the same environment maze.2:3. It depends only on the file.
	Group string `json:"group"`
	Index int    `json:"index"` // in its entry, from 1
	Size  int    `json:"size"`  // episodes in the group
}

// parse reads tasks, one on a line, as Load writes them.
func parse(lines string) (all []Task, err error) {
	for line := range strings.Lines(lines) {
		var t Task
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		if checkName(t.Env) != nil || !IsObject(t.Params) || t.Size < 1 || t.Group == "" {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, errIncomplete)
		}
		all = append(all, t)
	}
	return all, nil
}

var errIncomplete = errors.New("want env, params, group and size")

// Nth returns the task as it is played again: for the nth time, from 0. Its group has another name each time.
func (t Task) Nth(n int) Task {
	if n > 0 {
		t.Group = fmt.Sprintf("%s/%d", t.Group, n+1)
	}
	return t
}

// entry returns the name of the entry of the file that the task is from: maze.2 of maze.2:3.
func (t Task) entry() string {
	name, _, _ := strings.Cut(t.Group, ":")
	return name
}
