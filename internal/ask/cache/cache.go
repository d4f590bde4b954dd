// Package cache keeps bytes by a 32-byte key, in memory and on disk: responses that need not
// be asked for again.
//
// It promises that a value is returned complete or not at all. A file that is torn, damaged or
// foreign is a miss and is removed. A full disk or a read-only directory loses entries, but does
// not stop the run. Any number of goroutines and processes may use one directory at once. Memory
// and disk each hold the most recently used entries, up to a size.
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
	"slices"
	"time"
)

// How much a Store holds.
const (
	memoryBytes = 64 << 20
	diskBytes   = 4 << 30
)

// Store is a cache. Its methods may be called from several goroutines.
type Store struct {
	now    func() time.Time
	memory *memory
	disk   *disk  // nil: memory only, or remote
	remote Remote // nil: there is none
}

// Open returns the store in dir, which is created if necessary. An empty dir means memory only.
func Open(dir string) (*Store, error) {
	s := &Store{now: time.Now, memory: newMemory(memoryBytes)}
	if dir == "" {
		return s, nil
	}
	// The version is part of the path, so that files of another format are never read as this one.
	root := filepath.Join(dir, "v1")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	s.disk = &disk{root: root, limit: diskBytes, now: s.now}
	return s, nil
}

// Remote is a cache in another process. What it returns is hostile.
type Remote interface {
	// Load returns what Frame made of the value of key, or nil.
	Load(ctx context.Context, key [32]byte) (framed []byte, err error)
	// Save stores what Frame made of a value.
	Save(key [32]byte, framed []byte) error
}

// Over returns a store whose values are in r, and the most recently used ones in memory.
func Over(r Remote) *Store {
	return &Store{now: time.Now, memory: newMemory(memoryBytes), remote: r}
}

// Load returns the value of key. The caller must not modify it.
func (s *Store) Load(ctx context.Context, key [32]byte) ([]byte, bool) {
	now := s.now()
	if value, stale, ok := s.memory.get(key, now); ok {
		if stale && s.disk != nil {
			s.disk.touch(key, now)
		}
		return value, true
	}
	value, err := s.read(ctx, key, now)
	if value == nil || err != nil {
		return nil, false
	}
	s.memory.put(key, value, now)
	return value, true
}

// read reads a value from where it is if not in memory. It returns nil if there is none.
func (s *Store) read(ctx context.Context, key [32]byte, now time.Time) ([]byte, error) {
	switch {
	case s.disk != nil:
		return s.disk.read(key, now)
	case s.remote == nil:
		return nil, nil
	}
	framed, err := s.remote.Load(ctx, key)
	if framed == nil || err != nil {
		return nil, err
	}
	return Unframe(key, framed)
}

// Save stores a copy of value under key. An error is about the disk, or the process that has it: the value is in memory
// nevertheless.
func (s *Store) Save(key [32]byte, value []byte) error {
	s.memory.put(key, slices.Clone(value), s.now())
	if s.remote != nil {
		if err := s.remote.Save(key, Frame(key, value)); err != nil {
			return fmt.Errorf("save: %w", err)
		}
		return nil
	}
	if s.disk == nil {
		return nil
	}
	if err := s.disk.write(key, value); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	s.disk.trimIfDue()
	return nil
}

// Close waits for background work. The store continues to work, but does not trim its directory any
// more.
func (s *Store) Close() {
	if s.disk != nil {
		s.disk.close()
	}
}
