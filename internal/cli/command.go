package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/alecthomas/kong"

	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/run/command"
	"parley/internal/run/results"
	"parley/world"
	"parley/world/part"
	"parley/world/program"
)

// kindCommands returns the commands of the kinds. If one command of a kind is invalid, all commands of that kind are
// left out and standard error says why.
func kindCommands(s *State) []kong.Option {
	by := command.Own()
	var all []kong.Option
	s.verbs = map[program.Verb]world.Kind{}
	for _, k := range s.Kinds {
		list, err := checkedCommands(k, by)
		if err != nil {
			s.tell(err.Error() + ": its commands are left out")
			continue
		}
		for _, c := range list {
			by[c.Name] = "the kind " + k.Name
			s.verbs[c.Verb] = k
			all = append(all, kong.DynamicCommand(c.Name, c.Doc, "kinds", c.Verb))
		}
	}
	return all
}

// checkedCommands returns the checked commands of a kind. by maps each name in use to its owner.
func checkedCommands(k world.Kind, by map[string]string) (list []program.Command, err error) {
	failed := results.CallKind(k, "Commands", func() error { list, err = command.Of(k, by); return nil })
	return list, cmp.Or(failed, err)
}

// checkKinds refuses kinds that a plan file cannot name, and kinds with methods that nothing calls.
func checkKinds(kinds []world.Kind) error {
	seen := map[string]bool{}
	for i, k := range kinds {
		if err := part.Check(k); err != nil {
			return fmt.Errorf("kind %d of %d: %w", i+1, len(kinds), err)
		}
		if seen[k.Name] {
			return fmt.Errorf("two kinds are called %s: give one of them another name", k.Name)
		}
		seen[k.Name] = true
	}
	return nil
}

// runVerb runs a command of a kind.
func runVerb(ctx context.Context, s *State, v program.Verb) error {
	g := exit.NewGate()
	ctx, end := listen(ctx, s, g)
	defer end()
	stop, cancel := untilClosed(ctx, g)
	defer cancel()
	p := &program.Program{
		Env: s.Env, Stdin: &stoppableInput{r: s.Stdin, stop: stop.Done()}, Stdout: s.Stdout, Stderr: s.Stderr,
		Width: func() int { return widthOf(s.Stdout) }, Stop: stop, Write: writeOutput,
	}
	var err error
	if failed := results.CallKind(s.verbs[v], "the command", func() error { err = v.Run(ctx, p); return nil }); failed != nil {
		err = failed
	}
	err = stopError(pipeEnd(err))
	if errors.Is(err, program.ErrReported) {
		return exit.Silent(exit.Failed)
	}
	if _, ok := errors.AsType[program.UsageError](err); ok || app.IsUsage(err) {
		return exit.AsUsage(err)
	}
	return err
}

// widthOf returns the width of the terminal behind a standard stream.
func widthOf(w io.Writer) int {
	if s, ok := w.(*terminal.Stream); ok {
		return s.Width()
	}
	return 0
}

// writeOutput writes an output file of a command.
func writeOutput(o program.Output, write func(io.Writer) error) error {
	out := output.File{Flag: o.Flag, Path: o.Path, Force: o.Force, Inputs: o.Inputs}
	if _, err := out.Check(); err != nil {
		return err
	}
	return out.Write(write)
}

// stoppableInput is a standard input that ends when the user asks the command to finish. It reads nothing before
// the first Read.
type stoppableInput struct {
	r    io.Reader
	stop <-chan struct{}
	once sync.Once
	in   *exit.Reader
}

// Read implements io.Reader.
func (i *stoppableInput) Read(b []byte) (int, error) {
	i.once.Do(func() { i.in = exit.NewReader(i.r, i.stop) })
	n, err := i.in.Read(b)
	if errors.Is(err, exit.ErrStopped) {
		err = io.EOF
	}
	return n, err
}
