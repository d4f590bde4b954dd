package runfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/internal/kit/testkit"
	"parley/journal"
	"parley/journal/journaltest"
)

const crashSeed, crashEntries = 21, 800

// writeUntilKilled appends the rest of a run's entries, a few at a time, and prints their number after
// each commit.
func writeUntilKilled(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Either)
	if err != nil {
		return err
	}
	entries := journaltest.Run(crashSeed, crashEntries)
	n := 0
	if err := s.Read(ctx, journal.Whole(), func(journal.Entry) error { n++; return nil }); err != nil {
		return err
	}
	for fmt.Println(n); n < len(entries); fmt.Println(n) {
		next := min(len(entries), n+1+n%7)
		if err := s.Append(ctx, entries[n:next]...); err != nil {
			return err
		}
		n = next
	}
	time.Sleep(time.Hour) // it is killed; select {} alone would be a deadlock
	return nil
}

// TestKilled: after a kill -9, the file has every acknowledged entry, unchanged and in order.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	entries := journaltest.Run(crashSeed, crashEntries)
	r := rand.New(rand.NewPCG(1, 2))
	for last := 0; last < crashEntries; {
		acknowledged := last
		writer := testkit.Start(t, path)
		lines := writer.Lines
		for left := 1 + r.IntN(60); left > 0 && acknowledged < crashEntries && lines.Scan(); left-- {
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatal(lines.Text())
			}
			acknowledged = n
		}
		if _, err := Open(t.Context(), path, Resume); !errors.Is(err, ErrPlaying) {
			t.Errorf("a file that another process plays was opened: %v", err)
		}
		writer.Kill()
		for lines.Scan() { // it continued until it was killed
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				acknowledged = n
			}
		}
		writer.Wait()
		s := mustOpen(t, path, Either)
		n := count(t, s)
		if n < acknowledged {
			t.Fatalf("%d entries were acknowledged and %d are there", acknowledged, n)
		}
		journaltest.Same(t, s, entries[:n])
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		last = n
	}
}

// TestDurable: when Append returns, the log is synced, and a copy of the files has everything.
func TestDurable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	if n, err := queryNumber(s.writer.conn, "PRAGMA synchronous"); n != 2 || err != nil {
		t.Errorf("synchronous is %d (%v), and should be 2: FULL", n, err)
	}
	entries := journaltest.Run(9, 100)
	for n := 0; n < len(entries); n += 10 {
		mustAppend(t, s, entries[n:n+10]...)
		reopened(t, filepath.Join(t.TempDir(), "run.db"), readFile(t, path), readFile(t, path+"-wal"), entries, map[int]bool{n + 10: true})
	}
}

// TestTorn: a file whose log is cut or damaged anywhere has the commits before that.
func TestTorn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.db")
	s := mustOpen(t, path, Create)
	entries := journaltest.Run(4, 60)
	wholes := map[int]bool{0: true}
	for n := 0; n < len(entries); {
		next := min(len(entries), n+1+n%9)
		mustAppend(t, s, entries[n:next]...)
		n = next
		wholes[n] = true
	}
	file, wal := readFile(t, path), readFile(t, path+"-wal")
	r := rand.New(rand.NewPCG(3, 4))
	const frame = PageSize + 24
	var cuts []int
	near := []int{0, -1, 1, 24, frame / 2} // the frame's edges, its header, its page
	for at := 32; at <= len(wal); at += 2 * frame {
		cuts = append(cuts, at+near[len(cuts)%len(near)])
	}
	cuts = append(cuts, len(wal))
	for range 20 {
		cuts = append(cuts, r.IntN(len(wal)))
	}
	longest := 0
	for i, at := range cuts {
		torn := append([]byte{}, wal...)
		at = min(at, len(wal))
		if i%2 == 0 || at == len(wal) {
			torn = torn[:at]
		} else {
			torn[at] ^= 0xff
		}
		n := reopened(t, filepath.Join(t.TempDir(), "run.db"), file, torn, entries, wholes)
		longest = max(longest, n)
	}
	if longest != len(entries) {
		t.Errorf("of %d entries at most %d came back", len(entries), longest)
	}
}

