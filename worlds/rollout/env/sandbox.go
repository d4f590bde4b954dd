package env

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// The name of the sandbox, and a line about it, for lists of environments.
const (
	SandboxName = "sandbox"
	SandboxDoc  = "Write a program that passes tests: it runs in a container. Needs docker or podman."
)

// SandboxConfig says how programs run.
type SandboxConfig struct {
	Image   string        // of the containers; it must be there
	Command []string      // what runs a program, which is its last argument
	Memory  int           // MiB
	Timeout time.Duration // of one test
	// Containers is the maximum number of containers at a time.
	Containers int
}

// runtimes are the programs that can run containers, the preferred first.
func runtimes() []string { return []string{"podman", "docker"} }

// Sandbox runs programs that models write, each in a container of docker or podman. It is safe for concurrent
// use, and as safe against the programs as the runtime and the kernel below it.
//
// A program has no network, no rights, a read-only file system but for a small /tmp, and limits on memory,
// processes and time. The expected output of a test never enters a container, so that no program can read or
// fake it. Output is read up to a limit. A container that cannot be started is a failure of the environment,
// never a reward of 0.
type Sandbox struct {
	SandboxConfig

	runtime string
	grace   time.Duration // to start a container, beside the time of its program
	slots   chan struct{}
}

// OpenSandbox finds a runtime and checks that it has the image.
func OpenSandbox(ctx context.Context, c SandboxConfig) (*Sandbox, error) {
	if c.Image == "" || strings.HasPrefix(c.Image, "-") || len(c.Command) == 0 || c.Memory < 16 || c.Timeout <= 0 || c.Containers < 1 {
		return nil, errors.New("sandbox: want an image, a command, at least 16 MiB of memory, a time, and at least one container")
	}
	s := &Sandbox{SandboxConfig: c, slots: make(chan struct{}, c.Containers), grace: starting / 2}
	for _, name := range runtimes() {
		if path, err := exec.LookPath(name); err == nil {
			s.runtime = path
			break
		}
	}
	if s.runtime == "" {
		return nil, errors.New("sandbox: programs of models run only in containers, and neither podman nor docker is on the PATH: install one of them (https://podman.io/docs/installation), then try again")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, s.runtime, "image", "inspect", c.Image).CombinedOutput(); err != nil { //nolint:gosec // the user names the image
		return nil, fmt.Errorf("sandbox: %s has no image %q, or cannot be used: %s; to get it: %s pull %s", s.runtime, c.Image, cutText(strings.TrimSpace(string(out)), 300), s.runtime, c.Image)
	}
	switch r, err := s.run("", ""); { //nolint:contextcheck // it has a time of its own
	case err != nil:
		return nil, err
	case r.code != 0 || r.late || r.long:
		return nil, fmt.Errorf("sandbox: an empty program does not run with %q in %s: %s", strings.Join(c.Command, " "), c.Image, cutText(strings.TrimSpace(r.errors), 300))
	}
	return s, nil
}

// Kind returns the environment.
func (s *Sandbox) Kind() Kind { return Kind{Name: SandboxName, Doc: SandboxDoc, New: s.open} }

// sandboxParams are the environment's params: a task, or one as a row of a dataset.
type sandboxParams struct {
	Problem string        `json:"problem"`
	Tests   []sandboxTest `json:"tests"`
	Tries   int           `json:"tries"`
	Dataset *sandboxTask  `json:"dataset"`
}

// sandboxTask is a row of a dataset. Other keys are ignored.
type sandboxTask struct {
	Problem  string        `json:"problem"`
	Question string        `json:"question"` // the same under another name
	Tests    []sandboxTest `json:"tests"`
}

// UnmarshalJSON reads a row.
func (t *sandboxTask) UnmarshalJSON(b []byte) error {
	type row sandboxTask
	return json.Unmarshal(b, (*row)(t))
}

// sandboxTest is what a program reads and what it has to print.
type sandboxTest struct {
	Input  string `json:"input"`
	Output string `json:"output"`
}

// Limits of a task, and of a program, which is an argument of a command.
const (
	maxTests   = 100
	maxTries   = 100
	maxProgram = 100_000
)

func (s *Sandbox) open(raw json.RawMessage) (Env, error) {
	p := sandboxParams{Tries: 1}
	if len(raw) > 0 {
		if err := world.DecodeStrict(raw, &p); err != nil {
			return nil, fmt.Errorf("env: %s: params: %w", SandboxName, err)
		}
	}
	if p.Dataset != nil {
		p.Problem, p.Tests = p.Dataset.Problem+p.Dataset.Question, p.Dataset.Tests
	}
	switch {
	case p.Problem == "":
		return nil, fmt.Errorf("env: %s: params.problem: want a text, or a dataset of rows with problem and tests", SandboxName)
	case len(p.Tests) == 0 || len(p.Tests) > maxTests:
		return nil, fmt.Errorf("env: %s: params.tests: %d tests: want 1 to %d, each with input and output", SandboxName, len(p.Tests), maxTests)
	case p.Tries < 1 || p.Tries > maxTries:
		return nil, fmt.Errorf("env: %s: params.tries: %d: want 1 to %d", SandboxName, p.Tries, maxTries)
	}
	return &coding{sandbox: s, sandboxParams: p}, nil
}

// coding is one episode: an agent writes a program until it passes all tests or has no tries left.
type coding struct {
	sandboxParams

	sandbox *Sandbox
	talk    []llm.Message
	tried   int
	done    bool
	failed  error
}

