// Package journaltest tests that stores keep the promises of journal.Journal.
//
// Exercise is the suite that each store runs in its own tests; Fencing is for stores that several
// processes can open. Run generates the entries of a run, for tests of readers of a journal.
//
// It cannot test power failure; a store has to test that itself.
package journaltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/world"
)

// OpenFunc opens an empty journal. Its reopen closes the journal and opens it again, as another
// process would; a journal in memory returns itself.
type OpenFunc func(t *testing.T) (j journal.Journal, reopen func() journal.Journal)

// Exercise tests that the journals that open makes keep the promises of journal.Journal.
func Exercise(t *testing.T, open OpenFunc) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, OpenFunc)
	}{
		{"empty", empty},
		{"order", order},
		{"reopen", reopened},
		{"raised", raised},
		{"all or nothing", allOrNothing},
		{"stop reading", stopReading},
		{"readers and a writer", readersAndWriter},
		{"many writers", manyWriters},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open)
		})
	}
}

func empty(t *testing.T, open OpenFunc) {
	j, reopen := open(t)
	Same(t, j, nil)
	Same(t, reopen(), nil)
}

// order checks that what is read is what was appended, however it is read.
func order(t *testing.T, open OpenFunc) {
	for seed := range uint64(4) {
		j, _ := open(t)
		entries := Run(seed, 400)
		for _, batch := range batches(seed, entries) {
			mustAppend(t, j, batch)
		}
		Same(t, j, entries)
	}
}

// reopened checks that the next process finds what was appended, and continues from it.
func reopened(t *testing.T, open OpenFunc) {
	j, reopen := open(t)
	entries := Run(7, 400)
	written := 0
	for _, batch := range batches(7, entries) {
		mustAppend(t, j, batch)
		before := written
		if written += len(batch); written/100 > before/100 {
			j = reopen()
			Same(t, j, entries[:written])
		}
	}
	Same(t, reopen(), entries)
}

// allOrNothing checks that an Append that fails has written nothing, and that the next one works.
func allOrNothing(t *testing.T, open OpenFunc) {
	j, reopen := open(t)
	entries := Run(3, 200)
	mustAppend(t, j, entries[:100])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := entries[:100]
	if err := j.Append(ctx, entries[100:150]...); err == nil {
		want = entries[:150]
	}
	Same(t, j, want)
	mustAppend(t, j, entries[len(want):])
	Same(t, reopen(), entries)
}

func stopReading(t *testing.T, open OpenFunc) {
	j, _ := open(t)
	mustAppend(t, j, Run(5, 50))
	stop := errors.New("enough")
	n := 0
	err := j.Read(t.Context(), journal.Whole(), func(journal.Entry) error {
		if n++; n == 7 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 7 {
		t.Errorf("reading ended with %v after %d entries, want %v after 7", err, n, stop)
	}
}

// readersAndWriter checks that readers beside a writer see whole commits, in order.
func readersAndWriter(t *testing.T, open OpenFunc) {
	j, _ := open(t)
	entries := Run(11, 600)
	all := batches(11, entries)
	whole := map[int]bool{0: true}
	calls := map[int]int{} // by number of entries
	written, answered := 0, 0
	for _, batch := range all {
		for _, e := range batch {
			if _, ok := e.(*journal.Replied); ok {
				answered++
			}
		}
		written += len(batch)
		whole[written] = true
		calls[answered]++
	}
	calls[0]++

	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for last := 0; ; {
				select {
				case <-done:
					return
				default:
				}
				got := read(t, j)
				if !whole[len(got)] || len(got) < last {
					t.Errorf("a reader saw %d entries, which is no whole commit, or fewer than %d before", len(got), last)
					return
				}
				last = len(got)
				h, err := j.Head(t.Context())
				if err != nil || calls[h.Calls] == 0 {
					t.Errorf("a reader saw a head that is of no whole commit: %v, %v", h, err)
					return
				}
			}
		})
	}
	for _, batch := range all {
		mustAppend(t, j, batch)
	}
	close(done)
	wg.Wait()
	Same(t, j, entries)
}

// manyWriters checks that Appends of several goroutines do not mix.
func manyWriters(t *testing.T, open OpenFunc) {
	j, _ := open(t)
	const writers, each, size = 8, 10, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				var batch []journal.Entry
				for k := range size {
					batch = append(batch, &journal.Turned{Turn: journal.Turn{Episode: w, Turn: i*size + k}})
				}
				if err := j.Append(t.Context(), batch...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := read(t, j)
	if len(got) != writers*each*size {
		t.Fatalf("%d entries were appended and %d are there", writers*each*size, len(got))
	}
	for i, e := range got {
		first, turned := got[i-i%size].(*journal.Turned), e.(*journal.Turned)
		if turned.Episode != first.Episode || turned.Turn.Turn != first.Turn.Turn+i%size {
			t.Fatalf("entry %d is of another Append than those before it", i)
		}
	}
	fold(t, j, got)
}

// Fencing tests a store that several processes can open. open returns two openings of the same
// empty journal; the second was opened later and took over.
func Fencing(t *testing.T, open func(t *testing.T) (first, second journal.Journal)) {
	t.Helper()
	first, second := open(t)
	entries := Run(13, 100)
	for range 2 {
		if err := first.Append(t.Context(), entries[0]); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("the writer that lost its place got %v, and should get %v", err, journal.ErrFenced)
		}
	}
	Same(t, second, nil)
	mustAppend(t, second, entries[:50])
	if err := first.Append(t.Context(), entries[50]); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the writer that lost its place got %v, and should get %v", err, journal.ErrFenced)
	}
	mustAppend(t, second, entries[50:])
	Same(t, second, entries)
	Same(t, first, entries)
}

// Same checks that j holds exactly want, however it is read.
func Same(t *testing.T, j journal.Journal, want []journal.Entry) {
	t.Helper()
	got := read(t, j)
	if len(got) != len(want) {
		t.Fatalf("the journal holds %d entries, and should hold %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("entry %d is\n%s\nand should be\n%s", i, show(got[i]), show(want[i]))
		}
	}
	fold(t, j, want)
}

