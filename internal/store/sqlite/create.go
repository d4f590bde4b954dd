package sqlite

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/journal"
)

//go:embed schema.sql
var schema string

//go:embed views.sql
var views string

// pageSize is that of the files we make.
const pageSize = 16384

// create makes an empty run file. It is made beside its place and moved there when it is
// whole, so that there is never half a run file. target is path without symbolic links.
func create(path, target string) (err error) {
	if pending(target) { // SQLite would take it for the new file's
		return fmt.Errorf("sqlite: %s: create: beside it is %s-wal, the log of a run file that is gone: put that file back, or delete the log, or name another file", path, target)
	}
	half := target + "-new"
	if err := os.Remove(half); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sqlite: %s: create: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(half)
		}
	}()
	if err := fill(half); err != nil {
		return explain(path, "create", err)
	}
	if err := os.Rename(half, target); err != nil {
		return fmt.Errorf("sqlite: %s: create: %w", path, err)
	}
	return syncFolder(filepath.Dir(target))
}

func fill(path string) (err error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := sqlitex.ExecuteTransient(c, fmt.Sprintf(`PRAGMA page_size = %d`, pageSize), nil); err != nil {
		return err
	}
	err = sqlitex.ExecuteScript(c, fmt.Sprintf(`
		PRAGMA application_id = %d;
		PRAGMA user_version = %d;
		%s
		%s`, application, journal.Version, schema, views), nil)
	if err != nil {
		return err
	}
	return (&writer{conn: c}).putTotals()
}
