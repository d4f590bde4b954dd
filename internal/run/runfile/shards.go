package runfile

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/internal/kit/files"
)

// A run file may have shards: files beside it that hold the turns, the replies and the texts of these, each
// for some of the episodes. The run file holds everything else. So several cores write one run.
//
// A commit is decided in the run file. Within its transaction there, an Append commits the rows of every
// shard, and then itself: the numbers of the last entry and of the last text of each shard. Rows of a shard
// that come after these belong to a commit that failed or was cut off. Readers do not see them: they read
// the state of the run file first, and the shards up to it. The next writer removes them before it writes.
// Shards sync every commit, also if the run file is synced later: so it never knows more than they have.
//
// Nobody else can write meanwhile: whoever takes over needs the lock of the run file, which the transaction
// holds.

// MaxShards is how many shards a run file may have. SQLite attaches ten files to a connection.
const MaxShards = 8

// shardFolder returns the folder of the shards of a run file.
func shardFolder(path string) string { return path + ".d" }

// shardFile returns the path of a shard.
func shardFile(path string, number int64) string {
	return filepath.Join(shardFolder(path), fmt.Sprintf("%02d", number))
}

// filesOf lists a run file and the shards that are beside it.
func filesOf(path string) []string {
	out := []string{path}
	for n := range int64(MaxShards) {
		if file := shardFile(path, n+1); present(file) == nil {
			out = append(out, file)
		}
	}
	return out
}

// place is the number of a file among the files of a run. 0 is the run file.
type place struct{ number, files int64 }

// textNumber returns the id of the nth text of the file. No two files have texts with equal ids.
func (p place) textNumber(n int64) int64 { return (n-1)*p.files + p.number + 1 }

// shardRow is a row of the table shards.
type shardRow struct{ number, count, id, texts int64 }

const shardColumns = `shard, sum, count, id, texts`

// readShards reads the table shards of an attached file, or of main.
func readShards(c *sqlite.Conn, in string) (out []shardRow, err error) {
	s, err := c.Prepare(`SELECT ` + shardColumns + ` FROM ` + in + `.shards ORDER BY shard`)
	if err != nil {
		return nil, err
	}
	defer reset(s)
	for {
		found, err := s.Step()
		if err != nil || !found {
			return out, err
		}
		r := newRowReader(s)
		r.Begin(tableShards, 1)
		out = append(out, shardRow{r.Key, r.Int64(), r.Int64(), r.Int64()})
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
}

// shardsOf reads which shards a run file has: none, or shards from 1 on.
func shardsOf(c *sqlite.Conn) ([]shardRow, error) {
	has, err := hasShards(c)
	if err != nil || !has {
		return nil, err
	}
	out, err := readShards(c, "main")
	if err != nil {
		return nil, err
	}
	for i, s := range out {
		if s.number != int64(i+1) || s.count != int64(len(out)) || s.count > MaxShards || s.texts < 0 {
			return nil, fmt.Errorf("%w: its list of shards is wrong", ErrDamaged)
		}
	}
	if len(out) == 0 {
		return nil, errMissing("its list of shards")
	}
	return out, nil
}

// checkShard returns an error if an attached file, or main, is not the given shard. path is where it is.
func checkShard(c *sqlite.Conn, in, path string, want shardRow) error {
	if err := checkTables(c, in); err != nil {
		return fmt.Errorf("shard %s: %w", path, err)
	}
	rows, err := readShards(c, in)
	if err != nil {
		return fmt.Errorf("shard %s: %w", path, err)
	}
	if len(rows) != 1 || rows[0].number != want.number || rows[0].count != want.count || rows[0].id != want.id {
		return fmt.Errorf("%w: %s is a shard of another run: put back the folder that belongs to the run file", ErrDamaged, path)
	}
	return nil
}

// present returns an error if a shard is not there.
func present(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return errMissing("its shard %s", path)
	}
	return nil
}

