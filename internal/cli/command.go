package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"sync"

	"github.com/alecthomas/kong"

	"parley/internal/app"
	"parley/world"
)

// This file is about the verbs that kinds bring.

var commandName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// kindCommand is a verb that a kind brings.
type kindCommand struct {
	kind string
	world.Command
}

func (c kindCommand) option() kong.Option { return kong.DynamicCommand(c.Name, c.Doc, "kinds", c.Verb) }

// commandField finds the field that an error of kong is about, behind the name of its type.
var commandField = regexp.MustCompile(`^[^:]+\.(\w+): `)

// refused is an error of kong about c, with whose it is.
func (c kindCommand) refused(err error) error {
	return fmt.Errorf("the kind %s: the command %q: %s", c.kind, c.Name, commandField.ReplaceAllString(err.Error(), "the field $1: "))
}

// commands are the verbs of the kinds, for the grammar g.
func commands(g *grammar, kinds []world.Kind) ([]kindCommand, error) {
	by := map[string]string{"help": "parley itself"}
	for f := range reflect.TypeOf(*g).Fields() {
		if _, ok := f.Tag.Lookup("cmd"); ok {
			by[verbName(f.Name)] = "parley itself"
		}
	}
	var all []kindCommand
	for _, k := range kinds {
		brings, ok := world.As[world.Commander](k)
		if !ok {
			continue
		}
		for _, c := range brings.Commands() {
			if err := checkCommand(c); err != nil {
				return nil, fmt.Errorf("the kind %s: the command %q: %w", k.Name, c.Name, err)
			}
			if by[c.Name] != "" {
				return nil, fmt.Errorf("the kind %s: the command %q is there already, from %s: give it another name", k.Name, c.Name, by[c.Name])
			}
			by[c.Name] = "the kind " + k.Name
			all = append(all, kindCommand{k.Name, c})
		}
	}
	return all, nil
}

// verbName is a field of the grammar as a verb: all are single words.
func verbName(field string) string { return string(field[0]|0x20) + field[1:] }

// checkCommand says what is wrong with a command.
func checkCommand(c world.Command) error {
	v := reflect.ValueOf(c.Verb)
	switch {
	case !commandName.MatchString(c.Name):
		return errors.New("want a name of lower-case letters, digits and single dashes")
	case c.Doc == "":
		return errors.New("has no Doc: the help needs a line")
	case v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct:
		return fmt.Errorf("its Verb is %T: want a pointer to a struct", c.Verb)
	}
	return nil
}

// runVerb runs a verb of a kind.
func runVerb(ctx context.Context, s *State, v world.Verb) error {
	g := newGate()
	ctx, end := listen(ctx, s, g)
	defer end()
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	g.onClose(func() { cancel(errStopped) })
	runs := &programRuns{s: s, stop: g.shut}
	p := &world.Program{
		Env: s.Env, Stdin: &stoppableInput{r: s.Stdin, stop: stop.Done()}, Stdout: s.Stdout, Stderr: s.Stderr,
		Width: func() int { return widthOf(s.Stdout) }, Stop: stop, Write: writeOutput, Runs: runs,
	}
	err := pipeEnd(v.Run(ctx, p))
	switch {
	case errors.Is(err, errStopped), errors.Is(err, errAborted):
		return silent(ExitInterrupted)
	case err == nil, errors.Is(err, world.ErrReported):
		if lost := leftOut(s, runs.opened()...); lost != nil || err == nil {
			return lost
		}
		return silent(ExitFailed)
	}
	if _, ok := errors.AsType[world.UsageError](err); ok || app.IsUsage(err) {
		return asUsage(err)
	}
	return err
}

// widthOf is the width of the terminal that a standard stream leads to.
func widthOf(w io.Writer) int {
	if s, ok := w.(*stream); ok {
		return s.width()
	}
	return 0
}

// writeOutput writes a file of a verb.
func writeOutput(o world.Output, write func(io.Writer) error) error {
	out := output{flag: o.Flag, path: o.Path, force: o.Force, inputs: o.Inputs}
	if _, err := out.check(); err != nil {
		return err
	}
	return out.write(write)
}

// stoppableInput is a standard input that ends when the user wants the verb to finish. It reads nothing before it is
// asked to.
type stoppableInput struct {
	r    io.Reader
	stop <-chan struct{}
	once sync.Once
	in   *patientReader
}

// Read implements io.Reader.
func (i *stoppableInput) Read(b []byte) (int, error) {
	i.once.Do(func() { i.in = newPatientReader(i.r, i.stop) })
	n, err := i.in.Read(b)
	if errors.Is(err, errStopped) {
		err = io.EOF
	}
	return n, err
}
