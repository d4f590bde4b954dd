//go:build unix

package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/kit/process"
)

// TestMain lets the test program be a supervisor, and a relay.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(process.Supervise(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "relay" {
		os.Exit(process.Relay(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func self(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe, "supervise"}
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// TestRun: what a program gets, writes and returns.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		name, script, stdin string
		exit                int
		stdout, stderr      string
	}{
		{"output and exit", "echo out; echo err >&2; exit 3", "", 3, "out\n", "err\n"},
		{"input", "cat", "hello", 0, "hello", ""},
		{"input that nobody reads", "exit 0", strings.Repeat("x", 1<<20), 0, "", ""},
		{"no input", "cat; echo end", "", 0, "end\n", ""},
		{"its folder", "pwd", "", 0, dir + "\n", ""},
		{"its environment", "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort", "", 0, "A=b\nPARLEY_PROGRAM=MARK\nPATH=" + os.Getenv("PATH") + "\n", ""},
		{"not text", `printf 'a\377\0b'`, "", 0, "a\uFFFD\uFFFDb", ""},
		{"a signal", "kill -9 $$", "", -1, "", ""},
	} {
		for i, supervisor := range [][]string{nil, self(t)} {
			mark := "run" + strconv.Itoa(i) + "/" + c.name // what has one mark is ended together
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				res, err := process.Run(t.Context(), process.Command{
					Args: sh(c.script), Dir: dir, Env: []string{"A=b", "PATH=" + os.Getenv("PATH")}, Stdin: c.stdin, Mark: mark, Keep: 1000, Supervisor: supervisor,
				})
				want := c.exit
				if supervisor != nil && want < 0 {
					want = 128 + 9
				}
				if err != nil || res.Exit != want || res.Stdout != strings.Replace(c.stdout, "MARK", mark, 1) || res.Stderr != c.stderr || res.TimedOut {
					t.Errorf("%+v %v", res, err)
				}
			})
		}
	}
}

// TestKeep: of a long output, the beginning and the end are kept.
func TestKeep(t *testing.T) {
	t.Parallel()
	res, err := process.Run(t.Context(), process.Command{Args: sh("echo begin; yes | head -n 100000; echo end"), Mark: "keep", Keep: 20, Env: os.Environ()})
	if err != nil || res.Stdout != "begin\ny\ny\n\n[199990 bytes left out]\ny\ny\ny\nend\n" {
		t.Errorf("%q %v", res.Stdout, err)
	}
}

// TestNothingIsLeft: whatever a program leaves behind has ended when Run returns.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in the background": "sleep 1000 & echo $! > pid",
		"that ignores":      `trap "" TERM HUP; sleep 1000 & echo $! > pid; wait`,
		"detached":          "setsid sh -c 'echo $$ > pid; exec sleep 1000' >/dev/null 2>&1 </dev/null & while [ ! -s pid ]; do sleep 0.01; done",
		"detached twice":    "(setsid sh -c '(sh -c \"echo \\$\\$ > pid; exec sleep 1000\" &)' &) ; while [ ! -s pid ]; do sleep 0.01; done",
		"that holds output": "setsid sleep 1000 & echo $! > pid",
		"without a mark":    "env -i PATH=\"$PATH\" setsid sh -c '(sh -c \"echo \\$\\$ > pid; exec sleep 1000\" &)' & while [ ! -s pid ]; do sleep 0.01; done",
		"that forks on":     "sh -c 'echo $$ > pid; while :; do sleep 0.001 & done' & while [ ! -s pid ]; do sleep 0.01; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("setsid"); err != nil {
				t.Skip("this system has no setsid")
			}
			dir := t.TempDir()
			c := process.Command{Args: sh(script), Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Mark: "left/" + strings.ReplaceAll(name, " ", "-"), Keep: 100, Supervisor: self(t), Timeout: time.Second}
			if _, err := process.Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if gone(t, filepath.Join(dir, "pid")) {
				return
			}
			t.Error("it is still there")
		})
	}
}

// gone reports whether the process whose number is in a file has ended.
func gone(t *testing.T, file string) bool {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(pid, 0) == nil {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return strings.Contains(string(stat), ") Z ") // dead; whoever adopted it has not noticed
	}
	return true
}

// TestEnds: a timeout and a cancellation end a program.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, supervisor := range [][]string{nil, self(t)} {
		c := process.Command{Args: sh("echo begun; exec sleep 1000"), Env: os.Environ(), Mark: "ends", Keep: 100, Supervisor: supervisor}
		c.Timeout = 200 * time.Millisecond
		if res, err := process.Run(t.Context(), c); err != nil || !res.TimedOut || res.Stdout != "begun\n" {
			t.Errorf("%+v %v", res, err)
		}
		c.Timeout = 0
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := process.Run(ctx, c); !errors.Is(err, why) {
			t.Error(err)
		}
	}
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"no-such-program", "/no/such/program", t.TempDir()} {
		if _, err := process.Run(t.Context(), process.Command{Args: []string{name}, Mark: "none"}); !errors.Is(err, process.ErrStart) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSupervisorOfTheDead: when the process that started a supervisor is killed, the supervisor ends what it supervises.
func TestSupervisorOfTheDead(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("Linux only")
	}
	dir := t.TempDir()
	script := "'" + strings.Join(self(t), "' '") + "' sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.01; done; kill -9 $$"
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	_ = cmd.Run()
	for range 500 {
		if gone(t, filepath.Join(dir, "pid")) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the program is still there")
}

// TestEndFindsMarks: what a killed process left is found by the first parts of its mark, and by nothing shorter.
func TestEndFindsMarks(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{process.Marker + "=run-7/3/x"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n := process.End("run-7/3/x/y") + process.End("run-7/3/") + process.End("run"); n != 0 {
		t.Errorf("%d ended", n)
	}
	for process.Marked("run-7") == 0 {
		time.Sleep(time.Millisecond) // it becomes another program first
	}
	if n := process.End("run-7"); n != 1 {
		t.Errorf("%d ended", n)
	}
	_ = cmd.Wait()
}
