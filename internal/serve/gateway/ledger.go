package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"parley/internal/ask/wire/body"
	"parley/internal/kit/groupcommit"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const (
	// KindName is the kind of a gateway's episodes.
	KindName = "gateway"
	// clientSeat is the seat in them.
	clientSeat = "client"

	kindVersion = 1
)

// Call is one call of a client and its result.
type Call struct {
	Episode, Turn int
	Label         string
	Digest        [16]byte
	// Request is a request to a model, and Act a request to something else.
	Request *llm.Request
	Act     *world.Act
	// Response is the answer, unless Error is set.
	Response *llm.Response
	Error    *llm.Error
	At       time.Time
	Wire     wireAnswer
}

// Cost returns what the call cost.
func (c *Call) Cost() llm.Money {
	return (&journal.Replied{Response: c.Response, Error: c.Error}).Cost()
}

// sessionName is the name of a session and its owner: a digest of the key that opened it, or "" if keys do not
// distinguish clients.
type sessionName struct {
	Owner, ID string
}

// params are the params of an episode.
type params struct {
	Session string `json:"session"`
	Owner   string `json:"owner,omitempty"`
}

// ledger is the record of a gateway in a run's journal: an episode for each session, a turn for each call, with the
// bytes that the client got. It is safe for concurrent use.
//
// Keep returns only when its call survives kill -9, or with the error. The call is on disk soon after, so that a
// power failure loses only the last moment. End and Expose wait for the disk. Waiting entries are committed together.
type ledger struct {
	log    *groupcommit.Log[journal.Entry]
	zip    *zstd.Encoder
	failed chan struct{}         // closed when nothing more can be recorded
	err    atomic.Pointer[error] // set before failed is closed

	mu     sync.Mutex // held while entries are added, so that they stay in order
	next   int        // the episode to begin
	stage  int
	closed bool
}

// deferredSyncer is a journal that can commit first and sync afterwards, so that a client does not wait for the disk.
type deferredSyncer interface {
	SyncLater() error
	Sync() error
}

// ledgerContents is the state of a record.
type ledgerContents struct {
	// Sessions maps names to episodes.
	Sessions map[sessionName]int
	// Ended has the ends of episodes.
	Ended journal.Ends
	// Spent is the cost of all calls, with AtRisk: the maximum cost of calls that were in flight when a process
	// was killed.
	Spent, AtRisk llm.Money
	// Calls is the number of calls.
	Calls int
	// Aliases are the other names of models in the plan of the record.
	Aliases map[string]string
}

// Begin describes the run: see journal.Begun.
type Begin struct {
	Run, Tool string
	Plan      json.RawMessage
	Now       time.Time
}

// continueLedger continues the record in j, or begins it. Run must follow.
func continueLedger(ctx context.Context, j journal.Journal, b Begin) (*ledger, *ledgerContents, error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, next, err := readContents(head)
	if err != nil {
		return nil, nil, err
	}
	begun := &journal.Begun{
		Version: journal.Version, Run: b.Run, Tool: b.Tool, At: b.Now, Kind: KindName, KindVersion: kindVersion,
		Agents: []world.Agent{{Name: clientSeat, Trainable: true}}, Plan: b.Plan,
	}
	if head.Begun != nil {
		begun.Run, begun.At = head.Begun.Run, head.Begun.At // the last Begun counts, and it is the same run
	}
	opened := &journal.Opened{At: b.Now, Lost: head.Lost}
	if head.Cut {
		opened.Cost = head.Owed
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, nil, fmt.Errorf("compress: %w", err)
	}
	if err := j.Append(ctx, begun, opened); err != nil {
		return nil, nil, err
	}
	l := &ledger{next: next, stage: len(head.Stages), zip: zip, failed: make(chan struct{})}
	l.log = groupcommit.New(j.Append)
	l.log.Failed = l.fail
	if j, ok := j.(deferredSyncer); ok {
		if err := j.SyncLater(); err != nil {
			return nil, nil, err
		}
		l.log.Sync = j.Sync
	}
	return l, s, nil
}

// readLedger reads a record without continuing it.
func readLedger(ctx context.Context, j journal.Journal) (*ledgerContents, error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, err
	}
	if head.Begun == nil {
		return nil, errors.New("there is no run in it yet")
	}
	s, _, err := readContents(head)
	return s, err
}

