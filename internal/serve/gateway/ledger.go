package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"parley/internal/kit/groupcommit"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

const (
	// KindName is the kind of a gateway's episodes.
	KindName = "gateway"
	// clientSeat is the seat in them.
	clientSeat = "client"

	kindVersion = 1
)

// sessionName is the name of a session and its owner: a digest of the key that opened it, or "" if keys do not
// distinguish clients.
type sessionName struct {
	Owner, ID string
}

// params are the params of an episode.
type params struct {
	Session   string            `json:"session"`
	Owner     string            `json:"owner,omitempty"`
	Task      string            `json:"task,omitempty"`
	Condition string            `json:"condition,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
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
	begun  journal.Begun    // with all agents so far
	kept   journal.Spending // calls that this process recorded
}

// deferredSyncer is a journal that can commit first and sync afterwards, so that a client does not wait for the disk.
type deferredSyncer interface {
	SyncLater() error
	Sync() error
}

// ledgerContents is the state of a record.
type ledgerContents struct {
	// Sessions maps names to episodes, and About says what they were opened with.
	Sessions map[sessionName]int
	About    map[int]about
	// Ended has the ends of episodes.
	Ended journal.Ends
	// Spent is the cost of all calls, with AtRisk: the maximum cost of calls that were in flight when a process
	// was killed.
	Spent, AtRisk llm.Money
	// Calls is the number of calls.
	Calls int
	// Aliases are the other names of models in the plan of the record.
	Aliases map[string]string
	// Batches are those that clients sent and of which not all results are recorded, by key.
	Batches map[string]*clientBatch
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
		begun.Run, begun.At, begun.Agents = head.Begun.Run, head.Begun.At, head.Begun.Agents // the last Begun counts, and it is the same run
	}
	if s.Batches, err = openBatches(ctx, j, head); err != nil {
		return nil, nil, err
	}
	opened := &journal.Opened{At: b.Now, Lost: head.Lost}
	if head.Cut {
		opened.Cost = head.Owed
	}
	zip, err := newZip()
	if err != nil {
		return nil, nil, err
	}
	if err := j.Append(ctx, begun, opened); err != nil {
		return nil, nil, err
	}
	l := &ledger{next: next, stage: len(head.Stages), zip: zip, begun: *begun, failed: make(chan struct{})}
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
	s = &ledgerContents{Sessions: map[sessionName]int{}, About: map[int]about{}, Ended: head.Ended, Calls: head.Calls, AtRisk: head.Risked}
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
			if a := aboutOf(spec, p); !a.empty() {
				s.About[stage.First+i] = a
			}
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
func (l *ledger) Begin(session sessionName, a about) (int, error) {
	p, err := json.Marshal(params{session.ID, session.Owner, a.Task, a.Condition, a.Tags})
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
	if err := l.addAgent(a.agent()); err != nil {
		l.next--
		return 0, err
	}
	spec := world.Spec{Kind: KindName, Params: p, Lineup: map[string]string{clientSeat: a.agent()}, Deal: n, Cell: a.cell(session)}
	l.log.Write(nil, &journal.Staged{Stage: l.stage, First: n, Specs: world.List(spec)})
	l.stage++
	return n, nil
}

// maxAgents bounds the agents of a record: clients choose their names.
const maxAgents = 1000

// addAgent makes the run have an agent. It is durable with the first call of its session. l.mu is held.
func (l *ledger) addAgent(name string) error {
	if slices.ContainsFunc(l.begun.Agents, func(a world.Agent) bool { return a.Name == name }) {
		return nil
	}
	if len(l.begun.Agents) >= maxAgents {
		return fmt.Errorf("a record has at most %d agents: name the differences between sessions of one agent as tags", maxAgents)
	}
	l.begun.Agents = append(slices.Clone(l.begun.Agents), world.Agent{Name: name, Trainable: true})
	begun := l.begun
	l.log.Write(nil, &begun)
	return nil
}

var errLedgerClosed = errors.New("it is closed")

// Keep records calls of an agent, all or none.
func (l *ledger) Keep(agent string, calls ...*Call) error {
	entries := make([]journal.Entry, 0, 2*len(calls))
	for _, c := range calls {
		turned, replied := c.entries(agent, l.zip)
		entries = append(entries, turned, replied)
	}
	if err := l.write(false, entries[0], entries[1:]...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		l.kept.Add(&c.Replied)
	}
	return nil
}

// Kept returns what the calls add up to that this process recorded.
func (l *ledger) Kept() journal.Spending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

// Batched records a step of a batch that a client sends.
func (l *ledger) Batched(e *journal.Batched) error {
	e.At = time.Now()
	return l.write(true, e)
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
func (l *ledger) Close(now time.Time) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.log.Write(nil, &journal.Closed{At: now, State: journal.Stopped, Reason: journal.Reason{Kind: journal.ByUser}})
	}
	l.mu.Unlock()
	_ = l.log.Close() // Err has the error
}

// Kind returns the kind of a gateway's episodes, for readers of a record. It cannot be played.
func Kind() world.Kind { return world.Define(kindDefinition{}) }

type kindDefinition struct{}

var (
	_ part.Recorded = kindDefinition{}
	_ part.Grouper  = kindDefinition{}
)

// numberedName is a session's name with a number at its end, such as task7-2.
var numberedName = regexp.MustCompile(`^(.+)-[0-9]+$`)

// TrainingGroup implements part.Grouper: sessions are one group if their names differ only in the number at the end.
func (kindDefinition) TrainingGroup(spec world.Spec) (g part.TrainingGroup, err error) {
	var p params
	if err := json.Unmarshal(spec.Params, &p); err != nil {
		return g, fmt.Errorf("params: %w", err)
	}
	g.Name = p.Session
	if m := numberedName.FindStringSubmatch(g.Name); m != nil {
		g.Name = m[1]
	}
	return g, nil
}

func (kindDefinition) About() world.About {
	return world.About{Name: KindName, Version: kindVersion, Doc: "The record of a gateway: an episode for each session, a turn for each call."}
}

func (kindDefinition) Defaults() *params { return &params{} }

// TaskName implements part.TaskNamer: sessions with one task can be compared, whatever their number.
func (kindDefinition) TaskName(p *params) world.Task {
	return world.Task{Name: p.Task, Whole: p.Task != ""}
}

func (kindDefinition) Seats(*params) ([]string, error) { return []string{clientSeat}, nil }

// World fails: other programs made the calls of a record.
func (kindDefinition) World(*params, world.Lineup) (world.World, error) {
	return nil, errors.New("gateway: it is a record of what programs asked, not a plan that can be played: serve it again with parley gateway")
}

// Hidden hides the bytes that clients got, and the files that they sent: the calls say the same.
func (kindDefinition) Hidden(n world.Note) bool { return n.Kind == wireKind || n.Kind == requestsKind }

// Names lists the params that every session has its own of.
func (kindDefinition) Names() []string { return []string{"session", "owner"} }

// Closed returns why a session was closed, if its client said so.
func (kindDefinition) Closed(o world.Outcome) string {
	var end sessionOutcome
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
