// Package ledger keeps the record of a gateway in a run's journal: an episode for each
// session, a turn for each call, with the bytes that the client was sent.
//
// It promises that Keep returns only when its call survives the end of the process, kill -9
// included, or with the error why it does not; that the call is on the disk soon after that, so
// that a power failure loses the last moment only; that End and Expose wait for the disk; that
// whatever waits is committed in one go; and that what was kept is read back by Past as it was.
//
// It is not for deciding what a session may do: it knows sessions only by their names.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"parley/internal/groupcommit"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

const (
	// KindName is what the kind of a gateway's episodes is called.
	KindName = "gateway"
	// Seat is who asks in them.
	Seat = "client"

	version = 1
)

// Call is one call of a client and what came of it.
type Call struct {
	Episode, Turn int
	Label         string
	Digest        [16]byte
	// Request is what a model was asked. Act is what was asked of somebody else.
	Request *llm.Request
	Act     *world.Act
	// Response is the answer, unless Error says why there is none.
	Response *llm.Response
	Error    *llm.Error
	At       time.Time
	Wire     Wire
	// Note says what a reader of the record should know of the call.
	Note string
}

// Name names a session: its name among those of its owner. Owner is a digest of the key that
// opened it, or "" where keys tell nobody apart.
type Name struct {
	Owner, ID string
}

// params are those of an episode.
type params struct {
	Session string `json:"session"`
	Owner   string `json:"owner,omitempty"`
}

// Ledger is the record of a gateway. It may be used from several goroutines.
type Ledger struct {
	log    *groupcommit.Log[journal.Entry]
	zip    *zstd.Encoder
	failed chan struct{}         // closed when nothing can be kept any more
	err    atomic.Pointer[error] // set before failed is closed

	mu     sync.Mutex // held while entries are handed over, so that they are written in order
	next   int        // the episode to begin
	stage  int
	closed bool
}

// later is a journal that can commit first and sync afterwards: a client does not wait for
// the disk. Other journals do both at once.
type later interface {
	SyncLater() error
	Sync() error
}

// State is a record as it was found.
type State struct {
	// Sessions is by name: its episodes, in the order in which they began.
	Sessions map[Name][]int
	// Ended is by episode.
	Ended map[int]journal.Ended
	// Spent is what calls have cost, with the most that those may have cost which were in
	// flight when a sitting was cut off.
	Spent llm.Money
	// Calls is how many there are.
	Calls int
	// Aliases are other names of models, as the plan of the record has them.
	Aliases map[string]string
}

// Begin says how the run is set up: see journal.Begun.
type Begin struct {
	Run, Tool string
	Plan      json.RawMessage
	Now       time.Time
}

// Open goes on with the record in j, or begins it. Run must follow.
func Open(ctx context.Context, j journal.Journal, b Begin) (*Ledger, *State, error) {
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
		Agents: []world.Agent{{Name: Seat, Trainable: true}}, Plan: b.Plan,
	}
	if head.Begun != nil {
		begun.Run, begun.At = head.Begun.Run, head.Begun.At // the last one counts, and it is still the same run
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
	l := &Ledger{next: next, stage: len(head.Stages), zip: zip, failed: make(chan struct{})}
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

// Read reads a record that is not gone on with.
func Read(ctx context.Context, j journal.Journal) (*State, error) {
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

func fold(head *journal.Head) (s *State, next int, err error) {
	if head.Begun != nil && head.Begun.Kind != KindName {
		return nil, 0, fmt.Errorf("ledger: it is a run of kind %q, not the record of a gateway", head.Begun.Kind)
	}
	s = &State{Sessions: map[Name][]int{}, Ended: head.Ended, Calls: head.Calls, Spent: head.Spent.Plus(head.Risked)}
	if head.Cut {
		s.Spent = s.Spent.Plus(head.Owed)
	}
	if head.Begun != nil {
		var plan struct{ Aliases map[string]string }
		if json.Unmarshal(head.Begun.Plan, &plan) == nil { // else it has none that could be used
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

// Run commits what is kept until Close is called and everything is written. It returns the error
// after which nothing could be kept any more, if there was one.
func (l *Ledger) Run(ctx context.Context) error {
	l.log.Run(ctx)
	return l.Err()
}

func (l *Ledger) fail(err error) {
	err = fmt.Errorf("ledger: nothing more can be recorded: %w", err)
	l.err.Store(&err)
	close(l.failed)
}

// Failed is closed when nothing can be kept any more; Err then says why.
func (l *Ledger) Failed() <-chan struct{} { return l.failed }

// Err is why nothing can be kept any more, or nil.
func (l *Ledger) Err() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Begin begins the episode of a session and returns its number. It is durable with the
// first call of it that is.
func (l *Ledger) Begin(session Name) (int, error) {
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
	spec := world.Spec{Kind: KindName, Params: p, Lineup: map[string]string{Seat: Seat}, Deal: n, Cell: session.ID}
	l.log.Write(nil, &journal.Staged{Stage: l.stage, First: n, Specs: world.List(spec)})
	l.stage++
	return n, nil
}

var errClosed = errors.New("ledger: it is closed")

// Keep records a call.
func (l *Ledger) Keep(c *Call) error {
	turn := journal.Turn{Episode: c.Episode, Turn: c.Turn}
	return l.write(false,
		&journal.Turned{Turn: turn, Digest: c.Digest, Calls: 1, Notes: c.notes(l.zip)},
		&journal.Replied{
			Turn: turn, Seat: Seat, Label: c.Label, Agent: Seat, Request: c.Request, Act: c.Act,
			Response: c.Response, Error: c.Error, At: c.At,
		})
}

// End ends an episode.
func (l *Ledger) End(episode int, o world.Outcome, now time.Time) error {
	return l.write(true, &journal.Ended{Episode: episode, Outcome: o, At: now})
}

// Expose makes durable what calls in flight may cost: see journal.Exposed.
func (l *Ledger) Expose(worst llm.Money) error { return l.write(true, &journal.Exposed{Worst: worst}) }

// write has entries committed, and synced if that is wanted.
func (l *Ledger) write(synced bool, entries ...journal.Entry) error {
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
	write(func(err error) { kept <- err }, entries...)
	l.mu.Unlock()
	if <-kept != nil {
		return l.Err()
	}
	return nil
}

// Close ends the sitting and waits until everything is written. Nothing is kept after it.
func (l *Ledger) Close(reason string, now time.Time) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.log.Write(nil, &journal.Closed{At: now, State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByUser, Detail: reason}})
	}
	l.mu.Unlock()
	_ = l.log.Close() // Err has the error
}
