package world

import (
	"context"
	"errors"
	"io"

	"parley/llm"
)

// This file is everything that a kind can bring, in the order in which an author meets it. Definition is what
// every kind has. All else is optional: a definition that also has the methods of one of these interfaces brings
// what it is for, and Define finds it. To have the compiler check a method, write
//
//	var _ world.Measurer[Params] = definition{}

// About says what a kind is.
type About struct {
	// Name is how plan files call the kind: a word in lower case.
	Name string
	// Version changes when episodes that were recorded before would go on differently.
	Version int
	// Doc is one line that says what is played.
	Doc string
	// Example is a plan file with every param and a comment on it: parley init writes it.
	Example string
	// ExampleFiles are the files that Example names, by name: they are written beside it.
	ExampleFiles map[string]string
}

// Definition is what a kind cannot do without. P is the struct of its params: a plan file's params are decoded
// into it, its json tags are their names, and its doc tags describe them in schemas, docs and errors.
type Definition[P any] interface {
	About() About
	// Defaults returns new params, as they are where a plan file says nothing.
	Defaults() *P
	// Seats checks params and lists the seats they make.
	Seats(params *P) ([]string, error)
	// World makes the world of one episode.
	World(params *P, lineup Lineup) (World, error)
}

// Measurer declares what outcomes may score, so that plans, reports and intervals know it beforehand.
type Measurer[P any] interface {
	// Measures lists the scores. Nil: they are not known beforehand.
	Measures(params *P) []Measure
}

// BotBringer brings agents without a model, by name.
type BotBringer interface {
	Bots() map[string]Bot
}

// StandIn plays the kind's worlds for the simulated provider, so that they can be tried without a model.
type StandIn interface {
	// StandIn answers a request of the kind's worlds. ok is false for any other request. It must be a pure
	// function: model is the simulated model's name without its provider, and seed is for varied answers.
	StandIn(model string, req *llm.Request, seed uint64) (text string, ok bool)
}

// Loader reads files that params name.
type Loader[P any] interface {
	// Load puts what the files say into params, so that a run is complete without them. It is called when a plan
	// file is read, and never for a recorded plan, whose params hold it all. advice is what to write differently
	// in the files, though it is understood.
	Load(params *P, files Files) (advice []string, err error)
}

// Caster names models for seats that a plan file leaves empty.
type Caster[P any] interface {
	// Models returns seat to provider/model, as the files that were loaded ask for them.
	Models(params *P) map[string]string
}

// Planner decides which episodes are played, stage by stage, where a kind does so itself: an evolution breeds what
// it tries next.
type Planner[P any] interface {
	// Plan is called for each episode that a plan file asks for, with its params, its spec, and the run's seed.
	// The plans it returns are played beside each other. Specs it asks for need not be like cell, but have its Cell.
	Plan(params *P, cell Spec, seed uint64) (Plan, error)
	// Forecast says what such a plan may ask for before anything of it is played. It is called with the same.
	// No parts: all that can be foreseen is the first stage.
	Forecast(params *P, cell Spec, seed uint64) ([]Part, error)
}

// UniformPlanner is a Planner that may be asked once for a cell instead of once for each deal.
type UniformPlanner[P any] interface {
	// Uniform says whether Plan makes the same of every deal, but for the deals of its specs.
	Uniform(params *P) bool
}

// Dealer names what params put before the seats of an episode, beside chance: a problem, a set of them. Episodes are
// compared pair by pair only where it is the same.
type Dealer[P any] interface {
	// Dealt returns its name. whole: it is all there is, so that the seed and the deal do not count. "": nothing.
	Dealt(params *P) (what string, whole bool)
}

// StatusMaker says how a run goes while it is played, beyond the number of episodes.
type StatusMaker[P any] interface {
	Status(params *P) Status
}

// Reporter makes the kind's own part of a report.
type Reporter interface {
	// Exhibitor begins a report.
	Exhibitor() Exhibitor
}

// Storyteller makes what there is to look at of one episode, beside its transcript.
type Storyteller interface {
	// Story is given all that was noted, asked and done, in the order of a transcript. NotesOf picks the notes.
	Story(p Played, told []TranscriptEntry) []Exhibit
}

// FileMaker makes files of one episode, for people and other programs.
type FileMaker interface {
	// Files returns them by name: Markdown texts, and tables that end in .csv and have a line of column names.
	Files(p Played, notes []Note) map[string]string
}

// Marker points out words of replies in transcripts.
type Marker interface {
	// Mark finds what a note says about the words of a reply of its seat: the words, and in short what they do,
	// as "gives its secret away". "": nothing.
	Mark(n Note) (words, mark string)
}

