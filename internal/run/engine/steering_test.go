package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/journal"
	"parley/world"
)

// changing plays stages, and as many more episodes in each as changes say so far.
type changing struct {
	stages
	more int
}

func (c *changing) Next(last []world.Played) world.Specs {
	if len(c.stages) > 0 {
		c.stages[0] += c.more
	}
	return c.stages.Next(last)
}

func (c *changing) Change(change json.RawMessage) error {
	n, err := strconv.Atoi(string(change))
	if err == nil {
		c.more += n
	}
	return err
}

// TestChangedPlanCutAnywhere: a change of the plan is made before a stage and recorded. Wherever a run is cut, it
// continues with the recorded changes, before the same stages.
func TestChangedPlanCutAnywhere(t *testing.T) {
	t.Parallel()
	for cut := 3; ; cut += stride() {
		whole := false
		synctest.Test(t, func(t *testing.T) { whole = changedAndCut(t, cut) })
		if whole {
			break
		}
	}
}

// changedAndCut plays a run with a change in each stage until its journal is cut, and then without. It reports whether
// the run needed no more entries.
func changedAndCut(t *testing.T, cut int) (whole bool) {
	t.Helper()
	j := &cutJournal{left: cut}
	c := config(&models{width: 4, pause: time.Second}, j)
	c.Plan = &changing{stages: stages{2, 1, 2}}
	var steering *Steering
	c.Steer = func(s *Steering) { steering = s }
	c.Watch = func(e Event) {
		if e.Ended != nil && e.Ended.Episode%2 == 1 {
			go func() { _ = steering.Change("test", "more", json.RawMessage("1")) }() // it fails if the journal is cut
		}
	}
	_, err := Run(t.Context(), c)
	synctest.Wait()
	if whole = err == nil; !whole && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	changes, stages := recordedChanges(t, &j.Memory)
	c = config(&models{width: 9, pause: time.Second}, &j.Memory)
	c.Plan = &changing{stages: []int{2, 1, 2}}
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatalf("cut after %d entries: %v", cut, err)
	}
	_, after := recordedChanges(t, &j.Memory)
	if !strings.HasPrefix(after, stages) {
		t.Fatalf("cut after %d entries: stages of %s episodes, were %s", cut, after, stages)
	}
	if whole && (changes < 2 || after != stages) {
		t.Fatalf("%d changes, stages of %s episodes, then %s", changes, stages, after)
	}
	return whole
}

// recordedChanges returns the number of changes and the sizes of stages.
func recordedChanges(t *testing.T, j *journal.Memory) (changes int, stages string) {
	t.Helper()
	head, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range head.Stages {
		stages += strconv.Itoa(s.Specs.Len()) + " "
	}
	return len(head.Steered), stages
}

// TestNoChange: a change that the plan refuses, and one of a plan that cannot be changed, is not recorded.
func TestNoChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, plan := range []world.Stages{&changing{stages: stages{1}}, &stages{1}} {
			j := &journal.Memory{}
			c := config(&models{width: 1, pause: time.Second}, j)
			c.Plan = plan
			c.Steer = func(s *Steering) {
				if err := s.Change("test", "", json.RawMessage(`"x"`)); err == nil {
					t.Error("the change was accepted")
				}
			}
			if _, err := Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if n, _ := recordedChanges(t, j); n != 0 {
				t.Errorf("%d changes are recorded", n)
			}
		}
	})
}

// TestQuiet: whoever holds a run can wait until the calls in flight have ended and are durable.
func TestQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &models{width: 4, pause: time.Hour}
		c := config(m, &journal.Memory{}, 4)
		steered := make(chan *Steering, 1)
		c.Steer = func(s *Steering) { steered <- s }
		done := make(chan error, 1)
		go func() { _, err := Run(t.Context(), c); done <- err }()
		s := <-steered
		synctest.Wait() // calls are in flight
		s.Hold(true)
		short, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if err := s.Quiet(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with calls in flight: %v", err)
		}
		if err := s.Quiet(t.Context()); err != nil {
			t.Error(err)
		}
		m.mu.Lock()
		if m.now > 0 || len(m.asked) == 0 {
			t.Errorf("%d calls in flight, %d asked", m.now, len(m.asked))
		}
		m.mu.Unlock()
		s.Hold(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
