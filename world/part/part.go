// Package part has what a kind, its actor, its plans and its files can have beyond what package world asks for: stand-ins for models,
// exhibits, tables, commands and more. Each is an interface: if a definition that you give to world.Define also has its methods, Parley finds
// them. P is the struct of the kind's params.
//
// To have the compiler check a method, write
//
//	var _ part.Storyteller = definition{}
//
// Check finds exported methods that are no part of a kind, or have another signature.
package part

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/text"
	"parley/llm"
	"parley/world"
	"parley/world/exhibit"
	"parley/world/program"
)

// Check returns an error unless the name of a kind can stand in a plan file, and every exported method of its definition belongs to a part
// and has its signature, and the tables of the kind can be exported. The compiler cannot find that. parley.Main, parley.Run and worldtest
// call it.
func Check(k world.Kind) error {
	if err := k.About.Check(); err != nil {
		return err
	}
	if err := k.CheckMethods(
		reflect.TypeFor[StandIn](), reflect.TypeFor[ToolCaller](), reflect.TypeFor[Reporter](), reflect.TypeFor[Storyteller](), reflect.TypeFor[Marker](),
		reflect.TypeFor[Painter](), reflect.TypeFor[FileMaker](), reflect.TypeFor[Tabulator](), reflect.TypeFor[Recorded](), reflect.TypeFor[Converter](),
		reflect.TypeFor[Commander](), reflect.TypeFor[Grouper](), reflect.TypeFor[Rewarder](), reflect.TypeFor[Trainee](),
	); err != nil {
		return err
	}
	return checkTables(k)
}

func checkTables(k world.Kind) error {
	maker, ok := world.As[Tabulator](k)
	if !ok {
		return nil
	}
	names := []string{"calls", "episodes", "messages", "scores", "labels", "all"}
	for _, t := range maker.Tables() {
		switch {
		case !tableName.MatchString(t.Name):
			return fmt.Errorf("the name %q of a table: want a lower-case word", t.Name)
		case slices.Contains(names, t.Name):
			return fmt.Errorf("the name %q of a table is taken: choose another", t.Name)
		case t.Rows == nil:
			return fmt.Errorf("the table %s has no Rows", t.Name)
		}
		names = append(names, t.Name)
		columns := []string{"run", "episode", "cell", "deal"} // export puts these before its own
		for _, c := range t.Columns {
			switch {
			case c.Name == "":
				return fmt.Errorf("the table %s has a column without a name", t.Name)
			case slices.Contains(columns, c.Name):
				return fmt.Errorf("the table %s has two columns %s, or it is one that export adds (run, episode, cell, deal): rename it", t.Name, c.Name)
			case !slices.Contains([]NoteType{NoteText, NoteInteger, NoteDouble, NoteBoolean}, c.Type):
				return fmt.Errorf("the column %s of the table %s has the type %q: want text, integer, double or boolean", c.Name, t.Name, c.Type)
			}
			columns = append(columns, c.Name)
		}
	}
	return nil
}

var tableName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// BotMaker has agents without a model, by name.
type BotMaker interface {
	Bots() map[string]world.Bot
}

// Loader reads files that params name.
type Loader[P any] interface {
	// Load copies the content of the files into params, so that a run is complete without them. It is called when a
	// plan file is read, and never for a recorded plan. advice lists things to write differently in the files.
	Load(params *P, files world.Files) (advice []string, err error)
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
	Plan(params *P, cell world.Spec, seed uint64) (world.Stages, error)
	// Forecast describes what Plan with the same arguments may ask for. No parts: only the first stage is known.
	Forecast(params *P, cell world.Spec, seed uint64) ([]world.Part, error)
}

// Nester is a Planner whose plans play episodes of another plan, which its params name. Reports of such a run show both kinds.
type Nester[P any] interface {
	// Nested returns the plan that Load got from a PlanReader. Nil: the params name none.
	Nested(params *P) *world.NestedPlan
	// PlanNested and ForecastNested are Plan and Forecast for params that name a plan of a kind. Specs of that kind must be accepted by
	// its Seats.
	PlanNested(params *P, nested world.Kind, cell world.Spec, seed uint64) (world.Stages, error)
	ForecastNested(params *P, nested world.Kind, cell world.Spec, seed uint64) ([]world.Part, error)
}

