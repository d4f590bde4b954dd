package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"

	"parley/internal/filelock"
	"parley/journal"
)

// application marks run files among SQLite files: PRLY.
const application = 0x50524C59

// inspect refuses what is not a run file of a format we know. It looks through a connection
// that takes no lock and believes nobody writes, so that nothing is changed, not even by
// rolling back what somebody else left half done. It goes through SQLite since a file of
// our own opened and closed here would free the locks of every other connection of this
// process: that is how POSIX locks are.
func inspect(path string, size int64) error {
	if size == 0 {
		return fmt.Errorf("sqlite: %s is %w: it is empty: delete it, or name another file", path, ErrForeign)
	}
	id, version, err := marks(address(path, "mode=ro&immutable=1"))
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCorrupt && pending(filelock.Resolve(path)) {
		// Pages are on their way from the log to the file: the log must be looked at too.
		id, version, err = marks(address(path, "mode=ro"))
	}
	version &^= syncedLater
	switch {
	case sqlite.ErrCode(err).ToPrimary() == sqlite.ResultNotADB:
		return fmt.Errorf("sqlite: %s is %w: it was not written by parley, and nothing in it was changed: name another file", path, ErrForeign)
	case err != nil:
		return explain(path, "open", err)
	case id != application:
		return fmt.Errorf("sqlite: %s is %w: it is an SQLite database of another program, and nothing in it was changed: name another file", path, ErrForeign)
	case version < 1:
		return damaged(path, "open", fmt.Errorf("its format version is %d", version))
	case version != journal.Version:
		return fmt.Errorf("sqlite: %s: %w (%d; this program reads version %d): open it with the parley that wrote it", path, ErrVersion, version, journal.Version)
	}
	return nil
}

// marks reads what a file says it is.
func marks(uri string) (id, version int64, err error) {
	c, err := sqlite.OpenConn(uri, sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if id, err = number(c, "PRAGMA application_id"); err != nil {
		return 0, 0, err
	}
	version, err = number(c, "PRAGMA user_version")
	return id, version, err
}

// checkTables makes sure that the tables are there, as we make them, before anything is done
// to them.
func checkTables(c *sqlite.Conn) error { return checkSchema(c, schema) }

// checkSchema makes sure that what a script creates is there, to the letter.
func checkSchema(c *sqlite.Conn, script string) error {
	there := map[string]bool{}
	s, err := c.Prepare(`SELECT sql FROM sqlite_schema WHERE type IN ('table', 'view')`)
	if err != nil {
		return err
	}
	defer done(s)
	for {
		found, err := s.Step()
		if err != nil {
			return err
		}
		if !found {
			break
		}
		there[s.ColumnText(0)] = true
	}
	for statement := range strings.SplitSeq(script, ";\n") {
		i := strings.Index(statement, "CREATE ")
		if i < 0 || there[statement[i:]] {
			continue
		}
		what, _, _ := strings.Cut(statement[i:], "\n")
		return fmt.Errorf("%w: a table is missing or not as it was made: %s", ErrDamaged, strings.TrimRight(what, " ("))
	}
	return nil
}

// pending says whether there is a write-ahead log with something in it.
func pending(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// address is path as a URI, for the options only a URI can carry.
func address(path, query string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query}).String()
}

// number reads one.
func number(c *sqlite.Conn, query string) (n int64, err error) {
	s, _, err := c.PrepareTransient(query)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Finalize() }() // says only what Step said
	if _, err := s.Step(); err != nil {
		return 0, err
	}
	return s.ColumnInt64(0), nil
}
