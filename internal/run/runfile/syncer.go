package runfile

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"zombiezen.com/go/sqlite"
)

const (
	maxUnsynced = 256           // commits that SyncLater leaves unsynced at most
	foldCommits = 256           // commits after which a syncer folds the log
	laterPages  = 8 * foldPages // SQLite itself folds a log of so many pages, if the syncer cannot keep up
)

// syncer syncs the commits of a writer and folds the log, while the writer goes on.
type syncer struct {
	mu     sync.Mutex // held during sync
	log    logFile
	synced atomic.Int64 // commits on the disk

	folding sync.Mutex // held during fold
	conn    *sqlite.Conn
	folded  int64 // commits at the last fold
}

// logFile is the part of an os.File that a syncer needs.
type logFile interface {
	Sync() error
	Close() error
}

// syncLater leaves it to a syncer to put commits on the disk. SQLite still syncs the log before it
// folds it into the file, so the file is never corrupted.
func (w *writer) syncLater() error {
	if w.syncer != nil {
		return nil
	}
	y, err := newSyncer(w.path, w.commits)
	if err != nil {
		return err
	}
	// The last pragma is the one that leaves commits to the syncer.
	if err := pragmas(w.conn, fmt.Sprintf("wal_autocheckpoint = %d", laterPages), "synchronous = NORMAL"); err != nil {
		return errors.Join(err, y.close())
	}
	w.syncer = y
	return nil
}

func newSyncer(path string, commits int64) (_ *syncer, err error) {
	log, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, log.Close())
		}
	}()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	y := &syncer{log: log, conn: c, folded: commits}
	y.synced.Store(commits)
	if err := pragmas(c, "synchronous = NORMAL", "fullfsync = ON", "checkpoint_fullfsync = ON", fmt.Sprintf("journal_size_limit = %d", maxLogSize)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return y, nil
}

// unsynced returns how many commits are left to the syncer.
func (w *writer) unsynced() int64 {
	if w.syncer == nil {
		return 0
	}
	return w.commits - w.syncer.synced.Load()
}

// sync puts on the disk so many commits of the writer.
func (y *syncer) sync(commits int64) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.synced.Load() >= commits {
		return nil
	}
	if err := y.log.Sync(); err != nil {
		return err
	}
	y.synced.Store(commits)
	return nil
}

// fold folds the log into the file after many commits. It may fail without harm: SQLite does it if the log
// becomes too long.
func (y *syncer) fold(commits int64) {
	y.folding.Lock()
	defer y.folding.Unlock()
	if commits-y.folded < foldCommits {
		return
	}
	y.folded = commits
	_ = execute(y.conn, `PRAGMA wal_checkpoint(PASSIVE)`)
}

func (y *syncer) close() error { return errors.Join(y.conn.Close(), y.log.Close()) }
