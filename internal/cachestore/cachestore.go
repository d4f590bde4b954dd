// Package cachestore keeps bytes by a 32-byte key, in memory and on disk: the
// responses that need not be asked for again.
//
// What it promises: a value comes back whole or not at all. A file that is torn,
// damaged or somebody else's is a miss and is removed; a full disk or a directory that
// may not be written to costs entries, never the run. Any number of goroutines and
// processes may use one directory at once. Both memory and disk hold the entries used
// most recently, up to a size.
//
// What it is not for: it is a cache. An entry may be gone at any time, and a committed
// reply is kept by the journal. Secrets do not belong in it, though only the user can
// read its files.
package cachestore

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Options are the limits of a Store.
type Options struct {
	// MemoryBytes is how much to hold in memory; below zero: nothing. Default: 64 MiB.
	MemoryBytes int64
	// DiskBytes is how much to hold on disk; below zero: no limit. Default: 4 GiB.
	DiskBytes int64
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Stats counts what a Store did since it was opened.
type Stats struct {
	Hits       int64 // found, in memory or on disk
	MemoryHits int64 // found in memory
	Misses     int64
	Writes     int64 // values saved
	Bytes      int64 // held on disk, as far as this process knows; without a directory, in memory
	Evicted    int64 // entries dropped for room: from disk, or without a directory from memory
	Errors     int64 // reads and writes of the disk that failed, damaged files included
}

// Store is a cache. Its methods may be called from any number of goroutines.
type Store struct {
	now    func() time.Time
	memory *memory
	disk   *disk // nil: memory only

	hits, memoryHits, misses, writes, errors atomic.Int64
}

// Open returns the store in dir, which is made if need be. An empty dir means memory only.
func Open(dir string, o Options) (*Store, error) {
	s := &Store{now: o.Now}
	if s.now == nil {
		s.now = time.Now
	}
	s.memory = newMemory(orDefault(o.MemoryBytes, 64<<20))
	if dir == "" {
		return s, nil
	}
	// The version is part of the path: another form of file will never be read as this one.
	root := filepath.Join(dir, "v1")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("cachestore: make the directory: %w", err)
	}
	s.disk = &disk{root: root, limit: orDefault(o.DiskBytes, 4<<30), now: s.now}
	return s, nil
}

func orDefault(n, def int64) int64 {
	if n == 0 {
		return def
	}
	return n
}

// Load returns the value saved under key. It must not be written to.
func (s *Store) Load(key [32]byte) ([]byte, bool) {
	now := s.now()
	if value, stale, ok := s.memory.get(key, now); ok {
		s.hits.Add(1)
		s.memoryHits.Add(1)
		if stale && s.disk != nil {
			s.disk.touch(key, now)
		}
		return value, true
	}
	if s.disk != nil {
		value, err := s.disk.read(key, now)
		if err != nil {
			s.errors.Add(1)
		}
		if value != nil {
			s.hits.Add(1)
			s.memory.put(key, value, now)
			return value, true
		}
	}
	s.misses.Add(1)
	return nil, false
}

// Save keeps a copy of value under key, in place of what was there. An error is one of
// the disk: the value is in memory all the same, and the caller may go on.
func (s *Store) Save(key [32]byte, value []byte) error {
	s.writes.Add(1)
	s.memory.put(key, append(make([]byte, 0, len(value)), value...), s.now())
	if s.disk == nil {
		return nil
	}
	if err := s.disk.write(key, value); err != nil {
		s.errors.Add(1)
		return fmt.Errorf("cachestore: save: %w", err)
	}
	s.disk.trimIfDue()
	return nil
}

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	st := Stats{
		Hits: s.hits.Load(), MemoryHits: s.memoryHits.Load(), Misses: s.misses.Load(),
		Writes: s.writes.Load(), Errors: s.errors.Load(),
	}
	if s.disk != nil {
		st.Bytes, st.Evicted = s.disk.known.Load()+s.disk.written.Load(), s.disk.evicted.Load()
	} else {
		st.Bytes, st.Evicted = s.memory.stats()
	}
	return st
}

// Close waits for what runs in the background. The store goes on working, but trims
// its directory no more.
func (s *Store) Close() {
	if s.disk != nil {
		s.disk.close()
	}
}
