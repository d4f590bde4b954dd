package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/output"
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
	head, err := output.Head(path)
	other := errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrNotRegular) // a new file, or a pipe
	if isRunFile(path) || !other && (err != nil || len(head) > 0 && head[0] != '{') {
		return nil, exit.Usagef("--events: %s is not a file of events: name another file", path)
	}
	if e.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, exit.Usagef("--events: %w", err)
	}
	e.log = slog.New(slog.NewJSONHandler(e, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e.add = app.LogTo(ctx, e.log)
	return e, nil
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
	if e.log != nil {
		e.log.Info("run ended", "state", string(sum.State), "reason", sum.Reason.String(), "episodes", sum.Episodes.Total, "failed", sum.Episodes.Failed,
			"cost_usd", sum.Cost.Dollars(), "digest", sum.Digest)
	}
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
