package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"parley/internal/cli/exit"
	"parley/internal/kit/files"
	"parley/internal/run/runfile/runfiletest"
	"parley/world"
	"parley/world/program"
	"parley/worlds"
)

// shout is a command of an external kind.
type shout struct {
	Plan  string   `arg:""`
	Words []string `arg:"" help:"What to say."`
	Loud  bool     `help:"Say it loudly."`
	fails error
}

// Run prints the words.
func (s *shout) Run(_ context.Context, p *program.Program) error {
	fmt.Fprintln(p.Stdout, strings.Join(s.Words, " "), s.Loud, p.Width())
	return s.fails
}

// brings returns a kind with commands.
func brings(kind string, c ...program.Command) world.Kind {
	return world.Define(commander{kind, c})
}

type commander struct {
	kind string
	list []program.Command
}

func (c commander) About() world.About                               { return world.About{Name: c.kind, Version: 1} }
func (commander) Defaults() *struct{}                                { return &struct{}{} }
func (commander) Seats(*struct{}) ([]string, error)                  { return nil, nil }
func (commander) World(*struct{}, world.Lineup) (world.World, error) { return nil, nil }
func (c commander) Commands() []program.Command                      { return c.list }

// say runs the command line with a kind whose command returns an error.
func say(t *testing.T, terminal bool, fails error, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	s := State{Args: args, Stdout: &stdout, Stderr: &stderr, Kinds: []world.Kind{
		brings("echo", program.Command{Name: "shout", Doc: "Say something.", Verb: &shout{fails: fails}}),
	}}
	if terminal {
		s.Terminal = func(any) int { return 70 }
	}
	code := Main(t.Context(), s)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// TestCommandOfAKind checks that a command of a kind works like the others.
func TestCommandOfAKind(t *testing.T) {
	t.Parallel()
	sequential(t)
	for _, c := range []struct {
		fails error
		code  int
		says  string
	}{
		{nil, exit.OK, ""},
		{program.UsageError{Err: errors.New("no such word")}, exit.Misuse, "parley: no such word\n"},
		{fmt.Errorf("shout: %w", program.UsageError{Err: errors.New("no such word")}), exit.Misuse, "parley: shout: no such word\n"},
		{program.ErrReported, exit.Failed, ""},
		{fmt.Errorf("three lines: %w", program.ErrReported), exit.Failed, ""},
		{errors.New("the disk is full"), exit.Broken, "parley: the disk is full\n"},
	} {
		got := say(t, false, c.fails, "shout", "plan.yaml", "a\x1b[2Jb", "--loud").want(t, c.code)
		if got.stdout != "a\x1b[2Jb true 0\n" || got.stderr != c.says {
			t.Errorf("%v: %q %q", c.fails, got.stdout, got.stderr)
		}
	}
	if got := say(t, true, nil, "shout", "plan.yaml", "a\x1b[2Jb").want(t, exit.OK); strings.Contains(got.stdout, "\x1b[2J") || !strings.Contains(got.stdout, " 70") {
		t.Errorf("a terminal gets %q", got.stdout)
	}
	for _, args := range [][]string{{"--help"}, {"help"}, {"--complete", "sh"}} {
		if got := say(t, false, nil, args...).want(t, exit.OK); !strings.Contains(got.stdout, "shout") {
			t.Errorf("%v does not know shout", args)
		}
	}
	if got := say(t, false, nil, "shout", "--help").want(t, exit.OK).stdout; !strings.Contains(got, "--loud") {
		t.Error(got)
	}
	say(t, false, nil, "shuot").want(t, exit.Misuse).wantErr(t, "did you mean shout?")
	say(t, false, nil, "shout").want(t, exit.Misuse).wantErr(t, "usage: parley shout")
}

// TestCommandsThatCannotBe checks that all commands of a kind are left out if one is invalid, with a message
// that names it, and that everything else works.
func TestCommandsThatCannotBe(t *testing.T) {
	t.Parallel()
	sequential(t)
	for _, c := range []struct {
		kinds []world.Kind
		want  string
	}{
		{[]world.Kind{brings("a", program.Command{Name: "run", Doc: "x", Verb: &shout{}})}, `the kind a: the command "run" already exists, from parley itself`},
		{[]world.Kind{brings("a", program.Command{Name: "help", Doc: "x", Verb: &shout{}})}, "from parley itself"},
		{[]world.Kind{brings("a", program.Command{Name: "go", Doc: "x", Verb: &shout{}}), brings("b", program.Command{Name: "go", Doc: "x", Verb: &shout{}})}, `the kind b: the command "go" already exists, from the kind a`},
		{[]world.Kind{brings("a", program.Command{Name: "Go on", Doc: "x", Verb: &shout{}})}, "lower-case"},
		{[]world.Kind{brings("a", program.Command{Name: "--x", Doc: "x", Verb: &shout{}})}, "lower-case"},
		{[]world.Kind{brings("a", program.Command{Name: "go", Verb: &shout{}})}, "has no Doc"},
		{[]world.Kind{brings("a", program.Command{Name: "go", Doc: "x"})}, "want a pointer to a struct"},
		{[]world.Kind{brings("a", program.Command{Name: "go", Doc: "x", Verb: (*shout)(nil)})}, "want a pointer to a struct"},
		{[]world.Kind{brings("a", program.Command{Name: "go", Doc: "x", Verb: odd(1)})}, "want a pointer to a struct"},
		{[]world.Kind{brings("b", program.Command{Name: "fine", Doc: "x", Verb: &shout{}}), brings("a", program.Command{Name: "go", Doc: "x", Verb: &badTag{}})}, "parley: the kind a: the command \"go\": the field Move: enum value is only valid if"},
		{[]world.Kind{brings("a", program.Command{Name: "go", Doc: "x", Verb: &sameFlag{}})}, `the kind a: the command "go": the field Again: duplicate flag --move`},
	} {
		var stderr bytes.Buffer
		if code := Main(t.Context(), State{Args: []string{"--version"}, Kinds: c.kinds, Stderr: &stderr}); code != exit.OK || !strings.Contains(stderr.String(), c.want) || !strings.Contains(stderr.String(), "its commands are left out") {
			t.Errorf("exit code %d: %s, want %s", code, stderr.String(), c.want)
		}
	}
}

// badTag is a command with an invalid tag.
type badTag struct {
	odd
	Move string `enum:"left,right"`
}

// sameFlag is a command with two flags of the same name.
type sameFlag struct {
	odd
	Move  string
	Again string `name:"move"`
}

type odd int

func (odd) Run(context.Context, *program.Program) error { return nil }

// TestCommandsOfTheKinds checks that the built-in kinds have the documented commands.
func TestCommandsOfTheKinds(t *testing.T) {
	t.Parallel()
	all := strings.Join(Verbs(worlds.Standard()), " ")
	for _, want := range []string{"run", "adjudicate", "env", "trainer", "trajectories"} {
		if !strings.Contains(" "+all+" ", " "+want+" ") {
			t.Errorf("there is no %s: %s", want, all)
		}
	}
	if bare := strings.Join(Verbs(nil), " "); strings.Contains(bare, "env") || strings.Contains(bare, "adjudicate") {
		t.Errorf("without kinds: %s", bare)
	}
}

// TestTableThatIsACommand checks the hint for a table that is a command of a kind.
func TestTableThatIsACommand(t *testing.T) {
	t.Parallel()
	run := runfiletest.File(t, cliSample()...)
	parley(t, State{}, "export", run, "--table", "trajectories").want(t, exit.Misuse).wantErr(t, "there is a command of that name: parley trajectories")
	if got := parley(t, State{}, "export", run, "--table", "nothing").want(t, exit.Misuse); strings.Contains(got.stderr, "command of that name") {
		t.Error(got.stderr)
	}
}

// writes is a command that tries to write to a run file.
type writes struct {
	File string `arg:""`
}

// Run writes to the file.
func (w *writes) Run(_ context.Context, p *program.Program) error {
	return p.Write(program.Output{Flag: "--file", Path: w.File, Force: true}, func(io.Writer) error { return nil })
}

// TestCommandWrites checks that a command cannot write to a run file.
func TestCommandWrites(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	code := Main(t.Context(), State{Args: []string{"writes", runfiletest.File(t, cliSample()...)}, Stderr: &stderr, Kinds: []world.Kind{
		brings("echo", program.Command{Name: "writes", Doc: "Write.", Verb: &writes{}}),
	}})
	outcome{code: code, stderr: stderr.String()}.want(t, exit.Misuse).wantErr(t, "--file", "is part of a run file")
}

// TestAdjudicateStreams checks that each answer arrives before the next line is written.
func TestAdjudicateStreams(t *testing.T) {
	t.Parallel()
	in, input := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan int)
	go func() {
		done <- mainWith(t.Context(), State{Args: []string{"adjudicate"}, Stdin: in, Stdout: out})
		out.Close()
	}()
	reader := files.NewLineReader(answers, 1<<20)
	for range 3 {
		if _, err := io.WriteString(input, "{\"units\":{}}\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := reader.Next(); err != nil || !json.Valid(line) {
			t.Fatal(string(line), err)
		}
	}
	input.Close()
	if code := <-done; code != exit.OK {
		t.Errorf("exit code %d", code)
	}
}

// TestAdjudicateStops checks that a signal ends the command while it waits for input.
func TestAdjudicateStops(t *testing.T) {
	t.Parallel()
	in, input := io.Pipe()
	defer input.Close()
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	parley(t, State{Stdin: in, Signals: signals}, "adjudicate").want(t, exit.Interrupted)
}

func TestAdjudicateBrokenInput(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(strings.NewReader("{}\n"), failing{})
	out := parley(t, State{Stdin: broken}, "adjudicate").want(t, exit.Broken).wantErr(t, "stdin: the disk is broken")
	if strings.Count(out.stdout, "\n") != 1 {
		t.Error(out.stdout)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }
