package viewer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"parley/internal/run/runfile"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestGrowing reads episodes again and again while they are played: each entry is read from the file once, and the result is
// that of reading everything. What a caller fills in is its own.
func TestGrowing(t *testing.T) {
	t.Parallel()
	store, err := runfile.Open(t.Context(), filepath.Join(t.TempDir(), "a.parley"), runfile.Create)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	add := func(entries ...journal.Entry) {
		if err := store.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	const episodes, turns = maxGrowing, 30
	add(&journal.Begun{Version: journal.Version, Run: "r", Kind: "duel", KindVersion: 1}, &journal.Opened{}, &journal.Staged{Specs: world.Repeat(world.Spec{Kind: "duel"}, episodes+1)})
	read := 0
	g := newGrowing(store)
	g.since = func(ctx context.Context, episode int, after int64) ([]journal.Entry, map[*journal.Replied]int64, int64, error) {
		entries, keys, last, err := store.Since(ctx, episode, after)
		read += len(entries)
		return entries, keys, last, err
	}
	look := func(episode int) {
		t.Helper()
		got, fill, err := g.Sparing(t.Context(), episode)
		want, _, wrong := store.Sparing(t.Context(), episode)
		if err != nil || wrong != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("episode %d: %d entries, want %d; %v, %v", episode, len(got), len(want), err, wrong)
		}
		for _, e := range got {
			if r, ok := e.(*journal.Replied); ok {
				if err := fill(r); err != nil || len(r.Request.Messages) != 1 {
					t.Fatalf("episode %d: %+v: %v", episode, r.Request, err)
				}
			}
		}
	}
	look(0)
	for i := range turns {
		for episode := range episodes {
			turn := journal.Turn{Episode: episode, Attempt: i / 20, Turn: i}
			add(&journal.Turned{Turn: turn, Calls: 1})
			look(episode)
			add(&journal.Replied{Turn: turn, Seat: "one", Request: &llm.Request{Model: "lab/a", Messages: []llm.Message{llm.User(fmt.Sprint(i))}}, Response: &llm.Response{Text: fmt.Sprint("word ", i)}})
			look(episode)
		}
	}
	if want := 2 * turns * episodes; read != want {
		t.Errorf("%d entries were read, want each of %d once", read, want)
	}
	look(episodes) // one more than are kept
	look(0)
	g.Forget(0)
	look(0)
	if want := 2*turns*episodes + 2*2*turns; read != want || len(g.kept) != maxGrowing {
		t.Errorf("%d entries were read, want %d; %d episodes are kept", read, want, len(g.kept))
	}
	for _, of := range g.kept[len(g.kept):cap(g.kept)] {
		if of != nil {
			t.Errorf("episode %d is not kept and still in memory", of.episode)
		}
	}
}

// TestGrowingFails: after an error, an episode is read from its start, also by a page that waited.
func TestGrowingFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("a broken disk")
	var from []int64
	g := &growing{since: func(_ context.Context, _ int, after int64) ([]journal.Entry, map[*journal.Replied]int64, int64, error) {
		if from = append(from, after); len(from) == 2 {
			return nil, nil, 0, broken
		}
		return []journal.Entry{&journal.Turned{}}, nil, after + 1, nil
	}}
	for i, want := range []int{1, 0, 1, 2} {
		got, _, err := g.Sparing(t.Context(), 0)
		if len(got) != want || errors.Is(err, broken) != (i == 1) {
			t.Errorf("%d: %d entries, want %d: %v", i, len(got), want, err)
		}
	}
	if want := []int64{0, 1, 0, 1}; !slices.Equal(from, want) {
		t.Errorf("it was read from %v, want %v", from, want)
	}
}

// TestGrowingWaits: while an episode is read, its other pages wait for that, until they are given up. Nobody else waits.
func TestGrowingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		reads := map[int]int{}
		var mu sync.Mutex
		g := &growing{}
		g.since = func(_ context.Context, episode int, after int64) ([]journal.Entry, map[*journal.Replied]int64, int64, error) {
			if episode == 0 {
				<-release
			}
			mu.Lock()
			defer mu.Unlock()
			if reads[episode]++; after > 0 {
				return nil, nil, after, nil
			}
			return []journal.Entry{&journal.Turned{}}, nil, 1, nil
		}
		done := make(chan int, 2)
		for range 2 {
			go func() {
				got, _, err := g.Sparing(t.Context(), 0)
				if err != nil {
					t.Error(err)
				}
				done <- len(got)
			}()
		}
		synctest.Wait()
		stopped := errors.New("the page was closed")
		ctx, stop := context.WithCancelCause(t.Context())
		stop(stopped)
		if _, _, err := g.Sparing(ctx, 0); !errors.Is(err, stopped) {
			t.Errorf("a page that was given up: %v", err)
		}
		if got, _, err := g.Sparing(t.Context(), 1); len(got) != 1 || err != nil {
			t.Errorf("another episode: %d entries, %v", len(got), err)
		}
		g.Forget(1)
		g.Forget(0)
		close(release)
		if one, two := <-done, <-done; one != 1 || two != 1 || reads[0] != 2 || len(g.kept) != 0 {
			t.Errorf("%d and %d entries after %d reads, %d episodes are kept", one, two, reads[0], len(g.kept))
		}
	})
}
