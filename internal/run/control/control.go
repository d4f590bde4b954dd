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
// Send and Serve know no verbs: package cli and others bring handlers for theirs. Steering is what the verb SteerVerb does to a run, and
// ShowLive writes what a process is doing for those who watch.
package control

import (
	"cmp"
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
	"sync"
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

// ErrOtherUser means that a process of another user plays the run. The folder of requests is theirs alone.
var ErrOtherUser = errors.New("another user plays this run, and takes no requests of yours: ask them, or act as that user")

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

// writeFile writes a file of the folder, whole or not at all.
func writeFile(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxSize {
		return &files.TooLargeError{Path: path, Limit: maxSize}
	}
	return files.Publish(path, 0o600, b)
}

// readFile reads a file of the folder.
func readFile(ctx context.Context, path string, v any) error {
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
// into value unless that is nil. It returns ErrNotPlayed if no process plays the run, ErrOtherUser if one of
// another user does, and an *Error if the process refuses the request. If ctx is done first, the error says whether the request may
// have been carried out.
func Send(ctx context.Context, run, verb string, args, value any) error {
	b, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	dir := folderOf(run)
	process, err := playing(ctx, dir)
	if errors.Is(err, fs.ErrPermission) && files.Guarded(files.Resolve(run)) {
		return ErrOtherUser
	}
	if err != nil {
		return ErrNotPlayed
	}
	name := filepath.Join(dir, fmt.Sprintf("%020d-%s", time.Now().UnixNano(), rand.Text()))
	if err := writeFile(name+requestExt, request{process, verb, b}); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	a, err := await(ctx, dir, name, process)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", verb, err)
	case a.Error != "":
		return &Error{a.Error}
	case value == nil:
		return nil
	}
	if err := json.Unmarshal(a.Value, value); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", verb, err)
	}
	return nil
}

// Played reports whether a process plays run and takes requests.
func Played(ctx context.Context, run string) bool {
	_, err := playing(ctx, folderOf(run))
	return err == nil
}

// playing returns the name of the process that looks into a folder, or why it is not known.
func playing(ctx context.Context, dir string) (process string, err error) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // others could answer
		return "", ErrNotPlayed
	}
	if err := readFile(ctx, filepath.Join(dir, processName), &process); err != nil || process == "" {
		return "", cmp.Or(err, ErrNotPlayed)
	}
	lock, err := files.TakeLock(filepath.Join(dir, lockName))
	if err == nil {
		_ = lock.Release()
		return "", ErrNotPlayed // the process was killed
	}
	if !errors.Is(err, files.ErrHeld) {
		return "", err
	}
	return process, nil
}

