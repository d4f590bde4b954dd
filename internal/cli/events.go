package cli

import (
	"context"
	"log/slog"
	"os"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/kit/files"
)

// eventFile writes what happens in a run as JSON lines; nil writes nothing. A line that cannot be written does not stop the run.
type eventFile struct {
	file *os.File
	log  *slog.Logger
	add  func(app.Event)
	err  error // the first
}

// openEventFile opens the file of --events, if there is one.
func openEventFile(ctx context.Context, path string) (*eventFile, error) {
	e := &eventFile{add: func(app.Event) {}}
	if path == "" {
		return e, nil
	}
	// A slip must not append lines to a run file or a plan.
	if old, err := os.Stat(path); isRunFile(path) || err == nil && old.Mode().IsRegular() && old.Size() > 0 && !beginsWithBrace(path) {
		return nil, exit.Usagef("--events: %s is not a file of events: name another file", path)
	}
	var err error
	if e.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, exit.Usagef("--events: %w", err)
	}
	e.log = slog.New(slog.NewJSONHandler(e, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e.add = app.LogTo(ctx, e.log)
	return e, nil
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
	n, err := e.file.Write(line)
	if e.err == nil {
		e.err = err
	}
	return n, err
}

func (e *eventFile) began(o app.Opened) {
	if e.log != nil && o.Head.Begun == nil {
		e.log.Info("run began", "file", o.File, "kind", o.Plan.Kind.Name)
	} else if e.log != nil {
		e.log.Info("run resumed", "file", o.File, "kind", o.Plan.Kind.Name, "ended", o.Head.Ended.Len())
	}
}

func (e *eventFile) ended(sum *app.Summary) {
	if e.log == nil {
		return
	}
	attrs := []any{"state", string(sum.State), "reason", sum.Reason.String(), "episodes", sum.Episodes.Total, "failed", sum.Episodes.Failed, "digest", sum.Digest}
	if sum.Cost != nil {
		attrs = append(attrs, "cost_usd", sum.Cost.Dollars())
	}
	e.log.Info("run ended", attrs...)
}

func (e *eventFile) close(s *State) {
	if e.file == nil {
		return
	}
	if err := e.file.Close(); e.err == nil {
		e.err = err
	}
	if e.err != nil {
		s.tell("--events: not everything was written: " + e.err.Error())
	}
}
