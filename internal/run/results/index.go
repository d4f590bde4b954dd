// Part index keeps a small database beside a run file, so that a million episodes can be sorted,
// filtered and searched.
//
// The database holds nothing that is not in the run file, or in the file with labels beside it: it can be deleted at any time, and is
// made again. It follows a run that is being played. A file that belongs to another run, was
// damaged or cannot be written is not an error: the index is then made in memory.
//
// What it is not for: it has no statistics, and reports do not read it.

package results

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/kit/files"
	"parley/internal/run/runfile"
	"parley/journal"
)

//go:embed schema.sql
var schema string

// version changes when the tables do, or what is in them.
const version = 3

// Suffix is added to the name of a run file to name its index.
const Suffix = "-view"

// Index is the index of one run. It is safe for use by several goroutines.
type Index struct {
	store *runfile.Store

	mu     sync.Mutex
	conn   *db.Conn
	path   string // of the database
	meta   struct{ entries, texts int }
	wanted map[string]bool // columns that were sorted by
	made   map[string]bool // of these, columns with an index
}

// inMemory is the path of a database in memory, and busy is how long another process may write to one in a file.
const (
	inMemory = ":memory:"
	busy     = 10 * time.Second
)

// application is the application_id of an index: PRLV.
const application = 0x50524C56

// errForeign means that a file is not an index of ours, or that it was changed.
var errForeign = errors.New("it is not an index of parley")

// patience is how long a file beside a run may take to be opened.
const patience = 5 * time.Second

// Open opens the index of a run, or begins a new one. run identifies the run. Only an index of ours is ever
// changed or removed: with anything else in its place, the index is made in memory.
func Open(ctx context.Context, store *runfile.Store, run string) (*Index, error) {
	x := &Index{store: store, wanted: map[string]bool{}}
	path := files.Beside(store.Path(), Suffix)
	info, err := os.Lstat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return x, x.open(ctx, inMemory, run)
	}
	err = x.open(ctx, path, run)
	if errors.Is(err, errOther) && os.Remove(path) == nil {
		for _, part := range []string{"-wal", "-shm"} {
			_ = os.Remove(path + part) // it may not be there
		}
		err = x.open(ctx, path, run)
	}
	if err != nil {
		err = x.open(ctx, inMemory, run)
	}
	return x, err
}

// open opens or creates the database at path.
func (x *Index) open(ctx context.Context, path, run string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := db.OpenConn(path, db.OpenReadWrite, db.OpenCreate)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("index: %w", errors.Join(err, c.Close()))
		}
	}()
	x.conn, x.path, x.made = c, path, map[string]bool{}
	c.SetBusyTimeout(busy)
	defer x.interruptible(ctx)()
	// Nothing is lost with the index, so nothing waits for the disk.
	if err := x.pragmas("synchronous = OFF", "trusted_schema = OFF", "temp_store = MEMORY", "cache_size = -16384"); err != nil {
		return err
	}
	tables, err := tablesOf(c)
	if err != nil {
		return err
	}
	if len(tables) > 0 {
		return x.check(tables, run)
	}
	// Two processes may use one file.
	if err := x.pragmas(fmt.Sprintf("application_id = %d", application), "journal_mode = WAL"); err != nil {
		return err
	}
	return x.within(func() error {
		if err := sqlitex.ExecuteScript(c, schema, nil); err != nil {
			return err
		}
		return x.exec(`INSERT INTO meta VALUES (1, ?, ?, 0, 0)`, version, run)
	})
}

func (x *Index) pragmas(list ...string) error {
	for _, p := range list {
		if err := sqlitex.ExecuteTransient(x.conn, "PRAGMA "+p, nil); err != nil {
			return err
		}
	}
	return nil
}

// errOther means that a file is an index of ours, and not of this run or this version.
var errOther = errors.New("it is the index of another run")

// check refuses a database that is not ours, was changed, or belongs to another run. It trusts nothing in it: a
// view in place of a table could answer for ever.
func (x *Index) check(tables map[string]string, run string) error {
	id := 0
	if err := x.query(`PRAGMA application_id`, nil, func(s *db.Stmt) { id = s.ColumnInt(0) }); err != nil {
		return err
	}
	if id != application {
		return errForeign
	}
	want, err := expected()
	if err != nil {
		return err
	}
	for _, column := range Sorts() {
		_, x.made[column] = tables["episodes_"+column]
		delete(tables, "episodes_"+column) // an index that MakeIndexes made
	}
	if !maps.Equal(tables, want) {
		return errOther
	}
	found := false
	err = x.query(`SELECT entries, texts FROM meta WHERE version = ? AND run = ?`, []any{version, run}, func(s *db.Stmt) {
		x.meta.entries, x.meta.texts, found = s.ColumnInt(0), s.ColumnInt(1), true
	})
	if err != nil {
		return err
	}
	n, err := x.store.Entries()
	if err == nil && (!found || max(x.meta.entries, x.meta.texts) > n || min(x.meta.entries, x.meta.texts) < 0) {
		err = errOther
	}
	return err
}

// expected returns the tables of a new index.
func expected() (_ map[string]string, err error) {
	c, err := db.OpenConn(":memory:", db.OpenReadWrite, db.OpenCreate)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := sqlitex.ExecuteScript(c, schema, nil); err != nil {
		return nil, err
	}
	return tablesOf(c)
}

// maxTables is how many tables of a database are looked at.
const maxTables = 100

// tablesOf returns what a database has: the statement that made it, by name.
func tablesOf(c *db.Conn) (map[string]string, error) {
	all := map[string]string{}
	err := sqlitex.Execute(c, `SELECT name, sql FROM sqlite_schema LIMIT ?`, &sqlitex.ExecOptions{Args: []any{maxTables}, ResultFunc: func(s *db.Stmt) error {
		all[s.ColumnText(0)] = s.ColumnText(1)
		return nil
	}})
	return all, err
}

// Close closes the index.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	conn := x.conn
	if conn == nil {
		return nil
	}
	x.conn = nil // a query that comes late fails
	return conn.Close()
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
// that state for a few milliseconds only, and pages do not wait for long.
const atOnce = 1000

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
	defer x.interruptible(ctx)()
	var was, last int
	err = x.within(func() error {
		if err := x.readMeta(); err != nil {
			return err
		}
		was = x.meta.entries
		all := spent{}
		last, err = x.store.BriefPart(ctx, was, atOnce, func(e journal.Entry) error {
			if r, ok := e.(*journal.Replied); ok {
				all.add(r)
			}
			return nil
		})
		if err != nil || last == was {
			return err
		}
		if err := x.addEnds(ctx, all, was, last); err != nil {
			return err
		}
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

// readMeta reads how much of the run is in the index: another process may have added to it.
func (x *Index) readMeta() error {
	return x.query(`SELECT entries, texts FROM meta`, nil, func(s *db.Stmt) {
		x.meta.entries, x.meta.texts = s.ColumnInt(0), s.ColumnInt(1)
	})
}

// addEnds adds the episodes that ended between two entries.
func (x *Index) addEnds(ctx context.Context, all spent, after, last int) error {
	ends, err := x.store.EndsUntil(ctx, after+1, last)
	for _, e := range ends {
		all.at(e.Episode)
	}
	return err
}
