package command_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/internal/run/command"
	"parley/world"
	"parley/world/program"
	"parley/world/worldtest"
)

// The verbs below are valid, or have one fault each.
type (
	no    struct{} // does nothing
	flags struct {
		Plan string `help:"The plan file." arg:""`
	}

	fine struct {
		no
		flags
		Move string   `help:"A move." enum:"up,down" default:"up" placeholder:"MOVE"`
		Runs []string `help:"Run files." arg:"" optional:""`
	}
	badEnum struct {
		no
		Move string `help:"A move." enum:"up,down"`
	}
	twice struct {
		no
		A string `name:"move"`
		B string `name:"move"`
	}
	function struct {
		no
		Then func()
	}
	badDefault struct {
		no
		Rounds int `help:"Rounds." default:"many"`
	}
	variable struct {
		no
		Rounds int `help:"Costs ${price}."`
	}
	order struct {
		no
		Files []string `arg:""`
		Last  string   `arg:""`
	}
	ownFlag struct {
		no
		Path string `aliases:"trace"`
	}
	ownLetter struct {
		no
		Hard bool `short:"h"`
	}
	number int
)

func (no) Run(context.Context, *program.Program) error     { return nil }
func (number) Run(context.Context, *program.Program) error { return nil }

func TestCheck(t *testing.T) {
	t.Parallel()
	one := number(1)
	for _, c := range []struct {
		verb program.Verb
		want string // "" if the verb is valid
	}{
		{&fine{}, ""},
		{&badEnum{}, "the field Move: enum value is only valid if"},
		{&twice{}, "the field B: duplicate flag --move"},
		{&function{}, "the field Then: unsupported field type func()"},
		{&badDefault{}, `--rounds: expected a valid 64 bit int but got "many"`},
		{&variable{}, "undefined variable ${price}"},
		{&order{}, `argument "last" cannot come after cumulative "files"`},
		{&ownFlag{}, "parley has a flag --trace for every command"},
		{&ownLetter{}, "-h is the help of every command"},
		{(*fine)(nil), "want a pointer to a struct"},
		{&one, "want a pointer to a struct"},
		{nil, "want a pointer to a struct"},
	} {
		got := fmt.Sprint(command.Check(program.Command{Name: "go", Doc: "Go on.", Verb: c.verb}))
		if c.want == "" && got != "<nil>" || !strings.Contains(got, c.want) {
			t.Errorf("%T: %s, want %q", c.verb, got, c.want)
		}
	}
	kept := &fine{Move: "left"}
	if err := command.Check(program.Command{Name: "go", Doc: "Go on.", Verb: kept}); err != nil || kept.Move != "left" {
		t.Errorf("the check wrote to the command: %+v, %v", kept, err)
	}
}

// bringing is a definition with commands.
type bringing struct {
	worldtest.Simple[struct{}]
	commands []program.Command
}

func (b bringing) Commands() []program.Command { return b.commands }

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ names, want string }{
		{"", ""},
		{"pay off", ""},
		{"pay pay", `the kind test: two commands are named "pay"`},
		{"run", `the kind test: the command "run" already exists, from parley itself`},
		{"Pay", `the kind test: the command "Pay": want a name of lower-case letters`},
	} {
		var all []program.Command
		for name := range strings.FieldsSeq(c.names) {
			all = append(all, program.Command{Name: name, Doc: "Something.", Verb: &fine{}})
		}
		_, err := command.Of(world.Define(bringing{commands: all}), command.Own())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.names, err, c.want)
		}
	}
	if _, bad := command.Of(world.Define(worldtest.Simple[struct{}]{}), command.Own()); bad != nil {
		t.Errorf("a kind without commands: %v", bad)
	}
}
