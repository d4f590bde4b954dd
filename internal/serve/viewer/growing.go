package viewer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"parley/internal/run/runfile"
	"parley/journal"
)

// maxGrowing is how many episodes of a run Growing keeps, without the messages of their requests.
const maxGrowing = 4

// growing reads a run whose episodes are being played. A page that follows one reads it again at each change: Sparing reads
// only what is new since, and keeps the rest. It is safe for use by several goroutines. Those that read one episode wait for each other.
type growing struct {
	*runfile.Store
	since func(ctx context.Context, episode int, after int64) ([]journal.Entry, map[*journal.Replied]int64, int64, error) // of Store

	mu   sync.Mutex // never held while something is read
	kept []*grown   // the one that was looked at last is the last
}

// grown is what was read of an episode.
type grown struct {
	episode int
	reading chan struct{} // has one place, for who uses the rest
	entries []journal.Entry
	keys    map[*journal.Replied]int64
	last    int64 // entry
}

func newGrowing(store *runfile.Store) *growing { return &growing{Store: store, since: store.Since} }

// Sparing reads an episode as that of Store does.
func (g *growing) Sparing(ctx context.Context, episode int) (out []journal.Entry, fill func(...*journal.Replied) error, err error) {
	of := g.keep(episode)
	select {
	case of.reading <- struct{}{}:
		defer func() { <-of.reading }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	entries, keys, last, err := g.since(ctx, episode, of.last)
	if err != nil {
		of.entries, of.keys, of.last = nil, nil, 0 // what was read before may be wrong too
		return nil, nil, err
	}
	if of.keys == nil {
		of.keys = map[*journal.Replied]int64{}
	}
	of.entries, of.last = append(of.entries, entries...), last
	maps.Copy(of.keys, keys)
	out, copied := make([]journal.Entry, len(of.entries)), make(map[*journal.Replied]int64, len(of.keys))
	for i, e := range of.entries {
		if r, ok := e.(*journal.Replied); ok { // fill changes it
			one := *r
			copied[&one], e = of.keys[r], &one
		}
		out[i] = e
	}
	return out, func(replies ...*journal.Replied) error { return g.Fill(episode, copied, replies...) }, nil
}

// keep returns what is kept of an episode, which is little at first, and drops the episode that nobody looked at for longest.
func (g *growing) keep(episode int) *grown {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.drop(episode)
	if of == nil {
		of = &grown{episode: episode, reading: make(chan struct{}, 1)}
	}
	g.kept = append(g.kept, of)
	g.kept = slices.Delete(g.kept, 0, max(0, len(g.kept)-maxGrowing))
	return of
}

// drop removes what is kept of an episode, and returns it. g.mu is held.
func (g *growing) drop(episode int) *grown {
	i := slices.IndexFunc(g.kept, func(of *grown) bool { return of.episode == episode })
	if i < 0 {
		return nil
	}
	of := g.kept[i]
	g.kept = slices.Delete(g.kept, i, i+1)
	return of
}

// Forget drops what is kept of an episode, such as when it has ended. It does not wait for who reads it. A page that found the
// episode before its end and reads it after Forget keeps it again: until the next page, which forgets it too.
func (g *growing) Forget(episode int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(episode)
}
