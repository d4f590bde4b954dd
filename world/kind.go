package world

import (
	"context"
	"time"

	"parley/llm"
	"parley/world/program"
)

// This file holds everything that a kind can have, in the order in which an author meets it. Every kind has a
// Definition. Everything else is optional: if a definition also has the methods of one of these interfaces, Define
// finds them. To have the compiler check a method, write
//
//	var _ world.Measurer[Params] = definition{}

// About describes a kind.
type About struct {
	// Name is the kind's name in plan files: a lower-case word.
	Name string
	// Version changes when recorded episodes would continue differently.
	Version int
	// Doc says in one line what is played.
	Doc string
	// Example is a plan file with every param and a comment on it. parley init writes it.
	Example string
	// ExampleFiles are the files that Example names, by name. parley init writes them beside it.
	ExampleFiles map[string]string
}

// Definition is the required part of a kind. P is the struct of its params: params of a plan file are decoded into
// it, its json tags are their names, and its doc tags describe them in schemas, docs and errors.
type Definition[P any] interface {
	About() About
	// Defaults returns new params with the values that apply if a plan file sets nothing.
	Defaults() *P
	// Seats checks params and lists the seats.
	Seats(params *P) ([]string, error)
	// World makes the world of one episode. Changes of lineup have no effect.
	World(params *P, lineup Lineup) (World, error)
}

// Measurer declares the scores of outcomes, so that plans, reports and intervals know them in advance.
type Measurer[P any] interface {
	// Measures lists the scores. Nil: they are not known in advance.
	Measures(params *P) []Measure
}

// BotMaker has agents without a model, by name.
type BotMaker interface {
	Bots() map[string]Bot
}

// StandIn plays the kind's worlds for the simulated provider, so that you can try them without a model.
type StandIn interface {
	// StandIn answers a request of the kind's worlds. ok is false for any other request. It must be a pure function.
	// model is the simulated model's name without its provider, and seed varies answers.
	//
	// Recognise a request by its texts or by the JSON of its schema. Not every wire format has the schema's name.
	StandIn(model string, req *llm.Request, seed uint64) (text string, ok bool)
}

// ToolCaller is a StandIn that calls tools.
type ToolCaller interface {
	// StandInCalls answers a request with tools by calls of them, whose ids it leaves empty. It is asked before StandIn.
	// ok is false if a text is the answer, and for any other request. It must be a pure function.
	StandInCalls(model string, req *llm.Request, seed uint64) (calls []llm.ToolCall, ok bool)
}

// Loader reads files that params name.
type Loader[P any] interface {
	// Load copies the content of the files into params, so that a run is complete without them. It is called when a
	// plan file is read, and never for a recorded plan. advice lists things to write differently in the files.
	Load(params *P, files Files) (advice []string, err error)
}

// Converter converts folders of an earlier system, for parley init --from.
type Converter interface {
	// Convert reads a folder and changes no file. name is that of the plan, without its extension: a folder beside it has
	// the same. Empty: as the folder that is read.
	Convert(files Files, folder, name string) (Converted, error)
}

// Converted is what a Converter makes of a folder.
type Converted struct {
	// Plan is the text of a plan file, and Files are the files beside it, by name, those that it names included.
	Plan  string
	Files map[string]string
	// Report lists what has no equal, and what was assumed, each with its position.
	Report []string
}

// ModelChooser names models for seats that a plan file leaves empty.
type ModelChooser[P any] interface {
	// Models maps seats to provider/model, as the loaded files ask for.
	Models(params *P) map[string]string
}

// Planner decides which episodes to play, stage by stage. An evolution is an example: it breeds what it tries next.
type Planner[P any] interface {
	// Plan is called for each episode that a plan file asks for, with its params, its spec and the run's seed. The
	// plans that it returns are played beside each other. Its specs may differ from cell, but have its Cell.
	Plan(params *P, cell Spec, seed uint64) (Plan, error)
	// Forecast describes what Plan with the same arguments may ask for. No parts: only the first stage is known.
	Forecast(params *P, cell Spec, seed uint64) ([]Part, error)
}

// UniformPlanner is a Planner that can be asked once for a cell instead of once for each deal.
type UniformPlanner[P any] interface {
	// Uniform reports whether Plan makes the same of every deal, except for the deals of its specs.
	Uniform(params *P) bool
}

// TaskNamer names the task that the params give to an episode, such as a problem or a set of problems. The task does not
// include what is drawn at random. Episodes are compared in pairs only if their tasks have the same name.
type TaskNamer[P any] interface {
	TaskName(params *P) Task
}

// Task is a task that params give to an episode. The zero value is none.
type Task struct {
	Name string
	// Whole means that nothing else matters, not even the seed and the deal.
	Whole bool
	// Of is the number, from 1, of what the task is a part of, such as an evolution. If a run has several of them, these are independent of
	// each other, and the tasks of one are not. 0: it is a part of nothing.
	Of int
}

