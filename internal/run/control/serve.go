package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/kit/files"
)

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

// box is the folder of a process that takes requests.
type box struct {
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
	b := &box{dir: folderOf(run), process: rand.Text(), handlers: handlers, answers: map[string]time.Time{}}
	if err := b.open(); err != nil {
		return nil, fmt.Errorf("control: %w", err)
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
func (b *box) open() error {
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
		if b.lock, err = files.Take(filepath.Join(b.dir, lockName)); !errors.Is(err, files.ErrHeld) {
			break
		}
		time.Sleep(lookEvery)
	}
	if err != nil {
		return err
	}
	if err := write(filepath.Join(b.dir, processName), b.process); err != nil {
		b.close()
		return err
	}
	return nil
}

// sweep deletes the files that this package writes.
func sweep(dir string) {
	for _, name := range names(dir) {
		if ours(name) {
			_ = os.Remove(filepath.Join(dir, name)) // what stays is seen by the caller
		}
	}
}

// names lists a folder, up to a limit.
func names(dir string) []string {
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
func (b *box) poll(ctx context.Context) {
	for _, name := range names(b.dir) {
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
func (b *box) take(ctx context.Context, id string) {
	path := filepath.Join(b.dir, id)
	var req request
	bad := read(ctx, path+requestExt, &req)
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
	if write(path+answerExt, a) == nil {
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
func (b *box) close() {
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
