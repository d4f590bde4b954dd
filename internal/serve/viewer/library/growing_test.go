package library

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"parley/internal/store/sqlite"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestGrowing reads episodes again and again while they are played: each entry is read from the file once, and the result is
// that of reading everything. What a caller fills in is its own.
func TestGrowing(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.parley"), sqlite.Create)
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
			turn := journal.Turn{Episode: episode, Turn: i}
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
}
