// Part sandbox is an environment that runs programs that models write, each in a container of docker or podman.
//
// It promises that a program has no network, no rights, a read-only file system but for a small /tmp, and limits on memory,
// processes and time; that the expected output of a test never enters a container, so that no program can read or fake it;
// that output is read up to a limit; and that a container that cannot be started is a failure of the environment, never a
// reward of 0.
//
// It is not for running programs without a container: without docker or podman it refuses. It is not a judge of containers:
// it is as safe as the runtime and the kernel below it.

package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"parley/llm"
	"parley/world"
	"parley/worlds/rollout/rules"
)

// Name is the environment's name.
const Name = "sandbox"

// Doc describes it in a line.
const Doc = "Write a program that passes tests: it runs in a container. Needs docker or podman."

// Config says how programs run.
type Config struct {
	Image   string        // of the containers; it must be there
	Command []string      // what runs a program, which is its last argument
	Memory  int           // MiB
	Timeout time.Duration // of one test
	// Containers is the maximum number of containers at a time.
	Containers int
}

// runtimes are the programs that can run containers, the preferred first.
func runtimes() []string { return []string{"podman", "docker"} }

// Sandbox runs programs. It is safe for concurrent use.
type Sandbox struct {
	Config

	runtime string
	grace   time.Duration // to start a container, beside the time of its program
	slots   chan struct{}
}

// Open finds a runtime and checks that it has the image.
func Open(ctx context.Context, c Config) (*Sandbox, error) {
	if c.Image == "" || strings.HasPrefix(c.Image, "-") || len(c.Command) == 0 || c.Memory < 16 || c.Timeout <= 0 || c.Containers < 1 {
		return nil, errors.New("sandbox: want an image, a command, at least 16 MiB of memory, a time, and at least one container")
	}
	s := &Sandbox{Config: c, slots: make(chan struct{}, c.Containers), grace: starting / 2}
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
		return nil, fmt.Errorf("sandbox: %s has no image %q, or cannot be used: %s; to get it: %s pull %s", s.runtime, c.Image, cut(strings.TrimSpace(string(out)), 300), s.runtime, c.Image)
	}
	switch r, err := s.run("", ""); { //nolint:contextcheck // it has a time of its own
	case err != nil:
		return nil, err
	case r.code != 0 || r.late || r.long:
		return nil, fmt.Errorf("sandbox: an empty program does not run with %q in %s: %s", strings.Join(c.Command, " "), c.Image, cut(strings.TrimSpace(r.errors), 300))
	}
	return s, nil
}

// Kind returns the environment.
func (s *Sandbox) Kind() Kind { return Kind{Name: Name, Doc: Doc, New: s.open} }

// params are the environment's params: a task, or one as a row of a dataset.
type params struct {
	Problem string `json:"problem"`
	Tests   []test `json:"tests"`
	Tries   int    `json:"tries"`
	Dataset *task  `json:"dataset"`
}

// task is a row of a dataset. Other keys are ignored.
type task struct {
	Problem  string `json:"problem"`
	Question string `json:"question"` // the same under another name
	Tests    []test `json:"tests"`
}

// UnmarshalJSON reads a row.
func (t *task) UnmarshalJSON(b []byte) error {
	type row task
	return json.Unmarshal(b, (*row)(t))
}

// test is what a program reads and what it has to print.
type test struct {
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
	p := params{Tries: 1}
	if len(raw) > 0 {
		if err := world.DecodeStrict(raw, &p); err != nil {
			return nil, fmt.Errorf("env: %s: params: %w", Name, err)
		}
	}
	if p.Dataset != nil {
		p.Problem, p.Tests = p.Dataset.Problem+p.Dataset.Question, p.Dataset.Tests
	}
	switch {
	case p.Problem == "":
		return nil, fmt.Errorf("env: %s: params.problem: want a text, or a dataset of rows with problem and tests", Name)
	case len(p.Tests) == 0 || len(p.Tests) > maxTests:
		return nil, fmt.Errorf("env: %s: params.tests: %d tests: want 1 to %d, each with input and output", Name, len(p.Tests), maxTests)
	case p.Tries < 1 || p.Tries > maxTries:
		return nil, fmt.Errorf("env: %s: params.tries: %d: want 1 to %d", Name, p.Tries, maxTries)
	}
	return &coding{sandbox: s, params: p}, nil
}

// coding is one episode: an agent writes a program until it passes all tests or has no tries left.
type coding struct {
	params

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
		c.talk = append(c.talk, llm.Assistant(cut(text, 2*maxProgram)), llm.User(fmt.Sprintf("Test %d of %d failed. %s\nWrite the whole program again.", passed+1, len(c.Tests), why)))
	}
	return c.result(reward, passed)
}

// Failure returns why the last step has no result.
func (c *coding) Failure() error { return c.failed }

func (c *coding) result(reward float64, passed int) rules.Result {
	return rules.Result{
		Observation: json.RawMessage("{}"), Info: fmt.Appendf(nil, `{"passed":%d,"tests":%d}`, passed, len(c.Tests)),
		Reward: rules.Rewards{rules.Default: reward}, Terminated: c.done,
	}
}

// run runs a program on one test, and returns what is wrong, or "".
func (c *coding) run(program string, t test) (why string, err error) {
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
		return fmt.Sprintf("It ended with status %d.\n%s", r.code, cut(r.errors, shown)), nil
	case sandboxPlain(r.output) != sandboxPlain(t.Output):
		return fmt.Sprintf("For the input\n%s\nit printed\n%s", cut(t.Input, shown), cut(r.output, shown)), nil
	}
	return "", nil
}

// shown is how many bytes of an input or output an agent is shown.
const shown = 2000

var block = regexp.MustCompile("(?s)```[^\n`]*\n(.*?)```")

// programOf returns the last block of a text or, without one, all of it.
func programOf(text string) string {
	if all := block.FindAllStringSubmatch(text, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	return text
}

// sandboxPlain removes spaces at the ends of lines, and empty lines at the end.
func sandboxPlain(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func cut(text string, limit int) string {
	return world.Shorten(strings.ToValidUTF8(text, "\uFFFD"), limit)
}
