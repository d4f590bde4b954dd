package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"parley/internal/cli/exit"
	"parley/internal/run/cluster"
	"parley/internal/run/runfile"
)

// rebuild makes the run file again that a run with --retain lost.
func (f *playFlags) rebuild(ctx context.Context, s *State, run, file string) (err error) {
	if f.Cluster == "" {
		return exit.Usagef("--rebuild needs --cluster: the hub that has the run")
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return exit.Usagef("--rebuild: %s exists: resume it without --rebuild, or name another file", file)
	}
	token, err := f.token(s)
	if err != nil {
		return err
	}
	ctx, end := untilSignal(ctx, s)
	defer end()
	nc, err := f.connected(ctx, f.Cluster, token, s.tell)
	if err != nil {
		return err
	}
	defer nc.Close()
	store, err := runfile.Open(ctx, file, runfile.Either)
	if err != nil {
		return exit.AsUsage(err)
	}
	if err := errors.Join(cluster.Rebuild(ctx, nc.Conn, run, store), store.Close()); err != nil {
		_ = os.Remove(file) // it has nothing
		return exit.AsUsage(fmt.Errorf("--rebuild: %w", err))
	}
	return nil
}
