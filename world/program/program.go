// Package program is for authors of commands: what a kind adds to the command line, and what the program
// gives to it. A kind without commands does not need it.
//
// It starts nothing, and opens no file or connection.
package program

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// Command is a command that a kind adds to the command line.
type Command struct {
	Name string // a word in lower case
	Doc  string // one line for the help
	// Verb is a pointer to a struct. Its exported fields are the flags and arguments, described by the tags help,
	// arg, name, default, placeholder, optional, enum, group and negatable, as in package kong. A command that plays
	// plans embeds PlayFlags.
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
	// Runs plays plans and reads run files.
	Runs Runs
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

// Runs plays plans into run files, as the command run does. It also implements journal.Opener, which reads run files.
// Use it to write a server that plays a plan for its clients.
type Runs interface {
	// Open reads a plan file and finds its run file. It asks the user now which hosts may receive the plan's keys, and
	// never later: somebody else may start the run.
	Open(ctx context.Context, flags PlayFlags) (Run, error)
}

// PlayFlags are the flags of a command that plays a plan. Embed it in a Verb.
type PlayFlags struct {
	Plan        string         `arg:"" placeholder:"PLAN" help:"The plan file."`
	Out         string         `placeholder:"FILE" help:"The run file. If it exists, the run is resumed. Default: next to the plan, with the same name and the ending .parley."`
	Unreachable *time.Duration `placeholder:"DURATION" help:"How long to wait for a provider that cannot be reached, such as one that is restarting; 0 fails at once. Default: the plan's, or 10m."`
	TrustFlags
	ReachFlags
}

// TrustFlags allow keys to be sent where a plan sends them.
type TrustFlags struct {
	Trust []string `sep:"none" placeholder:"VAR=HOST" help:"Allow this environment variable to be sent to this host without asking, such as LAB_KEY=https://lab.example:8443; code=FILE, allow the code of this file or folder to run; or program=PROGRAM, allow a program to be started. Repeatable."`
}

// ReachFlags allow a plan to name files outside its folder.
type ReachFlags struct {
	AllowFiles []string `sep:"none" placeholder:"DIR" help:"Allow the plan, and the files that it names, to use files in this folder. Without it, all files must be in the plan's folder. Repeatable."`
}

// Run is a plan with its run file.
type Run interface {
	// File returns the path of the run file.
	File() string
	// Plan summarizes the plan file.
	Plan() PlanSummary
	// Recorded summarizes the run file.
	Recorded(ctx context.Context) (RecordedRun, error)
	// Prepare makes the plan ready to play. overrides change it, as "episodes=3" or "params.group=4". They may be a
	// client's, so they cannot name files that the plan file does not name. Without overrides, a run in the file
	// continues as recorded.
	Prepare(ctx context.Context, overrides ...string) (Prepared, error)
}

// PlanSummary summarizes a plan.
type PlanSummary struct {
	Kind     string
	Seed     uint64
	Episodes int
	Params   json.RawMessage // with all defaults
}

// RecordedRun summarizes a run file.
type RecordedRun struct {
	Kind     string // of the run; empty: the file has no run, or does not exist
	Complete bool   // nothing is left to play
}

// Prepared is a plan that is ready to play.
type Prepared struct {
	PlanSummary
	// Play plays until the run is complete, or until drain is done and the episodes in progress have ended; ctx aborts.
	// It calls begun when play starts, and ended whenever an episode has ended and its outcome is durable. If it returns
	// an error without having called begun, nothing was played. The Control is nil if nothing is left to play.
	Play func(ctx, drain context.Context, begun func(Control), ended func()) (Ending, error)
}

// Control changes a run while it is played. Only Change affects what is played. Once the run has ended, it does nothing.
type Control interface {
	// Pause sends no more calls. Unless those in flight are held, it returns when there are none and all answers are
	// durable, or when ctx is done. Resume sends calls again. Both are recorded in the run.
	Pause(ctx context.Context, by string, calls InFlight) error
	Resume(by string) error
	// Past says which earlier versions of the weights can be asked: agents with a model such as lab/policy@past play them.
	Past(versions []int)
	// Until begins only the episodes with a number below n, until it is called with a larger one.
	Until(n int)
	// Change gives a change to the plan, which is a part.ChangingStages, for its later stages. It is recorded in the run. by
	// and detail describe it.
	Change(by, detail string, change json.RawMessage) error
}

// InFlight says what happens to the calls in flight when a run is paused.
type InFlight string

// What happens to them.
const (
	HoldCalls   InFlight = "hold"   // they stay open, and their answers count when they come
	FinishCalls InFlight = "finish" // they are finished
	CutCalls    InFlight = "cut"    // they are cut off, and sent again when the run is resumed
)

// Ending says how playing a plan ended.
type Ending struct {
	// State is complete, stopped or failed. A stopped run can be resumed.
	State string
	// Reason says why it stopped or failed.
	Reason string
}
