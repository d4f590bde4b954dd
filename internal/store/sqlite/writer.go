package sqlite

import (
	"errors"
	"fmt"
	"os"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/journal"
)

// writer is the one connection that writes.
type writer struct {
	conn *sqlite.Conn
	path string
	keys *keys

	// What the next commit goes on from; read anew after one that failed.
	known  bool
	totals totals
	places map[int]*place
	dirty  []int // places to be stored with this commit

	unfolded int // entries since the size of the log was looked at

	later    bool     // commits are synced by sync, not by SQLite
	unsynced int      // commits that are not synced yet
	log      *os.File // to sync them; nil until then

	print printer // kept for their memory
	ids   []int64
	roles []byte
	list  []byte
}

// place is how far an episode has come, and where its turns and replies end.
type place struct {
	journal.Progress
	failed      bool // it ended so
	first, last int64
	dirty       bool
	was         placeState // as it is stored
}

// placeState is how far an episode has come, in a word.
type placeState int

const (
	stateNone placeState = iota // nothing of it was played
	statePlaying
	stateEnded
	stateFailed
)

// state is how far p has come.
func (p *place) state() placeState {
	switch {
	case p.Ended && p.failed:
		return stateFailed
	case p.Ended:
		return stateEnded
	case p.first == 0:
		return stateNone
	default:
		return statePlaying
	}
}

const (
	busyFor  = 10 * time.Second // how long to wait for a program that holds the file
	walPages = 1000             // the log is folded into the file when it has so many pages
	walMost  = 256 << 20        // and readers are waited for when it is larger than this

	foldEvery = 64 // entries between two looks at its size
)

func newWriter(path string, k *keys) (_ *writer, err error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	c.SetBusyTimeout(busyFor)
	w := &writer{conn: c, path: path, keys: k}
	if err := checkTables(c); err != nil { // before anything is changed: it may be damaged
		return nil, err
	}
	if err := w.load(); err != nil {
		return nil, err
	}
	for _, pragma := range []string{
		"journal_mode = WAL",
		"synchronous = FULL",
		"fullfsync = ON", // macOS: a plain sync does not reach the disk
		"checkpoint_fullfsync = ON",
		fmt.Sprintf("wal_autocheckpoint = %d", walPages),
		fmt.Sprintf("journal_size_limit = %d", walMost),
		"cache_size = -65536", // KB
		"foreign_keys = OFF",
	} {
		if err := sqlitex.ExecuteTransient(c, "PRAGMA "+pragma, nil); err != nil {
			return nil, err
		}
	}
	return w, w.takeOver()
}

// takeOver begins an epoch: whoever wrote before cannot any more.
func (w *writer) takeOver() error {
	return within(w.conn, "BEGIN IMMEDIATE", func() error {
		if err := w.load(); err != nil {
			return err
		}
		w.totals.epoch++
		return w.putTotals()
	})
}

// load reads what the next commit goes on from.
func (w *writer) load() (err error) {
	if w.totals, err = readTotals(w.conn); err != nil {
		return err
	}
	w.places, w.dirty, w.known = map[int]*place{}, nil, true
	return nil
}

func missing(found bool, what string) error {
	if found {
		return nil
	}
	return fmt.Errorf("%w: %s is missing", ErrDamaged, what)
}

// commit stores entries in one transaction. What it leaves in memory holds only if the
// transaction does: after a failure all of it is forgotten.
func (w *writer) commit(entries []journal.Entry) (err error) {
	if len(entries) == 0 {
		return nil
	}
	if w.unsynced == maxUnsynced {
		if err := w.sync(); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			w.known = false
			w.keys.forget()
		}
	}()
	if err := within(w.conn, "BEGIN IMMEDIATE", func() error { return w.putAll(entries) }); err != nil {
		return err
	}
	if w.later {
		w.unsynced++
	}
	w.settle()
	w.fold(len(entries))
	return nil
}

