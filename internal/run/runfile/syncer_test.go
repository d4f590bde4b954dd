package runfile

import (
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"

	"parley/journal/journaltest"
)

// slowFile is a file whose Sync takes until it is told to end.
type slowFile struct{ begins, ends chan struct{} }

func (f slowFile) Sync() error {
	f.begins <- struct{}{}
	<-f.ends
	return nil
}

func (slowFile) Close() error { return nil }

// TestSyncBeside: Append does not wait while Sync waits for the disk or folds the log.
func TestSyncBeside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.db")
	s := mustOpen(t, path, Create)
	if err := s.SyncLater(); err != nil {
		t.Fatal(err)
	}
	y := s.writer.syncer
	disk, slow := y.log, slowFile{make(chan struct{}), make(chan struct{})}
	y.log = slow
	entries := journaltest.Run(4, foldCommits)
	mustAppend(t, s, entries[0])
	synced := make(chan error)
	go func() { synced <- s.Sync() }()
	<-slow.begins
	mustAppend(t, s, entries[1])
	slow.ends <- struct{}{}
	if err := <-synced; err != nil || s.writer.unsynced() != 1 {
		t.Errorf("%d commits are not synced, want the second: %v", s.writer.unsynced(), err)
	}
	y.log = disk
	before := len(readFile(t, path))
	for _, e := range entries[2:] {
		mustAppend(t, s, e)
	}
	if n := len(readFile(t, path)); n != before {
		t.Errorf("Append folded the log: the file has %d bytes, and had %d", n, before)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := len(readFile(t, path)); n == before {
		t.Error("Sync did not fold the log")
	}
}

// TestNoSyncer: without a syncer, the writer goes on to sync each commit.
func TestNoSyncer(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, filepath.Join(t.TempDir(), "run.db"), Create)
	w := s.writer
	path := w.path
	w.path = filepath.Join(t.TempDir(), "none.db") // it has no log
	if err := s.SyncLater(); err == nil {
		t.Fatal("a log that does not exist was opened")
	}
	if full, err := sqlitex.ResultInt64(w.conn.Prep("PRAGMA synchronous")); full != 2 || err != nil {
		t.Errorf("synchronous is %d, want 2, which is FULL: %v", full, err)
	}
	w.path = path
	mustAppend(t, s, journaltest.Run(1, 1)[0])
	if err := s.SyncLater(); err != nil || w.syncer == nil {
		t.Errorf("%v, %v", w.syncer, err)
	}
}