func readContents(head *journal.Head) (s *ledgerContents, next int, err error) {
	if head.Begun != nil && head.Begun.Kind != KindName {
		return nil, 0, fmt.Errorf("it is a run of kind %q, not the record of a gateway", head.Begun.Kind)
	}
	s = &ledgerContents{Sessions: map[sessionName]int{}, Ended: head.Ended, Calls: head.Calls, AtRisk: head.Risked}
	if head.Cut {
		s.AtRisk = s.AtRisk.Plus(head.Owed)
	}
	s.Spent = head.Spent.Plus(s.AtRisk)
	if head.Begun != nil {
		var plan struct{ Aliases map[string]string }
		if json.Unmarshal(head.Begun.Plan, &plan) == nil { // otherwise it has no aliases
			s.Aliases = plan.Aliases
		}
	}
	for _, stage := range head.Stages {
		for i, spec := range stage.Specs.All() {
			var p params
			if err := json.Unmarshal(spec.Params, &p); err != nil {
				return nil, 0, fmt.Errorf("episode %d: %w", stage.First+i, err)
			}
			s.Sessions[sessionName{p.Owner, p.Session}] = stage.First + i
			next = max(next, stage.First+i+1)
		}
	}
	return s, next, nil
}

// Run commits entries until Close is called and everything is written. It returns the first error.
func (l *ledger) Run(ctx context.Context) error {
	l.log.Run(ctx)
	return l.Err()
}

func (l *ledger) fail(err error) {
	err = fmt.Errorf("nothing more can be recorded: %w", err)
	l.err.Store(&err)
	close(l.failed)
}

// Failed is closed when nothing more can be recorded; Err then returns why.
func (l *ledger) Failed() <-chan struct{} { return l.failed }

// Err returns why nothing more can be recorded, or nil.
func (l *ledger) Err() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Begin begins an episode for a session and returns its number. It is durable with its first call.
func (l *ledger) Begin(session sessionName) (int, error) {
	p, err := json.Marshal(params{session.ID, session.Owner})
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, errLedgerClosed
	}
	n := l.next
	l.next++
	spec := world.Spec{Kind: KindName, Params: p, Lineup: map[string]string{clientSeat: clientSeat}, Deal: n, Cell: session.ID}
	l.log.Write(nil, &journal.Staged{Stage: l.stage, First: n, Specs: world.List(spec)})
	l.stage++
	return n, nil
}

var errLedgerClosed = errors.New("it is closed")

// Keep records a call.
func (l *ledger) Keep(c *Call) error {
	turn := journal.Turn{Episode: c.Episode, Turn: c.Turn}
	return l.write(false,
		&journal.Turned{Turn: turn, Digest: c.Digest, Calls: 1, Notes: c.Wire.notes(l.zip)},
		&journal.Replied{
			Turn: turn, Seat: clientSeat, Label: c.Label, Agent: clientSeat, Request: c.Request, Act: c.Act,
			Response: c.Response, Error: c.Error, At: c.At,
		})
}

// End ends an episode.
func (l *ledger) End(episode int, o world.Outcome, now time.Time) error {
	return l.write(true, &journal.Ended{Episode: episode, Outcome: o, At: now})
}

// Expose makes durable what calls in flight may cost: see journal.Exposed.
func (l *ledger) Expose(worst llm.Money) error {
	return l.write(true, &journal.Exposed{Worst: worst})
}

// write commits entries and, if wanted, syncs them.
func (l *ledger) write(synced bool, first journal.Entry, more ...journal.Entry) error {
	kept := make(chan error, 1)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errLedgerClosed
	}
	write := l.log.Write
	if synced {
		write = l.log.WriteSync
	}
	write(func(err error) { kept <- err }, first, more...)
	l.mu.Unlock()
	if <-kept != nil {
		return l.Err()
	}
	return nil
}

// Close ends the process's part of the record and waits until everything is written. Nothing can be recorded
// after it.
func (l *ledger) Close(reason string, now time.Time) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.log.Write(nil, &journal.Closed{At: now, State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByUser, Detail: reason}})
	}
	l.mu.Unlock()
	_ = l.log.Close() // Err has the error
}

// wireAnswer is the answer that a client got.
type wireAnswer struct {
	Status int
	Type   string // content type
	Body   []byte
	// Cut means that the client went away before the end.
	Cut bool
}

// wireKind is the kind of the note that holds a Wire.
const wireKind = "wire"

// wireNote is a stored Wire: the body as text, or compressed.
type wireNote struct {
	Status int    `json:"status"`
	Type   string `json:"type"`
	Cut    bool   `json:"cut"`
	Body   string `json:"body"`
	Zstd   []byte `json:"zstd"`
}

// compressFrom is the length from which a body is compressed; a stream shrinks to a tenth.
const compressFrom = 1 << 10

