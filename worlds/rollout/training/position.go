package training

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

// position is what the server remembers in a file: the position of a client without a cursor, and the version of the
// weights that a trainer has.
type position struct {
	path string // empty: in memory only
	mu   sync.Mutex
	kept kept
}

type kept struct {
	Cursor string `json:"cursor"`
	// Weights is the version that POST /v1/weights said, and Run the run that was played then.
	Weights *int   `json:"weight_version,omitempty"`
	Run     string `json:"run,omitempty"`
}

// maxPosition is the maximum size of the file.
const maxPosition = 64 << 10

func openPosition(path string) (*position, error) {
	p := &position{path: path}
	if path == "" {
		return p, nil
	}
	b, err := files.Read(context.Background(), path, maxPosition)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err == nil:
		// Another file of that name must not be overwritten.
		err = world.DecodeStrict(b, &p.kept)
	}
	if err != nil {
		return nil, fmt.Errorf("trainer: %s: how far /get_rollout_data has come, and the version of the weights, cannot be read: %w: move it away to begin at the start", path, err)
	}
	return p, nil
}

// cursor returns the position of the client.
func (p *position) cursor() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept.Cursor
}

// save makes the position of the client durable.
func (p *position) save(cursor string) error {
	if err := p.change(func(k *kept) { k.Cursor = cursor }); err != nil {
		return fmt.Errorf("trainer: how far /get_rollout_data has come: %w", err)
	}
	return nil
}

// saveWeights makes the version of the weights durable.
func (p *position) saveWeights(version int, run string) error {
	if err := p.change(func(k *kept) { k.Weights, k.Run = &version, run }); err != nil {
		return fmt.Errorf("trainer: the version of the weights: %w", err)
	}
	return nil
}

// change makes a change durable: the file has what was before or what is now, never a part.
func (p *position) change(f func(*kept)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.kept
	if f(&next); next == p.kept {
		return nil
	}
	if p.path != "" {
		b, err := json.Marshal(next)
		if err != nil {
			return err
		}
		if err := files.Replace(p.path, 0o600, append(b, '\n')); err != nil {
			return err
		}
	}
	p.kept = next
	return nil
}

// weights returns the version of the weights, if it was said about this run.
func (p *position) weights(run string) *int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if run == "" || p.kept.Run != run {
		return nil
	}
	return p.kept.Weights
}