// StatusMaker reports the progress of a run, beyond the number of episodes.
type StatusMaker[P any] interface {
	Status(params *P) Status
}

// Reporter makes the kind's part of a report.
type Reporter interface {
	// Exhibitor starts a report.
	Exhibitor() Exhibitor
}

// Storyteller makes exhibits of one episode, shown beside its transcript.
type Storyteller interface {
	// Story is given the transcript: notes, asks and acts in order. NotesOf returns the notes.
	Story(p Played, transcript []TranscriptEntry) []Exhibit
}

// FileMaker makes files of one episode, for people and other programs.
type FileMaker interface {
	// Files returns files by name: Markdown texts, and tables that end in .csv and have a header line.
	// An export guards cells of tables that a spreadsheet would read as formulas: see Formula.
	Files(p Played, notes []Note) map[string]string
}

// Tabulator makes tables from the notes of episodes, for parley export and for programs.
type Tabulator interface {
	Tables() []NoteTable
}

// Marker highlights words of replies in transcripts.
type Marker interface {
	// Mark returns the words of a reply that a note is about, and a short description of what they do, as "gives its
	// secret away". "": nothing.
	Mark(n Note) (words, mark string)
}

// Recorded is for kinds whose episodes are not played but recorded from the requests of other programs. No world
// makes notes, so transcripts show what is new in each request. Reports list the episodes as sessions, and exports
// include those that have not ended.
type Recorded interface {
	// Hidden reports whether transcripts leave out a note.
	Hidden(n Note) bool
	// Closed says why an episode ended; "" if it is not known.
	Closed(o Outcome) string
}

// Painter sets the colours of seats.
type Painter interface {
	// Colours returns a light and a dark colour, as #233f92, by seat. Charts and transcripts use them.
	Colours() map[string][2]string
}

// Environment carries out acts, for worlds that act on something outside. When a run is resumed, an unfinished
// episode starts again as a new attempt, since the outside has lost its state.
type Environment[P any] interface {
	// Actor connects to the outside for the run with this id. It is closed when the run stops. If several processes play
	// the run, each has an actor, and a dot and a name of the process follow the id.
	Actor(params *P, run string) (Actor, error)
	// Outside names params that say where and how fast episodes are played, and never change their outcomes. They
	// may differ when a run is resumed.
	Outside() []string
}

// Restarter is for kinds whose worlds cannot be played again from their replies, because they depend on something else.
type Restarter interface {
	// Restarts reports whether an unfinished episode begins again, as a new attempt, when a run is resumed.
	Restarts() bool
}

// Prober reports whether the outside can be reached.
type Prober[P any] interface {
	// Local reports whether all of the outside is within this process, so that a check may play it.
	Local(params *P) bool
	// Probe asks every server that params name. It returns nothing if Local is true.
	Probe(ctx context.Context, params *P) []Presence
}

// Presence is a Prober's result for one server.
type Presence struct {
	Server  string `json:"server"`
	Answers bool   `json:"answers"`
	// Why says why it does not answer.
	Why string `json:"why,omitempty"`
}

// Actor carries out acts. An error that is not an *llm.Error is a transport error. An Actor may also implement
// EpisodeReleaser and Closer if it keeps state for episodes, Drainer and Waiter if acts can wait, and Limited if it has
// room for only so many episodes.
type Actor interface {
	Act(ctx context.Context, turn TurnID, index int, seat string, act Act) (*llm.Response, error)
}

// TurnID identifies a turn of a run: its episode and attempt, its strand, and its number in the strand.
type TurnID struct {
	Episode, Attempt int
	Strand           string
	Turn             int
}

// Closer releases everything when a run stops. No act is in progress then.
type Closer interface {
	Close(ctx context.Context)
}

// EpisodeReleaser is notified of episodes that end before their world does, by a panic or a budget.
type EpisodeReleaser interface {
	ReleaseEpisode(ctx context.Context, episode int)
}

// Drainer makes waiting and later acts fail with llm.KindCanceled if nothing was done for them.
type Drainer interface {
	Drain()
}

// Waiter says what acts are waiting for; "" if they are not waiting.
type Waiter interface {
	Waiting() string
}

// Limited says how many episodes can be played at the moment; 0: any number. It is asked often and must not block. It is
// asked again after each act.
type Limited interface {
	Capacity() int
}

// SharedCapacity is a Limited whose capacity is divided among the processes of a run, if several play it.
type SharedCapacity interface {
	// Capacities returns the capacity of each place, and how much of it is used.
	Capacities() []Capacity
	// ShareCapacity says how much of each place, by name, this process may use until then: from 0 to 1. What is in use
	// stays in use. Places that are not named keep their part.
	ShareCapacity(parts map[string]float64, until time.Time)
}

// Capacity is that of one place for episodes, such as a server.
type Capacity struct {
	Name string
	// Max is how many episodes it has room for, and Used how many this process has there. Waiting is how many wait.
	Max, Used, Waiting int
}

// Commander adds commands to the command line.
type Commander interface {
	Commands() []program.Command
}
