// Package exit decides how a command ends: its exit code, its error text, and what stops it.
//
// An error made here carries its exit code. A Gate is closed once, by a signal or a failure; work that has begun
// is then finished, and nothing new begins.
//
// It does not read signals: package cli does.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes. Scripts rely on them: docs/reference/exit-codes.md describes them.
const (
	OK          = 0 // everything asked for was done
	Failed      = 1 // some of it failed; the output says why
	Misuse      = 2 // a flag, a file or the environment is wrong; no call was made
	Budget      = 3 // stopped because the next call would exceed the budget
	Interrupted = 4 // stopped by a signal
	Broken      = 5 // reading or writing failed, or there is a bug
)

// Error is an error with an exit code.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error about the user's input.
func Usagef(format string, args ...any) error {
	return &Error{Code: Misuse, Err: fmt.Errorf(format, args...)}
}

// AsUsage marks err as an error about the user's input, unless a signal caused it.
func AsUsage(err error) error {
	if e, ok := errors.AsType[*Error](err); err == nil || ok && e.Code == Interrupted {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err // it already has a code
	}
	return &Error{Code: Misuse, Err: err}
}

// Silent returns an error with a code and no text, for when the text is already printed.
func Silent(code int) error {
	if code == OK {
		return nil
	}
	return &Error{Code: code, Err: errors.New("")}
}

// CodeOf returns the exit code of err, which is Broken if err has none.
func CodeOf(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Broken
}
