// Part ledger keeps the record of a gateway in a run's journal: an episode for each session, a turn for
// each call, with the bytes that the client got.
//
// It promises that Keep returns only when its call survives kill -9, or with the error; that the call is on
// disk soon after, so that a power failure loses only the last moment; that End and Expose wait for the disk;
// that waiting entries are committed together; and that Past reads back what was kept.
//
// It is not for deciding what a session may do: it knows sessions only by their names.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"parley/internal/kit/groupcommit"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const (
	// KindName is the kind of a gateway's episodes.
	KindName = "gateway"
	// seat is the seat in them.
	seat = "client"

	version = 1
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
	Wire     Wire
	// Note is for readers of the record.
	Note string
}

// Cost returns what the call cost.
func (c *Call) Cost() llm.Money {
	return (&journal.Replied{Response: c.Response, Error: c.Error}).Cost()
}

// Name is the name of a session and its owner: a digest of the key that opened it, or "" if keys do not
// distinguish clients.
type Name struct {
	Owner, ID string
}

// params are the params of an episode.
type params struct {
	Session string `json:"session"`
	Owner   string `json:"owner,omitempty"`
}

// gatewayLedger is the record of a gateway. It is safe for concurrent use.
type gatewayLedger struct {
	log    *groupcommit.Log[journal.Entry]
	zip    *zstd.Encoder
	failed chan struct{}         // closed when nothing more can be recorded
	err    atomic.Pointer[error] // set before failed is closed

	mu     sync.Mutex // held while entries are added, so that they stay in order
	next   int        // the episode to begin
	stage  int
	closed bool
}

// later is a journal that can commit first and sync afterwards, so that a client does not wait for the disk.
type later interface {
	SyncLater() error
	Sync() error
}

// ledgerState is the state of a record.
type ledgerState struct {
	// Sessions maps names to episodes, in the order in which they began.
	Sessions map[Name][]int
	// Ended has the ends of episodes.
	Ended journal.Ends
	// Spent is the cost of all calls, including the maximum cost of calls that were in flight when a process
	// was killed.
	Spent llm.Money
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

// openGatewayLedger continues the record in j, or begins it. Run must follow.
func openGatewayLedger(ctx context.Context, j journal.Journal, b Begin) (*gatewayLedger, *ledgerState, error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, next, err := fold(head)
	if err != nil {
		return nil, nil, err
	}
	begun := &journal.Begun{
		Version: journal.Version, Run: b.Run, Tool: b.Tool, At: b.Now, Kind: KindName, KindVersion: version,
		Agents: []world.Agent{{Name: seat, Trainable: true}}, Plan: b.Plan,
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
		return nil, nil, fmt.Errorf("ledger: compress: %w", err)
	}
	if err := j.Append(ctx, begun, opened); err != nil {
		return nil, nil, err
	}
	l := &gatewayLedger{next: next, stage: len(head.Stages), zip: zip, failed: make(chan struct{})}
	l.log = groupcommit.New(j.Append)
	l.log.Failed = l.fail
	if j, ok := j.(later); ok {
		if err := j.SyncLater(); err != nil {
			return nil, nil, err
		}
		l.log.Sync = j.Sync
	}
	return l, s, nil
}

// readLedger reads a record without continuing it.
func readLedger(ctx context.Context, j journal.Journal) (*ledgerState, error) {
	head, err := j.Head(ctx)
	if err != nil {
		return nil, err
	}
	if head.Begun == nil {
		return nil, errors.New("ledger: there is no run in it yet")
	}
	s, _, err := fold(head)
	return s, err
}

func fold(head *journal.Head) (s *ledgerState, next int, err error) {
	if head.Begun != nil && head.Begun.Kind != KindName {
		return nil, 0, fmt.Errorf("ledger: it is a run of kind %q, not the record of a gateway", head.Begun.Kind)
	}
	s = &ledgerState{Sessions: map[Name][]int{}, Ended: head.Ended, Calls: head.Calls, Spent: head.Spent.Plus(head.Risked)}
	if head.Cut {
		s.Spent = s.Spent.Plus(head.Owed)
	}
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
				return nil, 0, fmt.Errorf("ledger: episode %d: %w", stage.First+i, err)
			}
			name := Name{p.Owner, p.Session}
			s.Sessions[name] = append(s.Sessions[name], stage.First+i)
			next = max(next, stage.First+i+1)
		}
	}
	return s, next, nil
}

// Run commits entries until Close is called and everything is written. It returns the first error.
func (l *gatewayLedger) Run(ctx context.Context) error {
	l.log.Run(ctx)
	return l.Err()
}

func (l *gatewayLedger) fail(err error) {
	err = fmt.Errorf("ledger: nothing more can be recorded: %w", err)
	l.err.Store(&err)
	close(l.failed)
}

// Failed is closed when nothing more can be recorded; Err then returns why.
func (l *gatewayLedger) Failed() <-chan struct{} { return l.failed }

// Err returns why nothing more can be recorded, or nil.
func (l *gatewayLedger) Err() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Begin begins an episode for a session and returns its number. It is durable with its first call.
func (l *gatewayLedger) Begin(session Name) (int, error) {
	p, err := json.Marshal(params{session.ID, session.Owner})
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, errClosed
	}
	n := l.next
	l.next++
	spec := world.Spec{Kind: KindName, Params: p, Lineup: map[string]string{seat: seat}, Deal: n, Cell: session.ID}
	l.log.Write(nil, &journal.Staged{Stage: l.stage, First: n, Specs: world.List(spec)})
	l.stage++
	return n, nil
}

var errClosed = errors.New("ledger: it is closed")

// Keep records a call.
func (l *gatewayLedger) Keep(c *Call) error {
	turn := journal.Turn{Episode: c.Episode, Turn: c.Turn}
	return l.write(false,
		&journal.Turned{Turn: turn, Digest: c.Digest, Calls: 1, Notes: c.notes(l.zip)},
		&journal.Replied{
			Turn: turn, Seat: seat, Label: c.Label, Agent: seat, Request: c.Request, Act: c.Act,
			Response: c.Response, Error: c.Error, At: c.At,
		})
}

// End ends an episode.
func (l *gatewayLedger) End(episode int, o world.Outcome, now time.Time) error {
	return l.write(true, &journal.Ended{Episode: episode, Outcome: o, At: now})
}

// Expose makes durable what calls in flight may cost: see journal.Exposed.
func (l *gatewayLedger) Expose(worst llm.Money) error {
	return l.write(true, &journal.Exposed{Worst: worst})
}

// write commits entries and, if wanted, syncs them.
func (l *gatewayLedger) write(synced bool, first journal.Entry, more ...journal.Entry) error {
	kept := make(chan error, 1)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return errClosed
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
func (l *gatewayLedger) Close(reason string, now time.Time) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.log.Write(nil, &journal.Closed{At: now, State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByUser, Detail: reason}})
	}
	l.mu.Unlock()
	_ = l.log.Close() // Err has the error
}
