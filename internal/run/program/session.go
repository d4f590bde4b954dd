// Package program answers asks by running programs: agents that ask models by themselves.
package program

import (
	"context"

	"parley/llm"
	"parley/world"
)

// Sessions serves the model calls of programs that answer asks. The gateway implements it.
type Sessions interface {
	// Open opens the session of one try of a program. Its calls are recorded with the ask. Calls that an earlier process recorded for the same ask are answered from
	// the journal as long as the program asks the same again.
	Open(ctx context.Context, a Ask) (Session, error)
}

// Ask is the question that a program answers.
type Ask struct {
	Turn  world.TurnID
	Index int
	Seat  string
	Agent world.Agent // Model answers the program's calls, whatever model they name
	// Try counts from 0. Another try, after one that diverged or was cut off, does not get earlier tries' answers unless it asks the same.
	Try       int
	MaxCalls  int // 0: no limit
	MaxTokens int // input and output; 0: no limit
	// Ignore has JSON paths and patterns that differ by themselves between two starts of the program: ids, times, folders. See format.Rules.
	Ignore []string
}

// Session is an address that serves the APIs of OpenAI, Anthropic and Gemini to one program.
type Session interface {
	URL() string // http://127.0.0.1:PORT/s/SECRET without a slash at the end: the program's base URL, before /v1
	Key() string // the key that the program sends; it is worth nothing elsewhere
	// Hide removes the address and the key from what a program writes, in any form that package redact knows. It may be called after Close.
	Hide(b []byte) []byte
	// Close ends the session: no call begins, those in flight are cancelled, everything is recorded.
	Close(ctx context.Context) Used
}

// Used is what the calls of a session add up to.
type Used struct {
	Calls, Repeated int // Repeated were answered from the journal
	Cost            llm.Money
	Usage           llm.Usage
	Fault           *llm.Error // a failure of a call that is about the run and not only about the call: a wrong key, no credit, the budget of the run. Nil: none
	Diverged        string     // where the program asked something else than recorded; empty: nowhere
	Limit           string     // the limit that was reached: calls, tokens, episode budget, budget; empty: none
}
