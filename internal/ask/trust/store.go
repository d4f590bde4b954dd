package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxStore limits the size of a store.
const maxStore = 4 << 20

// Store is the file of the user's answers: one JSON object per line. Lines are only appended, each in one write, so any
// number of processes may use a store at once, and a crash loses at most the line being written. A nil Store remembers
// nothing.
type Store struct{ path string }

// NewStore returns the store at path. The file need not exist.
func NewStore(path string) *Store { return &Store{path: path} }

// Path returns the path of the store.
func (s *Store) Path() string { return s.path }

// Load returns the grants. Damaged lines allow nothing: the error names the first of them, and the other grants are
// still returned.
func (s *Store) Load() ([]Grant, error) {
	if s == nil {
		return nil, nil
	}
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("what you allowed cannot be read: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxStore+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("what you allowed cannot be read: %w", err)
	}
	if len(b) > maxStore {
		return nil, fmt.Errorf("%s is larger than %d MiB, and is not used: delete it to start again", s.path, maxStore>>20)
	}
	return s.parse(b)
}

func (s *Store) parse(b []byte) (all []Grant, damage error) {
	for i, line := range bytes.Split(b, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var g Grant
		if err := json.Unmarshal(line, &g); err != nil || g.What == "" || g.Host == "" && (g.What == Variable || g.What == Command) {
			if damage == nil {
				damage = fmt.Errorf("%s:%d: the line is damaged and allows nothing: delete it", s.path, i+1)
			}
			continue
		}
		all = append(all, g)
	}
	return all, damage
}

// Add stores a grant.
func (s *Store) Add(g Grant) (err error) {
	if s == nil {
		return errors.New("there is no folder for your settings to remember it in")
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("it cannot be remembered: %w", err)
		}
	}()
	line, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	// A line that a crash truncated must not damage this one, so every line starts with a newline. Empty lines are
	// skipped.
	_, err = f.Write(append(append([]byte("\n"), line...), '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
