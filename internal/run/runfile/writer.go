package runfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/journal"
)

// writer is the one connection that writes a run file.
type writer struct {
	conn *sqlite.Conn
	rows inserts
	path string
	keys *textKeys

	// The state before the next commit. After a failed commit it is read again.
	known    bool
	totals   totals
	progress map[int]*progress
	dirty    []int // episodes whose progress this commit stores

	unfolded int // entries since the size of the log was checked

	file    fs.FileInfo // of the run file, when it was opened
	size    int64       // the most bytes that the file had: it never shrinks
	checked time.Time   // when the path last led to it
	gone    bool        // a commit has failed because it does not

	commits int64
	syncer  *syncer // syncs commits; nil: SQLite does

	// Buffers.
	hasher keyHasher
	ids    []int64
	roles  []byte
	list   []byte
	reply  replyRow
}

const (
	busyTimeout = 10 * time.Second // how long to wait for a program that locks the file
	foldPages   = 2000             // SQLite folds a log of so many pages into the file
	maxLogSize  = 256 << 20        // if the log is larger, the writer waits for readers to fold it
	foldEvery   = 64               // entries between two checks of the log's size
	checkEvery  = time.Second      // how often the writer checks that the file is still there
)

// newWriter opens a run file.
func newWriter(path string) (_ *writer, err error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	c.SetBusyTimeout(busyTimeout)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	_ = os.SameFile(info, info) // some systems read the identity only now
	w := &writer{conn: c, rows: inserts{Conn: c}, path: path, keys: newKeys(), file: info, size: info.Size()}
	for _, step := range []func() error{
		func() error { return checkTables(c) },
		w.load, // before anything is changed: the file may be damaged
		w.prepare,
		w.takeOver,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// prepare sets how the file is written.
func (w *writer) prepare() error {
	return pragmas(w.conn,
		"journal_mode = WAL",
		"synchronous = FULL",
		"fullfsync = ON", // macOS: a plain sync does not reach the disk
		"checkpoint_fullfsync = ON",
		fmt.Sprintf("wal_autocheckpoint = %d", foldPages),
		fmt.Sprintf("journal_size_limit = %d", maxLogSize),
		"cache_size = -16384", // KB
		"foreign_keys = OFF",
	)
}

func pragmas(c *sqlite.Conn, list ...string) error {
	for _, pragma := range list {
		if err := sqlitex.ExecuteTransient(c, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	return nil
}

// takeOver begins an epoch: earlier writers cannot write any more.
func (w *writer) takeOver() error {
	return transact(w.conn, func() error {
		if err := w.load(); err != nil {
			return err
		}
		w.totals.epoch++
		return w.putTotals()
	})
}

// load reads the state before the next commit.
func (w *writer) load() (err error) {
	if w.totals, err = readTotals(w.conn); err != nil {
		return err
	}
	for _, p := range w.progress {
		w.keys.Drop(&p.texts)
	}
	w.progress, w.dirty, w.known = map[int]*progress{}, nil, true
	return nil
}

// commit stores entries in one transaction. If it fails, the writer forgets its state.
func (w *writer) commit(entries []journal.Entry) (err error) {
	if len(entries) == 0 {
		return nil
	}
	if w.unsynced() >= maxUnsynced {
		if err := w.syncer.sync(w.commits); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			w.known = false
			w.keys.Forget()
		}
	}()
	if err := w.checkPath(); err != nil {
		return err
	}
	if err := transact(w.conn, func() error { return w.putAll(entries) }); err != nil {
		return err
	}
	w.commits++
	w.settle()
	w.fold(len(entries))
	return nil
}

// checkPath checks from time to time that the path still leads to the file, and that nobody has truncated it. Some systems
// delete a file that is open: what is written to it is lost with the process.
func (w *writer) checkPath() error {
	now := time.Now()
	if now.Sub(w.checked) < checkEvery {
		return nil
	}
	w.checked = now
	if err := w.checkPathNow(); err != nil {
		w.checked, w.gone = time.Time{}, true // the next commit fails too
		return err
	}
	return nil
}

func (w *writer) checkPathNow() error {
	info, err := os.Stat(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrGone
	case err != nil:
		return nil // another failure does not say that the file is gone
	case !os.SameFile(info, w.file) || info.Size() < w.size:
		return ErrGone
	}
	w.size = info.Size()
	return nil
}

func (w *writer) putAll(entries []journal.Entry) error {
	if err := w.claim(); err != nil {
		return err
	}
	for _, e := range entries {
		if c, ok := e.(*journal.Collected); ok {
			w.totals.log, w.totals.collected = c.Log, c.Through
			continue
		}
		w.totals.seq++
		if err := w.put(e); err != nil {
			return fmt.Errorf("%T: %w", e, err)
		}
	}
	if err := w.putDirty(); err != nil {
		return err
	}
	return w.putTotals()
}

// putDirty stores the progress of episodes that changed.
func (w *writer) putDirty() error {
	for _, episode := range w.dirty {
		p := w.progress[episode]
		if err := w.putProgress(episode, p); err != nil {
			return err
		}
		w.totals.states[p.stored]--
		w.totals.states[p.state()]++
		p.stored = p.state()
	}
	return nil
}

// claim makes sure that no other writer has taken over the file. It comes first: after a
// takeover, our state may be wrong.
func (w *writer) claim() error {
	s, err := w.conn.Prepare(`SELECT epoch FROM state`)
	if err != nil {
		return err
	}
	defer reset(s)
	found, err := s.Step()
	switch {
	case err != nil:
		return err
	case !found:
		return errMissing("the state of the run")
	case s.ColumnInt64(0) != w.totals.epoch:
		return journal.ErrFenced
	case !w.known:
		return w.load()
	}
	return nil
}

// put stores an entry as the last one.
func (w *writer) put(e journal.Entry) error {
	switch e := e.(type) {
	case *journal.Turned:
		return w.putTurned(e)
	case *journal.Replied:
		return w.putReplied(e)
	case *journal.Ended:
		return w.putEnded(e)
	case *journal.Staged:
		return w.putStaged(e)
	default:
		return w.putEvent(e)
	}
}

// settle forgets the episodes that ended: their progress is rarely needed again.
func (w *writer) settle() {
	for _, episode := range w.dirty {
		p := w.progress[episode]
		p.dirty = false
		if p.Ended {
			w.keys.Drop(&p.texts)
			delete(w.progress, episode)
		}
	}
	w.dirty = w.dirty[:0]
}

// fold limits the size of the log when somebody always reads. It may fail without harm: the
// entries are safe, and it is tried again. n is how many entries were written. The size is
// not checked for every entry, because that takes as long as writing one.
func (w *writer) fold(n int) {
	if w.unfolded += n; w.unfolded < foldEvery {
		return
	}
	w.unfolded = 0
	if info, err := os.Stat(w.path + "-wal"); err == nil && info.Size() > maxLogSize {
		_ = execute(w.conn, `PRAGMA wal_checkpoint(TRUNCATE)`)
	}
}

// close folds the log into the file. It fails if the file is not there any more.
func (w *writer) close() error {
	var synced error
	if !w.gone { // else a commit has said so
		synced = w.checkPathNow()
	}
	if w.syncer != nil {
		synced = errors.Join(synced, w.syncer.sync(w.commits), w.syncer.close()) // if somebody reads, the log stays
	}
	err := execute(w.conn, `PRAGMA wal_checkpoint(TRUNCATE)`)
	if code := sqlite.ErrCode(err).ToPrimary(); code == sqlite.ResultBusy || code == sqlite.ResultLocked {
		err = nil // somebody reads: the last connection to close folds the log
	}
	return errors.Join(synced, err, w.conn.Close())
}

// transact runs f in a transaction that writes, and rolls it back if anything fails.
func transact(c *sqlite.Conn, f func() error) error {
	if err := execute(c, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = execute(c, "COMMIT")
	}
	if err != nil && !c.AutocommitEnabled() { // some failures have rolled it back already
		err = errors.Join(err, execute(c, "ROLLBACK"))
	}
	return err
}

func execute(c *sqlite.Conn, statement string) error {
	s, err := c.Prepare(statement)
	if err != nil {
		return err
	}
	return stepOnce(s)
}
