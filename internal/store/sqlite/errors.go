package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"parley/internal/filelock"
	"parley/journal"
)

// What callers may want to tell apart.
var (
	ErrPlaying = errors.New("the run is being played by another process")
	ErrForeign = errors.New("not a run file")
	ErrDamaged = fmt.Errorf("%w", journal.ErrDamaged)
	ErrVersion = errors.New("the run file has another format version")
)

// rowError is a row that is not as it was written, or is not there.
type rowError struct {
	table   table
	key     int64
	why     string
	episode *int // whose it is, where that is known
}

func (e *rowError) Error() string {
	text := ErrDamaged.Error() + ": " + e.table.row(e.key)
	if e.episode != nil {
		text += fmt.Sprintf(" of episode %d", *e.episode)
	}
	return text + " " + e.why
}

// of says whose a row is that is damaged.
func of(episode int, err error) error {
	if e, ok := errors.AsType[*rowError](err); ok && e.episode == nil {
		e.episode = &episode
	}
	return err
}
func (e *rowError) Unwrap() error { return ErrDamaged }

// explain makes an error of the driver one that names the file and says what can be done.
func explain(path, doing string, err error) error {
	switch {
	case errors.Is(err, journal.ErrFenced):
		return fmt.Errorf("sqlite: %s: %s: %w", path, doing, err)
	case errors.Is(err, ErrDamaged):
		return damaged(path, doing, err)
	}
	switch code := sqlite.ErrCode(err); code.ToPrimary() {
	case sqlite.ResultFull:
		return fmt.Errorf("sqlite: %s: %s: no space left on the disk (nothing that was recorded is lost: free some and resume): %w", path, doing, err)
	case sqlite.ResultIOErr:
		return fmt.Errorf("sqlite: %s: %s: the disk fails (nothing that was recorded is lost: repair it and resume): %w", path, doing, err)
	case sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultPerm:
		if pending(filelock.Resolve(path)) {
			return fmt.Errorf("sqlite: %s: %s: the run was cut off, and the file or its folder cannot be written (allow it, or copy the file together with %s-wal to a folder where you may write): %w", path, doing, path, err)
		}
		return fmt.Errorf("sqlite: %s: %s: the file or its folder cannot be written (allow it, or copy the file to a folder where you may write): %w", path, doing, err)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return damaged(path, doing, err)
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return fmt.Errorf("sqlite: %s: %s: another program holds the file locked (close it and try again): %w", path, doing, err)
	case sqlite.ResultConstraint:
		return fmt.Errorf("sqlite: %s: %s: the entries do not fit what is recorded: %w", path, doing, err)
	default:
		return fmt.Errorf("sqlite: %s: %s: %w", path, doing, err)
	}
}

func damaged(path, doing string, why error) error {
	const help = "keep it; parley check FILE says which episodes are affected, and parley show, report and export read the others; " +
		"what SQLite can still read is written to a new file by: sqlite3 FILE .recover | sqlite3 NEW"
	if errors.Is(why, ErrDamaged) {
		return fmt.Errorf("sqlite: %s: %s: %w (%s)", path, doing, why, help)
	}
	return fmt.Errorf("sqlite: %s: %s: %w: %w (%s)", path, doing, ErrDamaged, why, help)
}

// isDamage says whether err is about a file that is damaged.
func isDamage(err error) bool {
	if errors.Is(err, ErrDamaged) {
		return true
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return true
	}
	return false
}
