// Package control passes requests from other processes to the process that plays a run, and its
// answers back.
//
// The process that plays the run file RUN makes the folder RUN-control, which only its user can
// read and write. It holds a lock in there while it lives, and writes a random name for itself
// into the file "process". A sender puts a request into a file of its own, which names the verb,
// its arguments, and the process that it is meant for. The process looks into the folder a few
// times a second. It deletes a request, then carries it out, then writes the answer beside it. The
// sender reads and deletes the answer. Files are written under another name and renamed, so
// nobody reads half of one.
//
// It promises that a request is carried out at most once, and only by the process that it was
// meant for: what a killed process left behind is deleted by the next one. A sender whose run is
// played by nobody learns that at once. Requests are carried out one after the other, in the order
// in which they were sent. Whatever lies in the folder, the run continues: a request that cannot
// be read is deleted or answered with an error, and a folder that is not ours is left alone.
//
// It knows no verbs: package cli and others bring handlers for theirs.
package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"parley/internal/kit/files"
)

// Suffix is added to the name of a run file to name its folder of requests.
const Suffix = "-control"

// The files of a folder.
const (
	lockName    = "lock"    // locked while the process lives
	processName = "process" // the name of the process
	requestExt  = ".request"
	answerExt   = ".answer"
)

// maxSize is the most bytes that a request or an answer may have.
const maxSize = 1 << 20

// ErrNotPlayed means that no process plays the run.
var ErrNotPlayed = errors.New("no process plays this run")

// request is the content of a request file.
type request struct {
	Process string          `json:"process"` // that it is meant for
	Verb    string          `json:"verb"`
	Args    json.RawMessage `json:"args,omitempty"`
}

// answer is the content of an answer file. Either field is set.
type answer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

// Error is the text of the process that refused a request.
type Error struct{ Text string }

// Error implements error.
func (e *Error) Error() string { return e.Text }

// folderOf returns the folder of requests of a run file, whatever name leads to that.
func folderOf(run string) string { return files.Beside(run, Suffix) }

// write writes a file of the folder, whole or not at all.
func write(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxSize {
		return &files.TooLargeError{Path: path, Limit: maxSize}
	}
	return files.Publish(path, 0o600, b)
}

// read reads a file of the folder.
func read(ctx context.Context, path string, v any) error {
	b, err := files.Read(ctx, path, maxSize)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	return err
}

// How often a sender looks for its answer, and how often it checks that the process lives.
const (
	lookEvery  = 20 * time.Millisecond
	checkEvery = 25 // looks
)

// Send passes a request to the process that plays run, and waits for its answer, which is decoded
// into value unless that is nil. It returns ErrNotPlayed if no process plays the run, and an *Error
// if the process refuses the request. If ctx is done first, the error says whether the request may
// have been carried out.
func Send(ctx context.Context, run, verb string, args, value any) error {
	b, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("control: %s: %w", verb, err)
	}
	dir := folderOf(run)
	process, ok := playing(ctx, dir)
	if !ok {
		return fmt.Errorf("control: %s: %w", run, ErrNotPlayed)
	}
	name := filepath.Join(dir, fmt.Sprintf("%020d-%s", time.Now().UnixNano(), rand.Text()))
	if err := write(name+requestExt, request{process, verb, b}); err != nil {
		return fmt.Errorf("control: %s: %w", verb, err)
	}
	a, err := await(ctx, dir, name, process)
	switch {
	case err != nil:
		return fmt.Errorf("control: %s: %w", verb, err)
	case a.Error != "":
		return &Error{a.Error}
	case value == nil:
		return nil
	}
	if err := json.Unmarshal(a.Value, value); err != nil {
		return fmt.Errorf("control: %s: the answer cannot be read: %w", verb, err)
	}
	return nil
}

// Played reports whether a process plays run and takes requests.
func Played(ctx context.Context, run string) bool {
	_, ok := playing(ctx, folderOf(run))
	return ok
}

// playing returns the name of the process that looks into a folder. ok is false if there is none.
func playing(ctx context.Context, dir string) (process string, ok bool) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // others could answer
		return "", false
	}
	if read(ctx, filepath.Join(dir, processName), &process) != nil || process == "" {
		return "", false
	}
	lock, err := files.Take(filepath.Join(dir, lockName))
	if err == nil {
		_ = lock.Release() // the process was killed
	}
	return process, errors.Is(err, files.ErrHeld)
}

// await waits for the answer to a request.
func await(ctx context.Context, dir, name, process string) (a answer, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		if err := read(ctx, name+answerExt, &a); err == nil {
			_ = os.Remove(name + answerExt) // the process deletes it too, later
			return a, nil
		} else if !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			return a, fmt.Errorf("the answer cannot be read: %w", err)
		}
		if n%checkEvery == 0 {
			if now, ok := playing(ctx, dir); (!ok || now != process) && ctx.Err() == nil {
				return a, takeBack(name, errors.New("the process that plays the run ended before it answered"))
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return a, takeBack(name, fmt.Errorf("no answer: %w", context.Cause(ctx)))
		}
	}
}

// takeBack deletes a request that nobody waits for any more, and says whether that was in time.
func takeBack(name string, why error) error {
	if os.Remove(name+requestExt) == nil {
		return fmt.Errorf("%w; nothing was changed", why)
	}
	return fmt.Errorf("%w; the request may have been carried out", why)
}

// ours reports whether a file of the folder is one that this package writes.
func ours(name string) bool {
	ext := filepath.Ext(name)
	return name == lockName || name == processName || ext == requestExt || ext == answerExt || strings.HasPrefix(name, files.TempPrefix)
}

// verbs lists the names of handlers.
func verbs(handlers map[string]Handler) string {
	return strings.Join(slices.Sorted(maps.Keys(handlers)), ", ")
}
