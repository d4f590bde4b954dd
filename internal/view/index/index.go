// Package index keeps a small database beside a run file, so that a million episodes can be sorted,
// filtered and searched.
//
// The database holds nothing that is not in the run file: it can be deleted at any time, and is
// made again. It follows a run that is being played. A file that belongs to another run, was
// damaged or cannot be written is not an error: the index is then made in memory.
//
// What it is not for: it has no statistics, and reports do not read it.
package index

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/store/sqlite"
	"parley/journal"
)

//go:embed schema.sql
var schema string

// version changes when the tables do, or what is in them.
const version = 1

// Suffix is added to the name of a run file to name its index.
const Suffix = "-view"

// Index is the index of one run. It is safe for use by several goroutines.
type Index struct {
	store *sqlite.Store

	mu   sync.Mutex
	conn *db.Conn
	meta struct{ entries, texts int }
}

// Open opens the index of a run, or begins a new one. run identifies the run.
func Open(store *sqlite.Store, run string) (*Index, error) {
	x := &Index{store: store}
	path := store.Path() + Suffix
	err := x.open(path, run)
	if err == nil {
		return x, nil
	}
	if removed := os.Remove(path); removed == nil || errors.Is(removed, os.ErrNotExist) {
		if x.open(path, run) == nil {
			return x, nil
		}
	}
	if err := x.open(":memory:", run); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return x, nil
}

// open opens or creates the database at path. It fails if the database is not the index of this run.
func (x *Index) open(path, run string) (err error) {
	c, err := db.OpenConn(path, db.OpenReadWrite, db.OpenCreate)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	c.SetBusyTimeout(time.Second)
	// Nothing is lost with the index, so nothing waits for the disk. Two processes may use one file.
	for _, pragma := range []string{"journal_mode = WAL", "synchronous = OFF", "cache_size = -16384", "temp_store = MEMORY"} {
		if err := sqlitex.ExecuteTransient(c, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	x.conn = c
	return x.within(func() error {
		found, err := x.readMeta(run)
		if found || err != nil {
			return err
		}
		if err := sqlitex.ExecuteScript(c, schema, nil); err != nil {
			return err
		}
		return x.exec(`INSERT INTO meta VALUES (1, ?, ?, 0, 0)`, version, run)
	})
}

// readMeta reads how much of the run is in the index. found is false if the database is empty.
func (x *Index) readMeta(run string) (found bool, err error) {
	tables := 0
	err = x.query(`SELECT count(*) FROM sqlite_schema`, nil, func(s *db.Stmt) { tables = s.ColumnInt(0) })
	if err != nil || tables == 0 {
		return false, err
	}
	err = x.query(`SELECT entries, texts FROM meta WHERE version = ? AND run = ?`, []any{version, run}, func(s *db.Stmt) {
		x.meta.entries, x.meta.texts, found = s.ColumnInt(0), s.ColumnInt(1), true
	})
	if err == nil && !found {
		err = errors.New("it is the index of another run")
	}
	return found, err
}

// Close closes the index.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conn.Close()
}

// within runs f in a transaction.
func (x *Index) within(f func() error) (err error) {
	end, err := sqlitex.ImmediateTransaction(x.conn)
	if err != nil {
		return err
	}
	defer end(&err)
	return f()
}

func (x *Index) exec(query string, args ...any) error {
	return sqlitex.Execute(x.conn, query, &sqlitex.ExecOptions{Args: args})
}

func (x *Index) query(query string, args []any, each func(*db.Stmt)) error {
	return sqlitex.Execute(x.conn, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(s *db.Stmt) error {
		each(s)
		return nil
	}})
}

// atOnce is how many entries an update reads from one state of the run file, so that it keeps
// that state for a few milliseconds only.
const atOnce = 5000

// Update brings the episodes of the index up to date. It returns how many entries of the run
// they have.
func (x *Index) Update(ctx context.Context) (entries int, err error) {
	for more := true; more && err == nil; {
		entries, more, err = x.step(ctx)
	}
	if err != nil {
		return entries, fmt.Errorf("index: %w", err)
	}
	return entries, nil
}

func (x *Index) step(ctx context.Context) (entries int, more bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.meta.entries
	all := spent{}
	last, err := x.store.BriefPart(ctx, was, atOnce, func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok {
			all.add(r)
		}
		return nil
	})
	if err != nil || last == was {
		return was, false, err
	}
	ends, err := x.store.Ends(ctx, was+1)
	if err != nil {
		return was, false, err
	}
	for _, e := range ends {
		if e.Entry > last {
			break
		}
		all.at(e.Episode)
	}
	err = x.within(func() error {
		if err := x.put(ctx, all); err != nil {
			return err
		}
		return x.exec(`UPDATE meta SET entries = ?`, last)
	})
	if err != nil {
		return was, false, err
	}
	x.meta.entries = last
	return last, last-was == atOnce, nil
}
