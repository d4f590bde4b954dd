// Package process runs a program with everything that it starts, and ends all of it.
//
// It promises that Run returns when the program has ended and nothing that it started is left, however it ended: also not processes
// that were left in the background or that detached themselves. It finds them by the group of the program and by a mark in their environment; on
// Linux with a supervisor (see Supervise) also those that changed both, and on Windows by a job object. What a killed process of ours had
// started is found later by the same mark: see End. A program gets only the environment that it is given, and its output is bounded.
//
// It is no sandbox: a program has the rights of its user, and one that attacks its supervisor can escape.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Marker is the environment variable that marks a program and what it starts.
const Marker = "PARLEY_PROGRAM"

// Command is a program to run.
type Command struct {
	Args  []string // the program and its arguments
	Dir   string
	Env   []string // all of its environment, without the mark
	Stdin string
	// Mark names the program. It consists of parts with slashes between them, so that End can find several at once.
	Mark string
	// Keep is how many bytes of each output are kept: the beginning and the end.
	Keep int
	// Timeout ends the program. 0: there is none.
	Timeout time.Duration
	// Supervisor is a command that calls Supervise with the arguments that follow. Nil: none is used.
	Supervisor []string
}

// Result is how a program ended.
type Result struct {
	Exit           int // its exit code; -1: it was ended, or died of a signal
	TimedOut       bool
	Took           time.Duration
	Stdout, Stderr string
	Cut            bool // not all of Stdout is there
}

// ErrStart is why a program did not begin: there is none of that name, or it cannot be run.
var ErrStart = errors.New("cannot be started")

// grace is how long a program that is ended may take to write what it has.
const grace = 2 * time.Second

// Run runs a program to its end. The error is an ErrStart, or the cause of ctx.
func Run(ctx context.Context, c Command) (res Result, err error) {
	path, err := find(c)
	if err != nil {
		return res, fmt.Errorf("%s %w: %w", c.Args[0], ErrStart, err)
	}
	args := append([]string{path}, c.Args[1:]...)
	if len(c.Supervisor) > 0 {
		args = append(append([]string{}, c.Supervisor...), args...)
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // the caller may run it; it is ended below
	cmd.Dir, cmd.Env = c.Dir, append(append([]string{}, c.Env...), Marker+"="+c.Mark)
	out, errs := newCapture(c.Keep), newCapture(c.Keep)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, errs, grace
	if c.Stdin != "" {
		cmd.Stdin = strings.NewReader(c.Stdin)
	}
	var why *os.File // in which a supervisor says why it could not start the program
	if len(c.Supervisor) > 0 {
		read, tell, err := os.Pipe()
		if err != nil {
			return res, err
		}
		defer func() { _ = read.Close() }()
		defer func() { _ = tell.Close() }() // it is closed before, unless the program does not start
		why, cmd.ExtraFiles = read, []*os.File{tell}
	}
	tree, start := newTree(cmd), time.Now()
	if err := tree.start(); err != nil {
		return res, fmt.Errorf("%s %w: %w", c.Args[0], ErrStart, err)
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // the program has it
	}
	exited := make(chan struct{})
	var state *os.ProcessState
	go func() { // it ends with the program, which is awaited below
		defer close(exited)
		state, _ = cmd.Process.Wait()
	}()
	var late <-chan time.Time
	if c.Timeout > 0 {
		timer := time.NewTimer(c.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-exited:
	case <-late:
		res.TimedOut = true
		tree.stop(exited)
	case <-ctx.Done():
		err = context.Cause(ctx)
		tree.stop(exited)
	}
	tree.end()
	End(c.Mark)
	<-exited
	_ = cmd.Wait() // for its output, but not long: something outside of the tree may have the other end
	res.Took, res.Stdout, res.Stderr = time.Since(start), out.String(), errs.String()
	res.Cut = out.all > int64(2*out.half)
	if res.Exit = -1; state != nil {
		res.Exit = state.ExitCode()
	}
	if why != nil && err == nil {
		if said, _ := io.ReadAll(io.LimitReader(why, 1<<10)); len(said) > 0 {
			return res, fmt.Errorf("%s %w: %s", c.Args[0], ErrStart, said)
		}
	}
	return res, err
}

// whyFile is the number of that file in the supervisor.
const whyFile = 3

// find returns the path of a program, by the PATH that it is given.
func find(c Command) (string, error) {
	path, err := exec.LookPath(c.Args[0])
	if err == nil && !filepath.IsAbs(path) {
		return "", errors.New("it is a relative path, and it would start in another folder: give its whole path")
	}
	return path, err
}

// stopped waits until a program that was asked to stop has exited, or the grace is over.
func stopped(exited <-chan struct{}) {
	select {
	case <-exited:
	case <-time.After(grace):
	}
}

// rounds is how often leftovers are looked for: they may start others meanwhile.
const rounds = 100

// End ends the processes with a mark, or whose mark has it as its first parts, and returns how many there were.
func End(mark string) (n int) {
	seen := map[int]bool{}
	for range rounds {
		found := marked(mark)
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			if !seen[pid] {
				seen[pid] = true
				n++
			}
			kill(pid)
		}
		time.Sleep(2 * time.Millisecond) // the system takes a moment to end them
	}
	return n
}

// Marked reports how many processes have a mark, or one that begins with its parts.
func Marked(mark string) int { return len(marked(mark)) }

// fits reports whether a variable, as NAME=VALUE, is a mark or one below it.
func fits(variable, mark string) bool {
	rest, ok := strings.CutPrefix(variable, Marker+"="+mark)
	return ok && (rest == "" || rest[0] == '/')
}

// capture keeps the beginning and the end of an output.
type capture struct {
	mu         sync.Mutex
	head, tail []byte
	half       int // the bytes of each
	at         int // in tail, once it is full
	all        int64
}

func newCapture(keep int) *capture { return &capture{half: max(keep, 2) / 2} }

// Write takes what a program writes.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	c.all += int64(n)
	if room := c.half - len(c.head); room > 0 {
		c.head = append(c.head, b[:min(room, n)]...)
		b = b[min(room, n):]
	}
	if len(b) > c.half {
		b = b[len(b)-c.half:]
	}
	if room := c.half - len(c.tail); room > 0 {
		c.tail = append(c.tail, b[:min(room, len(b))]...)
		b = b[min(room, len(b)):]
	}
	for len(b) > 0 {
		k := copy(c.tail[c.at:], b)
		c.at, b = (c.at+k)%c.half, b[k:]
	}
	return n, nil
}

// String returns what was kept, as valid text without NUL.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := string(c.tail[c.at:]) + string(c.tail[:c.at])
	out := string(c.head) + tail
	if left := c.all - int64(len(out)); left > 0 {
		out = fmt.Sprintf("%s\n[%d bytes left out]\n%s", c.head, left, tail)
	}
	return strings.ReplaceAll(strings.ToValidUTF8(out, "\uFFFD"), "\x00", "\uFFFD")
}
