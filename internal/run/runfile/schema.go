package runfile

import (
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"parley/journal"
)

//go:embed schema.sql
var tablesSQL string

//go:embed views.sql
var viewsSQL string

// PageSize is the page size of run files. Every commit writes at least five pages to the log. Smaller pages
// cost less for a commit of one call, and larger pages make smaller files.
const PageSize = 8192

// application is the application_id of run files, PRLY.
const application = 0x50524C59

// createSchema makes a file with tables and views. fill writes its first rows.
func createSchema(path string, fill func(*sqlite.Conn) error) (err error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := sqlitex.ExecuteTransient(c, fmt.Sprintf(`PRAGMA page_size = %d`, PageSize), nil); err != nil {
		return err
	}
	script := fmt.Sprintf("PRAGMA application_id = %d;\nPRAGMA user_version = %d;\n%s\n%s", application, journal.Version, tablesSQL, viewsSQL)
	if err := sqlitex.ExecuteScript(c, script, nil); err != nil {
		return err
	}
	return fill(c)
}

// checkTables returns an error if a table is missing or differs from the one that createSchema makes.
func checkTables(c *sqlite.Conn) error { return checkScript(c, tablesSQL) }

// checkViews does the same for the views.
func checkViews(c *sqlite.Conn) error { return checkScript(c, viewsSQL) }

// checkScript returns an error if a table or view of a script is missing or differs.
func checkScript(c *sqlite.Conn, script string) error {
	existing := map[string]bool{}
	err := sqlitex.Execute(c, `SELECT sql FROM sqlite_schema WHERE type IN ('table', 'view')`, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		existing[s.ColumnText(0)] = true
		return nil
	}})
	if err != nil {
		return err
	}
	for statement := range strings.SplitSeq(script, ";\n") {
		i := strings.Index(statement, "CREATE ")
		if i < 0 || existing[statement[i:]] {
			continue
		}
		what, _, _ := strings.Cut(statement[i:], "\n")
		return fmt.Errorf("%w: a table or view is missing or was changed: %s", journal.ErrDamaged, strings.TrimRight(what, " ("))
	}
	return nil
}

// marks reads application_id and user_version of a file. It takes no lock and changes
// nothing. If immutable is set, it does not read the log either.
func marks(path string, immutable bool) (id, version int64, err error) {
	query := "mode=ro"
	if immutable {
		query = immutableQuery
	}
	c, err := sqlite.OpenConn(uri(path, query), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if id, err = queryNumber(c, "PRAGMA application_id"); err != nil {
		return 0, 0, err
	}
	version, err = queryNumber(c, "PRAGMA user_version")
	return id, version, err
}

// immutableQuery is the query of a URI that opens a file that nothing writes.
const immutableQuery = "mode=ro&immutable=1"

// uri returns path as a uri with a query.
func uri(path, query string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query}).String()
}

// queryNumber returns the first column of a query's first row.
func queryNumber(c *sqlite.Conn, query string) (n int64, err error) {
	s, _, err := c.PrepareTransient(query)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Finalize() }() // it repeats the error of Step
	if _, err := s.Step(); err != nil {
		return 0, err
	}
	return s.ColumnInt64(0), nil
}
