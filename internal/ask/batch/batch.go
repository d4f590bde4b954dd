// Package batch sends calls in batches: many requests sent as one, answered within a day, at about half the price.
//
// A Wave gathers requests until all of its calls wait, and cuts them into batches within the limits of a provider's API. The
// Batcher creates these batches, follows them, and gives each result to the call that waits for it. batch.go has what both
// need: the API of a provider, what is sent there (Draft, Request), what it returns (Found, State, Result), and what must be
// durable so that a crash costs no batch (journal.Batched, Log, Open).
//
// It promises that an intent is durable (journal.Batched) before a step that can cost money is taken, so that after a crash the batch
// is found again and not paid for twice. Nothing is created again that may exist. Results are read as a stream, in any
// order, and a batch is closed only after every call that took an answer from it has ended. A line is named by the content
// of its request, so that an equal call finds its answer when the run is resumed, and its name on the wire begins with the
// batch's key. A Batcher and a Wave may be used from several goroutines. No lock is held while anything is sent.
//
// It knows no wire format: package dialect has the APIs of the providers. It counts no money and retries no line: package
// dispatch does, and a line that failed is the error of its call.
package batch

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/journal"
	"parley/llm"
)

// API is a provider's batch API. It may be used from several goroutines. Its errors are *llm.Error; one that is Uncertain
// means that the request may have been carried out.
type API interface {
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

// State is what a provider reports of a batch. Anthropic counts only at the end.
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
	if id == "" {
		id = "that was sent"
	}
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

// partSize is the number of characters of each part of a line's id: 96 bits.
const partSize = 16

// NewKey returns a name for a batch. It is random, since two runs of one account may ask the same.
func NewKey() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.HexEncoding.EncodeToString(b[:]))
}

// CustomID returns a line's id on the wire: at most 64 of [a-zA-Z0-9_-], as every API allows. It
// begins with the batch's key, so that results show which batch they belong to.
func CustomID(key string, id ID) string { return key + "-" + string(id) }

// SplitCustomID returns the line's id, if custom is one of the batch with this key.
func SplitCustomID(key, custom string) (id ID, ok bool) {
	s, ok := strings.CutPrefix(custom, key+"-")
	return ID(s), ok
}

// CallPart returns a fingerprint of a call: everything that can change its answer, and its sample
// number. The ids of its lines begin with it.
func CallPart(req *llm.Request) string {
	sum := req.Digest()
	return base64.RawURLEncoding.EncodeToString(sum[:partSize*3/4])
}

// stemOf returns what the ids of a call's lines begin with when it sends attempt: the call's part
// and, if a layer changed the request (a repair, another model), that of the changed request.
func stemOf(call string, attempt *llm.Request) string {
	if p := CallPart(attempt); p != call {
		return call + p
	}
	return call
}

// ID names a line by what it asks. Ids are read back from files: one that does not have this form
// is its own stem.
type ID string

// NewID returns the id of line n with a stem: equal calls, and the same call made again.
func NewID(stem string, n int) ID {
	if n == 0 {
		return ID(stem)
	}
	return ID(stem + "-" + strconv.Itoa(n))
}

// Stem returns the id without its ordinal.
func (id ID) Stem() string {
	switch {
	case len(id) >= 2*partSize:
		return string(id[:2*partSize])
	case len(id) >= partSize:
		return string(id[:partSize])
	}
	return string(id)
}

// Ordinal returns the number of the line among those with its stem.
func (id ID) Ordinal() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(string(id)[len(id.Stem()):], "-"))
	return n
}

// Call returns the call's part of the id.
func (id ID) Call() string { return string(id[:min(partSize, len(id))]) }

// Open is a batch that was intended and is not closed.
type Open struct {
	Key, Provider, Model string
	Lines                []ID // ids of all lines it was sent with
	Worst, WorstLine     llm.Money
	Began                time.Time
	File, ID             string // if known

	// Answered is how many of the lines of a client's batch have a recorded answer that is no failure.
	Answered int

	safe map[string]bool // calls whose answers are durable
	kept map[ID]bool     // the same for the lines of a client's batch
}

