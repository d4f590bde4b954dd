package runfile

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"parley/internal/kit/files"
	"parley/journal"
)

// Errors that callers may want to distinguish.
var (
	ErrPlaying = errors.New("the run is being played by another process")
	ErrForeign = errors.New("not a run file")
	ErrDamaged = journal.ErrDamaged
	ErrVersion = errors.New("the run file has another format version")
	ErrLarge   = errors.New("it is too large to be read at once")
	ErrGone    = errors.New("the run file was deleted, moved, replaced or truncated while it was written")
)

// errBeyond means that a run file is so damaged that Parley cannot read the rest either.
var errBeyond = errors.New("nothing of it can be read")

// beyond marks damage because of which nothing of a file can be read. Other errors stay as they are.
func beyond(err error) error {
	if err == nil || !isDamage(err) {
		return err
	}
	return fmt.Errorf("%w: %w: %s", ErrDamaged, errBeyond, damageText(err))
}

// opening is what is done when a file is opened.
const opening = "open"

// errMissing returns an error about something that is not in the file.
func errMissing(what string, args ...any) error {
	return fmt.Errorf("%w: %s is missing", ErrDamaged, fmt.Sprintf(what, args...))
}

// explain adds the file's name to an error of SQLite, and says what the user can do. It
// returns nil for nil.
func explain(path, doing string, err error) error {
	var help string
	var few error
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultCantOpen {
		few = files.Exhausted()
	}
	switch code := sqlite.ErrCode(err).ToPrimary(); {
	case err == nil:
		return nil
	case isDamage(err):
		return damaged(path, doing, err)
	case few != nil:
		return fmt.Errorf("%s: %s: %w: %w", path, doing, err, few)
	case errors.Is(err, ErrGone):
		return fmt.Errorf("%s: %s: %w: nothing more can be recorded (if you moved it, move it back and resume the run; if you deleted or truncated it, what it recorded is lost)", path, doing, err)
	case code == sqlite.ResultFull:
		help = "no space left on the disk (nothing that was recorded is lost: free some and resume): "
	case code == sqlite.ResultIOErr:
		help = "the disk fails (nothing that was recorded is lost: repair it and resume): "
	case code == sqlite.ResultReadOnly || code == sqlite.ResultCantOpen || code == sqlite.ResultPerm:
		help = "the file or its folder cannot be written (allow it, or copy the file to a folder where you may write): "
		if pending(files.Resolve(path)) {
			help = fmt.Sprintf("the run was cut off, and the file or its folder cannot be written (allow it, or copy the file together with %s-wal to a folder where you may write): ", path)
		}
	case code == sqlite.ResultBusy || code == sqlite.ResultLocked:
		help = "another program holds the file locked (close it and try again): "
	case code == sqlite.ResultConstraint:
		help = "the entries do not fit what is recorded: "
	}
	return fmt.Errorf("%s: %s: %s%w", path, doing, help, err)
}

func damaged(path, doing string, why error) error {
	help := "keep it; parley check FILE says which episodes are affected, and parley show, report and export read the others; "
	if errors.Is(why, errBeyond) || doing == opening {
		help = "keep it, and put back a copy if you have one; parley cannot read the rest of it either; "
	}
	help += "what SQLite can still read is written to a new file by: sqlite3 FILE .recover | sqlite3 NEW"
	if !errors.Is(why, ErrDamaged) {
		why = fmt.Errorf("%w: %w", ErrDamaged, why)
	}
	return fmt.Errorf("%s: %s: %w (%s)", path, doing, why, help)
}

// isDamage reports whether err is about a damaged file.
func isDamage(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return errors.Is(err, ErrDamaged) || code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB
}
