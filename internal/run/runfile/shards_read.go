package runfile

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite/sqlitex"
)

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
		n, err := schemaNumber(r.conn, `SELECT page_count * page_size FROM pragma_page_count('`+in+`'), pragma_page_size('`+in+`')`)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

// keysOf returns the keys of the file that has a text, or nil.
func (r *reader) keysOf(id int64) *contentKeys {
	if len(r.keys) == 0 {
		return nil
	}
	return r.keys[uint64(id-1)%uint64(len(r.keys))]
}