// TestSyncLater: if commits are synced later, a power failure can damage any unsynced commit. The file
// has the commits before it.
func TestSyncLater(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	if err := s.SyncLater(); err != nil {
		t.Fatal(err)
	}
	if n, err := queryNumber(s.writer.conn, "PRAGMA synchronous"); n != 1 || err != nil {
		t.Errorf("synchronous is %d (%v), and should be 1: NORMAL", n, err)
	}
	if err := execute(s.writer.conn, "PRAGMA wal_autocheckpoint = 0"); err != nil {
		t.Fatal(err)
	}
	entries := journaltest.Run(4, maxUnsynced+20)
	wholes := map[int]bool{}
	var ends []int // of commits in the log
	for i := range entries {
		mustAppend(t, s, entries[i])
		if want := int64(i%maxUnsynced + 1); s.writer.unsynced() != want {
			t.Fatalf("%d commits are not synced after %d, want %d", s.writer.unsynced(), i+1, want)
		}
		wholes[i] = true
	}
	file, wal := readFile(t, path), readFile(t, path+"-wal")
	for i := 32; i < len(wal); i += PageSize + 24 {
		if binary.BigEndian.Uint32(wal[i+4:]) != 0 {
			ends = append(ends, i)
		}
	}
	if err := s.Sync(); err != nil || s.writer.unsynced() != 0 {
		t.Errorf("%d commits are not synced: %v", s.writer.unsynced(), err)
	}
	spoil := func(back int) []byte {
		torn := bytes.Clone(wal)
		torn[ends[len(ends)-back]+100] ^= 0xff
		return torn
	}
	for _, back := range []int{1, 2, 30, maxUnsynced} {
		if n := reopened(t, filepath.Join(t.TempDir(), "run.db"), file, spoil(back), entries, wholes); n != len(entries)-back {
			t.Errorf("%d entries came back, want %d", n, len(entries)-back)
		}
	}
}

// reopened opens a file with a log and returns its number of entries.
func reopened(t *testing.T, path string, file, wal []byte, entries []journal.Entry, wholes map[int]bool) int {
	t.Helper()
	writeFile(t, path, file)
	writeFile(t, path+"-wal", wal)
	s, err := Open(t.Context(), path, Resume)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := count(t, s)
	if !wholes[n] {
		t.Fatalf("%d entries came back, which is no whole commit", n)
	}
	journaltest.Same(t, s, entries[:n])
	mustAppend(t, s, entries[n:]...) // and it can be resumed
	journaltest.Same(t, s, entries)
	return n
}

// TestCutWhileFolding: a file is complete together with its log if the process was killed while SQLite
// folded the log into it.
func TestCutWhileFolding(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	created := len(readFile(t, path))
	entries := journaltest.Run(4, 400)
	mustAppend(t, s, entries...)
	wal := readFile(t, path+"-wal")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := readFile(t, path)
	for _, pages := range []int{0, 1, 6} {
		n := reopened(t, filepath.Join(t.TempDir(), "run.db"), file[:created+pages*PageSize], wal, entries, map[int]bool{len(entries): true})
		if n != len(entries) {
			t.Errorf("of %d entries %d came back", len(entries), n)
		}
	}
}

// TestLogOfAnother: the log of a deleted run file is not used for a new file with the same name.
func TestLogOfAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	mustAppend(t, s, journaltest.Run(4, 60)...)
	wal := readFile(t, path+"-wal")
	closed(t, s)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+"-wal", wal) // as a kill and a user leave it
	if _, err := Open(t.Context(), path, Either); err == nil || !strings.Contains(err.Error(), path+"-wal") {
		t.Errorf("the error should name the log: %v", err)
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, Either)
	if n := count(t, s); n != 0 {
		t.Errorf("a new file has %d entries", n)
	}
	closed(t, s)
}

// TestFull: if there is no space, nothing is written and nothing is lost, and writing works again once
// there is space.
func TestFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	entries := journaltest.Run(6, 2000)
	mustAppend(t, s, entries[:100]...)
	limit := func(pages string) {
		if err := execute(s.writer.conn, "PRAGMA max_page_count = "+pages); err != nil {
			t.Fatal(err)
		}
	}
	limit("30")
	err := s.Append(t.Context(), entries[100:]...)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("the error should name the file and the cause: %v", err)
	}
	journaltest.Same(t, s, entries[:100])
	limit("1000000")
	mustAppend(t, s, entries[100:]...)
	journaltest.Same(t, s, entries)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk is TestFull on a full disk. Set PARLEY_TEST_SMALL_DISK to a folder on a disk of a few
// megabytes, such as a tmpfs.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	small := os.Getenv("PARLEY_TEST_SMALL_DISK")
	if small == "" {
		t.Skip("needs a small disk")
	}
	dir, err := os.MkdirTemp(small, "") //nolint:usetesting // it must be on that disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	writeFile(t, filepath.Join(dir, "filler"), make([]byte, 1<<20))
	s := mustOpen(t, filepath.Join(dir, "run.db"), Create)
	entries := journaltest.Run(6, 6000)
	n := 0
	for ; n < len(entries) && err == nil; n += 40 {
		err = s.Append(t.Context(), entries[n:min(n+40, len(entries))]...)
	}
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("the disk should be full: %v", err)
	}
	n -= 40
	journaltest.Same(t, s, entries[:n])
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, entries[n:n+40]...)
	journaltest.Same(t, s, entries[:n+40])
}
