package view

import (
	"context"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"parley/journal"
	"parley/world"
)

// Fault is what episodes failed of most often.
type Fault struct {
	Episodes int    `json:"episodes"`       // that failed of it
	Why      string `json:"why"`            // as their outcomes have it
	Said     string `json:"said,omitempty"` // to the first of them, by whoever answered the call that failed; hostile
	At       string `json:"at,omitempty"`   // where the world of the first of them panicked, as game.go:57
}

// Commonest is what most of the failed episodes of a run failed of, as the first of them has
// it; of several, what came first. It is nil where none failed. Both texts are one line, and
// cut.
func Commonest(ctx context.Context, j journal.Journal, head *journal.Head) (*Fault, error) {
	count := map[string]int{}
	numbers := slices.Sorted(maps.Keys(head.Ended))
	for _, n := range numbers {
		if why := head.Ended[n].Outcome.Failed; why != "" {
			count[sortOf(why)]++
		}
	}
	var first journal.Ended
	for _, n := range numbers {
		if e := head.Ended[n]; count[sortOf(e.Outcome.Failed)] > count[sortOf(first.Outcome.Failed)] {
			first = e
		}
	}
	why := first.Outcome.Failed
	if why == "" {
		return nil, nil
	}
	f := &Fault{Episodes: count[sortOf(why)], Why: oneLine(why), At: oneLine(panickedAt(first.Stack))}
	entries, err := journal.Episode(ctx, j, first.Episode)
	for _, e := range entries {
		// An outcome names the kind of the failure and no more: worlds are not told what was said.
		if r, ok := e.(*journal.Replied); ok && r.Attempt == first.Attempt && r.Error != nil && strings.Contains(why, string(r.Error.Kind)) {
			f.Said = oneLine(r.Error.Message)
		}
	}
	return f, err
}

// sortOf is what failures of one sort have in common: what comes after a number, a step or a sum of
// money, is of one episode.
func sortOf(why string) string {
	if i := strings.IndexAny(why, "0123456789"); i > 0 {
		return why[:i]
	}
	return why
}

// panickedAt is the file and line of the first function in a stack, from the panic on, that is neither of Go
// nor of package world: the kind's own. It is empty where there is none.
func panickedAt(stack string) string {
	_, below, found := strings.Cut(stack, "\npanic(")
	if !found {
		return ""
	}
	worldPackage := reflect.TypeFor[world.Table]().PkgPath() + "." // begins its functions in a stack
	lines := strings.Split(below, "\n")
	goroot := "" // empty: built with -trimpath
	for i := 1; i < len(lines); i += 2 {
		function, file := lines[i-1], strings.TrimSpace(lines[i])
		if i == 1 { // panic itself
			goroot, _, _ = strings.Cut(file, "runtime/panic.go")
			continue
		}
		ofGo := strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "internal/") || goroot != "" && strings.HasPrefix(file, goroot)
		if !ofGo && !strings.HasPrefix(function, worldPackage) {
			if at := strings.LastIndex(file, " +"); at >= 0 {
				file = file[:at]
			}
			return path.Base(file)
		}
	}
	return ""
}

// oneLine is a text as one line that is not too long.
func oneLine(text string) string {
	const most = 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// String is the fault as a part of a sentence.
func (f *Fault) String() string {
	text := f.Why
	if f.At != "" {
		text += " (" + f.At + ")"
	}
	if f.Said != "" {
		text += ": " + f.Said
	}
	return text
}
