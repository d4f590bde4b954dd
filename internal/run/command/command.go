// Package command checks the commands that kinds add to the command line.
//
// A command that passes Check can be part of the command line: its name, its help, and the tags of its flags and
// arguments are valid.
//
// It does not run commands: internal/cli does.
package command

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/world"
	"parley/world/part"
	"parley/world/program"
)

var nameRE = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Check reports what is wrong with a command. It does not change the command.
func Check(c program.Command) error {
	v := reflect.ValueOf(c.Verb)
	switch {
	case !nameRE.MatchString(c.Name):
		return errors.New("want a name of lower-case letters, digits and single dashes")
	case c.Doc == "":
		return errors.New("has no Doc: the help needs a line")
	case v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct:
		return fmt.Errorf("its Verb is %T: want a pointer to a struct", c.Verb)
	}
	if err := checkEmbedded(v.Type(), nil); err != nil {
		return err
	}
	verb := reflect.New(v.Elem().Type())
	verb.Elem().Set(v.Elem())
	return build(c, verb.Interface())
}

// fieldRE matches the prefix with which kong names a field of a struct.
var fieldRE = regexp.MustCompile(`^(?:<anonymous struct>|\w+)\.(\w+): `)

// build makes a command line with one command and sets the defaults of its flags.
func build(c program.Command, verb any) (err error) {
	defer func() {
		if p := recover(); p != nil { // kong panics on some wrong tags
			err = fmt.Errorf("its tags: %v", p)
		}
	}()
	k, err := kong.New(&struct{}{}, kong.Name("parley"), kong.Writers(io.Discard, io.Discard), kong.DynamicCommand(c.Name, c.Doc, "kinds", verb))
	if err == nil {
		var parsed *kong.Context
		if parsed, err = kong.Trace(k, []string{c.Name}); err == nil {
			err = parsed.Reset()
		}
	}
	if err == nil {
		return ownFlags(k.Model.Children[0])
	}
	if m := fieldRE.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("the field %s: %s", m[1], err.Error()[len(m[0]):])
	}
	return fmt.Errorf("its tags: %w", err)
}

// ownFlags refuses a flag that every command already has.
func ownFlags(command *kong.Node) error {
	for _, f := range command.Flags {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			if slices.Contains([]string{"help", "cpuprofile", "memprofile", "trace"}, name) {
				return fmt.Errorf("parley has a flag --%s for every command; give it another name", name)
			}
		}
		if f.Short == 'h' {
			return errors.New("-h is the help of every command; use another letter")
		}
	}
	return nil
}

// Of returns the commands of a kind and checks them. taken maps each name in use to its owner.
func Of(k world.Kind, taken map[string]string) ([]program.Command, error) {
	commander, ok := world.As[part.Commander](k)
	if !ok {
		return nil, nil
	}
	list := commander.Commands()
	seen := map[string]bool{}
	for _, c := range list {
		if err := Check(c); err != nil {
			return list, fmt.Errorf("the kind %s: the command %q: %w", k.Name, c.Name, err)
		}
		if owner := taken[c.Name]; owner != "" {
			return list, fmt.Errorf("the kind %s: the command %q already exists, from %s; give it another name", k.Name, c.Name, owner)
		}
		if seen[c.Name] {
			return list, fmt.Errorf("the kind %s: two commands are named %q", k.Name, c.Name)
		}
		seen[c.Name] = true
	}
	return list, nil
}

// checkEmbedded refuses a struct that embeds itself through a pointer, or has itself as a command: a parser
// would recurse until the stack overflows, which nothing can recover from.
func checkEmbedded(t reflect.Type, within []reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if slices.Contains(within, t) {
		return fmt.Errorf("%s embeds itself", t)
	}
	within = append(slices.Clone(within), t)
	for f := range t.Fields() {
		if f.Anonymous || strings.Contains(string(f.Tag), "embed") || strings.Contains(string(f.Tag), "cmd") {
			if err := checkEmbedded(f.Type, within); err != nil {
				return err
			}
		}
	}
	return nil
}

// Own returns parley's own commands. No kind may use one of these names.
func Own() map[string]string {
	taken := map[string]string{}
	for _, name := range []string{
		"help", "run", "trainer", "trajectories", "ctl", "sit", "check", "fork", "score", "view", "show", "report", "compare", "export", "init", "worlds", "ask", "models",
		"sim", "gateway", "worker", "hub", "cluster",
	} {
		taken[name] = "parley itself"
	}
	return taken
}
