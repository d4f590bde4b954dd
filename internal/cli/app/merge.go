package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/internal/kit/files"
	"parley/internal/run/runfile"
	"parley/journal"
)

// mergedAtOnce is how many entries Merge commits together.
const mergedAtOnce = 512

// Merge writes the run in a run file, which may have shards, into one new file, and returns how many entries
// it has. It writes the whole file or none. Nothing can play the run meanwhile.
func Merge(ctx context.Context, from, to string) (entries int, err error) {
	if err := checkFile(to, false); err != nil {
		return 0, err
	}
	if _, err := os.Lstat(to); err == nil {
		return 0, usageError{fmt.Errorf("%s: %w: name another file", to, fs.ErrExist)}
	}
	in, err := runfile.Open(ctx, from, runfile.Resume)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := checkMoved(ctx, in, FolderOf(from), to); err != nil {
		return 0, err
	}
	temp := to + "-merge"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	out, err := runfile.Open(ctx, temp, runfile.Create)
	if err != nil {
		return 0, err
	}
	entries, err = copyAll(ctx, in, out)
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(temp, to)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(temp))
	}
	return entries, nil
}

// checkMoved returns an error if a copy at to would find other files than the run file in folder: a recorded plan names
// them relative to its folder.
func checkMoved(ctx context.Context, in *runfile.Store, folder, to string) error {
	head, err := in.Head(ctx)
	if err != nil || head.Begun == nil || files.Resolve(folder) == files.Resolve(filepath.Dir(to)) {
		return err
	}
	var plan struct{ Prices, Cache string }
	if err := json.Unmarshal(head.Begun.Plan, &plan); err != nil {
		return nil //nolint:nilerr // a plan of another form names no files
	}
	for _, name := range []string{plan.Prices, plan.Cache} {
		if name = filepath.FromSlash(name); name != "" && name != "off" && !filepath.IsAbs(name) {
			return usageError{fmt.Errorf("%s: the plan of the run names %s, relative to the folder of its file: name a file in %s, and move it with what the plan names", to, name, folder)}
		}
	}
	return nil
}

// copyAll copies all entries, and how far the log of a cluster is collected.
func copyAll(ctx context.Context, from, to *runfile.Store) (n int, err error) {
	if err := to.SyncLater(); err != nil {
		return 0, err
	}
	var batch []journal.Entry
	flush := func() error {
		n += len(batch)
		err := to.Append(ctx, batch...)
		batch = batch[:0]
		return err
	}
	err = from.Read(ctx, journal.Whole(), func(e journal.Entry) error {
		if batch = append(batch, e); len(batch) < mergedAtOnce {
			return nil
		}
		return flush()
	})
	if err = errors.Join(err, flush()); err != nil {
		return 0, err
	}
	head, err := from.Head(ctx)
	if err != nil || head.Collected == (journal.Collected{}) {
		return n, err
	}
	return n, to.Append(ctx, &head.Collected)
}
