package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/kit/groupcommit"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
	"parley/world/part"
)

func begin() Begin { return Begin{Run: "r", Tool: "test", Now: time.Unix(1, 0)} }

// openLedger runs a ledger over j until the test ends.
func openLedger(t *testing.T, j journal.Journal) (*ledger, *ledgerContents) {
	t.Helper()
	l, s, err := continueLedger(t.Context(), j, begin())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() { l.Close(time.Unix(2, 0)); wg.Wait() })
	return l, s
}

func asked(i int) *llm.Request {
	return &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User(fmt.Sprint("question ", i))}}
}

// TestLedgerPast reads back bodies of every kind, answers, failures and acts.
func TestLedgerPast(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	store, err := runfile.Open(t.Context(), file, runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l, _ := openLedger(t, store)
	n, err := l.Begin(sessionName{ID: "s"}, about{})
	if err != nil {
		t.Fatal(err)
	}
	wires := []wireAnswer{
		{Status: 200, Type: "application/json", Body: []byte("{ \"a\" :\n1}")},
		{Status: 200, Type: "text/event-stream", Body: bytes.Repeat([]byte("data: {\"x\":\"é\"}\n\n"), 500)},
		{Status: 200, Type: "application/octet-stream", Body: []byte{0, 0xff, 0xfe, '"'}},
		{Status: 503, Type: "application/json", Body: []byte(`{"error":{}}`)},
		{Status: 200, Type: "text/event-stream", Body: []byte("data: so"), Cut: true},
		{},
	}
	for i, w := range wires {
		c := &Call{Replied: journal.Replied{Turn: journal.Turn{Episode: n, Turn: i}, Label: "chat", Request: asked(i), At: time.Unix(int64(i), 0).UTC()}, Digest: [16]byte{byte(i)}, Wire: w}
		switch {
		case w.Cut || w.Status != 200:
			c.Error = &llm.Error{Kind: llm.KindServer, Message: "no"}
		default:
			c.Response = &llm.Response{Text: "answer", Finish: llm.FinishStop}
		}
		if err := l.Keep(clientSeat, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Keep(clientSeat, &Call{Replied: journal.Replied{Turn: journal.Turn{Episode: n, Turn: len(wires)}, Label: "models", Act: &world.Act{Name: "models"}, Response: &llm.Response{}}}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadCalls(t.Context(), store, n)
	if err != nil || len(got) != len(wires)+1 {
		t.Fatalf("%d calls, %v", len(got), err)
	}
	for i, w := range wires {
		c := got[i]
		if c.Turn.Turn != i || c.Digest != [16]byte{byte(i)} || c.Request.Messages[0].Text() != fmt.Sprint("question ", i) ||
			c.Wire.Status != w.Status || c.Wire.Type != w.Type || c.Wire.Cut != w.Cut || !bytes.Equal(c.Wire.Body, w.Body) || (c.Error != nil) != (w.Cut || w.Status != 200) {
			t.Errorf("%d: %+v", i, c)
		}
	}
	if a := got[len(wires)].Act; a == nil || a.Name != "models" {
		t.Errorf("%+v", got[len(wires)])
	}
}

// TestLedgerGoesOn opens a record again: its sessions are there, and new ones follow.
func TestLedgerGoesOn(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	for process := range 3 {
		b := begin()
		b.Now = b.Now.Add(time.Duration(process) * time.Hour)
		l, s, err := continueLedger(t.Context(), j, b)
		if err != nil || len(s.Sessions) != 2*process {
			t.Fatalf("%+v, %v", s, err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Run(context.WithoutCancel(t.Context())) })
		for i := range 2 {
			n, err := l.Begin(sessionName{ID: fmt.Sprintf("s%d-%d", process, i)}, about{})
			if err != nil || n != 2*process+i {
				t.Errorf("episode %d, %v", n, err)
			}
			if err := l.Keep(clientSeat, &Call{Replied: journal.Replied{Turn: journal.Turn{Episode: n}, Request: asked(0), Response: &llm.Response{Metadata: llm.Metadata{Cost: llm.Dollar}}}}); err != nil {
				t.Error(err)
			}
			if i == 1 {
				if err := l.End(n, world.Outcome{}, time.Unix(3, 0)); err != nil {
					t.Error(err)
				}
			}
		}
		l.Close(time.Unix(4, 0))
		wg.Wait()
		if err := l.Keep(clientSeat, &Call{}); err == nil {
			t.Error("recorded after Close")
		}
	}
	if head, err := j.Head(t.Context()); err != nil || !head.Begun.At.Equal(begin().Now) {
		t.Errorf("begun at %v, %v", head.Begun.At, err)
	}
	s, err := readLedger(t.Context(), j)
	if err != nil || s.Spent != 6*llm.Dollar || s.Calls != 6 || s.Ended.Len() != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestMany records from many goroutines at once.
func TestMany(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	l, _ := openLedger(t, j)
	var wg sync.WaitGroup
	for s := range 20 {
		wg.Go(func() {
			n, err := l.Begin(sessionName{ID: fmt.Sprint("s", s)}, about{})
			if err != nil {
				t.Error(err)
			}
			for turn := range 50 {
				if err := l.Keep(clientSeat, &Call{Replied: journal.Replied{Turn: journal.Turn{Episode: n, Turn: turn}, Request: asked(turn), Response: &llm.Response{}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for n := range 20 {
		calls, err := ReadCalls(t.Context(), j, n)
		if err != nil || len(calls) != 50 {
			t.Errorf("%d: %d calls, %v", n, len(calls), err)
		}
	}
}

// failing is a journal that stops accepting entries.
type failing struct {
	journal.Memory
	left int
}

func (f *failing) Append(ctx context.Context, entries ...journal.Entry) error {
	if f.left--; f.left < 0 {
		return errors.New("the disk is full")
	}
	return f.Memory.Append(ctx, entries...)
}

// TestFails checks that every caller gets the error of the journal.
func TestFails(t *testing.T) {
	t.Parallel()
	j := &failing{left: 2}
	l, _, err := continueLedger(t.Context(), j, begin())
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- l.Run(t.Context()) }()
	c := &Call{Replied: journal.Replied{Request: asked(0), Response: &llm.Response{}}}
	if err := l.Keep(clientSeat, c); err != nil || l.Err() != nil {
		t.Fatal(err, l.Err())
	}
	for range 2 {
		if err := l.Keep(clientSeat, c); err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("%v", err)
		}
	}
	<-l.Failed()
	l.Close(time.Unix(1, 0))
	if err := <-ran; err == nil {
		t.Error("Run returned no error")
	}
	if calls, err := ReadCalls(t.Context(), j, 0); err != nil || len(calls) != 1 {
		t.Errorf("%d calls, %v", len(calls), err)
	}
}

// lazy is a journal that is synced later.
type lazy struct {
	journal.Memory
	synced atomic.Int64
	err    error
}

func (j *lazy) SyncLater() error { return nil }

func (j *lazy) Sync() error {
	j.synced.Add(1)
	return j.err
}

// TestSync checks that a call does not wait for the disk but is there soon after, and that the end of an
// episode and Expose wait. A disk that fails stops everything.
func TestSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &lazy{}
		l, _ := openLedger(t, j)
		want := func(synced int64, err error) {
			t.Helper()
			if synctest.Wait(); err != nil || j.synced.Load() != synced {
				t.Errorf("synced %d times, want %d; %v", j.synced.Load(), synced, err)
			}
		}
		call := &Call{Replied: journal.Replied{Request: asked(0), Response: &llm.Response{}}}
		for range 3 {
			want(0, l.Keep(clientSeat, call))
		}
		time.Sleep(groupcommit.SyncEvery)
		want(1, nil)
		time.Sleep(10 * groupcommit.SyncEvery) // there is nothing more
		want(1, nil)
		want(1, l.Keep(clientSeat, call))
		want(2, l.Expose(llm.Dollar))
		time.Sleep(10 * groupcommit.SyncEvery)
		want(2, nil)
		want(3, l.End(0, world.Outcome{}, time.Now()))
	})
	synctest.Test(t, func(t *testing.T) {
		l, _ := openLedger(t, &lazy{err: errors.New("the disk fails")})
		call := &Call{Replied: journal.Replied{Request: asked(0), Response: &llm.Response{}}}
		if err := l.Keep(clientSeat, call); err != nil {
			t.Error(err)
		}
		<-l.Failed()
		if err := l.Keep(clientSeat, call); err == nil || !strings.Contains(err.Error(), "the disk fails") {
			t.Errorf("%v", err)
		}
	})
}

// TestForeign checks that a run of another kind is refused.
func TestForeign(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	if _, err := readLedger(t.Context(), j); err == nil {
		t.Error("nothing was read")
	}
	if err := j.Append(t.Context(), &journal.Begun{Kind: "secrets"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := continueLedger(t.Context(), j, begin()); err == nil || !strings.Contains(err.Error(), `"secrets"`) {
		t.Errorf("%v", err)
	}
}

// BenchmarkKeep is what a call waits for its record when it is the only one, without the
// time of a disk.
func BenchmarkKeep(b *testing.B) {
	l, _, err := continueLedger(b.Context(), &journal.Memory{}, Begin{Run: "r", Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(b.Context()) })
	n, err := l.Begin(sessionName{ID: "s"}, about{})
	if err != nil {
		b.Fatal(err)
	}
	req, resp := &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("hello")}}, &llm.Response{Text: "hello"}
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		if err := l.Keep(clientSeat, &Call{Replied: journal.Replied{Turn: journal.Turn{Episode: n, Turn: turn}, Request: req, Response: resp}, Wire: wireAnswer{Status: 200, Body: []byte("hello")}}); err != nil {
			b.Fatal(err)
		}
		turn++
	}
	l.Close(time.Now())
	wg.Wait()
}

// TestKind checks that a record can be read as episodes of a kind but not played.
func TestKind(t *testing.T) {
	t.Parallel()
	k := Kind()
	if w, err := k.World(k.Defaults(), nil); err == nil || w != nil || !strings.Contains(err.Error(), "not a plan that can be played") {
		t.Errorf("%v, %v", w, err)
	}
	record, ok := world.As[part.Recorded](k)
	if !ok || !record.Hidden(world.Note{Kind: wireKind}) || record.Hidden(world.Note{Kind: "note"}) {
		t.Errorf("the bytes that were sent are shown, or what was noted is not: %v", ok)
	}
}
