package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/config"
	"parley/internal/config/keys"
)

// initCmd writes a plan file to start from.
type initCmd struct {
	Kind  string `arg:"" help:"The kind of world. parley worlds lists them." placeholder:"KIND"`
	Out   string `placeholder:"FILE" help:"The plan file to write. Default: KIND.yaml."`
	Force bool   `help:"Overwrite existing files. A file that you changed is first copied to NAME.bak."`
}

// Run writes the plan and the JSON Schema that its first line names.
func (c *initCmd) Run(s *State) error {
	all := s.Kinds
	kind, err := config.Kind(all, c.Kind)
	if err != nil {
		return exit.AsUsage(err)
	}
	schema, err := keys.Schema(all)
	if err != nil {
		return err
	}
	plan := c.Out
	if plan == "" {
		plan = kind.Name + ".yaml"
	}
	beside := filepath.Join(filepath.Dir(plan), config.SchemaName)
	if filepath.Base(plan) == config.SchemaName {
		return exit.Usagef("--out: %s is the name of the schema that is written beside the plan", config.SchemaName)
	}
	files := []output.Template{{Path: plan, Text: config.Init(kind)}, {Path: beside, Text: schema}}
	for _, name := range slices.Sorted(maps.Keys(kind.ExampleFiles)) {
		path := filepath.Join(filepath.Dir(plan), filepath.FromSlash(name))
		files = append(files, output.Template{Path: path, Text: []byte(kind.ExampleFiles[name])})
	}
	kept, err := output.WriteTemplates(files, c.Force)
	for _, k := range kept { // report them even if writing the rest failed
		fmt.Fprintf(s.Stderr, "parley: %s was not as init writes it; the old file is kept as %s\n", k[0], k[1])
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "wrote %s, and %s for editors that complete and check it\n%s\n"+
		"next:  parley check %s   what it will take; nothing is asked\n       parley run %s     play it\n", plan, beside, output.PathList(files[2:]), terminal.ShellWord(plan), terminal.ShellWord(plan))
	return err
}