// createShards makes empty shards of the run file at target, which does not exist. It makes their folder under
// another name and renames it when they are complete.
func createShards(target string, count int) (out []shardRow, err error) {
	folder, temp := shardFolder(target), shardFolder(target+"-new")
	if err := errors.Join(removeUnused(folder), os.RemoveAll(temp)); err != nil {
		return nil, err
	}
	if err := os.Mkdir(temp, 0o755); err != nil { //nolint:gosec // as a run file, it is for others to read too
		return nil, err
	}
	for n := range count {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		s := shardRow{number: int64(n + 1), count: int64(count), id: int64(binary.BigEndian.Uint64(b[:]) >> 1)}
		err := createSchema(shardFile(target+"-new", s.number), layoutShard, func(c *sqlite.Conn) error {
			return (&writer{rows: inserts{Conn: c}}).putShard(s)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if err := files.SyncFolder(temp); err != nil {
		return nil, err
	}
	return out, os.Rename(temp, folder)
}

// removeUnused removes shards in which nothing is recorded: their run file was not completed.
func removeUnused(folder string) error {
	names, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if err == nil && !unused(filepath.Join(folder, name.Name())) {
			err = fmt.Errorf("%s holds the shards of a run file that is gone: put that file back, or delete the folder, or name another file: %w", folder, fs.ErrExist)
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

// unused reports whether a file is a shard without entries.
func unused(path string) bool {
	application, _, err := marks(path, true)
	if err != nil || application != shardApplication || pending(path) {
		return false
	}
	c, err := sqlite.OpenConn(uri(path, immutableQuery), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // it has nothing to lose
	n, err := queryNumber(c, `SELECT EXISTS (SELECT 1 FROM turns) OR EXISTS (SELECT 1 FROM replies)`)
	return err == nil && n == 0
}

func (w *writer) putShard(s shardRow) error {
	r, err := w.rows.Row(`INSERT OR REPLACE INTO shards (`+shardColumns+`) VALUES (?, ?, ?, ?, ?)`, tableShards, s.number, 1)
	if err != nil {
		return err
	}
	for _, n := range []int64{s.count, s.id, s.texts} {
		r.Int(n)
	}
	r.Seal()
	return r.Do()
}

// openShards opens the shards of a run file, and returns the keys of the texts of each file.
func (w *writer) openShards() (keys []*textKeys, err error) {
	rows, err := shardsOf(w.conn)
	if err != nil {
		return nil, err
	}
	parts := max(1, len(rows))
	w.place, w.keys = place{0, int64(1 + len(rows))}, newKeys(parts)
	keys = append(keys, w.keys)
	for _, is := range rows {
		path := shardFile(w.path, is.number)
		if err := present(path); err != nil {
			return nil, err
		}
		s, err := connect(path)
		if err != nil {
			return nil, fmt.Errorf("shard %s: %w", path, err)
		}
		w.shards = append(w.shards, s) // the caller closes it
		if err := checkShard(s.conn, "main", path, is); err != nil {
			return nil, err
		}
		s.place, s.keys, s.shard = place{is.number, w.files}, newKeys(parts), is
		keys = append(keys, s.keys)
	}
	w.all = append(slices.Clone(w.shards), w)
	return keys, nil
}

// loadShards reads which rows of shards are committed.
func (w *writer) loadShards() error {
	if len(w.shards) == 0 {
		return nil
	}
	rows, err := shardsOf(w.conn)
	if err != nil {
		return err
	}
	for i, s := range w.shards {
		s.shard = rows[i]
		s.totals.texts = s.shard.texts
	}
	return nil
}

// dropUncommitted removes rows of shards that are not committed in the run file. Call it within a
// transaction of the run file.
func (w *writer) dropUncommitted() error {
	for _, s := range w.shards {
		err := transact(s.conn, func() error {
			for query, last := range map[string]int64{
				`DELETE FROM turns WHERE seq > ?`:   w.totals.seq,
				`DELETE FROM replies WHERE seq > ?`: w.totals.seq,
				`DELETE FROM texts WHERE id > ?`:    s.textNumber(s.totals.texts),
			} {
				if err := sqlitex.Execute(s.conn, query, &sqlitex.ExecOptions{Args: []any{last}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("shard %s: %w", s.path, err)
		}
	}
	return nil
}

// fileOf returns the writer of the file that holds the turns and replies of an episode.
func (w *writer) fileOf(episode int) *writer {
	if len(w.shards) == 0 {
		return w
	}
	return w.shards[uint(episode)%uint(len(w.shards))]
}

// store stores a turn or a reply now, or queues it for a shard.
func (w *writer) store(episode int, s step) error {
	f := w.fileOf(episode)
	if f == w {
		return w.insert(&s)
	}
	f.queue = append(f.queue, s)
	return nil
}

// commitShards begins to commit what is queued for shards. wait waits until it is committed, and stores in
// the run file that it is.
func (w *writer) commitShards() (wait func() error) {
	errs := make([]error, len(w.shards))
	var wg sync.WaitGroup
	for i, s := range w.shards {
		if len(s.queue) > 0 {
			wg.Go(func() { errs[i] = s.commitQueue() })
		}
	}
	return func() error {
		wg.Wait()
		err := errors.Join(errs...)
		for _, s := range w.shards {
			if err == nil && s.shard.texts != s.totals.texts {
				s.shard.texts = s.totals.texts
				err = w.putShard(s.shard)
			}
		}
		return err
	}
}

// commitQueue stores in a shard what is queued.
func (w *writer) commitQueue() error {
	err := transact(w.conn, func() error {
		for i := range w.queue {
			if err := w.insert(&w.queue[i]); err != nil {
				return fmt.Errorf("shard %s: %T: %w", w.path, w.queue[i].Entry, err)
			}
		}
		return nil
	})
	w.fold(len(w.queue))
	return err
}

// forgetQueues forgets what is queued for shards.
func (w *writer) forgetQueues() {
	for _, s := range w.shards {
		clear(s.queue)
		s.queue = s.queue[:0]
	}
}

// attach makes the reader read the shards of a run file too, as if their rows were in the run file. name
// returns what SQLite is given for a path.
func (r *reader) attach(path string, name func(path string) string) error {
	rows, err := shardsOf(r.conn)
	if err != nil {
		return err
	}
	r.shards = len(rows)
	for _, is := range rows {
		path, in := shardFile(path, is.number), fmt.Sprintf("s%d", is.number)
		if err := present(path); err != nil {
			return err
		}
		if err := sqlitex.ExecuteTransient(r.conn, `ATTACH ? AS `+in, &sqlitex.ExecOptions{Args: []any{name(path)}}); err != nil {
			return fmt.Errorf("shard %s: %w", path, err)
		}
		if err := checkShard(r.conn, in, path, is); err != nil {
			return err
		}
	}
	if r.shards == 0 {
		return nil
	}
	// A name without a file means a temporary view, if there is one.
	const committed = ` WHERE seq <= (SELECT seq FROM main.state)`
	for _, view := range []string{
		`turns AS ` + r.union(`SELECT * FROM %s.turns`+committed, false),
		`replies AS ` + r.union(`SELECT * FROM %s.replies`+committed, false),
		`texts AS ` + r.union(`SELECT * FROM %s.texts`, true),
	} {
		if err := sqlitex.ExecuteTransient(r.conn, `CREATE TEMP VIEW `+view, nil); err != nil {
			return err
		}
	}
	return nil
}

// attached returns the names of the run file and its shards in queries.
func (r *reader) attached() []string {
	out := []string{"main"}
	for n := range r.shards {
		out = append(out, fmt.Sprintf("s%d", n+1))
	}
	return out
}

// union repeats a query for each file that has turns and replies. all adds the run file, which has texts in
// any case.
func (r *reader) union(query string, all bool) string {
	in := r.attached()
	if len(in) > 1 && !all {
		in = in[1:]
	}
	for i, name := range in {
		in[i] = fmt.Sprintf(query, name)
	}
	return strings.Join(in, ` UNION ALL `)
}

// size returns how many bytes the files have.
func (r *reader) size() (bytes int64, err error) {
	for _, in := range r.attached() {
		n, err := queryNumber(r.conn, `SELECT page_count * page_size FROM pragma_page_count('`+in+`'), pragma_page_size('`+in+`')`)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

// keysOf returns the keys of the file that has a text, or nil.
func (r *reader) keysOf(id int64) *textKeys {
	if len(r.keys) == 0 {
		return nil
	}
	return r.keys[uint64(id-1)%uint64(len(r.keys))]
}
