package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxErrors is how many errors are shown: more than a screen helps nobody. maxKept is how
// many are looked for, so that a file with nothing but errors takes no time.
const (
	maxErrors = 40
	maxKept   = 200
)

// Error is one thing wrong with a plan file.
type Error struct {
	// File is the plan file's name, or the override (--set a.b=c) that brought it.
	File string
	// Line and Column count from 1, in characters; both are 0 for an override and for
	// what is wrong with the file as a whole.
	Line, Column int
	// Key is where in the plan: agents.bold.temprature. Empty: no key in particular.
	Key string
	// Problem says what is wrong and what is allowed.
	Problem string
	// Excerpt is the source line, without what may be a secret. Empty: none.
	Excerpt string
}

// Error is the place and the problem on one line, and the excerpt with a caret below.
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

// Errors is everything that was found wrong with a plan file, in order of place.
type Errors []*Error

// Error puts each on a line of its own, at most 40 of them.
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

// Unwrap gives the errors one by one.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// window cuts a long line down to what stands around the column, and puts a caret
// below it. Control characters, tabs too, become spaces so that the caret stays true.
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

// place is where something stands: in the file, or in an override.
type place struct {
	set          string // the override, as --set a.b=c
	line, column int
}

// report gathers what is wrong with one source.
type report struct {
	src  *source
	errs Errors
}

// add puts down a problem with the key named by p, at a place.
func (r *report) add(at place, p path, format string, args ...any) {
	if r.full() {
		return
	}
	shown := make(path, len(p))
	for i, step := range p {
		shown[i] = r.src.hide(step)
	}
	e := &Error{File: r.src.name, Line: at.line, Column: at.column, Key: shown.String(), Problem: fmt.Sprintf(format, args...)}
	if at.set != "" {
		e.File = at.set
	} else if at.line > 0 {
		e.Excerpt, _ = r.src.line(at.line)
	}
	r.errs = append(r.errs, e)
}

// full says that there are as many as are kept.
func (r *report) full() bool { return len(r.errs) >= maxKept }

// err returns what was gathered, in order of place, free of secrets; nil if nothing was.
func (r *report) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		// Overrides have no line and come last, since they were given last.
		return cmp.Or(cmp.Compare(b2i(a.Line == 0), b2i(b.Line == 0)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for _, e := range r.errs {
		// What a problem names may be anybody's text: it must not move the cursor.
		e.File, e.Problem = oneLine(r.src.hide(e.File), 1000), oneLine(r.src.hide(e.Problem), 2000)
		e.Excerpt = r.src.hide(e.Excerpt)
	}
	return r.errs
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// quote shows a text of the source. Secrets are hidden first: cut or escaped, they would
// not be found again.
func (r *report) quote(s string) string { return quote(r.src.hide(s)) }

// found says what a node is, as `the text "ten"`.
func (r *report) found(n *node) string {
	switch n.form {
	case nothing:
		return "nothing"
	case boolean:
		return n.text
	case integer, number:
		return "the number " + strings.Trim(r.quote(n.text), `"`)
	case text:
		return "the text " + r.quote(n.text)
	case list:
		return "a list"
	}
	return "a mapping"
}

// path names a key of a plan: agents, bold, stop, [0].
type path []string

// to returns the path one step further, leaving p as it is.
func (p path) to(step string) path { return append(slices.Clone(p), step) }

// String writes agents.bold.stop[0]; a step that is no plain word stands in quotes.
func (p path) String() string {
	var b strings.Builder
	for i, step := range p {
		switch index := strings.HasPrefix(step, "["); {
		case index:
		case i > 0:
			b.WriteByte('.')
		}
		if plainStep(step) {
			b.WriteString(step)
		} else {
			b.WriteString(quote(step))
		}
	}
	return b.String()
}

func plainStep(step string) bool {
	return step != "" && !strings.ContainsFunc(step, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-[]/*", r)
	})
}

// quote shows a text from outside: in quotes, on one line, cut to a length.
func quote(s string) string {
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