// await waits for the answer to a request.
func await(ctx context.Context, dir, name, process string) (a answer, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		if err := readFile(ctx, name+answerExt, &a); err == nil {
			_ = os.Remove(name + answerExt) // the process deletes it too, later
			return a, nil
		} else if !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			return a, fmt.Errorf("the answer cannot be read: %w", err)
		}
		if n%checkEvery == 0 {
			if now, err := playing(ctx, dir); (err != nil || now != process) && ctx.Err() == nil {
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

// isOurs reports whether a file of the folder is one that Send or Serve writes.
func isOurs(name string) bool {
	ext := filepath.Ext(name)
	return name == lockName || name == processName || ext == requestExt || ext == answerExt || strings.HasPrefix(name, files.TempPrefix)
}

// verbs lists the names of handlers.
func verbs(handlers map[string]Handler) string {
	return strings.Join(slices.Sorted(maps.Keys(handlers)), ", ")
}

// Handler carries out a request and returns its answer, which becomes JSON. An error becomes an
// *Error of the sender. Args may be hostile. ctx ends with Serve.
type Handler func(ctx context.Context, args json.RawMessage) (value any, err error)

// The rhythm of a process.
const (
	pollEvery = 200 * time.Millisecond
	// maxFiles is how many files of the folder it looks at.
	maxFiles = 4096
	// keepAnswer is how long an answer waits for its sender.
	keepAnswer = time.Minute
	// lockTries is how often a new process tries to get its lock.
	lockTries = 10
	// lastWait is how long the end of a run waits until senders have read its last answers.
	lastWait = time.Second
)

// inbox is the folder of a process that takes requests.
type inbox struct {
	dir      string
	process  string
	lock     *files.Lock
	handlers map[string]Handler
	answers  map[string]time.Time // files that a sender has not read yet, and when they were written
}

// Serve takes the requests of a run until end is called, and passes each to the handler of its verb.
// The caller must have the lock of the run file. Handlers are called one at a time. Serve fails if
// the folder of requests cannot be made, or has files of others: then the run takes none.
func Serve(ctx context.Context, run string, handlers map[string]Handler) (end func(), err error) {
	b := &inbox{dir: folderOf(run), process: rand.Text(), handlers: handlers, answers: map[string]time.Time{}}
	if err := b.open(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			b.poll(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		stop()
		wg.Wait()
		b.close()
	}, nil
}

// open makes the folder. What a process left there that was killed is deleted first.
func (b *inbox) open() error {
	err := os.Mkdir(b.dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if info, err := os.Lstat(b.dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a folder: delete or rename it", b.dir)
		}
		sweep(b.dir)
		if err := os.Remove(b.dir); err != nil { // so that it is certainly ours
			return fmt.Errorf("%s has files that are not of a run, or is of another user: delete or rename it: %w", b.dir, err)
		}
		err = os.Mkdir(b.dir, 0o700)
	}
	if err != nil {
		return err
	}
	for range lockTries { // a sender may hold it for a moment, to see that nobody else does
		if b.lock, err = files.TakeLock(filepath.Join(b.dir, lockName)); !errors.Is(err, files.ErrHeld) {
			break
		}
		time.Sleep(lookEvery)
	}
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(b.dir, processName), b.process); err != nil {
		b.close()
		return err
	}
	return nil
}

// sweep deletes the files that Send and Serve write.
func sweep(dir string) {
	for _, name := range listNames(dir) {
		if isOurs(name) {
			_ = os.Remove(filepath.Join(dir, name)) // what stays is seen by the caller
		}
	}
}

// listNames lists a folder, up to a limit.
func listNames(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()   // it was only read
	all, _ := f.Readdirnames(maxFiles) // what cannot be read is not there
	slices.Sort(all)
	return all
}

// poll carries out the requests in the folder, and deletes answers that nobody has read.
func (b *inbox) poll(ctx context.Context) {
	for _, name := range listNames(b.dir) {
		if ctx.Err() != nil {
			return
		}
		if id, ok := strings.CutSuffix(name, requestExt); ok {
			b.take(ctx, id)
		}
	}
	for name, at := range b.answers {
		if time.Since(at) > keepAnswer {
			_ = os.Remove(name)
			delete(b.answers, name)
		}
	}
}

// take carries out one request.
func (b *inbox) take(ctx context.Context, id string) {
	path := filepath.Join(b.dir, id)
	var req request
	bad := readFile(ctx, path+requestExt, &req)
	if os.Remove(path+requestExt) != nil {
		return // its sender has taken it back, or it would be carried out twice
	}
	var a answer
	handler, known := b.handlers[req.Verb]
	switch {
	case bad != nil:
		a.Error = "the request cannot be read: " + bad.Error()
	case req.Process != b.process:
		a.Error = "the request is for another process"
	case !known:
		a.Error = fmt.Sprintf("unknown verb %q; want one of %s", req.Verb, verbs(b.handlers))
	default:
		a = carryOut(ctx, handler, req.Args)
	}
	if writeFile(path+answerExt, a) == nil {
		b.answers[path+answerExt] = time.Now()
	}
}

// carryOut calls a handler.
func carryOut(ctx context.Context, handler Handler, args json.RawMessage) (a answer) {
	value, err := handler(ctx, args)
	if err == nil {
		a.Value, err = json.Marshal(value)
	}
	if err == nil && len(a.Value) > maxSize/2 {
		err = errors.New("the answer is too large")
	}
	if err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

// close waits until the last answers are read, and deletes the folder.
func (b *inbox) close() {
	until := time.Now().Add(lastWait)
	for name, at := range b.answers {
		for ; at.Add(lastWait).After(time.Now()) && time.Now().Before(until); time.Sleep(lookEvery) {
			if _, err := os.Lstat(name); err != nil {
				break
			}
		}
	}
	sweep(b.dir)
	_ = b.lock.Release()
	_ = os.Remove(b.dir) // what stays is deleted by the next process
}
