package chain

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/run/cluster/hub"
	"parley/journal"
	"parley/journal/journaltest"
	"parley/world"
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

// TestPlays: a chain is not claimed while somebody else plays its lot. Who has it may claim it again, and nobody has one that was released.
func TestPlays(t *testing.T) {
	t.Parallel()
	js, stream := newStream(t)
	asked := []string{}
	c := Config{JetStream: js, Stream: stream, Subject: "log.a", Session: "first", Plays: func(_ context.Context, session string) bool {
		asked = append(asked, session)
		return true
	}}
	open := func(session string, want error) *Chain {
		t.Helper()
		c.Session = session
		j, _, err := Open(t.Context(), c)
		if !errors.Is(err, want) {
			t.Fatalf("%s: %v, want %v", session, err, want)
		}
		return j
	}
	open("first", nil)
	first := open("first", nil)
	open("second", ErrPlayed)
	if err := first.Put(t.Context(), &Released{}); err != nil {
		t.Fatal(err)
	}
	open("second", nil)
	if !slices.Equal(asked, []string{"first"}) {
		t.Errorf("asked whether %q play it", asked)
	}
}

// TestCheck: who looks finds out that another has claimed the chain, without writing.
func TestCheck(t *testing.T) {
	t.Parallel()
	js, stream := newStream(t)
	c := Config{JetStream: js, Stream: stream, Subject: "log.a", Session: "first"}
	first, _, err := Open(t.Context(), c)
	if err == nil {
		err = errors.Join(first.Append(t.Context(), &journal.Ended{Episode: 1}), first.Check(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Session = "second"
	second, _, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := first.Check(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("%v, want it fenced", err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Check(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an empty chain: %v, want it fenced", err)
	}
}

// TestUnfinished: parts whose writer died before the last are no message.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	claim := open(t)
	c, _ := claim(t, "log.a")
	message, err := c.writer.Encode(&journal.Ended{Stack: strings.Repeat("x", 100)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.publish(t.Context(), splitMessage(message, headers+50)[0]); err != nil {
		t.Fatal(err)
	}
	next, _ := claim(t, "log.a")
	if err := next.Append(t.Context(), &journal.Ended{Episode: 7}); err != nil {
		t.Fatal(err)
	}
	last, past := claim(t, "log.a")
	head, err := last.Head(t.Context())
	if err != nil || head.Ended.Len() != 1 || !head.Ended.Has(7) || past.Deaths(8) != 0 {
		t.Errorf("%v, %d ends, %+v; want episode 7 alone", err, head.Ended.Len(), past)
	}
}

// TestDeaths: claims of others since an episode's last entry are deaths, unless the lot was given back.
func TestDeaths(t *testing.T) {
	t.Parallel()
	alone := func(session string, episode int) *Claim {
		return &Claim{Session: session, Trying: []int{episode}}
	}
	group := func(session string, episodes ...int) *Claim { return &Claim{Session: session, Trying: episodes} }
	claim := func(session string) *Claim { return &Claim{Session: session} }
	turned := func(episode int) *journal.Turned { return &journal.Turned{Turn: journal.Turn{Episode: episode}} }
	ended, released := &journal.Ended{Episode: 5}, &Released{}
	for _, c := range []struct {
		name   string
		items  []any
		deaths [3]int // at the episodes 5, 6 and 7
		want   Past
	}{
		{"a new chain", nil, [3]int{}, Past{}},
		{"three died", []any{claim("a"), claim("b"), claim("c")}, [3]int{3, 3, 3}, Past{}},
		{"one gave it back", []any{claim("a"), claim("b"), released}, [3]int{1, 1, 1}, Past{}},
		{"one was slow and claimed it again", []any{claim("a"), claim("a"), claim("b"), claim("a")}, [3]int{2, 2, 2}, Past{}},
		{"this one was slow", []any{claim("me"), claim("a"), claim("me")}, [3]int{1, 1, 1}, Past{}},
		{"progress", []any{claim("a"), claim("b"), ended}, [3]int{}, Past{}},
		{"died once after progress", []any{claim("a"), turned(5), turned(6), claim("b"), turned(6)}, [3]int{1, 0, 0}, Past{}},
		{"progress of one that gave it back", []any{claim("a"), claim("b"), turned(5), released}, [3]int{}, Past{}},
		{"progress of another episode", []any{claim("a"), turned(5), claim("b"), turned(6), claim("c"), turned(6), claim("d")}, [3]int{3, 1, 1}, Past{}},
		{"progress of all episodes", []any{claim("a"), turned(5), turned(6), claim("b"), turned(6), turned(5)}, [3]int{}, Past{}},
		{"the end of an episode", []any{claim("a"), turned(5), claim("b"), claim("c"), ended, claim("d"), claim("e")}, [3]int{0, 2, 2}, Past{}},
		{"a reply after the end", []any{claim("a"), ended, claim("b"), turned(5), claim("c")}, [3]int{0, 2, 2}, Past{}},
		{"progress in the run file", []any{turned(5), &Seeded{}, claim("a"), turned(6), claim("b"), turned(6)}, [3]int{2, 0, 0}, Past{}},
		{"died at an episode", []any{claim("a"), alone("a", 5), claim("b"), alone("b", 5)}, [3]int{2, 2, 2}, Past{Tried: []int{5}, TriedDeaths: 2, Group: 1}},
		{"died at an episode with progress", []any{claim("a"), alone("a", 5), turned(5)}, [3]int{}, Past{Tried: []int{5}, Group: 1}},
		{"died after an episode", []any{claim("a"), alone("a", 5), turned(5), ended}, [3]int{}, Past{Group: 1}},
		{"this one was slow at an episode", []any{claim("a"), alone("a", 5), claim("me"), alone("me", 5), claim("me"), alone("me", 5)}, [3]int{1, 1, 1}, Past{Tried: []int{5}, TriedDeaths: 1, Group: 1}},
		{"died at another episode", []any{claim("a"), alone("a", 5), claim("b"), alone("b", 6)}, [3]int{2, 2, 2}, Past{Tried: []int{6}, TriedDeaths: 1, Group: 1}},
		{"gave an episode back", []any{claim("a"), alone("a", 5), released}, [3]int{}, Past{Group: 1}},
		{"died at an episode that another gave back", []any{claim("a"), alone("a", 5), claim("b"), alone("b", 5), released}, [3]int{1, 1, 1}, Past{Tried: []int{5}, TriedDeaths: 1, Group: 1}},
		{"one gave it back before it tried", []any{claim("a"), claim("b"), claim("c"), alone("c", 5), turned(5), claim("d"), released}, [3]int{}, Past{Tried: []int{5}, Group: 1}},
		{"gave a group back", []any{claim("a"), group("a", 5, 6), released}, [3]int{}, Past{Group: 2}},
		{"died at a group", []any{claim("a"), group("a", 5, 6, 7)}, [3]int{1, 1, 1}, Past{Tried: []int{5, 6, 7}, TriedDeaths: 1, Group: 1}},
		{"died at a group with progress", []any{claim("a"), group("a", 5, 6, 7, 8), turned(6)}, [3]int{0, 0, 0}, Past{Tried: []int{5, 6, 7, 8}, Group: 2}},
		{"died at a group after one ended", []any{claim("a"), group("a", 5, 6, 7, 8), ended}, [3]int{0, 0, 0}, Past{Tried: []int{6, 7, 8}, Group: 2}},
		{"this one was slow at a group", []any{claim("me"), group("me", 5, 6)}, [3]int{}, Past{Tried: []int{5, 6}, Group: 2}},
		{"found which one it was", []any{claim("a"), alone("a", 5), claim("b"), &journal.Ended{Episode: 5, Outcome: world.Outcome{Failed: "died"}}}, [3]int{}, Past{}},
		{"done", []any{claim("a"), alone("a", 5), ended, &Done{}}, [3]int{}, Past{Done: true, Group: 1}},
	} {
		var got Past
		for _, item := range c.items {
			got.see(item)
		}
		got.claimedBy("me")
		deaths := [3]int{got.Deaths(5), got.Deaths(6), got.Deaths(7)}
		if deaths != c.deaths || !slices.Equal(got.Tried, c.want.Tried) || got.TriedDeaths != c.want.TriedDeaths || got.Group != c.want.Group || got.Done != c.want.Done {
			t.Errorf("%s: %v deaths, want %v; %+v, want %+v", c.name, deaths, c.deaths, got, c.want)
		}
	}
}
