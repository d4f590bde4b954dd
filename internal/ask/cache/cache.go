// Package cache keeps bytes by a 32-byte key, in a directory: responses that need not
// be asked for again.
//
// It promises that a value is returned complete or not at all. A file that is torn, damaged or
// foreign is a miss and is removed. A full disk or a read-only directory loses entries, but does
// not stop the run. Any number of goroutines and processes may use one directory at once. It
// holds the most recently used entries, up to a size.
//
// A process that plays for another has a store over a Remote instead of a directory: the directory is where the other process is.
//
// It is only a cache: an entry may be gone at any time, and the journal keeps committed replies. Do
// not store secrets in it, though only the user can read its files.
package cache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// diskBytes is how much a directory holds.
const diskBytes = 4 << 30

// Store is a cache. Its methods may be called from several goroutines.
type Store struct {
	disk   *disk  // nil: it is remote
	remote Remote // nil: it is on disk
}

// Open returns the store in dir, which is created if necessary.
func Open(dir string) (*Store, error) {
	// The version is part of the path, so that files of another format are never read as this one.
	root := filepath.Join(dir, "v1")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	return &Store{disk: &disk{root: root, limit: diskBytes, now: time.Now}}, nil
}

// Remote is a cache in another process. What it returns is hostile.
type Remote interface {
	// Load returns what Frame made of the value of key, or nil.
	Load(ctx context.Context, key [32]byte) (framed []byte, err error)
	// Save stores what Frame made of a value.
	Save(key [32]byte, framed []byte) error
}

// Over returns a store whose values are in r.
func Over(r Remote) *Store { return &Store{remote: r} }

// Load returns the value of key.
func (s *Store) Load(ctx context.Context, key [32]byte) ([]byte, bool) {
	value, err := s.read(ctx, key)
	return value, value != nil && err == nil
}

// read returns nil if there is no value.
func (s *Store) read(ctx context.Context, key [32]byte) ([]byte, error) {
	if s.disk != nil {
		return s.disk.read(key)
	}
	framed, err := s.remote.Load(ctx, key)
	if framed == nil || err != nil {
		return nil, err
	}
	return Unframe(key, framed)
}

// Save stores value under key. An error is about the disk, or the process that has it.
func (s *Store) Save(key [32]byte, value []byte) (err error) {
	if s.disk != nil {
		err = s.disk.write(key, value)
	} else {
		err = s.remote.Save(key, Frame(key, value))
	}
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// Close waits for background work. The store continues to work, but does not trim its directory any
// more.
func (s *Store) Close() {
	if s.disk != nil {
		s.disk.close()
	}
}