// fold checks Head and Episode against the entries.
func fold(t *testing.T, j journal.Journal, entries []journal.Entry) {
	t.Helper()
	want := &journal.Head{}
	byEpisode := map[int][]journal.Entry{-1: nil}
	ends := map[int]journal.Ended{}
	for _, e := range entries {
		want.Add(e)
		switch e := e.(type) {
		case *journal.Ended:
			ends[e.Episode] = *e
		case *journal.Turned:
			byEpisode[e.Episode] = append(byEpisode[e.Episode], e)
		case *journal.Replied:
			byEpisode[e.Episode] = append(byEpisode[e.Episode], e)
		}
	}
	got, err := j.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := headDiff(got, want); diff != "" {
		t.Fatalf("the head is not the fold of the entries: %s", diff)
	}
	maps.DeleteFunc(ends, func(episode int, _ journal.Ended) bool { return !want.Ended.Has(episode) }) // there is a later attempt
	if got := Ends(t, j); !maps.EqualFunc(got, ends, func(a, b journal.Ended) bool { return reflect.DeepEqual(a, b) }) {
		t.Fatalf("%d complete ends are not the same as the %d that were appended", len(got), len(ends))
	}
	for episode, want := range byEpisode {
		got, err := journal.Episode(t.Context(), j, episode)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, func(a, b journal.Entry) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("episode %d is not what was appended of it: it has %d entries of %d", episode, len(got), len(want))
		}
	}
	replay(t, j, want, byEpisode)
	since := len(entries)/2 + 1
	var late []journal.Entry
	if err := j.Read(t.Context(), journal.Span{Since: since}, func(e journal.Entry) error { late = append(late, e); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(late, entries[min(len(entries), since-1):], func(a, b journal.Entry) bool { return reflect.DeepEqual(a, b) }) {
		t.Fatalf("since entry %d there are %d entries of %d", since, len(late), len(entries))
	}
}

// replay checks what is read to resume a run: the episodes that have not ended, and of them what
// their worlds were given.
func replay(t *testing.T, j journal.Journal, head *journal.Head, byEpisode map[int][]journal.Entry) {
	t.Helper()
	last := slices.Max(slices.Collect(maps.Keys(byEpisode)))
	got := map[int][]replayed{}
	err := j.Read(t.Context(), journal.Span{To: max(1, last+1), Replay: true}, func(e journal.Entry) error {
		r := replayedOf(e)
		got[r.at.Episode] = append(got[r.at.Episode], r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for episode, want := range byEpisode {
		if head.Progress(episode).Ended {
			want = nil
		}
		if !slices.EqualFunc(got[episode], want, func(a replayed, b journal.Entry) bool { return reflect.DeepEqual(a, replayedOf(b)) }) {
			t.Fatalf("episode %d is not what is needed to resume it: %d entries of %d", episode, len(got[episode]), len(want))
		}
	}
}

// replayed is what a resumed run needs of a turn or a reply.
type replayed struct {
	at     journal.Turn
	digest journal.Digest
	calls  int
	index  int
	reply  world.Reply
	cost   llm.Money
	tokens [2]int
}

func replayedOf(e journal.Entry) replayed {
	switch e := e.(type) {
	case *journal.Turned:
		return replayed{at: e.Turn, digest: e.Digest, calls: e.Calls}
	case *journal.Replied:
		return replayed{at: e.Turn, index: e.Index, reply: e.Reply(), cost: e.Cost(), tokens: tokens(e)}
	default:
		return replayed{}
	}
}

func tokens(e *journal.Replied) [2]int {
	switch {
	case e.Error != nil:
		return [2]int{e.Error.Usage.Input, e.Error.Usage.Output}
	case e.Response != nil:
		return [2]int{e.Response.Usage.Input, e.Response.Usage.Output}
	default:
		return [2]int{}
	}
}

func headDiff(got, want *journal.Head) string {
	for _, f := range []struct {
		name      string
		got, want any
	}{
		{"Begun", got.Begun, want.Begun}, {"Stages", got.Stages, want.Stages}, {"Calls", got.Calls, want.Calls},
		{"Spent", got.Spent, want.Spent}, {"Risked", got.Risked, want.Risked}, {"Cut", got.Cut, want.Cut}, {"Lost", got.Lost, want.Lost},
		{"Owed", got.Owed, want.Owed}, {"Last", got.Last, want.Last},
	} {
		if !reflect.DeepEqual(f.got, f.want) {
			return fmt.Sprintf("%s is %v and should be %v", f.name, f.got, f.want)
		}
	}
	switch {
	case !reflect.DeepEqual(slices.Collect(got.Ended.All()), slices.Collect(want.Ended.All())):
		return "Ended is not the same"
	case !maps.Equal(got.Allotted, want.Allotted):
		return fmt.Sprintf("Allotted is %v and should be %v", got.Allotted, want.Allotted)
	case !maps.Equal(got.Batches, want.Batches):
		return fmt.Sprintf("Batches is %v and should be %v", got.Batches, want.Batches)
	case !maps.Equal(got.Playing, want.Playing):
		return fmt.Sprintf("Playing is %v and should be %v", got.Playing, want.Playing)
	}
	return ""
}

func read(t *testing.T, j journal.Journal) (all []journal.Entry) {
	t.Helper()
	if err := j.Read(t.Context(), journal.Whole(), func(e journal.Entry) error { all = append(all, e); return nil }); err != nil {
		t.Error(err)
	}
	return all
}

func mustAppend(t *testing.T, j journal.Journal, entries []journal.Entry) {
	t.Helper()
	if err := j.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

// batches cuts entries into commits of uneven size.
func batches(seed uint64, entries []journal.Entry) (out [][]journal.Entry) {
	r := rand.New(rand.NewPCG(seed, 1))
	for len(entries) > 0 {
		n := min(len(entries), 1+r.IntN(25))
		out = append(out, entries[:n])
		entries = entries[n:]
	}
	return out
}

func show(e journal.Entry) string {
	if r, ok := e.(*journal.Replied); ok {
		return fmt.Sprintf("%+v\nrequest %+v\nact %+v\nresponse %+v\nerror %#v", r, r.Request, r.Act, r.Response, r.Error)
	}
	return fmt.Sprintf("%#v", e)
}
