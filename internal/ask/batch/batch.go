// Package batch has the types for batch APIs: many requests sent as one, answered within a day, at
// about half the price.
//
// These are the API of a provider, what is sent there (Draft, Request), what it returns (Found,
// State, Result), and what must be durable so that a crash costs no batch (Event, Log, Open).
//
// It promises that a line is named by the content of its request, so that an equal call finds its
// answer when the run is resumed, and that its name on the wire begins with the batch's key.
//
// It sends nothing. Package batcher creates, follows and collects batches, and package batchapi
// talks to the providers.
package batch

import (
	"context"
	"iter"
	"time"

	"parley/llm"
)

// API is a provider's batch API. It may be used from several goroutines.
type API interface {
	writer
	reader
}

// writer creates and cancels batches. Its errors are *llm.Error; one that is Uncertain means that
// the request may have been carried out.
type writer interface {
	// Weigh returns what req takes in a batch, or why it can never be sent in one.
	Weigh(req *llm.Request) (Weight, error)
	// Create sends a draft and returns the name of the batch. If it first uploads a file, it calls
	// uploaded with the file's name, and continues only if that returns nil. It never creates the
	// same batch twice.
	Create(ctx context.Context, d *Draft, uploaded func(ctx context.Context, file string) error) (id string, err error)
	// Find looks for the batch of an intent, which may have been created. Batches for which taken
	// returns true belong to other intents.
	Find(ctx context.Context, o *Open, taken func(id string) bool) (Found, error)
	// Cancel asks for a batch to be ended early. Answers that exist by then are kept.
	Cancel(ctx context.Context, id string) error
}

// reader reads batches.
type reader interface {
	// State returns how far a batch is. A batch that does not exist is an error with status 404.
	State(ctx context.Context, id string) (State, error)
	// Results reads the results of a batch that has ended, in any order. An error ends it; results
	// before it are valid.
	Results(ctx context.Context, id string) iter.Seq2[Result, error]
}

// Weight is what a request takes in a batch.
type Weight struct {
	Bytes   int      // of its body
	Dropped []string // parameters that are left out since the model refuses them
}

// Draft is a batch before it is sent: requests to one model.
type Draft struct {
	Key      string // our name, for finding the batch again
	Requests []Request
}

// Request is one request of a batch: a line of its file.
type Request struct {
	ID      ID // CustomID(Key, ID) on the wire
	Request *llm.Request
	Bytes   int // of its body
}

// Result is the result of a line: a response or an error. One without a CustomID could not be read,
// unless it is Rest.
type Result struct {
	CustomID string
	Response *llm.Response
	Err      *llm.Error
	Rest     bool // Err is of all lines without a result of their own: the provider leaves them out
}

// Found is the result of a search for a batch. The zero value means that none exists now.
type Found struct {
	ID    string // certainly the batch
	Maybe bool   // some batches may be it; that shows when they end
	Never bool   // it cannot have been created
}

// Phase is how far a batch is.
type Phase string

// The phases.
const (
	Running Phase = "running"
	Ended   Phase = "ended"  // there are results, maybe not of all lines
	Failed  Phase = "failed" // it never began, and nothing is billed
)

// State is what a provider reports of a batch. Anthropic counts only at the end, and Together does not
// count.
type State struct {
	Phase                   Phase
	Total, Answered, Failed int
	Expires                 time.Time // zero: unknown
	Faults                  []Fault   // why it failed
}

// Fault is a reason for which a batch failed.
type Fault struct {
	Code, Message string
	Line          int // from 1; 0 if it is about the whole batch
}

// Codes of errors that are about a batch and not about the request.
const (
	CodeExpired   = "batch_expired"   // the line was not processed in time; not billed
	CodeCancelled = "batch_cancelled" // the batch was cancelled first; not billed
	codeMissing   = "batch_missing"   // the results do not have the line; maybe billed
	codeLost      = "batch_lost"      // the batch does not exist any more; maybe billed
	codeRefused   = "batch_refused"   // an earlier process was refused, for its key or its credit; not billed
	CodeOpen      = "batch_open"      // the batch cannot be asked about now; its answers are collected later
)

// ExpiredError returns the error of a line that was not processed in time.
func ExpiredError() *llm.Error {
	return &llm.Error{Kind: llm.KindTimeout, Code: CodeExpired, Message: "the batch expired before this request was reached"}
}

// CancelledError returns the error of a line of a batch that was cancelled first.
func CancelledError() *llm.Error {
	return &llm.Error{Kind: llm.KindTimeout, Code: CodeCancelled, Message: "the batch was cancelled before this request was reached"}
}

// missingError returns the error of a line without a result.
func missingError(id string) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Code: codeMissing, Uncertain: true, Message: "the results of batch " + id + " have no answer to this request"}
}

// lostError returns the error of a line of a batch that does not exist any more.
func lostError(id, why string) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Code: codeLost, Uncertain: true, Message: "batch " + id + " is lost: " + why}
}

// refusedError returns the error of a line that was refused with e when an earlier process asked.
func refusedError(e *llm.Error) *llm.Error {
	return &llm.Error{Kind: llm.KindServer, Code: codeRefused, Provider: e.Provider, Model: e.Model, RequestID: e.RequestID, Message: "refused when an earlier process asked: " + e.Message}
}

// OpenError returns the error of the lines of a batch about which the provider cannot be asked because of e. The
// batch stays open, so that nobody else may be asked. The error stops the run, as that of a server that cannot be reached.
func OpenError(id string, e *llm.Error) *llm.Error {
	out := &llm.Error{
		Kind: llm.KindTransport, Code: CodeOpen, Status: e.Status, Provider: e.Provider, Model: e.Model, RequestID: e.RequestID, Final: true, Err: e,
		Message: "batch " + id + " stays open, and is collected when the run is resumed; the provider cannot be asked about it: " + e.Message,
	}
	if id == "" {
		out.Message = "a batch that may exist stays open, and is looked for when the run is resumed; the provider cannot be asked about it: " + e.Message
	}
	if e.Kind == llm.KindAuth || e.Kind == llm.KindQuota {
		out.Kind = e.Kind
	}
	return out
}
