package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
)

// impossible is the exit code of a child whose step this machine does not allow.
const impossible = 77

// child runs the steps of childSteps, one per line, and returns the code of the last:
//
//	limit N        no file may grow beyond N bytes
//	files N        at most N files may be open at once
//	room DIR N     DIR becomes a disk of N bytes; a second time, its size changes to N bytes
//	nobody         drop the rights of root
//	parley ARGS    run the program and print its exit code
func child() int {
	code := exit.OK
	for line := range strings.Lines(os.Getenv(childSteps)) {
		words := strings.Fields(line)
		var err error
		switch words[0] {
		case "limit":
			n, _ := strconv.ParseUint(words[1], 10, 64)
			err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
		case "files":
			n, _ := strconv.ParseUint(words[1], 10, 64)
			err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n})
		case "room":
			if err = syscall.Mount("parley", words[1], "tmpfs", syscall.MS_REMOUNT, "size="+words[2]); err != nil {
				err = syscall.Mount("parley", words[1], "tmpfs", 0, "size="+words[2])
			}
		case "nobody":
			if os.Getuid() == 0 {
				err = syscall.Setuid(65534)
			}
		case "parley":
			code = mainWith(context.Background(), State{Args: words[1:], Env: os.LookupEnv, Stdout: os.Stdout, Stderr: os.Stderr})
			fmt.Fprintln(os.Stdout, "code", code)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, line, err)
			return impossible
		}
	}
	return code
}

// inChild runs steps in another process, with its own namespace if they mount something.
func inChild(t *testing.T, steps ...string) outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(steps, "\n")
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = []string{childSteps + "=" + text}
	if strings.Contains(text, "room ") {
		id := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		group := []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: id, GidMappings: group}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran || cmd.ProcessState.ExitCode() == impossible {
		t.Skipf("not allowed on this machine: %v %s", err, stderr.String())
	}
	return outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// Disk sizes that are too small and large enough for the run of longPlan, including its log.
const (
	tooLittle = "2097152"
	enough    = "209715200"
)

// longPlan is a run of more than a thousand calls.
const longPlan = `kind: secrets
episodes: 240
agents: {small: sim/small, large: sim/large}
lineup: {first: small, second: large}
params: {messages: 3}
`

// undisturbed plays the plan without limits and returns its summary.
func undisturbed(t *testing.T, plan string) app.Summary {
	t.Helper()
	sum, _ := summed(t, exit.OK, "run", plan, "--out", filepath.Join(t.TempDir(), "whole.parley"))
	return sum
}

// wantGoesOn checks a run that the disk stopped and that was resumed: it must have the results of an undisturbed
// run, and must not repeat recorded calls.
func wantGoesOn(t *testing.T, got, want app.Summary) {
	t.Helper()
	if got.Digest != want.Digest || got.Calls.Total != want.Calls.Total || got.Calls.Asked == 0 || got.Calls.Asked >= want.Calls.Total {
		t.Errorf("resumed: %+v, want %+v", got, want)
	}
}

// TestDiskRefuses checks that a file that cannot grow stops the run with a reason, and that the run can be
// resumed once the cause is fixed.
func TestDiskRefuses(t *testing.T) {
	t.Parallel()
	sequential(t)
	plan := write(t, "plan.yaml", longPlan)
	want := undisturbed(t, plan)
	file := filepath.Join(t.TempDir(), "run.parley")
	inChild(t, "limit "+tooLittle, "parley run "+plan+" --out "+file+" --quiet --concurrency 8").
		want(t, exit.Broken).wantErr(t, "parley: "+file, "the disk fails", "nothing that was recorded is lost")
	got, _ := summed(t, exit.OK, "run", file)
	wantGoesOn(t, got, want)
}

// TestFewFiles checks that a command that may open too few files says so, whichever file it was.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	plan, dir := write(t, "plan.yaml", longPlan), t.TempDir()
	var stopped int
	for n := range 30 {
		got := inChild(t, fmt.Sprint("files ", n), "parley run "+plan+" --out "+filepath.Join(dir, fmt.Sprint(n, ".parley"))+" --quiet")
		if got.code == exit.OK {
			break
		}
		stopped++
		got.wantErr(t, "too many open files", "ulimit -n")
	}
	if stopped < 3 || stopped == 30 {
		t.Errorf("%d limits were too low", stopped)
	}
}

// TestDiskFull does the same with a full disk.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	plan, disk := write(t, "plan.yaml", longPlan), t.TempDir()
	want := undisturbed(t, plan)
	file := filepath.Join(disk, "run.parley")
	got := inChild(t,
		"room "+disk+" "+tooLittle, "parley run "+plan+" --out "+file+" --quiet --concurrency 8",
		"room "+disk+" "+enough, "parley run "+file+" --quiet --json").
		want(t, exit.OK).wantErr(t, "parley: "+file, "no space left", "nothing that was recorded is lost")
	lines := strings.Split(got.stdout, "\n")
	var sum app.Summary
	if lines[0] != fmt.Sprint("code ", exit.Broken) || json.Unmarshal([]byte(lines[1]), &sum) != nil {
		t.Fatal(got.stdout)
	}
	wantGoesOn(t, sum, want)
}

// TestDiskFullForOtherAnswers: a disk that is full when answers are moved away leaves no record that is cut off.
func TestDiskFullForOtherAnswers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	out := filepath.Join(folder, "out.jsonl")
	parley(t, echo().state(), "ask", write(t, "old.jsonl", prompts("1", "2", "3")), "--out", out).want(t, exit.OK)
	before, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	in := write(t, "new.jsonl", prompts("1"))
	got := inChild(t, fmt.Sprintf("limit %d", before.Size()/2), "parley ask "+in+" --out "+out)
	if left := read(t, out+".stale"); got.code != exit.Broken || left != "" {
		t.Errorf("%+v, left %q", got, left)
	}
}

// TestReadOnlyFolder checks that a run does not begin in a read-only folder and says why, and that the files
// there can still be read.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	if info, err := os.Stat(filepath.Dir(filepath.Dir(base))); err != nil || info.Mode().Perm()&0o001 == 0 {
		t.Skip("temporary files are where nobody else may look")
	}
	for _, dir := range []string{filepath.Dir(base), base} {
		if err := os.Chmod(dir, 0o755); err != nil { // the child may be another user
			t.Fatal(err)
		}
	}
	plan, file := filepath.Join(base, "plan.yaml"), filepath.Join(base, "done.parley")
	if err := os.WriteFile(plan, []byte(longPlan), 0o644); err != nil {
		t.Fatal(err)
	}
	parley(t, State{}, "run", plan, "--set", "episodes=2", "--out", file, "--quiet").want(t, exit.OK)
	if err := os.Chmod(base, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(base, 0o755) }) // so that it can be deleted
	fresh := filepath.Join(base, "new.parley")
	inChild(t, "nobody", "parley run "+plan+" --out "+fresh).
		want(t, exit.Broken).wantErr(t, "parley: "+fresh, "the folder cannot be written", "name a file in another folder")
	got := inChild(t, "nobody", "parley run "+file).want(t, exit.OK)
	if !strings.Contains(got.stdout, "complete: 2 of 2 episodes") {
		t.Error(got.stdout)
	}
	inChild(t, "nobody", "parley show "+file).want(t, exit.OK)
	if there, err := os.ReadDir(base); err != nil || len(there) != 2 {
		t.Errorf("%v, %v", there, err)
	}
}
