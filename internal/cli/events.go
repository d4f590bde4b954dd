package cli

import (
	"cmp"
	"log/slog"
	"os"

	"parley/internal/cli/exit"
	"parley/internal/kit/files"
)

// eventFlags are the flags of commands that play a run.
type eventFlags struct {
	Events string `placeholder:"FILE" help:"Append what happens to this file, as JSON lines: episodes that begin, end or fail, calls, waves, batches, steering, outages and warnings."`
}

// eventFile is a file with what happens in a run. A line that cannot be written does not stop the run.
type eventFile struct {
	*os.File
	err error // the first
}

// open opens the file of --events, if there is one. What the command says from now on is in it too. The caller must call end.
func (f *eventFlags) open(s *State) (end func(), err error) {
	if f.Events == "" {
		return func() {}, nil
	}
	// A slip must not append lines to a run file or a plan.
	if old, err := os.Stat(f.Events); isRunFile(f.Events) || err == nil && old.Mode().IsRegular() && old.Size() > 0 && !beginsWithBrace(f.Events) {
		return nil, exit.Usagef("--events: %s is not a file of events: name another file", f.Events)
	}
	file, err := os.OpenFile(f.Events, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, exit.Usagef("--events: %w", err)
	}
	e := &eventFile{File: file}
	s.log = slog.New(slog.NewJSONHandler(e, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return func() {
		if err := cmp.Or(e.err, file.Close()); err != nil {
			s.say("--events: not everything was written: "+err.Error(), maxMessage)
		}
	}, nil
}

// beginsWithBrace reports whether a file begins as a JSON object does.
func beginsWithBrace(path string) bool {
	f, err := files.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // read only
	var first [1]byte
	_, err = f.Read(first[:])
	return err == nil && first[0] == '{'
}

// Write writes a line. The handler calls it for one line at a time.
func (e *eventFile) Write(line []byte) (int, error) {
	n, err := e.File.Write(line)
	e.err = cmp.Or(e.err, err)
	return n, err
}