// Reset starts over. There is no chance.
func (c *coding) Reset(int64) {
	c.tried, c.done, c.failed = 0, false, nil
	c.talk = []llm.Message{
		llm.System(fmt.Sprintf("Write a program for %s. It reads standard input and prints its answer to standard output, within %s and without a network. Put the whole program into one block between ``` and ```.",
			c.sandbox.Command[0], c.sandbox.Timeout)),
		llm.User(c.Problem),
	}
}

// Prompt returns the conversation so far.
func (c *coding) Prompt() rules.Prompt {
	if c.done {
		return nil
	}
	return rules.Ask(c.talk...)
}

// Step runs the program of an answer on the tests, up to the first that it fails.
func (c *coding) Step(a rules.Action) rules.Result {
	if c.done {
		return c.result(0, 0)
	}
	var text string
	for _, m := range a { // there is one agent, with any name
		text = m.Text()
	}
	c.tried++
	passed, why := 0, ""
	program := programOf(text)
	for _, t := range c.Tests {
		var err error
		if why, err = c.run(program, t); err != nil {
			c.failed, c.done = err, true
			return c.result(0, passed)
		}
		if why != "" {
			break
		}
		passed++
	}
	reward := 0.0
	if passed == len(c.Tests) {
		reward = 1
	}
	if c.done = reward == 1 || c.tried == c.Tries; !c.done {
		c.talk = append(c.talk, llm.Assistant(cutText(text, 2*maxProgram)), llm.User(fmt.Sprintf("Test %d of %d failed. %s\nWrite the whole program again.", passed+1, len(c.Tests), why)))
	}
	return c.result(reward, passed)
}

// Failure returns why the last step has no result.
func (c *coding) Failure() error { return c.failed }

func (c *coding) result(reward float64, passed int) rules.Result {
	return rules.Result{
		Observation: json.RawMessage("{}"), Info: fmt.Appendf(nil, `{"passed":%d,"tests":%d}`, passed, len(c.Tests)),
		Reward: rules.Rewards{rules.DefaultAgent: reward}, Terminated: c.done,
	}
}

// run runs a program on one test, and returns what is wrong, or "".
func (c *coding) run(program string, t sandboxTest) (why string, err error) {
	switch {
	case strings.TrimSpace(program) == "":
		return "There is no program in your answer.", nil
	case len(program) > maxProgram:
		return fmt.Sprintf("The program has more than %d bytes.", maxProgram), nil
	case strings.ContainsRune(program, 0):
		return "The program has a zero byte.", nil
	}
	r, err := c.sandbox.run(program, t.Input)
	switch {
	case err != nil:
		return "", err
	case r.late:
		return fmt.Sprintf("It did not end within %s.", c.sandbox.Timeout), nil
	case r.long:
		return fmt.Sprintf("It printed more than %d bytes.", maxOutput), nil
	case r.code != 0:
		return fmt.Sprintf("It ended with status %d.\n%s", r.code, cutText(r.errors, maxShown)), nil
	case plainOutput(r.output) != plainOutput(t.Output):
		return fmt.Sprintf("For the input\n%s\nit printed\n%s", cutText(t.Input, maxShown), cutText(r.output, maxShown)), nil
	}
	return "", nil
}

// maxShown is how many bytes of an input or output an agent is shown.
const maxShown = 2000

var codeBlock = regexp.MustCompile("(?s)```[^\n`]*\n(.*?)```")

// programOf returns the last block of a text or, without one, all of it.
func programOf(text string) string {
	if all := codeBlock.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	return text
}

// plainOutput removes spaces at the ends of lines, and empty lines at the end.
func plainOutput(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func cutText(text string, limit int) string {
	return world.Shorten(strings.ToValidUTF8(text, "\uFFFD"), limit)
}

const (
	maxOutput = 64 << 10
	maxErrors = 8 << 10
	// starting is how long a container may take to start and to be removed.
	starting = 20 * time.Second
)

// runResult is what a program did.
type runResult struct {
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
func (s *Sandbox) run(program, input string) (r runResult, err error) {
	r, err = s.runOnce(program, input)
	if err != nil && r.code == statusRuntime && program != "" {
		if _, broken := s.runOnce("", ""); broken == nil {
			err = nil
		}
	}
	return r, err
}

func (s *Sandbox) runOnce(program, input string) (r runResult, err error) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	name := "parley-" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(context.Background(), s.Timeout+s.grace) // a step is not interrupted otherwise
	defer cancel()
	cmd := exec.CommandContext(ctx, s.runtime, s.arguments(name, program)...) //nolint:gosec // the program is an argument of the container's command
	out, complaints := &limitedBuffer{limit: maxOutput, full: cancel}, &limitedBuffer{limit: maxErrors}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), out, complaints
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	r = runResult{output: string(out.kept), errors: string(complaints.kept), code: cmd.ProcessState.ExitCode(), long: out.over, late: !out.over && ctx.Err() != nil}
	if ctx.Err() != nil {
		s.remove(name)
		return r, nil
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return r, fmt.Errorf("sandbox: %s: %w", s.runtime, err)
	}
	if r.code == statusRuntime {
		return r, fmt.Errorf("sandbox: %s did not run %s in %s: %s", s.runtime, s.Command[0], s.Image, cutText(strings.TrimSpace(r.errors), 300))
	}
	return r, nil
}

// remove ends a container. Whoever started it is gone.
func (s *Sandbox) remove(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	_ = exec.CommandContext(ctx, s.runtime, "rm", "--force", name).Run() //nolint:gosec // or it has ended already; the name is ours
}

// limitedBuffer keeps the beginning of what is written to it. It has no ReadFrom, which would read everything.
type limitedBuffer struct {
	kept  []byte
	limit int
	over  bool
	full  func() // is called once there is too much; nil: the rest is dropped
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
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
