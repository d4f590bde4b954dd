package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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

// place is a position in the file, or an override.
type place struct {
	set          string // the override, as --set a.b=c
	line, column int
}

// report collects the errors of one source.
type report struct {
	src  *source
	errs Errors
}

// add reports a problem with the key p at a position.
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

// full reports whether no more errors are kept.
func (r *report) full() bool { return len(r.errs) >= maxKept }

// err returns the errors in order of position, with secrets hidden; nil if there are none.
func (r *report) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		// Overrides have no line and are last, since they are applied last.
		return cmp.Or(cmp.Compare(b2i(a.Line == 0), b2i(b.Line == 0)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for _, e := range r.errs {
		// A problem may quote any text: it must not move the cursor.
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

// quote quotes a text of the source. It hides secrets first: once cut or escaped they would not be found.
func (r *report) quote(s string) string { return quote(r.src.hide(s)) }

// found describes a node, as `the text "ten"`.
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

// to returns p with one more step. It does not change p.
func (p path) to(step string) path { return append(slices.Clone(p), step) }

// String writes agents.bold.stop[0]. A step that is not a plain word is quoted.
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

// quote quotes a text from outside, on one line, cut to a length.
func quote(s string) string {
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