// ModelTrier is a Planner that also puts agents with other models into seats, to see how well something does there.
type ModelTrier[P any] interface {
	// OtherModels returns these models, and the seats: of the nested plan if there is one. The agents are copies of those in the seats, with
	// names of AgentWith.
	OtherModels(params *P) (models, seats []string)
}

// UniformPlanner is a Planner that can be asked once for a cell instead of once for each deal.
type UniformPlanner[P any] interface {
	// Uniform reports whether Plan makes the same of every deal, except for the deals of its specs.
	Uniform(params *P) bool
}

// TaskNamer names the task that the params give to an episode, such as a problem or a set of problems. The task does not
// include what is drawn at random. Episodes are compared in pairs only if their tasks have the same name.
type TaskNamer[P any] interface {
	TaskName(params *P) world.Task
}

// StatusMaker reports the progress of a run, beyond the number of episodes.
type StatusMaker[P any] interface {
	Status(params *P) world.Status
}

// Environment carries out acts, for worlds that act on something outside. When a run is resumed, an unfinished
// episode starts again as a new attempt, since the outside has lost its state.
type Environment[P any] interface {
	// Actor connects to the outside for the run with this id. It is closed when the run stops. If several processes play
	// the run, each has an actor, and a dot and a name of the process follow the id.
	Actor(params *P, run string) (world.Actor, error)
	// Outside names params that say where and how fast episodes are played, and never change their outcomes. They
	// may differ when a run is resumed.
	Outside() []string
}

// Restarter is for kinds whose worlds cannot be played again from their replies, because they depend on something else.
type Restarter interface {
	// Restarts reports whether an unfinished episode begins again, as a new attempt, when a run is resumed.
	Restarts() bool
}

// Starter is for kinds whose worlds give programs work, or whose params hold code that runs outside the program of
// an agent, such as the checks of tasks.
type Starter[P any] interface {
	Starts(params *P) world.Starts
}

// Prober reports whether the outside can be reached.
type Prober[P any] interface {
	// Local reports whether all of the outside is within this process, so that a check may play it.
	Local(params *P) bool
	// Probe asks every server that params name. It returns nothing if Local is true.
	Probe(ctx context.Context, params *P) []world.Presence
}

// CodeUser is for kinds whose params can name code that runs in other processes, such as an environment in Python.
type CodeUser[P any] interface {
	// Code lists the code that params name.
	Code(params *P) []world.CodeName
	// WithCode returns the kind with the code that a plan names and the user allows.
	WithCode(codes world.Codes) world.Kind
}

