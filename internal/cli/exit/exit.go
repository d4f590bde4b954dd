// Package exit decides how a command ends: its exit code, the words of its error, and what stops it.
//
// An error made here carries its exit code. A Gate is closed once, by a signal or a failure; work that
// has begun is then finished, and nothing new begins.
//
// It is not for reading signals: package cli does that.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes. Scripts rely on them: docs/reference/exit-codes.md is their description.
const (
	OK          = 0 // everything asked for was done
	Failed      = 1 // something of it failed, and what did says why
	Misuse      = 2 // a flag, a file or the environment is wrong; nothing was asked
	Budget      = 3 // stopped since the next call would not fit the budget
	Interrupted = 4 // stopped by a signal, drained or aborted
	Broken      = 5 // reading or writing failed, or something is wrong inside
)

// Error is an error that knows its exit code.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef makes an error about what the user gave us.
func Usagef(format string, args ...any) error {
	return &Error{Code: Misuse, Err: fmt.Errorf(format, args...)}
}

// AsUsage marks err as one about what the user gave us, unless a signal is its reason.
func AsUsage(err error) error {
	if e, ok := errors.AsType[*Error](err); err == nil || ok && e.Code == Interrupted {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err // it has its code
	}
	return &Error{Code: Misuse, Err: err}
}

// Silent ends with a code and no words: the words were said already.
func Silent(code int) error {
	if code == OK {
		return nil
	}
	return &Error{Code: code, Err: errors.New("")}
}

// CodeOf is the code of err: its own, or that of something broken.
func CodeOf(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Broken
}
