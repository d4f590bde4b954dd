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

// create makes an empty run file. It is made beside its place and moved there when it is
// whole, so that there is never half a run file.
func create(path string) (err error) {
	half := path + "-new"
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
	if err := os.Rename(half, path); err != nil {
		return fmt.Errorf("sqlite: %s: create: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

func fill(path string) (err error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := sqlitex.ExecuteTransient(c, `PRAGMA page_size = 16384`, nil); err != nil {
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
