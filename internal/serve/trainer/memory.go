package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"parley/internal/kit/files"
	"parley/world"
)

// memory is what the server remembers in a file, so that it survives a kill.
type memory struct {
	path  string // empty: nothing survives
	mu    sync.Mutex
	saved remembered
}

type remembered struct {
	// Weights is the version that POST /v1/weights said, Past the earlier ones that can be asked, Paused whether the run is paused, and Run the run that both are about.
	Weights *int   `json:"weight_version,omitempty"`
	Past    []int  `json:"past,omitempty"`
	Paused  bool   `json:"paused,omitempty"`
	Run     string `json:"run"`
}

// maxMemory is the maximum size of the file.
const maxMemory = 64 << 10

func openMemory(path string) (*memory, error) {
	m := &memory{path: path}
	if path == "" {
		return m, nil
	}
	b, err := files.Read(context.Background(), path, maxMemory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err == nil:
		// Another file of that name must not be overwritten.
		err = world.DecodeStrict(b, &m.saved)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the version of the weights, and whether the run is paused, cannot be read: %w: move it away to forget both", path, err)
	}
	return m, nil
}

// of returns what was said about a run.
func (m *memory) of(run string) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saved.about(run)
}

// about forgets what was said about another run. What was said before a run began is about the first.
func (r remembered) about(run string) remembered {
	if r.Run != "" && r.Run != run {
		return remembered{Run: run}
	}
	r.Run = run
	return r
}

// change makes a change about a run durable: the file has what was before or what is now, never a part. Then it calls done, before another
// change is made.
func (m *memory) change(run string, f func(*remembered), done func(remembered)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.saved.about(run)
	f(&next)
	if m.path != "" {
		b, err := json.Marshal(next)
		if err != nil {
			return err
		}
		if err := files.Replace(m.path, 0o600, append(b, '\n')); err != nil {
			return fmt.Errorf("the version of the weights, and whether the run is paused: %w", err)
		}
	}
	m.saved = next
	done(next)
	return nil
}
