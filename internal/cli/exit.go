package cli

import (
	"errors"
	"fmt"
)

// The exit codes. Scripts rely on them: docs/reference/exit-codes.md is their description.
const (
	ExitOK          = 0 // everything asked for was done
	ExitFailed      = 1 // something of it failed, and what did says why
	ExitUsage       = 2 // a flag, a file or the environment is wrong; nothing was asked
	ExitBudget      = 3 // stopped since the next call would not fit the budget
	ExitInterrupted = 4 // stopped by a signal, drained or aborted
	ExitBroken      = 5 // reading or writing failed, or something is wrong inside
)

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usage makes an error about what the user gave us.
func usage(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// asUsage marks err as one about what the user gave us, unless a signal is its reason.
func asUsage(err error) error {
	if e, ok := errors.AsType[*exitError](err); err == nil || ok && e.code == ExitInterrupted {
		return err
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err // it has its code
	}
	return &exitError{code: ExitUsage, err: err}
}

// silent ends with a code and no words: the words were said already.
func silent(code int) error {
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code, err: errors.New("")}
}

// exitCode is the code of err: its own, or that of something broken.
func exitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return ExitBroken
}
