// Package chain keeps the entries of one lot of episodes in the log of a cluster: a journal over one
// subject of a JetStream stream.
//
// What it promises: Append is all or nothing, and durable as the stream is when it returns; the last
// who claimed the chain is the only one who can write, and everybody else gets journal.ErrFenced;
// while the hub cannot be reached, Append waits.
//
// A message is fenced by the sequence of the message before it on the same subject. A publish whose
// answer was lost is repeated with the same id, and found again by that id.
//
// wire.go encodes messages, past.go finds out from those of a chain who died while playing the lot, and retry.go waits
// while the hub is away or full.
package chain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/journal"
)

// Chain is a chain that this process has claimed. It may be used from several goroutines.
type Chain struct {
	js      jetstream.JetStream
	stream  jetstream.Stream
	subject string
	session string
	id      string // begins the ids of its messages: nobody else's begin so
	// taken waits until the run file has a message; nil: the stream is durable itself.
	taken func(ctx context.Context, sequence uint64) error
	room  *Room

	mu      sync.Mutex
	last    uint64 // the sequence of the last message
	sent    int    // messages that this process published
	writer  *encoder
	err     error // why nothing can be written any more
	entries *journal.Memory
	at      uint64 // the message up to which entries has everything
}

// Config says where a chain is.
type Config struct {
	JetStream jetstream.JetStream
	Stream    jetstream.Stream
	Subject   string
	// Session names who claims the chain. It may claim a chain again: that fences the claim before.
	Session string
	// Number is the least number of the claim.
	Number uint64
	// Taken, if set, makes Append wait until it returns for the last message.
	Taken func(ctx context.Context, sequence uint64) error
	// Plays, if set, reports whether another session, which claimed the chain and did not release it, still plays the lot. Then
	// Open returns ErrPlayed.
	Plays func(ctx context.Context, session string) bool
	// Room, if set, notes whether writes wait for room.
	Room *Room
}

func (c *Config) chain() *Chain {
	return &Chain{js: c.JetStream, stream: c.Stream, subject: c.Subject, session: c.Session, id: rand.Text(), room: c.Room}
}

// ErrPlayed says that a lot was not claimed because another session plays it.
var ErrPlayed = errors.New("another worker plays the lot")

// Open claims a chain, unless its lot is done or played: whoever wrote to it before cannot write any more.
func Open(ctx context.Context, c Config) (*Chain, Past, error) {
	j := c.chain()
	j.taken = c.Taken
	for {
		past, r, err := j.load(ctx)
		if err != nil || past.Done {
			return nil, past, err
		}
		if past.held && past.last != c.Session && c.Plays != nil && c.Plays(ctx, past.last) {
			return nil, past, ErrPlayed
		}
		j.last, j.writer = r.last, r.decoder.Continue()
		past.Number = max(past.Number+1, c.Number)
		switch err := j.publishItems(ctx, &Claim{Session: j.session, Number: past.Number, Lost: j.lostCalls(ctx, &past)}); {
		case err == nil:
			j.at = j.last
			past.claimedBy(j.session)
			return j, past, nil
		case errors.Is(err, journal.ErrFenced) && !errors.Is(err, errGone): // somebody wrote meanwhile
		default:
			return nil, past, err
		}
	}
}

// Seed begins a chain with items, the last of them a *Seeded, unless it has begun.
func Seed(ctx context.Context, c Config, items ...any) error {
	for {
		j := c.chain()
		j.writer = &encoder{}
		err := j.publishItems(ctx, items...)
		if !errors.Is(err, journal.ErrFenced) || errors.Is(err, errGone) {
			return err
		}
		past, _, err := j.load(ctx)
		if err != nil || past.Seeded || past.Done {
			return err
		}
		// A process died before it wrote the last part, and nobody knows of the chain.
		if err := c.Stream.Purge(ctx, jetstream.WithPurgeSubject(c.Subject)); err != nil {
			return fmt.Errorf("%s: %w", c.Subject, err)
		}
	}
}

// Read reads all items of a chain without claiming it.
func Read(ctx context.Context, c Config) (journal.Journal, error) {
	j := c.chain()
	_, _, err := j.load(ctx)
	return j.entries, err
}

// load reads the chain from the stream.
func (j *Chain) load(ctx context.Context) (Past, *Reader, error) {
	past, r, entries := Past{}, &Reader{}, &journal.Memory{}
	for {
		m, err := Retry(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
			return j.stream.GetMsg(ctx, r.last+1, jetstream.WithGetMsgSubject(j.subject))
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			j.entries = entries
			return past, r, nil
		}
		if err != nil {
			return past, nil, asFenced(fmt.Errorf("%s: read: %w", j.subject, err))
		}
		items, err := r.Add(m.Sequence, m.Header, m.Data)
		if err != nil {
			return past, nil, fmt.Errorf("%s: message %d: %w", j.subject, m.Sequence, err)
		}
		for _, item := range items {
			past.see(item)
			if e, ok := item.(journal.Entry); ok {
				_ = entries.Append(ctx, e) // it never fails
			}
		}
	}
}

