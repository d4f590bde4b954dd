package library

import (
	"context"
	"maps"
	"slices"
	"sync"

	"parley/internal/store/sqlite"
	"parley/journal"
)

// maxGrowing is how many episodes of a run Growing keeps, without the messages of their requests.
const maxGrowing = 4

// Growing reads a run whose episodes are being played. A page that follows one reads it again at each change: Sparing reads
// only what is new since, and keeps the rest. It is safe for use by several goroutines.
type Growing struct {
	*sqlite.Store
	since func(ctx context.Context, episode int, after int64) ([]journal.Entry, map[*journal.Replied]int64, int64, error) // of Store

	mu   sync.Mutex
	kept []*grown // the one that was read last is the last
}

// grown is what was read of an episode.
type grown struct {
	episode int
	entries []journal.Entry
	keys    map[*journal.Replied]int64
	last    int64 // entry
}

func newGrowing(store *sqlite.Store) *Growing { return &Growing{Store: store, since: store.Since} }

// Sparing reads an episode as that of Store does.
func (g *Growing) Sparing(ctx context.Context, episode int) (out []journal.Entry, fill func(...*journal.Replied) error, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.take(episode)
	entries, keys, last, err := g.since(ctx, episode, of.last)
	if err != nil {
		return nil, nil, err // what was read before is not kept: it may be wrong too
	}
	of.entries, of.last = append(of.entries, entries...), last
	out, copied := make([]journal.Entry, len(of.entries)), make(map[*journal.Replied]int64, len(of.keys)+len(keys))
	maps.Copy(of.keys, keys)
	for i, e := range of.entries {
		if r, ok := e.(*journal.Replied); ok { // fill changes it
			one := *r
			copied[&one], e = of.keys[r], &one
		}
		out[i] = e
	}
	g.kept = append(g.kept[max(0, len(g.kept)-maxGrowing+1):], of)
	return out, func(replies ...*journal.Replied) error { return g.Fill(episode, copied, replies...) }, nil
}

// take removes what is kept of an episode, and returns it.
func (g *Growing) take(episode int) *grown {
	if i := slices.IndexFunc(g.kept, func(of *grown) bool { return of.episode == episode }); i >= 0 {
		of := g.kept[i]
		g.kept = slices.Delete(g.kept, i, i+1)
		return of
	}
	return &grown{episode: episode, keys: map[*journal.Replied]int64{}}
}

// Forget drops what is kept of an episode, such as when it has ended.
func (g *Growing) Forget(episode int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.take(episode)
}
