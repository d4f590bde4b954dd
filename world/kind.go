package world

import (
	"context"
	"encoding/json"

	"parley/llm"
)

// This file holds what every kind has. Everything else that it can have is in package part, and optional: if a definition also has the
// methods of an interface there, Define finds them.

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
// it, its json tags are their names, and its doc tags describe them in schemas, docs and errors. Other tags say which
// values are allowed: range the bounds of a number or a Duration (1..20, 0 for 0 or more, >0, >0..<1, 1ms..24h), oneof
// the texts (a,b). No method gets params with others.
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
	// Measures lists the scores, in the order in which readers see them: the first that a run has is its main result. Nil: they are not
	// known in advance.
	Measures(params *P) []Measure
}

// NestedPlan is a plan whose episodes another plan plays.
type NestedPlan struct {
	// File is the name by which params name the plan.
	File string `json:"file"`
	// Plan is the plan in JSON, as it is recorded with a run.
	Plan json.RawMessage `json:"plan"`
	// Cells has a spec of each cell, with deal 0, and Agents those that sit in their seats.
	Cells    []Spec    `json:"cells"`
	Agents   []Agent   `json:"agents"`
	Measures []Measure `json:"measures"`
	// Tasks is how many different tasks there are; later deals repeat them. 0: every deal is another.
	Tasks int `json:"tasks,omitempty"`
}

// Task is a task that params give to an episode. The zero value is none.
type Task struct {
	Name string
	// Whole means that nothing else matters, not even the seed and the deal.
	Whole bool
	// Of is the number, from 1, of what the task is a part of, such as an evolution. If a run has several of them, these are independent of
	// each other, and the tasks of one are not. 0: it is a part of nothing.
	Of int
	// Deals is how many deals differ, if deals are tasks: so many later comes the same task again. 0: they all do.
	Deals int
}

// Starts says what a kind starts.
type Starts struct {
	// Seats are those whose agents must be programs, since they get Work.
	Seats []string
	// Code are the files and folders of code that run with the rights of the user, who must allow that, as the params
	// name them.
	Code []CodeName
	// Command is a command that params name, and that runs with the rights of the user. Empty: there is none.
	Command []string
	// Engine is the command that runs containers, if programs run in them. Empty: programs of this machine are started.
	Engine string
	// Unsolved names the work that has no solution of its own: the program oracle cannot do it.
	Unsolved []string
}

// Presence is the result of a part.Prober for one server.
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
