package cli

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/cli/exit"
	"parley/world"
	"parley/world/program"
)

// TestProfiles is one test, because a process has only one CPU profile and one trace.
func TestProfiles(t *testing.T) {
	t.Parallel()
	sequential(t)
	if flag.Lookup("test.cpuprofile").Value.String() != "" || flag.Lookup("test.trace").Value.String() != "" {
		t.Skip("this process is already profiled")
	}
	begins := map[string]string{"--cpuprofile": "\x1f\x8b", "--memprofile": "\x1f\x8b", "--trace": "go 1."}
	dir := t.TempDir()
	files := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	// A command that succeeds, and one that fails.
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"worlds"}, exit.OK}, {[]string{"show", filepath.Join(dir, "no.parley")}, exit.Misuse}} {
		args := c.args
		for f := range begins {
			args = append(args, f, filepath.Join(dir, c.args[0]+f))
		}
		parley(t, State{}, args...).want(t, c.code)
		for f, want := range begins {
			if got := read(t, filepath.Join(dir, c.args[0]+f)); !strings.HasPrefix(got, want) {
				t.Errorf("%s of %s begins with %.10q, want %q", f, c.args[0], got, want)
			}
		}
	}
	// Nothing runs and nothing is left behind if a file cannot be written.
	was := files()
	old := filepath.Join(dir, "worlds--trace")
	for _, c := range []struct{ cpu, trace, want string }{
		{"cpu", old, "--trace: " + old + " already exists; name another file\n"},
		{"cpu", filepath.Join(dir, "no", "trace"), "does not exist: make it first"},
		{"cpu", dir, "is a folder"},
		{"one", filepath.Join(dir, "one"), "--cpuprofile and --trace name the same file"},
	} {
		got := parley(t, State{}, "worlds", "--cpuprofile", filepath.Join(dir, c.cpu), "--trace", c.trace).want(t, exit.Misuse).wantErr(t, c.want)
		if now := files(); got.stdout != "" || len(now) != len(was) {
			t.Errorf("%s: printed %q, files %q", c.want, got.stdout, now)
		}
	}
	// A file that appears meanwhile is kept.
	taken := filepath.Join(dir, "taken")
	create := brings("echo", program.Command{Name: "create", Doc: "Create a file.", Verb: &createFile{taken}})
	var stderr bytes.Buffer
	code := Main(t.Context(), State{Args: []string{"create", "--memprofile", taken}, Kinds: []world.Kind{create}, Stdout: io.Discard, Stderr: &stderr})
	if code != exit.Broken || !strings.Contains(stderr.String(), "already exists") || read(t, taken) != "mine" {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	killed := filepath.Join(dir, "killed")
	synctest.Test(t, func(t *testing.T) { abortProfiled(t, killed) })
	if got := read(t, killed); !strings.HasPrefix(got, begins["--memprofile"]) {
		t.Errorf("the profile of an aborted command begins with %.10q", got)
	}
}

// createFile is a command that writes a file.
type createFile struct{ path string }

// Run writes the file.
func (c *createFile) Run(context.Context, *program.Program) error {
	return os.WriteFile(c.path, []byte("mine"), 0o600)
}

// abortProfiled aborts a command that ignores its signals, with a profile.
func abortProfiled(t *testing.T, file string) {
	signals, exited, done := make(chan os.Signal), make(chan struct{}), make(chan struct{})
	s := State{Args: []string{"listen", "--memprofile", file}, Stderr: io.Discard, Signals: signals, Exit: func(int) { close(exited) },
		Kinds: []world.Kind{brings("echo", program.Command{Name: "listen", Doc: "Do not listen.", Verb: &deaf{until: exited}})}}
	go func() { Main(t.Context(), s); close(done) }()
	signals <- syscall.SIGINT
	time.Sleep(time.Second)
	signals <- syscall.SIGINT
	<-exited
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	<-done
}
