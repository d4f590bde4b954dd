package results

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	db "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/kit/files"
	"parley/internal/run/runfile"
	"parley/journal"
	"parley/world"
)

//go:embed schema.sql
var indexSchema string

// indexVersion changes when the tables do, or what is in them.
const indexVersion = 6

// IndexSuffix is added to the name of a run file to name its index.
const IndexSuffix = "-view"

// Index is a small database beside a run file, with which a million episodes can be sorted, filtered and searched. It is safe for use
// by several goroutines.
//
// The database holds nothing that is not in the run file, or in the file with labels beside it: it can be deleted at any time, and is
// made again. It follows a run that is being played. A file that belongs to another run, was damaged or cannot be written is not an
// error: the index is then made in memory.
type Index struct {
	store *runfile.Store

	mu     sync.Mutex
	conn   *db.Conn
	path   string // of the database
	meta   struct{ entries, texts, bytes int }
	limit  func() int64    // how many bytes of texts it may have
	room   int64           // limit, when texts were added last
	wanted map[string]bool // columns that were sorted by
	made   map[string]bool // of these, columns with an index
}

// inMemory is the path of a database in memory, and busy is how long another process may write to one in a file.
const (
	inMemory    = ":memory:"
	busyTimeout = 10 * time.Second
)

// applicationID is the application_id of an index: PRLV.
const applicationID = 0x50524C56

// errForeign means that a file is not an index of ours, or that it was changed.
var errForeign = errors.New("it is not an index of parley")

// openTimeout is how long a file beside a run may take to be opened.
const openTimeout = 5 * time.Second

