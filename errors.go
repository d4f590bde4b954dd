package parley

import (
	"errors"
	"fmt"
	"strings"

	"parley/internal/run/growth"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
)

// Errors to look for with errors.Is.
var (
	// ErrPlaying is returned by Play while another process plays the run file.
	ErrPlaying = runfile.ErrPlaying
	// ErrDamaged is returned for a run file that is damaged. parley check says what can be saved.
	ErrDamaged = runfile.ErrDamaged
	// ErrNotRunFile is returned for a file of another format.
	ErrNotRunFile = runfile.ErrForeign
)

// reworded is an error of an inner package in the words of this one.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }

// wrap makes err an error of this package.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("parley: %w", err)
}

// location says where a field of Provider is, for errors.
func location(name string) string { return fmt.Sprintf("provider %q", name) }

// explain makes err an error of this package that names the fields of r, not the flags and verbs of the command line.
func (r Run) explain(err error) error {
	if changed, ok := errors.AsType[*growth.ChangedError](err); ok {
		c := *changed
		c.Todo = "leave that out of Set, or play a plan into another File"
		if r.PlanFile != "" || r.Plan.kind.Name != "" {
			c.Todo = "name another File, or leave out the plan to resume the recorded one"
		}
		return &reworded{"parley: " + c.Error(), err}
	}
	plan, ok := errors.AsType[planfile.Errors](err)
	if !ok {
		return wrap(err)
	}
	located := make(planfile.Errors, len(plan))
	for i, e := range plan {
		c := *e
		c.File, c.Key = r.locate(e)
		located[i] = &c
	}
	return &reworded{located.Error(), err}
}

// locate says where the fault is: in a provider, in an override, in a plan built in Go, or in a plan file.
func (r Run) locate(e *planfile.Error) (file, key string) {
	set, override := strings.CutPrefix(e.File, "--set ")
	for name := range r.Providers {
		if override && strings.HasPrefix(set, `providers."`+name+`".`) {
			_, key, _ := strings.Cut(e.Key, name)
			key = strings.TrimLeft(key, `".`)
			return "parley: " + location(name), fieldOf(key)
		}
	}
	if override {
		return `parley: Set "` + set + `"`, e.Key
	}
	return "parley: " + e.File, e.Key
}
