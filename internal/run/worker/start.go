package worker

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Started is a worker that was started.
type Started struct {
	Conn net.Conn
	Cmd  *exec.Cmd    // nil: another program started it
	wait func() error // waits for Cmd
}

// Python starts workers in Python.
type Python struct {
	// Program is the interpreter.
	Program string
	// Output gets what worlds print.
	Output io.Writer
	// Hide are the names of environment variables that a world does not get: those that hold keys.
	Hide []string
	// Loopback connects over a port of this machine, which is the only way on Windows, instead of a pair of sockets.
	Loopback bool
}

// workerCode starts the worker. The user allowed the code of one file: modules in the current folder, which Python would
// find first, are not part of it.
const workerCode = `import sys
sys.path[:] = [p for p in sys.path if p not in ("", ".")]
import runpy
runpy.run_module("parley.worker", run_name="__main__")`

// waitDelay is how long the output of a worker may last longer than the worker.
const waitDelay = 3 * time.Second

// Start starts one worker.
func (p Python) Start() (Started, error) {
	cmd := exec.Command(p.Program, "-c", workerCode) //nolint:gosec,noctx // the user names the interpreter; the pool ends it
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.Output, p.Output, waitDelay
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(p.Hide, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PYTHONHASHSEED=0", "PYTHONUTF8=1")
	if p.Loopback {
		return connectLoopback(cmd)
	}
	return connect(cmd)
}

// FindPython returns the interpreter to use: the one in PARLEY_PYTHON, the one beside this program, which pip installed
// there, the one of the active virtual environment, or the one in PATH.
func FindPython(getenv func(string) string) (string, error) {
	if named := getenv("PARLEY_PYTHON"); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("PARLEY_PYTHON is %q: %w", named, err)
		}
		return path, nil
	}
	var folders []string
	if self, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Dir(self))
	}
	if env := getenv("VIRTUAL_ENV"); env != "" {
		folders = append(folders, filepath.Join(env, "bin"), filepath.Join(env, "Scripts"))
	}
	names := []string{"python3", "python"}
	if runtime.GOOS == "windows" {
		names = []string{"python.exe"}
	}
	for _, folder := range folders {
		for _, name := range names {
			if path := filepath.Join(folder, name); executable(path) {
				return path, nil
			}
		}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Python was found: install Python 3.10 or later and the package parley-llm, or name the interpreter in PARLEY_PYTHON")
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}

// tokenWait is how long a connection may take to show its token.
const tokenWait = 5 * time.Second

// connectLoopback starts a worker that connects to a port of this machine and shows a token, as workers do on Windows. One
// connection is accepted; all others are closed.
func connectLoopback(cmd *exec.Cmd) (_ Started, err error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return Started{}, fmt.Errorf("a port for a worker: %w", err)
	}
	token := rand.Text()
	cmd.Env = append(cmd.Env, fmt.Sprintf("PARLEY_WORKER=tcp:%s:%s", l.Addr(), token))
	if err := cmd.Start(); err != nil {
		return Started{}, errors.Join(err, l.Close())
	}
	s := Started{Cmd: cmd, wait: sync.OnceValue(cmd.Wait)}
	over := time.AfterFunc(stepLimit, func() { _ = l.Close() }) // Accept reports it
	go func() {
		_ = s.wait() // the reader of the worker reports how it ended
		_ = l.Close()
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			_ = cmd.Process.Kill() // it may have ended
			if s.wait() != nil && cmd.ProcessState != nil {
				err = fmt.Errorf("%v", cmd.ProcessState)
			}
			return Started{}, fmt.Errorf("the worker did not connect: %w", err)
		}
		if hasToken(conn, token) {
			over.Stop()
			_ = l.Close()
			s.Conn = conn
			return s, nil
		}
		_ = conn.Close() // another program of this machine
	}
}

// hasToken reports whether a connection begins with the token.
func hasToken(conn net.Conn, token string) bool {
	got := make([]byte, len(token)+1)
	if conn.SetReadDeadline(time.Now().Add(tokenWait)) != nil {
		return false
	}
	_, err := io.ReadFull(conn, got)
	return err == nil && subtle.ConstantTimeCompare(got, []byte(token+"\n")) == 1 && conn.SetReadDeadline(time.Time{}) == nil
}

// Dial connects to a worker that another program brought, and shows it the token. The address is HOST:PORT:TOKEN, of this
// machine.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	cut := strings.LastIndexByte(address, ':')
	if cut < 0 || strings.ContainsAny(address, "\r\n") {
		return nil, errors.New("want HOST:PORT:TOKEN") // the address holds a secret: it is not shown
	}
	ctx, cancel := context.WithTimeout(ctx, tokenWait)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address[:cut])
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, address[cut+1:]+"\n"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
