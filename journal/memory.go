package journal

import (
	"context"
	"slices"
	"sync"
)

// Memory is a Journal that lasts as long as the process. It is the twin of the real
// ones for tests, and for plays that nobody wants to keep.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
}

// Append adds entries.
func (m *Memory) Append(_ context.Context, entries ...Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = append(m.entries, entries...)
	return nil
}

// Head folds the entries.
func (m *Memory) Head(context.Context) (*Head, error) {
	h := &Head{}
	for _, e := range m.all() {
		h.Add(e)
	}
	return h, nil
}

// Episode returns the turns and replies of one episode.
func (m *Memory) Episode(_ context.Context, episode int) ([]Entry, error) {
	var out []Entry
	for _, e := range m.all() {
		switch t := e.(type) {
		case *Turned:
			if t.Episode == episode {
				out = append(out, e)
			}
		case *Replied:
			if t.Episode == episode {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// Read calls each with every entry.
func (m *Memory) Read(_ context.Context, each func(Entry) error) error {
	for _, e := range m.all() {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) all() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.entries)
}

var _ Journal = (*Memory)(nil)
