package results

import (
	"context"
	"encoding/json"
	"path"
	"reflect"
	"regexp"
	"strings"

	"parley/journal"
	"parley/world"
)

// Fault is the most common reason why episodes failed. Said and At are of the first episode.
type Fault struct {
	Episodes int    `json:"episodes"`       // that failed for this reason
	Why      string `json:"why"`            // as in their outcomes
	Said     string `json:"said,omitempty"` // the message of the failed call; hostile
	At       string `json:"at,omitempty"`   // where its world panicked, as game.go:57
	// Others is how many other reasons there are.
	Others int `json:"others,omitempty"`
	// Trace is the traceback of code that is not part of the program, such as a world in Python.
	Trace string `json:"trace,omitempty"`
}

// Commonest returns the most common reason why episodes of a run failed, and the first one
// where several are equally common. It returns nil if no episode failed. Its texts are one
// line each, and cut.
func Commonest(ctx context.Context, j journal.Journal, head *journal.Head) (*Fault, error) {
	if head.Ended.Failed() == 0 {
		return nil, nil
	}
	count := map[string]int{}
	for e := range head.Ended.All() {
		if why := e.Outcome.Failed; why != "" {
			count[sortOf(why)]++
		}
	}
	at, sort := 0, ""
	for e := range head.Ended.All() {
		if s := sortOf(e.Outcome.Failed); count[s] > count[sort] {
			at, sort = e.Episode, s
		}
	}
	first, err := head.Ended.Outcome(ctx, j, at)
	if err != nil {
		return nil, err
	}
	why := first.Outcome.Failed
	f := &Fault{Episodes: count[sortOf(why)], Why: oneLine(why), At: oneLine(panickedAt(first.Stack)), Others: len(count) - 1}
	entries, err := journal.Episode(ctx, j, first.Episode)
	for _, e := range entries {
		// An outcome has the kind of the failure only: a world does not get the message.
		if r, ok := e.(*journal.Replied); ok && r.Attempt == first.Attempt && r.Error != nil && strings.Contains(why, string(r.Error.Kind)) {
			f.Said = FailureText(r.Error, r.Act != nil)
		}
		if t, ok := e.(*journal.Turned); ok && t.Attempt == first.Attempt {
			f.trace(t.Notes)
		}
	}
	return f, err
}

// trace finds the note of code that failed.
func (f *Fault) trace(notes []world.Note) {
	for _, n := range notes {
		var of world.CodeError
		if n.Kind == "error" && json.Unmarshal(n.Data, &of) == nil && of.Text != "" && oneLine(of.Text) == f.Why {
			f.Trace = of.Trace
		}
	}
}

// placed matches a reason that begins with a line of code and the class of an error.
var placed = regexp.MustCompile(`^[^\s:]+:\d+: \w+`)

// sortOf returns what reasons of one sort have in common: the line of code and the class of the error, or the
// text before the first number, such as a step or an amount of money.
func sortOf(why string) string {
	if line := placed.FindString(why); line != "" {
		return line
	}
	if i := strings.IndexAny(why, "0123456789"); i > 0 {
		return why[:i]
	}
	return why
}

// panickedAt returns the file and line of the first function below the panic in a stack that is
// the kind's own: not of Go and not of package world. It returns "" if no function is.
func panickedAt(stack string) string {
	_, below, found := strings.Cut(stack, "\npanic(")
	if !found {
		return ""
	}
	worldPackage := reflect.TypeFor[world.Table]().PkgPath() + "." // prefix of its functions in a stack
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

// oneLine returns a text as one line of limited length.
func oneLine(text string) string {
	const limit = 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}

// String returns the fault as part of a sentence.
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
