// Package batch asks over the providers' batch APIs: many requests sent as one, answered
// within a day, at about half the price.
//
// It has the types for it: the API of a provider, what is sent there (Draft, Line), what it returns
// (Found, State, Result), and what must be durable so that a crash costs no batch (Event, Log,
// Open).
//
// What it promises: a line is named by the content of its request, so that an equal call finds its
// answer when the run is resumed; its name on the wire begins with the batch's key. Values are
// plain data.
//
// What it is not for: it sends nothing. Package batcher creates, follows and collects batches, and
// package batchapi speaks to the providers.
package batch

import (
	"context"
	"iter"
	"time"

	"parley/llm"
)

// API is a provider's batch API. It may be used from any number of goroutines at once.
type API interface {
	Writer
	Reader
}

// Writer makes and unmakes batches. Its errors are *llm.Error; one that is Uncertain means
// that what was asked for may have been done.
type Writer interface {
	// Weigh says what req takes in a batch, or why it can never be asked.
	Weigh(req *llm.Request) (Weight, error)
	// Create sends a draft and returns the name of the batch. One that first uploads a file
	// calls uploaded with its name, and goes on only if that returns nil. It never sends the
	// same creation twice.
	Create(ctx context.Context, d *Draft, uploaded func(ctx context.Context, file string) error) (id string, err error)
	// Find looks for the batch of an intent, which may have been created. Batches for which
	// taken is true are another's.
	Find(ctx context.Context, o *Open, taken func(id string) bool) (Found, error)
	// Cancel asks for a batch to be ended early. What was answered by then stays.
	Cancel(ctx context.Context, id string) error
}

// Reader looks at batches.
type Reader interface {
	// State says how far a batch is. One that is not there is an error with status 404.
	State(ctx context.Context, id string) (State, error)
	// Results reads what came of the lines of a batch that has ended, in any order. An error
	// ends it: what was read before it stands.
	Results(ctx context.Context, id string) iter.Seq2[Result, error]
}

// Weight is what a request takes in a batch.
type Weight struct {
	Bytes   int      // of its body
	Dropped []string // parameters that are not sent since the model refuses them
}

// Draft is a batch before it is sent: requests to one model.
type Draft struct {
	Key      string // ours, for finding the batch again
	Requests []Request
}

// Request is one request of a batch: a line of its file.
type Request struct {
	ID      ID // CustomID(Key, ID) on the wire
	Request *llm.Request
	Bytes   int // of its body
}

// Result is what came of a line: a response or an error. One whose CustomID is empty could
// not be read.
type Result struct {
	CustomID string
	Response *llm.Response
	Err      *llm.Error
}

// Found is the result of a search for a batch. The zero value means that none is there now.
type Found struct {
	ID    string // certainly the one
	Maybe bool   // some may be it; that shows when they end
	Never bool   // it cannot have been created
}

// Phase is how far a batch is.
type Phase string

// The phases.
const (
	Running Phase = "running"
	Ended   Phase = "ended"  // there are results, perhaps not of all lines
	Failed  Phase = "failed" // it was never begun, and nothing is billed
)

// State is what a provider reports of a batch. Anthropic counts only at the end.
type State struct {
	Phase                   Phase
	Total, Answered, Failed int
	Expires                 time.Time // zero: not said
	Faults                  []Fault   // why it failed
}

// Fault is a reason for which a batch failed.
type Fault struct {
	Code, Message string
	Line          int // from 1; 0 where it is about the whole batch
}

// Codes of errors that are about a batch and not about what was asked.
const (
	CodeExpired   = "batch_expired"   // the line was not reached in time; not billed
	CodeCancelled = "batch_cancelled" // the batch was cancelled before it; not billed
	CodeMissing   = "batch_missing"   // the results do not have the line; perhaps billed
	CodeLost      = "batch_lost"      // the batch is gone; perhaps billed
)

// ExpiredError is that of a line that was not reached in time.
func ExpiredError() *llm.Error {
	return &llm.Error{Kind: llm.KindTimeout, Code: CodeExpired, Message: "the batch expired before this request was reached"}
}

// CancelledError is that of a line of a batch that was cancelled before it.
func CancelledError() *llm.Error {
	return &llm.Error{Kind: llm.KindTimeout, Code: CodeCancelled, Message: "the batch was cancelled before this request was reached"}
}

// MissingError is that of a line without a result.
func MissingError(id string) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Code: CodeMissing, Uncertain: true, Message: "the results of batch " + id + " have no answer to this request"}
}

// LostError is that of a line of a batch that is gone.
func LostError(id, why string) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Code: CodeLost, Uncertain: true, Message: "batch " + id + " is lost: " + why}
}