// Recorded is for kinds whose episodes nobody plays: they are the record of what other programs asked. No world
// notes what its seats are told, so transcripts show what is new in each request. Reports list the episodes as
// sessions, and exports take in those that have not ended.
type Recorded interface {
	// Hidden reports whether transcripts leave a note out.
	Hidden(n Note) bool
	// Closed says why an episode ended, for a reader; "" where nobody said.
	Closed(o Outcome) string
}

// Painter gives seats the colours that they have by custom.
type Painter interface {
	// Colours are light and dark, as #233f92, by seat. Charts and transcripts use them.
	Colours() map[string][2]string
}

// Environment carries out acts, for worlds that act on something outside of them. An unfinished episode of such a
// kind starts again as a new attempt when its run is resumed, since the outside has forgotten it.
type Environment[P any] interface {
	// Actor connects to the outside for one run, which has this id. It is closed when the run stops.
	Actor(params *P, run string) (Actor, error)
	// Outside names params that say where and how fast episodes are played, and never change what comes of them:
	// they may be others when a run is resumed.
	Outside() []string
}

// Prober says whether the outside can be reached, for those who check a plan.
type Prober[P any] interface {
	// Local says whether all of the outside is within this process: a check may then play it.
	Local(params *P) bool
	// Probe asks every server that the params name. It returns none where Local is true.
	Probe(ctx context.Context, params *P) []Presence
}

// Presence is what a Prober learned of one server.
type Presence struct {
	Server  string `json:"server"`
	Answers bool   `json:"answers"`
	// Why is why it does not answer.
	Why string `json:"why,omitempty"`
}

// Actor carries out acts. An error that is not an *llm.Error is one of transport. One that holds something for
// episodes is also a Leaver and a Closer, one that lets acts wait a Drainer and a Waiter, one that has only so much
// room Roomy.
type Actor interface {
	Act(ctx context.Context, turn TurnID, index int, seat string, act Act) (*llm.Response, error)
}

// TurnID names one turn of a run: which episode and which attempt at it, which strand, and the number of the turn in it.
type TurnID struct {
	Episode, Attempt int
	Strand           string
	Turn             int
}

// Closer gives everything back when a run stops. No act is being carried out then.
type Closer interface {
	Close(ctx context.Context)
}

// Leaver is told of episodes that end before their world does, by a panic or a budget.
type Leaver interface {
	Leave(ctx context.Context, episode int)
}

// Drainer answers acts that nothing was done for with llm.KindCanceled, from now on.
type Drainer interface {
	Drain()
}

// Waiter says what acts wait for, if they cannot go on; "" if they can.
type Waiter interface {
	Waiting() string
}

// Roomy says how many episodes can be played at once; 0: any number.
type Roomy interface {
	Room() int
}

// Commander brings verbs to the command line.
type Commander interface {
	Commands() []Command
}

// Command is a verb that a kind brings to the command line.
type Command struct {
	Name string // a word in lower case
	Doc  string // one line for the help
	// Verb is a pointer to a struct. Its exported fields are the flags and arguments: the tags help, arg, name,
	// default, placeholder, optional, enum, group and negatable describe them, as those of package kong do. A command
	// that plays plans embeds PlayFlags.
	Verb Verb
}

// Verb is what a command does.
type Verb interface {
	// Run carries it out. ctx ends it at once. A UsageError is about flags and arguments.
	Run(ctx context.Context, p *Program) error
}

// Program is the program that a command is part of: what it may use of the outside, beside files that its arguments
// name.
type Program struct {
	// Env looks up a variable of the environment.
	Env   func(name string) (value string, ok bool)
	Stdin io.Reader
	// Stdout and Stderr show a terminal no control characters, whatever is written: a model's words cannot harm it.
	Stdout, Stderr io.Writer
	// Width is how wide the terminal is that Stdout leads to; 0: it leads elsewhere.
	Width func() int
	// Stop is done when the user wants the command to begin nothing more and finish: after the first Ctrl-C. Reads of
	// Stdin then end with io.EOF. A command that leaves something undone returns context.Cause(Stop): the program
	// ends with the exit code for an interruption.
	Stop context.Context //nolint:containedctx // a signal of its own, beside that of Run
	// Write writes a file whole or not at all. It refuses to write over a file that is there, unless Force is set, and
	// over a run file in any case.
	Write func(o Output, write func(io.Writer) error) error
	// Runs plays plans and reads run files.
	Runs Runs
}

// Output is a file that a command writes where the user says.
type Output struct {
	Flag   string   // that names it, such as --out
	Path   string   // where the user wants it
	Force  bool     // it may be written over what is there
	Inputs []string // the run files that the command reads
}

// UsageError is an error about the flags and arguments of a command: the program ends with the exit code for that.
type UsageError struct{ Err error }

// Error returns the text of Err.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e UsageError) Unwrap() error { return e.Err }

// ErrReported is returned by a command that has written what failed itself: the program ends with the exit code for
// failures and prints nothing more.
var ErrReported = errors.New("what failed has been reported")
