package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Memory is a Journal that lasts as long as the process, for tests and for runs that are not kept.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
	at      Collected
}

// Append adds entries.
func (m *Memory) Append(_ context.Context, entries ...Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if c, ok := e.(*Collected); ok {
			m.at = *c
		} else {
			m.entries = append(m.entries, e)
		}
	}
	return nil
}

// Head folds the entries.
func (m *Memory) Head(context.Context) (*Head, error) {
	h := &Head{}
	for _, e := range m.all() {
		h.Add(e)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h.Collected = m.at
	return h, nil
}

// Read calls each with every entry of in.
func (m *Memory) Read(ctx context.Context, in Span, each func(Entry) error) error {
	head, err := m.Head(ctx)
	if err != nil {
		return err
	}
	all := m.all()
	for _, e := range all[min(len(all), max(0, in.Since-1)):] {
		n, ok := episodeOf(e)
		if in.To > 0 && (!ok || n < in.From || n >= in.To) {
			continue
		}
		if in.Replay && head.Progress(n).Ended {
			continue
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// Outcomes calls each with the ends in entries.
func (m *Memory) Outcomes(_ context.Context, entries []int, each func(*Ended) error) error {
	all := m.all()
	for _, n := range entries {
		if n < 1 || n > len(all) {
			return fmt.Errorf("no entry %d", n)
		}
		if e, ok := all[n-1].(*Ended); ok {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// episodeOf returns the episode that e is a turn or a reply of.
func episodeOf(e Entry) (n int, ok bool) {
	switch e := e.(type) {
	case *Turned:
		return e.Episode, true
	case *Replied:
		return e.Episode, true
	default:
		return 0, false
	}
}

func (m *Memory) all() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clip(m.entries)
}

var _ Journal = (*Memory)(nil)
