package chain

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/cluster/hub"
	"parley/internal/cluster/wire"
	"parley/journal"
	"parley/journal/journaltest"
)

// newStream returns a stream of a new hub.
func newStream(t *testing.T) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	h, err := hub.Start(hub.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := nats.Connect(h.URL(), nats.Token(h.Token()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}, Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	return js, stream
}

// open returns a function that claims chains of a new hub, each time another session.
func open(t *testing.T) func(t *testing.T, subject string) (*Chain, Past) {
	t.Helper()
	js, stream := newStream(t)
	return func(t *testing.T, subject string) (*Chain, Past) {
		t.Helper()
		c, past, err := Open(t.Context(), Config{JetStream: js, Stream: stream, Subject: subject, Session: rand.Text()})
		if err != nil {
			t.Fatal(err)
		}
		return c, past
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	claim := open(t)
	journaltest.Exercise(t, func(t *testing.T) (journal.Journal, func() journal.Journal) {
		subject := "log." + rand.Text()
		c, _ := claim(t, subject)
		return c, func() journal.Journal {
			again, _ := claim(t, subject)
			return again
		}
	})
	journaltest.Fencing(t, func(t *testing.T) (first, second journal.Journal) {
		first, _ = claim(t, "log.fenced")
		second, _ = claim(t, "log.fenced")
		return first, second
	})
}

// TestLarge: a message that is larger than the hub allows is sent in parts.
func TestLarge(t *testing.T) {
	t.Parallel()
	claim := open(t)
	c, _ := claim(t, "log.large")
	entries := []journal.Entry{
		&journal.Ended{Episode: 1, Stack: strings.Repeat("x", 20<<20)}, &journal.Ended{Episode: 2}, &journal.Ended{Episode: 3, Stack: strings.Repeat("y", 9<<20)},
	}
	if err := c.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	other, _ := claim(t, "log.large")
	got, n := []journal.Entry{}, 0
	if err := other.Read(t.Context(), journal.Whole(), func(e journal.Entry) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	for i, e := range got {
		if e.(*journal.Ended).Stack == entries[i].(*journal.Ended).Stack {
			n++
		}
	}
	if n != 3 || len(got) != 3 {
		t.Errorf("%d entries came back, %d of them unchanged, want 3", len(got), n)
	}
}

// TestSameSession: a worker that gets a lot again, which it still plays or has given back, fences its earlier claim like any other.
func TestSameSession(t *testing.T) {
	t.Parallel()
	js, stream := newStream(t)
	c := Config{JetStream: js, Stream: stream, Subject: "log.a", Session: "the same"}
	first, _, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Append(t.Context(), &journal.Ended{Episode: 1, Stack: strings.Repeat("the first ", 9)}); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the first claim: %v, want it fenced", err)
	}
	want := strings.Repeat("the second ", 9)
	if err := second.Append(t.Context(), &journal.Ended{Episode: 1, Stack: want}); err != nil {
		t.Fatal(err)
	}
	entries, err := Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := entries.Read(t.Context(), journal.Whole(), func(e journal.Entry) error { got = append(got, e.(*journal.Ended).Stack); return nil }); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q %v, want what the second wrote", got, err)
	}
}

// TestUnfinished: parts whose writer died before the last are no message.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	claim := open(t)
	c, _ := claim(t, "log.a")
	message, err := c.writer.Append(nil, &journal.Ended{Stack: strings.Repeat("x", 100)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.publish(t.Context(), Parts(message, headers+50)[0]); err != nil {
		t.Fatal(err)
	}
	next, _ := claim(t, "log.a")
	if err := next.Append(t.Context(), &journal.Ended{Episode: 7}); err != nil {
		t.Fatal(err)
	}
	last, past := claim(t, "log.a")
	head, err := last.Head(t.Context())
	if err != nil || head.Ended.Len() != 1 || !head.Ended.Has(7) || past.Deaths != 0 {
		t.Errorf("%v, %d ends, %+v; want episode 7 alone", err, head.Ended.Len(), past)
	}
}

// TestDeaths: claims without progress are deaths, unless the lot was given back.
func TestDeaths(t *testing.T) {
	t.Parallel()
	claim := open(t)
	c, past := claim(t, "log.a")
	if past.Deaths != 0 || past.Tried != -1 {
		t.Errorf("a new chain: %+v", past)
	}
	for want := 1; want < 4; want++ {
		if c, past = claim(t, "log.a"); past.Deaths != want {
			t.Errorf("%d deaths, want %d", past.Deaths, want)
		}
	}
	if err := c.Put(t.Context(), &wire.Released{}); err != nil {
		t.Fatal(err)
	}
	if c, past = claim(t, "log.a"); past.Deaths != 3 {
		t.Errorf("%d deaths after a release, want 3", past.Deaths)
	}
	for _, want := range []int{0, 1, 2} {
		if past.TriedDeaths != want {
			t.Errorf("%d deaths at an episode, want %d", past.TriedDeaths, want)
		}
		if err := c.Put(t.Context(), &wire.Claim{Alone: true, Trying: 5}); err != nil {
			t.Fatal(err)
		}
		_, past, _ = loadPast(t, c)
	}
	if err := c.Put(t.Context(), &journal.Ended{Episode: 5}, &wire.Done{}); err != nil {
		t.Fatal(err)
	}
	if _, past, _ = loadPast(t, c); !past.Done || past.Deaths != 0 || past.Tried != -1 {
		t.Errorf("%+v, want a lot that is done", past)
	}
}

func loadPast(t *testing.T, c *Chain) (*Chain, Past, error) {
	t.Helper()
	past, _, err := c.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, past, nil
}
