package env

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const (
	maxOutput = 64 << 10
	maxErrors = 8 << 10
	// starting is how long a container may take to start and to be removed.
	starting = 20 * time.Second
)

// ran is what a program did.
type ran struct {
	output, errors string
	code           int
	late, long     bool // it took too long; it printed too much
}

// arguments returns how a runtime is called for a program. What follows the image is not read by the runtime.
func (s *Sandbox) arguments(name, program string) []string {
	memory := strconv.Itoa(s.Memory) + "m"
	seconds := strconv.Itoa(max(1, int(s.Timeout.Seconds()+0.999)))
	args := []string{
		"run", "--rm", "--interactive", "--name", name, "--label", "parley.sandbox=1", "--pull", "never", "--log-driver", "none",
		"--network", "none", "--read-only", "--tmpfs", "/tmp:rw,noexec,nosuid,nodev,size=16m", "--workdir", "/tmp", "--env", "HOME=/tmp",
		"--user", "65534:65534", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--memory", memory, "--memory-swap", memory, "--cpus", "1", "--pids-limit", "64",
		"--ulimit", "cpu=" + seconds, "--ulimit", "fsize=16777216", "--ulimit", "nofile=256",
		s.Image,
	}
	return append(append(args, s.Command...), program)
}

// statusRuntime is the status with which a runtime says that it did not start the container.
const statusRuntime = 125

// run runs a program in a container of its own. An error means that it was not run: a program may end with the runtime's own
// status too, but then an empty one runs.
func (s *Sandbox) run(program, input string) (r ran, err error) {
	r, err = s.once(program, input)
	if err != nil && r.code == statusRuntime && program != "" {
		if _, broken := s.once("", ""); broken == nil {
			err = nil
		}
	}
	return r, err
}

func (s *Sandbox) once(program, input string) (r ran, err error) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	name := "parley-" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout+s.grace) // a step is not interrupted otherwise
	defer cancel()
	cmd := exec.CommandContext(ctx, s.runtime, s.arguments(name, program)...) //nolint:gosec // the program is an argument of the container's command
	out, complaints := &limited{limit: maxOutput, full: cancel}, &limited{limit: maxErrors}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), out, complaints
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	r = ran{output: string(out.kept), errors: string(complaints.kept), code: cmd.ProcessState.ExitCode(), long: out.over, late: !out.over && ctx.Err() != nil}
	if ctx.Err() != nil {
		s.remove(name)
		return r, nil
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return r, fmt.Errorf("sandbox: %s: %w", s.runtime, err)
	}
	if r.code == statusRuntime {
		return r, fmt.Errorf("sandbox: %s did not run %s in %s: %s", s.runtime, s.Command[0], s.Image, cut(strings.TrimSpace(r.errors), 300))
	}
	return r, nil
}

// remove ends a container. Whoever started it is gone.
func (s *Sandbox) remove(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	_ = exec.CommandContext(ctx, s.runtime, "rm", "--force", name).Run() //nolint:gosec // or it has ended already; the name is ours
}

// limited keeps the beginning of what is written to it. It has no ReadFrom, which would read everything.
type limited struct {
	kept  []byte
	limit int
	over  bool
	full  func() // is called once there is too much; nil: the rest is dropped
}

func (l *limited) Write(p []byte) (int, error) {
	room := l.limit - len(l.kept)
	l.kept = append(l.kept, p[:min(room, len(p))]...)
	if len(p) <= room {
		return len(p), nil
	}
	if !l.over && l.full != nil {
		l.full()
	}
	l.over = true
	return len(p), nil
}