// notes returns the notes of w. Calls may share zip.
func (w *wireAnswer) notes(zip *zstd.Encoder) []world.Note {
	if w.Status == 0 && len(w.Body) == 0 {
		return nil
	}
	b := make([]byte, 0, 128+min(len(w.Body)+len(w.Body)/4, 4096))
	b = body.Int(append(b, '{'), "status", int64(w.Status))
	b = body.Str(b, "type", w.Type)
	if w.Cut {
		b = body.Bool(b, "cut", true)
	}
	if len(w.Body) < compressFrom && utf8.Valid(w.Body) {
		b = body.Str(b, "body", string(w.Body))
	} else {
		b = append(body.Key(b, "zstd"), '"')
		b = append(base64.StdEncoding.AppendEncode(b, zip.EncodeAll(w.Body, nil)), '"')
	}
	return []world.Note{{Kind: wireKind, Data: append(b, '}')}}
}

const maxRecordedBody = 256 << 20 // limit for a damaged length

func readWire(notes []world.Note) (w wireAnswer, err error) {
	for _, n := range notes {
		if n.Kind != wireKind {
			continue
		}
		var v wireNote
		if err := json.Unmarshal(n.Data, &v); err != nil {
			return w, fmt.Errorf("recorded answer: %w", err)
		}
		w = wireAnswer{Status: v.Status, Type: v.Type, Cut: v.Cut, Body: []byte(v.Body)}
		if len(v.Zstd) > 0 {
			if w.Body, err = decompress(v.Zstd); err != nil {
				return w, fmt.Errorf("recorded answer: %w", err)
			}
		}
	}
	return w, nil
}

func decompress(b []byte) ([]byte, error) {
	r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecordedBody))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out bytes.Buffer
	_, err = out.ReadFrom(r)
	return out.Bytes(), err
}

// ReadCalls reads the calls of an episode, in the order of their turns.
func ReadCalls(ctx context.Context, j journal.Journal, episode int) ([]Call, error) {
	entries, err := journal.Episode(ctx, j, episode)
	if err != nil {
		return nil, err
	}
	byTurn := map[int]*Call{}
	var order []int
	for _, e := range entries {
		switch e := e.(type) {
		case *journal.Turned:
			w, err := readWire(e.Notes)
			if err != nil {
				return nil, fmt.Errorf("%w (episode %d, turn %d)", err, episode, e.Turn.Turn)
			}
			byTurn[e.Turn.Turn] = &Call{Episode: episode, Turn: e.Turn.Turn, Digest: e.Digest, Wire: w}
			order = append(order, e.Turn.Turn)
		case *journal.Replied:
			if c := byTurn[e.Turn.Turn]; c != nil {
				c.Label, c.Request, c.Act, c.Response, c.Error, c.At = e.Label, e.Request, e.Act, e.Response, e.Error, e.At
			}
		}
	}
	slices.Sort(order)
	out := make([]Call, 0, len(order))
	for _, turn := range order {
		if c := byTurn[turn]; c.Response != nil || c.Error != nil {
			out = append(out, *c)
		}
	}
	return out, nil
}

// Kind returns the kind of a gateway's episodes, for readers of a record. It cannot be played.
func Kind() world.Kind { return world.Define(kindDefinition{}) }

type kindDefinition struct{}

var _ world.Recorded = kindDefinition{}

func (kindDefinition) About() world.About {
	return world.About{Name: KindName, Version: kindVersion, Doc: "The record of a gateway: an episode for each session, a turn for each call."}
}

func (kindDefinition) Defaults() *params { return &params{} }

func (kindDefinition) Seats(*params) ([]string, error) { return []string{clientSeat}, nil }

// World fails: other programs made the calls of a record.
func (kindDefinition) World(*params, world.Lineup) (world.World, error) {
	return nil, errors.New("gateway: it is a record of what programs asked, not a plan that can be played: serve it again with parley gateway")
}

// Hidden hides the bytes that clients got: the replies say the same.
func (kindDefinition) Hidden(n world.Note) bool { return n.Kind == wireKind }

// Closed returns why a session was closed, if its client said so.
func (kindDefinition) Closed(o world.Outcome) string {
	var end struct {
		Reason    string `json:"reason"`
		Mode      string `json:"mode"`
		Truncated bool   `json:"truncated"`
	}
	raw, _ := o.Data.(json.RawMessage)
	if json.Unmarshal(raw, &end) != nil {
		return o.Failed
	}
	why := end.Mode
	if end.Reason != "" {
		why += ": " + end.Reason
	}
	if end.Truncated {
		why += " (it had reached its step limit)"
	}
	return why
}