// Append makes entries durable. It waits while the hub cannot be reached, until ctx is done.
func (j *Chain) Append(ctx context.Context, entries ...journal.Entry) error {
	items := make([]any, len(entries))
	for i, e := range entries {
		items[i] = e
	}
	return j.Put(ctx, items...)
}

// Put appends items: entries, or pointers to Claim, Released, Halted, Done and the like.
func (j *Chain) Put(ctx context.Context, items ...any) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil || len(items) == 0 {
		return j.err
	}
	if err := j.publishItems(ctx, items...); err != nil {
		j.err = err // the encoder counts on what may not be there
		return err
	}
	if j.taken == nil {
		return nil
	}
	if err := j.taken(ctx, j.last); err != nil {
		j.err = fmt.Errorf("%s: %w", j.subject, err)
	}
	return j.err
}

// Subject returns where the chain is.
func (j *Chain) Subject() string { return j.subject }

// Check finds out whether another has claimed the chain: then it returns journal.ErrFenced, as a write would. While somebody writes
// it returns nil.
func (j *Chain) Check(ctx context.Context) error {
	if !j.mu.TryLock() {
		return nil
	}
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	last, err := j.stream.GetLastMsgForSubject(ctx, j.subject)
	if err == nil && last.Sequence <= j.last {
		return nil
	}
	if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) {
		err = journal.ErrFenced
	}
	if err = asFenced(fmt.Errorf("%s: %w", j.subject, err)); errors.Is(err, journal.ErrFenced) {
		j.err = err
	}
	return err
}

func (j *Chain) publishItems(ctx context.Context, items ...any) error {
	message, err := j.writer.Encode(items...)
	if err != nil {
		return fmt.Errorf("%s: %w", j.subject, err)
	}
	for _, part := range splitMessage(message, int(j.js.Conn().MaxPayload())) {
		if err := j.publish(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// errGone is wrapped by the error of a chain whose log was deleted.
var errGone = errors.New("the log of the run is gone")

// publish publishes a message after the last one.
func (j *Chain) publish(ctx context.Context, data []byte) error {
	j.sent++
	id := j.id + "-" + strconv.Itoa(j.sent)
	m := &nats.Msg{Subject: j.subject, Data: data}
	ack, err := Retry(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
		ack, err := j.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(j.last))
		j.room.Note(err)
		if api := (*jetstream.APIError)(nil); errors.As(err, &api) && conflict(api.ErrorCode) {
			return j.published(ctx, id)
		}
		if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
			if j.lost(ctx) {
				return nil, jetstream.ErrStreamNotFound
			}
		}
		return ack, err
	})
	if err != nil {
		return asFenced(fmt.Errorf("%s: write: %w", j.subject, err))
	}
	j.last = ack.Sequence
	return nil
}

// lost reports whether the stream was deleted. There may be another of the same name.
func (j *Chain) lost(ctx context.Context) bool {
	was := j.stream.CachedInfo()
	now, err := j.js.Stream(ctx, was.Config.Name)
	return errors.Is(err, jetstream.ErrStreamNotFound) || err == nil && !now.CachedInfo().Created.Equal(was.Created)
}

func conflict(code jetstream.ErrorCode) bool {
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// published finds out what a conflict means: the message is there already, another wrote, or, at a
// stream with replicas, that the server is not sure.
func (j *Chain) published(ctx context.Context, id string) (*jetstream.PubAck, error) {
	last, err := j.stream.GetLastMsgForSubject(ctx, j.subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound) && j.last == 0:
		return nil, errAgain
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, journal.ErrFenced
	case err != nil:
		return nil, err
	case last.Header.Get(jetstream.MsgIDHeader) == id:
		return &jetstream.PubAck{Sequence: last.Sequence}, nil
	case last.Sequence <= j.last:
		return nil, errAgain
	default:
		return nil, journal.ErrFenced
	}
}

// asFenced makes an error of a log that does not exist an ErrFenced.
func asFenced(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return errors.Join(journal.ErrFenced, errGone, err)
	}
	return err
}

// read returns everything that the chain holds now.
func (j *Chain) read(ctx context.Context) (*journal.Memory, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.at == j.last && j.err == nil {
		return j.entries, nil
	}
	_, r, err := j.load(ctx)
	if err != nil {
		return nil, err
	}
	j.at = r.last
	return j.entries, nil
}

// Head folds the entries.
func (j *Chain) Head(ctx context.Context) (*journal.Head, error) {
	m, err := j.read(ctx)
	if err != nil {
		return nil, err
	}
	return m.Head(ctx)
}

// Read calls each with every entry of in.
func (j *Chain) Read(ctx context.Context, in journal.Span, each func(journal.Entry) error) error {
	m, err := j.read(ctx)
	if err != nil {
		return err
	}
	return m.Read(ctx, in, each)
}

// Outcomes calls each with the ends in entries.
func (j *Chain) Outcomes(ctx context.Context, entries []int, each func(*journal.Ended) error) error {
	m, err := j.read(ctx)
	if err != nil {
		return err
	}
	return m.Outcomes(ctx, entries, each)
}

var _ journal.Journal = (*Chain)(nil)
