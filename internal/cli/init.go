package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/output"
	"parley/internal/cli/terminal"
	"parley/internal/run/planfile"
	"parley/world"
	"parley/world/part"
)

// initCmd writes a plan file to start from.
type initCmd struct {
	Kind  string `arg:"" optional:"" help:"The kind of world. parley worlds lists them. With --go: the folder to create." placeholder:"KIND"`
	Out   string `placeholder:"FILE" help:"The plan file to write. Default: KIND.yaml."`
	From  string `placeholder:"FOLDER" help:"Convert a folder of an earlier system instead, and list what has no counterpart. The pages of kinds say which they know."`
	Force bool   `help:"Overwrite existing files. A file that you changed is first copied to NAME.bak."`
	moduleFlags
}

// Run writes the plan and the JSON Schema that its first line names.
func (c *initCmd) Run(ctx context.Context, s *State) error {
	if c.Kind == "" && c.Go {
		return exit.Usagef("the folder to create is missing: parley init --go FOLDER")
	}
	if c.Go {
		if c.Out != "" || c.From != "" || c.Force {
			return exit.Usagef("--go writes a new folder: --out, --from and --force are for plans")
		}
		return c.writeModule(s, c.Kind) //nolint:contextcheck // it reads and writes a few small files
	}
	if c.Module != "" || c.Parley != "" {
		return exit.Usagef("--module and --parley are for a world of your own: add --go")
	}
	all := s.Kinds
	kind, err := planfile.FindKind(all, c.Kind)
	if err != nil {
		return exit.AsUsage(err)
	}
	schema, err := planfile.Schema(all)
	if err != nil {
		return err
	}
	plan := cmp.Or(c.Out, kind.Name+".yaml")
	beside := filepath.Join(filepath.Dir(plan), planfile.SchemaName)
	if filepath.Base(plan) == planfile.SchemaName {
		return exit.Usagef("--out: %s is the name of the schema that is written beside the plan", planfile.SchemaName)
	}
	made := part.Converted{Plan: kind.Example, Files: kind.ExampleFiles}
	if c.From != "" {
		if made, err = c.convert(ctx, kind, plan); err != nil {
			return exit.AsUsage(err)
		}
	}
	files := []output.Template{{Path: plan, Text: planfile.Init(made.Plan)}, {Path: beside, Text: schema}}
	for _, name := range slices.Sorted(maps.Keys(made.Files)) {
		path := filepath.Join(filepath.Dir(plan), filepath.FromSlash(name))
		files = append(files, output.Template{Path: path, Text: []byte(made.Files[name])})
	}
	wrote := slices.DeleteFunc(slices.Clone(files), output.Template.Same)
	kept, err := output.WriteTemplates(files, c.Force) //nolint:contextcheck // it reads and writes a few small files
	for _, k := range kept {                           // report them even if writing the rest failed
		fmt.Fprintf(s.Stderr, "parley: %s was not as init writes it; the old file is kept as %s\n", k[0], k[1])
	}
	if err != nil {
		return err
	}
	for _, line := range made.Report {
		if _, err := fmt.Fprintln(s.Stdout, terminal.Safe(line)); err != nil {
			return err
		}
	}
	if c.From != "" {
		if err := checkConverted(ctx, s, files); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.Stdout, "%s\nnext:  parley check %s   what it will take; nothing is asked\n       parley run %s     play it\n",
		wroteText(files, wrote), terminal.ShellWord(plan), terminal.ShellWord(plan))
	return err
}

// checkConverted reads the plans among the files that were written, as check does.
func checkConverted(ctx context.Context, s *State, files []output.Template) error {
	dir := filepath.Dir(files[0].Path)
	for _, f := range files {
		if filepath.Dir(f.Path) != dir || !isPlan(f.Path) || filepath.Base(f.Path) == planfile.SchemaName {
			continue
		}
		if _, err := planfile.Load(ctx, f.Path, s.Kinds, nil, planfile.Reach{}); err != nil {
			return &exit.Error{Code: exit.Failed, Err: fmt.Errorf("the converted files were written, but cannot be played: correct this, then run parley check %s\n%w", terminal.ShellWord(f.Path), err)}
		}
	}
	return nil
}

// wroteText says which of the files were written: the plan, its schema and others.
func wroteText(files, wrote []output.Template) string {
	switch {
	case len(wrote) == 0:
		return files[0].Path + " is already there, unchanged\n"
	case wrote[0].Path != files[0].Path:
		return files[0].Path + " is already there, unchanged; wrote\n" + output.PathList(wrote)
	default:
		return fmt.Sprintf("wrote %s, and %s for editors that complete and check it\n%s", files[0].Path, files[1].Path, output.PathList(files[2:]))
	}
}

// convert converts the folder of an earlier system.
func (c *initCmd) convert(ctx context.Context, kind world.Kind, plan string) (part.Converted, error) {
	converter, ok := world.As[part.Converter](kind)
	if !ok {
		return part.Converted{}, exit.Usagef("--from: %s does not convert folders of an earlier system", kind.Name)
	}
	from, err := filepath.Abs(c.From)
	if err != nil {
		return part.Converted{}, err
	}
	files, err := planfile.NewFiles(ctx, filepath.Join(filepath.Dir(from), "plan.yaml"), planfile.Reach{})
	if err != nil {
		return part.Converted{}, err
	}
	name := ""
	if c.Out != "" {
		name = strings.TrimSuffix(filepath.Base(plan), filepath.Ext(plan))
	}
	made, err := converter.Convert(files, filepath.Base(from), name)
	if err != nil {
		return made, fmt.Errorf("--from: %w", err)
	}
	for i, line := range made.Report {
		made.Report[i] = strings.ReplaceAll(line, from, filepath.Clean(c.From))
	}
	for name := range made.Files {
		to := filepath.Join(filepath.Dir(plan), filepath.FromSlash(name))
		if in, err := os.Stat(filepath.Dir(to)); err == nil {
			if old, err := os.Stat(from); err == nil && os.SameFile(in, old) {
				return made, exit.Usagef("--from: %s would be written into the folder that is read: name a plan in another folder with --out", to)
			}
		}
	}
	return made, nil
}
