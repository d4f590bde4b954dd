// Package program is for authors of commands: what a kind adds to the command line, and what the program
// gives to it. A kind without commands does not need it.
//
// It starts nothing, and opens no file or connection.
package program

import (
	"context"
	"errors"
	"io"
)

// Command is a command that a kind adds to the command line.
type Command struct {
	Name string // a word in lower case
	Doc  string // one line for the help
	// Verb is a pointer to a struct. Its exported fields are the flags and arguments, described by the tags help,
	// arg, name, default, placeholder, optional, enum, group and negatable, as in package kong.
	Verb Verb
}

// Verb carries out a command.
type Verb interface {
	// Run runs the command. ctx ends it at once. A UsageError is about flags and arguments.
	Run(ctx context.Context, p *Program) error
}

// Program is the program that runs a command. It gives access to everything outside, except files that the arguments
// name.
type Program struct {
	// Env looks up an environment variable.
	Env   func(name string) (value string, ok bool)
	Stdin io.Reader
	// Stdout and Stderr remove control characters if they lead to a terminal, so a model's text cannot harm it.
	Stdout, Stderr io.Writer
	// Width returns the width of the terminal behind Stdout; 0: it is not a terminal.
	Width func() int
	// Stop is done when the command should start nothing more and finish: after the first Ctrl-C. Reads of Stdin then
	// return io.EOF. A command that leaves something undone returns context.Cause(Stop): the program ends with the
	// exit code for an interruption.
	Stop context.Context //nolint:containedctx // a signal, beside the context of Run
	// Write writes a whole file or nothing. It does not overwrite a file unless Force is set, and never a run file.
	Write func(o Output, write func(io.Writer) error) error
}

// Output is a file that a command writes.
type Output struct {
	Flag   string   // the flag that names it, such as --out
	Path   string   // its path
	Force  bool     // overwrite an existing file
	Inputs []string // the run files that the command reads
}

// UsageError is an error about flags and arguments. The program ends with the exit code for that.
type UsageError struct{ Err error }

// Error returns the text of Err.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e UsageError) Unwrap() error { return e.Err }

// ErrReported is returned by a command that has printed its errors itself. The program ends with the exit code for
// failures and prints nothing more.
var ErrReported = errors.New("what failed has been reported")