// OpenIndex opens the index of a run, or begins a new one. run identifies the run. Only an index of ours is ever
// changed or removed: with anything else in its place, the index is made in memory.
func OpenIndex(ctx context.Context, store *runfile.Store, run string) (*Index, error) {
	x := &Index{store: store, limit: store.Expanded, wanted: map[string]bool{}}
	path := files.Beside(store.Path(), IndexSuffix)
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
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	c, err := db.OpenConn(path, db.OpenReadWrite, db.OpenCreate)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	x.conn, x.path, x.made = c, path, map[string]bool{}
	c.SetBusyTimeout(busyTimeout)
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
	if err := x.pragmas(fmt.Sprintf("application_id = %d", applicationID), "journal_mode = WAL"); err != nil {
		return err
	}
	return x.inTransaction(func() error {
		if err := sqlitex.ExecuteScript(c, indexSchema, nil); err != nil {
			return err
		}
		return x.exec(`INSERT INTO meta VALUES (1, ?, ?, 0, 0, 0)`, indexVersion, run)
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
	if id != applicationID {
		return errForeign
	}
	want, err := expected()
	if err != nil {
		return err
	}
	for _, column := range SortColumns() {
		_, x.made[column] = tables["episodes_"+column]
		delete(tables, "episodes_"+column) // an index that MakeIndexes made
	}
	if !maps.Equal(tables, want) {
		return errOther
	}
	found := false
	err = x.query(`SELECT entries, texts, bytes FROM meta WHERE version = ? AND run = ?`, []any{indexVersion, run}, func(s *db.Stmt) {
		x.meta.entries, x.meta.texts, x.meta.bytes, found = s.ColumnInt(0), s.ColumnInt(1), s.ColumnInt(2), true
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
	if err := sqlitex.ExecuteScript(c, indexSchema, nil); err != nil {
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

// inTransaction runs f in a transaction.
func (x *Index) inTransaction(f func() error) (err error) {
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
		return entries, err
	}
	return entries, nil
}

func (x *Index) step(ctx context.Context) (entries int, more bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.interruptible(ctx)()
	var was, last int
	err = x.inTransaction(func() error {
		if err := x.readMeta(); err != nil {
			return err
		}
		was = x.meta.entries
		all := totalsByEpisode{}
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
	return x.query(`SELECT entries, texts, bytes FROM meta`, nil, func(s *db.Stmt) {
		x.meta.entries, x.meta.texts, x.meta.bytes = s.ColumnInt(0), s.ColumnInt(1), s.ColumnInt(2)
	})
}

// addEnds adds the episodes that ended between two entries.
func (x *Index) addEnds(ctx context.Context, all totalsByEpisode, after, last int) error {
	ends, err := x.store.EndsUntil(ctx, after+1, last)
	for _, e := range ends {
		all.at(e.Episode)
	}
	return err
}

// episodeTotals is what some replies of an episode add to its row.
type episodeTotals struct {
	journal.Spending
	first, last int64 // when they arrived
	strip       []stripMark
}

// stripMark is a reply in the strip of an episode.
type stripMark struct {
	seat   string
	failed bool
}

// maxStrip is how many replies a strip has at most.
const maxStrip = 160

// stripText returns a letter for each reply: the place of its seat among all of the lineup, or ! if it failed.
func (e *episodeTotals) stripText(lineup map[string]string) string {
	seats := slices.Sorted(maps.Keys(lineup))
	var b strings.Builder
	for _, m := range e.strip {
		at := slices.Index(seats, m.seat)
		switch {
		case m.failed:
			b.WriteByte('!')
		case at < 0:
			b.WriteByte('-') // nobody's
		default:
			b.WriteByte('a' + byte(at%('z'-'a'+1)))
		}
	}
	return b.String()
}

type totalsByEpisode map[int]*episodeTotals

func (s totalsByEpisode) at(episode int) *episodeTotals {
	if s[episode] == nil {
		s[episode] = &episodeTotals{}
	}
	return s[episode]
}

func (s totalsByEpisode) add(r *journal.Replied) {
	e := s.at(r.Episode)
	e.Add(r)
	if len(e.strip) < maxStrip {
		e.strip = append(e.strip, stripMark{r.Seat, r.Error != nil})
	}
	if r.At.IsZero() {
		return
	}
	at := r.At.UnixNano()
	if e.first == 0 || at < e.first {
		e.first = at
	}
	e.last = max(e.last, at)
}

const putSQL = `INSERT INTO episodes (episode, state, cell, lineup, deal, failed, calls, errors, tokens, cost, began, until, strip)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (episode) DO UPDATE SET state = excluded.state, cell = excluded.cell, failed = excluded.failed,
    calls = calls + excluded.calls, errors = errors + excluded.errors,
    tokens = tokens + excluded.tokens, cost = cost + excluded.cost,
    strip = substr(strip || excluded.strip, 1, ?14),
    until = max(until, excluded.until), began = CASE WHEN began THEN began ELSE excluded.began END`

// put writes the rows of the episodes in all.
func (x *Index) put(ctx context.Context, all totalsByEpisode) error {
	numbers := slices.Sorted(maps.Keys(all))
	for len(numbers) > 0 {
		// Neighbours are read together.
		n := 1
		for n < len(numbers) && numbers[n]-numbers[n-1] < 16 && numbers[n]-numbers[0] < atOnce {
			n++
		}
		first := numbers[0]
		list, err := x.store.List(ctx, runfile.Listing{From: first, Limit: numbers[n-1] - first + 1})
		if err != nil {
			return err
		}
		for i := range list {
			if s := all[list[i].Episode]; s != nil {
				if err := x.putEpisode(&list[i], s); err != nil {
					return err
				}
			}
		}
		numbers = numbers[n:]
	}
	return nil
}

func (x *Index) putEpisode(l *runfile.Listed, s *episodeTotals) error {
	failed, until := "", s.last
	if end := l.Ended; end != nil {
		failed = end.Outcome.Failed
		if !end.At.IsZero() {
			until = max(until, end.At.UnixNano())
		}
	}
	lineup := " " + LineupText(l.Spec.Lineup) + " " // so that a filter can find a whole word
	err := x.exec(putSQL, l.Episode, l.State(), l.Spec.Cell, lineup, l.Spec.Deal, failed,
		s.Calls, s.Failures(), s.Usage.Total(), int64(s.Cost), s.first, until, s.stripText(l.Spec.Lineup), maxStrip)
	if err != nil || l.Ended == nil {
		return err
	}
	if err := x.exec(`DELETE FROM scores WHERE episode = ? AND place < ?`, l.Episode, addedPlace); err != nil {
		return err // it ended before, in an earlier attempt
	}
	return x.putScores(l.Episode, l.Ended.Outcome.Scores, 0)
}

// addedPlace is the place of the first score that was added to a run: after those of the outcome.
const addedPlace = 1 << 20

// putScores adds scores of an episode, with their places.
func (x *Index) putScores(episode int, scores []world.Score, first int) error {
	for i, sc := range scores {
		if math.IsNaN(sc.Value) {
			continue // it has no place in an order
		}
		if err := x.exec(`INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?)`, sc.Name, sc.Seat, sc.Value, episode, first+i); err != nil {
			return err
		}
	}
	return nil
}

// SetAdded replaces the scores of all episodes that were added after the run was played, by episode.
func (x *Index) SetAdded(scores map[int][]world.Score) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.inTransaction(func() error {
		names, err := x.scoreNames()
		if err != nil {
			return err
		}
		for _, n := range names {
			if n.place < addedPlace {
				continue
			}
			if err := x.exec(`DELETE FROM scores WHERE name = ? AND seat = ?`, n.Name, n.Seat); err != nil {
				return err
			}
		}
		for episode, all := range scores {
			if err := x.putScores(episode, all, addedPlace); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("added scores: %w", err)
	}
	return nil
}
