package world

import (
	"context"
	"encoding/json"

	"parley/llm"
)

// Codes is the code that a plan names and the user allows.
type Codes interface {
	// Find returns the code of a name.
	Find(name string) (Code, error)
	// All lists all code.
	All() []Code
}

// CodeName is a class of code, as wordle.py:Wordle, and the param that names it.
type CodeName struct{ Name, Param string }

// Code is a class of code in other processes. It is safe for concurrent use.
type Code interface {
	// Do carries out an operation in a session, which its first operation begins. Session "" is for operations that need
	// none. A *CodeError is an error of the code. After any other error, the session is lost.
	Do(ctx context.Context, session, op string, args any) (json.RawMessage, error)
	// End ends a session.
	End(session string)
	// Workers returns how many processes run the code at most.
	Workers() int
	// StandIn answers a request for the simulated provider, as part.StandIn does.
	StandIn(model string, req *llm.Request, seed uint64) (text string, ok bool)
}

// CodeError is an error that code raised.
type CodeError struct {
	// Text says what happened in which line: wordle.py:12: ZeroDivisionError: division by zero.
	Text  string `json:"text"`
	Trace string `json:"trace,omitempty"`
	// Param is the param that is wrong, if the code says so.
	Param string `json:"param,omitempty"`
}

// Error returns the text and the traceback.
func (e *CodeError) Error() string {
	if e.Trace == "" {
		return e.Text
	}
	return e.Text + "\n" + e.Trace
}

// Code lists the code that params name.
func (k Kind) Code(p Params) []CodeName { return k.typeless().code(p) }

// WithCode returns the kind with the code that its params name. A kind that is no part.CodeUser is returned as it is.
func (k Kind) WithCode(codes Codes) Kind {
	if d, ok := k.definition.(withCode); ok {
		return d.WithCode(codes)
	}
	return k
}

// withCode is the part of a part.CodeUser that needs no params.
type withCode interface{ WithCode(codes Codes) Kind }