// syncLater leaves it to sync to put commits on the disk. SQLite still syncs the log before it
// folds it into the file, so that the file stays whole. Whoever checks the log must know: it
// is so only if the file itself can be marked now, which somebody who reads may prevent.
func (w *writer) syncLater() error {
	version, err := number(w.conn, "PRAGMA user_version")
	if err == nil {
		err = sqlitex.ExecuteTransient(w.conn, fmt.Sprintf("PRAGMA user_version = %d", version|syncedLater), nil)
	}
	begun := false // the log begins anew, so that nothing of an earlier process lies behind what is written
	if err == nil {
		w.conn.SetBusyTimeout(0)
		err = sqlitex.ExecuteTransient(w.conn, `PRAGMA wal_checkpoint(RESTART)`, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			begun = s.ColumnInt(0) == 0
			return nil
		}})
		w.conn.SetBusyTimeout(busyFor)
	}
	if err != nil || !begun || !markedLater(w.path) {
		return err
	}
	w.later = true
	return sqlitex.ExecuteTransient(w.conn, "PRAGMA synchronous = NORMAL", nil)
}

// sync puts on the disk what is not there yet.
func (w *writer) sync() (err error) {
	if w.unsynced == 0 {
		return nil
	}
	if w.log == nil {
		if w.log, err = os.OpenFile(w.path+"-wal", os.O_RDWR, 0); err != nil {
			return err
		}
	}
	if err := w.log.Sync(); err != nil {
		return err
	}
	w.unsynced = 0
	return nil
}

func (w *writer) putAll(entries []journal.Entry) error {
	if err := w.claim(); err != nil {
		return err
	}
	for _, e := range entries {
		w.totals.seq++
		if err := w.put(e); err != nil {
			return fmt.Errorf("%T: %w", e, err)
		}
	}
	if err := w.putPlaces(); err != nil {
		return err
	}
	return w.putTotals()
}

// claim makes sure that the file is still ours. It comes first: what we know of a file
// that is not ours any more may be wrong.
func (w *writer) claim() error {
	s, err := w.conn.Prepare(`SELECT epoch FROM state`)
	if err != nil {
		return err
	}
	defer done(s)
	if found, err := s.Step(); err != nil || !found {
		return errors.Join(err, missing(found, "the state of the run"))
	}
	if epoch := s.ColumnInt64(0); epoch != w.totals.epoch {
		return journal.ErrFenced
	}
	if w.known {
		return nil
	}
	return w.load()
}

// settle drops the episodes that ended: they are seldom met again.
func (w *writer) settle() {
	for _, episode := range w.dirty {
		p := w.places[episode]
		p.dirty = false
		if p.Ended {
			delete(w.places, episode)
		}
	}
	w.dirty = w.dirty[:0]
}

// fold keeps the log from growing without bound when there is always somebody reading. The
// entries are safe already: if it cannot be done now, it is done later. n is how many entries were
// written; few make no difference, and looking costs as much as writing one.
func (w *writer) fold(n int) {
	if w.unfolded += n; w.unfolded < foldEvery {
		return
	}
	w.unfolded = 0
	if info, err := os.Stat(w.path + "-wal"); err == nil && info.Size() > walMost {
		_ = run(w.conn, `PRAGMA wal_checkpoint(TRUNCATE)`)
	}
}

// close folds the log into the file.
func (w *writer) close() error {
	synced := w.sync() // for when somebody reads, and the log stays
	if w.log != nil {
		synced = errors.Join(synced, w.log.Close())
	}
	err := run(w.conn, `PRAGMA wal_checkpoint(TRUNCATE)`)
	if code := sqlite.ErrCode(err).ToPrimary(); code == sqlite.ResultBusy || code == sqlite.ResultLocked {
		err = nil // somebody reads: the last to close does it
	}
	return errors.Join(synced, err, w.conn.Close())
}