// Dynamic is implemented by params whose fields are known only at run time, such as those of a world in another
// language. They decode and encode themselves as JSON.
type Dynamic interface {
	// Fields returns a pointer to the struct that holds the fields, with the tags of params.
	Fields() any
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

// Reporter makes the kind's part of a report.
type Reporter interface {
	// Exhibitor starts a report.
	Exhibitor() exhibit.Exhibitor
}

// Storyteller makes exhibits of one episode, shown beside its transcript.
type Storyteller interface {
	// Story is given the transcript: notes, asks and acts in order. world.NotesOf returns the notes.
	Story(p world.Played, transcript []world.TranscriptEntry) []exhibit.Exhibit
}

// Marker highlights words of replies in transcripts.
type Marker interface {
	// Mark returns the words of a reply that a note is about, and a short description of what they do, as "gives its
	// secret away". "": nothing.
	Mark(n world.Note) (words, mark string)
}

// Painter sets the colours of seats.
type Painter interface {
	// Colours returns a light and a dark colour, as #233f92, by seat. Charts and transcripts use them.
	Colours() map[string][2]string
}

// FileMaker makes files of one episode, for people and other programs.
type FileMaker interface {
	// Files returns files by name: Markdown texts, and others that are written as they are. plan is that of the run, as it is recorded. For
	// tables, be a Tabulator: export writes them beside the folders of episodes.
	Files(plan json.RawMessage, p world.Played, notes []world.Note) map[string]string
}

// Tabulator makes tables from the notes of episodes, for parley export and for programs.
type Tabulator interface {
	Tables() []NoteTable
}

// NoteTable is a table of what the notes of episodes say, such as the orders of games. Export puts the columns run, episode, cell
// and deal before its own.
type NoteTable struct {
	// Name is a lower-case word. The names calls, episodes, messages, scores, labels and all are taken.
	Name string
	// Doc says what a row is.
	Doc     string
	Columns []NoteColumn
	// Rows returns the rows of an episode that ended, each with a cell for each column. A cell has the type of its column, or is nil if
	// there is no value; an empty text is none either.
	Rows func(p world.Played, notes []world.Note) [][]any
}

// Check returns an error unless a row has a cell for each column, of its type or nil.
func (t NoteTable) Check(row []any) error {
	if len(row) != len(t.Columns) {
		return fmt.Errorf("it has %d cells; want %d, one for each column", len(row), len(t.Columns))
	}
	for i, c := range t.Columns {
		var is NoteType
		switch row[i].(type) {
		case nil:
			continue
		case string:
			is = NoteText
		case int:
			is = NoteInteger
		case float64:
			is = NoteDouble
		case bool:
			is = NoteBoolean
		}
		if is != c.Type {
			return fmt.Errorf("the cell of the column %s is a %T, and the column is of type %s", c.Name, row[i], c.Type)
		}
	}
	return nil
}

// NoteColumn is a column of a NoteTable.
type NoteColumn struct {
	Name string
	Type NoteType
	Doc  string
}

// NoteType is the type of a column.
type NoteType string

// The types of columns, and the Go types of their cells.
const (
	NoteText    NoteType = "text"    // string
	NoteInteger NoteType = "integer" // int
	NoteDouble  NoteType = "double"  // float64
	NoteBoolean NoteType = "boolean" // bool
)

// Recorded is for kinds whose episodes are not played but recorded from the requests of other programs. No world
// makes notes, so transcripts show what is new in each request. Reports list the episodes as sessions, and exports
// include those that have not ended.
type Recorded interface {
	// Hidden reports whether transcripts leave out a note.
	Hidden(n world.Note) bool
	// Closed says why an episode ended; "" if it is not known.
	Closed(o world.Outcome) string
	// Names lists the params that only tell episodes apart. Episodes that differ in nothing else are compared.
	Names() []string
}

// Converter converts folders of an earlier system, for parley init --from.
type Converter interface {
	// Convert reads a folder and changes no file. name is that of the plan, without its extension: a folder beside it has
	// the same. Empty: as the folder that is read.
	Convert(files world.Files, folder, name string) (Converted, error)
}

// Converted is what a Converter makes of a folder.
type Converted struct {
	// Plan is the text of a plan file, and Files are the files beside it, by name, those that it names included.
	Plan  string
	Files map[string]string
	// Report lists what has no equal, and what was assumed, each with its position.
	Report []string
}

// Grouper names the groups of training data. Without it, a group is the episodes of a cell with the same params and deal.
type Grouper interface {
	// TrainingGroup says which group an episode belongs to.
	TrainingGroup(spec world.Spec) (TrainingGroup, error)
}

// TrainingGroup is the group of an episode.
type TrainingGroup struct {
	Name string // the same for all of its episodes
	// Judged means that its rewards come from an episode of a later stage, the judgement. Judgement means that the episode is
	// that.
	Judged, Judgement bool
}

// Rewarder says what each answer is worth. Without it, a score of a seat at the end is the reward of its last answer.
type Rewarder interface {
	// Rewards reads the outcome of an episode, also of one that failed, or of a judgement.
	Rewards(o world.Outcome) (Rewards, error)
	// Surroundings reads what was around the answers. They stand in rows as they are.
	Surroundings(o world.Outcome, transcript []world.TranscriptEntry) Surroundings
}

// Rewards are those of an episode.
type Rewards struct {
	Env       string // what was played; empty: the name of the kind
	Stop      string // why the episode ended, in a word
	Truncated bool   // it was cut off
	Score     string // the score that is the sum of a seat's rewards
	Answers   []Answer
	// Verdicts are what a judge said about the seats of an episode or, in a judgement, about the episodes of a group.
	Verdicts []Verdict
}

// Answer is one answer of an agent and its reward.
type Answer struct {
	// Ask is the number of the ask in the attempt, from 0, in the order of turns and calls.
	Ask  int    `json:"ask"`
	Step int    `json:"step"` // from 1
	Seat string `json:"seat"`
	// StepReward is the reward of the answer, and Reward the sum of its seat up to then.
	StepReward float64 `json:"step_reward"`
	Reward     float64 `json:"reward"`
	// Terminal and Truncated mark the last answer of a seat: the episode ended after it, or was cut off.
	Terminal  bool `json:"is_terminal,omitempty"`
	Truncated bool `json:"is_truncated,omitempty"`
	// Completed marks the last answer of a seat in an episode that ended.
	Completed bool `json:"is_session_completed,omitempty"`
	// Trainable means that the seat is trained: one answer of it is enough.
	Trainable bool `json:"is_trainable,omitempty"`
	// NoReward means that the episode ended before a reward for this answer.
	NoReward bool `json:"no_reward,omitempty"`
	// Weights is the version of the weights that answered, if the server reported it.
	Weights string `json:"weight_version,omitempty"`
}

// WeightNumber returns the number in a version of weights, from 0, or false if there is no such number. Two of them never differ by more than an int holds.
func WeightNumber(version string) (int, bool) {
	n, err := strconv.Atoi(version)
	return n, err == nil && n >= 0
}

// Verdict is what a judge said about one seat of an episode.
type Verdict struct {
	Seat    string `json:"seat,omitempty"`
	Episode int    `json:"episode,omitempty"` // of a group
	// Environment is the reward without the judge, and Reward what it and the score make together.
	Environment float64 `json:"environment"`
	Score       float64 `json:"score"`
	Reward      float64 `json:"reward"`
}

// Surroundings are what was around the answers of an episode.
type Surroundings struct {
	Dataset json.RawMessage         // the row of the dataset that the episode is about
	Info    map[int]json.RawMessage // by step
}

// Trainee lets trainers change more of a run than the number of its episodes and the seed.
type Trainee interface {
	// Overridable are the params that a client of parley trainer may set. They must not name addresses or programs.
	Overridable() []string
	// ReadChange checks a change of part.ChangingStages that a client sent, and describes it without the client's own words.
	ReadChange(raw []byte) (what string, err error)
}

// Commander adds commands to the command line.
type Commander interface {
	Commands() []program.Command
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

// FailingStages are stages that can fail.
type FailingStages interface {
	// Err is called when Next has returned no episodes. It returns nil if the run is complete, and otherwise why the
	// plan cannot continue.
	Err() error
}

// ChangingStages are stages that somebody can change while a run is played.
type ChangingStages interface {
	// Change changes what Next asks for from now on, or changes nothing and returns why it cannot. Changes are recorded. A
	// resumed run gives a new plan the same changes, before the same calls of Next.
	Change(change json.RawMessage) error
}

// TranscriptStages are stages that read what happened in episodes. It depends on nothing but what is recorded.
type TranscriptStages interface {
	// Transcripts is called before the first Next. read returns the transcript of an episode of a stage that has ended.
	Transcripts(read func(episode int) ([]world.TranscriptEntry, error))
}

// FixedStages are stages that may not depend on outcomes.
type FixedStages interface {
	// Fixed reports whether the episodes of all stages are the same whatever the outcomes. If so, Next is given only one
	// episode of a stage, so that the others need not be kept.
	Fixed() bool
}

// RowReader reads datasets.
type RowReader interface {
	// Rows returns the rows of a json, jsonl, yaml or parquet file, each as JSON. It ends with the first error.
	Rows(name string) iter.Seq2[json.RawMessage, error]
}

// FolderReader reads folders.
type FolderReader interface {
	// Folder returns the files in a folder and below it, in order, with paths relative to it. A link within reach is read as what it
	// leads to.
	Folder(name string) ([]world.File, error)
}

// TOMLReader reads TOML.
type TOMLReader interface {
	// TOML decodes a file into the struct that v points to, whose fields have the tag toml, and lists the keys that have no field.
	TOML(name string, v any) (unknown []string, err error)
}

// PlanReader reads plan files.
type PlanReader interface {
	// Plan reads a plan as if it were played itself: with the files that it names, in its own folder.
	Plan(name string) (*world.NestedPlan, error)
}

// FolderLister lists folders, for errors that suggest a name.
type FolderLister interface {
	// Folders returns the names of the folders in a folder.
	Folders(in string) []string
}

// LocalPath reports whether a file can have this path: it leads nowhere else on any system.
func LocalPath(name string) bool {
	if name == "" || name != path.Clean(name) || strings.ContainsAny(name, "\\:\x00") || path.IsAbs(name) {
		return false
	}
	return name != "." && name != ".." && !strings.HasPrefix(name, "../")
}

// Nearest returns the one of names that was probably meant by name, or "", for errors about misspelled names.
func Nearest(name string, names []string) string { return text.Nearest(name, names) }
