package cache

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/internal/kit/files"
)

// onDisk returns the number and size of the entries in the directory of s.
func onDisk(t testing.TB, s *Store) (n int, size int64) {
	t.Helper()
	s.disk.walk(func(_ string, info fs.FileInfo) {
		n++
		size += info.Size()
	})
	return n, size
}

func TestTrimDropsWhatWasUsedLongestAgo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := open(t, t.TempDir(), limits{disk: -1, now: func() time.Time { return now }})
	const size = 1000
	for i := range 100 {
		name := fmt.Sprint(i)
		save(t, s, name, valueOf("v", size-headerSize))
		s.disk.touch(keyOf(name), now.Add(-time.Duration(i)*time.Hour))
	}
	s.disk.limit = 60 * size
	s.disk.trim()
	for i := range 100 {
		if _, ok := s.Load(t.Context(), keyOf(fmt.Sprint(i))); ok != (i < 48) {
			t.Errorf("entry %d, %d hours old: kept is %v", i, i, ok)
		}
	}
	s.disk.trim()
	if n, left := onDisk(t, s); n != 48 || left != 48*size {
		t.Errorf("after a second trim, %d entries of %d bytes are left", n, left)
	}
}

func TestTrimOfEqualAges(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := open(t, t.TempDir(), limits{disk: -1, now: func() time.Time { return now }})
	for i := range 100 {
		save(t, s, fmt.Sprint(i), valueOf("v", 1000-headerSize))
	}
	s.disk.limit = 50_000
	s.disk.trim()
	if n, size := onDisk(t, s); n != 40 || size != 40_000 {
		t.Errorf("%d entries of %d bytes are left", n, size)
	}
}

func TestDiskStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	const limit = 200_000
	s := open(t, t.TempDir(), limits{disk: limit})
	for i := range 1000 {
		save(t, s, fmt.Sprint(i), valueOf("v", 2000))
		s.disk.wg.Wait() // a trim in the background would lag behind these writes
		if i%100 == 99 {
			if _, size := onDisk(t, s); size > limit {
				t.Fatalf("%d bytes after %d writes", size, i+1)
			}
		}
	}
	s.Close()
}

func TestTrimLock(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), limits{disk: -1})
	for i := range 10 {
		save(t, s, fmt.Sprint(i), valueOf("v", 1000))
	}
	s.disk.limit = 2000
	lock, err := files.TakeLock(s.disk.lockPath())
	if err != nil {
		t.Fatal(err)
	}
	s.disk.trim()
	if n, _ := onDisk(t, s); n != 10 {
		t.Errorf("trimmed to %d while another process held the lock", n)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	s.disk.trim()
	if n, _ := onDisk(t, s); n != 1 {
		t.Errorf("%d entries are left after the other process released the lock", n)
	}
	if _, err := os.Stat(s.disk.lockPath()); !os.IsNotExist(err) {
		t.Errorf("the lock is still there: %v", err)
	}
}

func TestTrimLeavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := open(t, t.TempDir(), limits{disk: -1, now: func() time.Time { return now }})
	save(t, s, "a", valueOf("v", 1000))
	dir := filepath.Dir(s.disk.path(keyOf("a")))
	names := map[string]bool{"README": true, files.TempPrefix + "new": true, files.TempPrefix + "old": false}
	for name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := now.Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, files.TempPrefix+"old"), old, old); err != nil {
		t.Fatal(err)
	}
	s.disk.limit = 10
	s.disk.trim()
	wantNone(t, s, "a")
	for name, kept := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != kept {
			t.Errorf("%s: %v, want it kept: %v", name, err, kept)
		}
	}
}

func TestCloseEndsTrimming(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), limits{disk: 1000})
	s.Close()
	for i := range 10 {
		save(t, s, fmt.Sprint(i), valueOf("v", 1000))
	}
	s.disk.trim()
	if n := len(entries(t, s)); n != 10 {
		t.Errorf("%d entries are left", n)
	}
}

func entries(t testing.TB, s *Store) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.disk.root, "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func BenchmarkDisk(b *testing.B) {
	s := open(b, b.TempDir(), limits{})
	value := valueOf("v", 4000)
	for i := 0; b.Loop(); i++ {
		key := keyOf(fmt.Sprint(i % 1000))
		if err := s.Save(key, value); err != nil {
			b.Fatal(err)
		}
		s.Load(b.Context(), key)
	}
}
