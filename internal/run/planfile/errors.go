package planfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
)

// maxErrors is how many errors are shown. maxKept is how many are kept: it bounds the work for a
// file with many errors.
const (
	maxErrors = 40
	maxKept   = 200
)

// Error is one error in a plan file.
type Error struct {
	// File is the plan file's name, or the override (--set a.b=c) that caused the error.
	File string
	// Line and Column count from 1, in characters. Both are 0 for an override and for an error in
	// the file as a whole.
	Line, Column int
	// Key is the path of the key: agents.bold.temprature. Empty: no key in particular.
	Key string
	// Problem says what is wrong and what is allowed.
	Problem string
	// Excerpt is the source line with secrets hidden. Empty: none.
	Excerpt string
}

// Error returns the position and the problem on one line, and the excerpt with a caret below.
func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	if e.Key != "" {
		s += ": " + e.Key
	}
	s += ": " + e.Problem
	if e.Excerpt == "" {
		return s
	}
	text, caret := window(e.Excerpt, e.Column)
	number := fmt.Sprintf("%6d", e.Line)
	return s + "\n" + number + " | " + text + "\n" + strings.Repeat(" ", len(number)) + " | " + caret
}

// Errors are all errors in a plan file, in order of position.
type Errors []*Error

// Error joins the first errors, each on its own line.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for i, one := range e {
		if i == maxErrors {
			more := fmt.Sprintf("… and %d more", len(e)-i)
			if len(e) >= maxKept {
				more = "… and many more"
			}
			lines = append(lines, more)
			break
		}
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// window cuts a long line to the part around the column, and makes the caret line below it. Control
// characters and tabs become spaces, so that the caret is in the right place.
func window(line string, column int) (text, caret string) {
	const before, width = 60, 100
	runes := []rune(line)
	at := min(max(column-1, 0), len(runes))
	from, lead := 0, ""
	if at > before && len(runes) > width {
		from, lead = at-before, "…"
	}
	to, tail := len(runes), ""
	if to-from > width {
		to, tail = from+width, "…"
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	return lead + string(runes[from:to]) + tail, strings.Repeat(" ", at-from+utf8.RuneCountInString(lead)) + "^"
}

// report collects the errors of one source.
type report struct {
	Source *source
	Errs   Errors
}

// Add reports a problem with the key p at a position.
func (r *report) Add(at yamltree.Position, p yamltree.Path, format string, args ...any) {
	if r.Full() {
		return
	}
	shown := make(yamltree.Path, len(p))
	for i, step := range p {
		shown[i] = r.Source.Hide(step)
	}
	e := &Error{File: r.Source.Name, Line: at.Line, Column: at.Column, Key: shown.String(), Problem: fmt.Sprintf(format, args...)}
	if at.Set != "" {
		e.File = at.Set
	} else if at.Line > 0 {
		e.Excerpt, _ = r.Source.line(at.Line)
	}
	r.Errs = append(r.Errs, e)
}

// Place describes the position of the key p, as plan.yaml:5:12: providers.lab.
func (r *report) Place(at yamltree.Position, p yamltree.Path) string {
	one := &report{Source: r.Source}
	one.Add(at, p, "")
	e := one.Errs[0]
	e.Excerpt = ""
	return oneLine(r.Source.Hide(strings.TrimSuffix(e.Error(), ": ")), 200)
}

// Full reports whether no more errors are kept.
func (r *report) Full() bool { return len(r.Errs) >= maxKept }

// Err returns the errors in order of position, with secrets hidden; nil without errors.
func (r *report) Err() error {
	if len(r.Errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.Errs, func(a, b *Error) int {
		// Overrides have no line and are last, since they are applied last.
		return cmp.Or(cmp.Compare(b2i(a.Line == 0), b2i(b.Line == 0)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for _, e := range r.Errs {
		// A problem may quote any text: it must not move the cursor.
		e.File, e.Problem = oneLine(r.Source.Hide(e.File), 1000), oneLine(r.Source.Hide(e.Problem), 2000)
		e.Excerpt = r.Source.Hide(e.Excerpt)
	}
	return r.Errs
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Quote quotes a text of the source. It hides secrets first: once cut or escaped they would not be found.
func (r *report) Quote(s string) string { return yamltree.Quote(r.Source.Hide(s)) }

// Found describes a node.
func (r *report) Found(n *yamltree.Node) string { return n.Describe(r.Quote) }

// oneLine puts a text on one line and cuts it to a length.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	return text.Excerpt(s, limit)
}
