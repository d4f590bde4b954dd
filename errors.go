package parley

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"parley/internal/config/document"
	"parley/internal/store/sqlite"
)

// Errors to look for with errors.Is.
var (
	// ErrPlaying is returned by Play while somebody else plays the run file.
	ErrPlaying = sqlite.ErrPlaying
	// ErrDamaged is returned for a run file that is damaged. parley check says what of it is left.
	ErrDamaged = sqlite.ErrDamaged
	// ErrNotRunFile is returned for a file of another format.
	ErrNotRunFile = sqlite.ErrForeign
)

// reworded is an error of an inner package in the words of this one.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }

// inner finds the names of packages that a caller does not see.
var inner = regexp.MustCompile(`(^|: |\n)(?:app|config|engine|merge|price|sqlite|view): `)

// byField finds the place of a field of Provider, which goes into a plan as an override: see setsOf.
var byField = regexp.MustCompile(`--set providers\."([^"]*)"\..*?: providers\.\S+: `)

// wrap makes err an error of this package. It leaves out which inner packages it came through.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	text := byField.ReplaceAllString(err.Error(), `provider "$1": `)
	return &reworded{"parley: " + inner.ReplaceAllString(text, "$1"), err}
}

// unchanged is what package app says of a plan that would change what was played, before it names verbs and flags.
const unchanged = "what was played cannot change: "

// explain makes err an error of this package that names the fields of r, not the flags and verbs of the command line.
func (r Run) explain(err error) error {
	plan, ok := errors.AsType[document.Errors](err)
	if !ok {
		err = wrap(err)
		if err == nil {
			return nil
		}
		what, _, changed := strings.Cut(err.Error(), unchanged)
		switch {
		case changed && (r.PlanFile != "" || r.Plan.Kind != ""):
			return &reworded{what + unchanged + "name another File, or leave out the plan to resume the recorded one", err}
		case changed:
			return &reworded{what + unchanged + "leave that out of Set, or play a plan into another File", err}
		}
		return err
	}
	said := make(document.Errors, len(plan))
	for i, e := range plan {
		c := *e
		c.File, c.Key = r.place(e)
		said[i] = &c
	}
	return &reworded{said.Error(), err}
}

// place says where something is wrong: in a provider, in an override, in a plan built in Go, or in a plan file.
func (r Run) place(e *document.Error) (file, key string) {
	set, override := strings.CutPrefix(e.File, "--set ")
	for name := range r.Providers {
		if override && strings.HasPrefix(set, `providers."`+name+`".`) {
			_, key, _ := strings.Cut(e.Key, name)
			key = strings.TrimLeft(key, `".`)
			return `parley: provider "` + name + `"`, cmp.Or(providerFields()[key], key)
		}
	}
	if override {
		return `parley: Set "` + set + `"`, e.Key
	}
	return "parley: " + e.File, e.Key
}
