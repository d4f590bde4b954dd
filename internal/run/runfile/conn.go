package runfile

import (
	"errors"

	"zombiezen.com/go/sqlite"
)

// within runs f in a transaction that writes, and rolls it back if anything fails.
func within(c *sqlite.Conn, f func() error) error {
	if err := run(c, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = run(c, "COMMIT")
	}
	if err != nil && !c.AutocommitEnabled() { // some failures have rolled it back already
		err = errors.Join(err, run(c, "ROLLBACK"))
	}
	return err
}

func run(c *sqlite.Conn, statement string) error {
	s, err := c.Prepare(statement)
	if err != nil {
		return err
	}
	return rowStep(s)
}

// reset makes s ready for its next use. The error of Reset only repeats the one of Step.
func reset(s *sqlite.Stmt) { _ = s.Reset() }
