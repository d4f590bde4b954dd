package worker

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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