// AtRisk returns the most that lines can cost whose answers are not durable yet.
func (o *Open) AtRisk() llm.Money {
	n := 0
	for _, id := range o.Lines {
		if !o.Safe(id) {
			n++
		}
	}
	return max(0, min(o.Worst, o.WorstLine.Times(n)))
}

// Collected reports whether the batch was created, and all of its answers are durable. Only that it is closed was not recorded.
func (o *Open) Collected() bool {
	return o.ID != "" && !slices.ContainsFunc(o.Lines, func(id ID) bool { return !o.Safe(id) })
}

// Safe reports whether the answer to the call of a line is durable.
func (o *Open) Safe(id ID) bool { return o.safe[id.Call()] || o.kept[id] }

// Log folds events and replies, in order, into the batches that are open. Its zero value is empty.
type Log struct {
	open []*Open
}

// Add adds the next event. An event of an unknown batch is ignored.
func (l *Log) Add(m *journal.Batched) {
	if m.Step == journal.BatchIntended {
		lines := make([]ID, len(m.Lines))
		for i, line := range m.Lines {
			lines[i] = ID(line)
		}
		l.open = append(l.open, &Open{
			Key: m.Key, Provider: m.Provider, Model: m.Model, Lines: lines,
			Worst: m.Worst, WorstLine: m.WorstLine, Began: m.At, safe: map[string]bool{}, kept: map[ID]bool{},
		})
		return
	}
	i := slices.IndexFunc(l.open, func(o *Open) bool { return o.Key == m.Key })
	if i < 0 {
		return
	}
	switch m.Step {
	case journal.BatchUploaded:
		l.open[i].File = m.File
	case journal.BatchCreated:
		l.open[i].ID = m.Batch
	case journal.BatchClosed:
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// Replied notes that the answer to a call is durable, however it was obtained: its lines are not at
// risk any more. It costs nothing while no batch is open.
func (l *Log) Replied(req *llm.Request) {
	if len(l.open) == 0 {
		return
	}
	call := CallPart(req)
	for _, o := range l.open {
		o.safe[call] = true
	}
}

// LineDigest identifies a line of a client's batch in the record of a gateway.
func LineDigest(key, id string) (d journal.Digest) {
	sum := sha256.Sum256([]byte("line of a batch\x00" + key + "\x00" + id))
	copy(d[:], sum[:])
	return d
}

// clientLog finds the lines of clients' batches in the record of a gateway: their turns have a LineDigest.
type clientLog struct {
	lines map[journal.Digest]clientLine
	turns map[journal.Turn]*Open
}

type clientLine struct {
	of *Open
	id ID
}

func (l *clientLog) add(e journal.Entry, open []*Open) {
	switch e := e.(type) {
	case *journal.Batched:
		if e.Step == journal.BatchIntended {
			of := open[len(open)-1]
			for _, id := range of.Lines {
				l.lines[LineDigest(of.Key, string(id))] = clientLine{of, id}
			}
		}
	case *journal.Turned:
		if line, is := l.lines[e.Digest]; is {
			line.of.kept[line.id] = true
			l.turns[e.Turn] = line.of
		}
	case *journal.Replied:
		if of := l.turns[e.Turn]; of != nil && e.Response != nil {
			of.Answered++
		}
	}
}

// ReadOpen returns the batches that are open in the record of a run with this head, oldest first. clients means that they are those of clients
// of a gateway.
func ReadOpen(ctx context.Context, j journal.Journal, head *journal.Head, clients bool) ([]Open, error) {
	if len(head.Batches) == 0 {
		return nil, nil
	}
	since := math.MaxInt
	for _, b := range head.Batches {
		since = min(since, b.Entry)
	}
	var log Log
	lines := clientLog{map[journal.Digest]clientLine{}, map[journal.Turn]*Open{}}
	err := j.Read(ctx, journal.Span{Since: since}, func(e journal.Entry) error {
		m, is := e.(*journal.Batched)
		if is {
			log.Add(m)
		}
		if clients {
			lines.add(e, log.open)
		} else if r, is := e.(*journal.Replied); is && r.Request != nil {
			log.Replied(r.Request)
		}
		return nil
	})
	return log.Open(), err
}

// Open returns the open batches, oldest first.
func (l *Log) Open() []Open {
	out := make([]Open, 0, len(l.open))
	for _, o := range l.open {
		out = append(out, *o)
	}
	return out
}
