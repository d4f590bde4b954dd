// Package command checks the commands that kinds bring to the command line.
//
// What it promises: a command that passes Check can be part of the command line: its name, its help, and the tags
// of its flags and arguments are right.
//
// It is not for running commands: internal/cli does that.
package command

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"

	"github.com/alecthomas/kong"

	"parley/world"
)

var nameRE = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Check says what is wrong with a command. It does not change the command.
func Check(c world.Command) error {
	v := reflect.ValueOf(c.Verb)
	switch {
	case !nameRE.MatchString(c.Name):
		return errors.New("want a name of lower-case letters, digits and single dashes")
	case c.Doc == "":
		return errors.New("has no Doc: the help needs a line")
	case v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct:
		return fmt.Errorf("its Verb is %T: want a pointer to a struct", c.Verb)
	}
	verb := reflect.New(v.Elem().Type())
	verb.Elem().Set(v.Elem())
	return build(c, verb.Interface())
}

// fieldRE matches how kong names a field of a struct.
var fieldRE = regexp.MustCompile(`^(?:<anonymous struct>|\w+)\.(\w+): `)

// build makes a command line of one command and sets the defaults of its flags.
func build(c world.Command, verb any) (err error) {
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
		return nil
	}
	if m := fieldRE.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("the field %s: %s", m[1], err.Error()[len(m[0]):])
	}
	return fmt.Errorf("its tags: %w", err)
}

// Brought checks all commands that a kind brings. Each has a name of its own, and none has one of Own.
func Brought(k world.Kind) (bad []error) {
	brings, ok := world.As[world.Commander](k)
	if !ok {
		return nil
	}
	by := map[string]string{}
	for _, name := range Own() {
		by[name] = "parley itself"
	}
	for _, c := range brings.Commands() {
		if err := Check(c); err != nil {
			bad = append(bad, fmt.Errorf("the kind %s: the command %q: %w", k.Name, c.Name, err))
			continue
		}
		if by[c.Name] != "" {
			bad = append(bad, fmt.Errorf("the kind %s: the command %q is there already, from %s: give it another name", k.Name, c.Name, by[c.Name]))
		}
		by[c.Name] = "the kind " + k.Name
	}
	return bad
}

// Own lists the commands of parley itself. No kind may bring one of these names.
func Own() []string {
	return []string{
		"help", "run", "resume", "check", "show", "bench", "report", "compare", "export", "fork", "init", "new", "worlds", "ask", "probe",
		"sim", "gateway", "models", "completion", "man", "version",
	}
}
