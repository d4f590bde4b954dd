package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/cli/exit"
	"parley/internal/cli/scaffold"
	"parley/internal/cli/terminal"
	"parley/internal/run/planfile"
)

// moduleFlags are the flags of a Go module with a world to start from.
type moduleFlags struct {
	Go     bool   `group:"module" help:"Write a Go module with a world of your own to start from. The folder names the world: my-game gives the package and the kind mygame."`
	Module string `group:"module" placeholder:"PATH" help:"The path of the new module, such as github.com/you/my-game. Default: example/NAME."`
	Parley string `group:"module" placeholder:"DIR" help:"A checkout of Parley to build with. Default: the one found here or above, else the version of this program."`
}

// writeModule writes the whole module or nothing.
func (c *moduleFlags) writeModule(s *State, name string) error {
	dir, err := filepath.Abs(name)
	if err != nil {
		return exit.AsUsage(err)
	}
	m := scaffold.Module{Path: cmp.Or(c.Module, scaffold.DefaultPath(filepath.Base(dir)))}
	if m.Package, err = scaffold.Package(filepath.Base(dir)); err != nil {
		return exit.AsUsage(err)
	}
	if err := scaffold.Free(dir); err != nil {
		return exit.AsUsage(err)
	}
	if _, err := planfile.FindKind(s.Kinds, m.Package); err == nil {
		return exit.Usagef("there is a kind %s already: choose another name", m.Package)
	}
	if m.Source, err = c.source(filepath.Dir(dir)); err != nil {
		return exit.AsUsage(err)
	}
	files, err := m.Files()
	if err != nil {
		return exit.AsUsage(err)
	}
	if err := scaffold.Write(dir, files); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return sayModule(s, name, m)
}

// sayModule prints what was written and what to do next.
func sayModule(s *State, name string, m scaffold.Module) error {
	next := [][2]string{
		{"cd " + terminal.ShellWord(name), ""},
		{"go test ./...", "hold the world to what every kind promises"},
		{"go run ./cmd/parley run " + m.Package + ".yaml", "play it; no key is needed"},
		{"go run ./cmd/parley report " + m.Package + ".parley", "summarize what was played"},
	}
	if m.Source.Tidy() {
		next = slices.Insert(next, 1, [2]string{"go mod tidy", "fetch Parley"})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s: the kind %s with its test and a plan, and a parley that plays it\nParley's source: %s\n", name, m.Package, m.Source)
	lead, width := "\nnext:  ", len(next[len(next)-1][0])
	for _, n := range next {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s%-*s   %s", lead, width, n[0], n[1]), " ") + "\n")
		lead = "       "
	}
	_, err := s.Stdout.Write([]byte(b.String()))
	return err
}

// source returns where the new module gets Parley from.
func (c *moduleFlags) source(parent string) (scaffold.Source, error) {
	if c.Parley != "" {
		return scaffold.Checkout(c.Parley)
	}
	dirs := []string{parent}
	if here, err := os.Getwd(); err == nil {
		dirs = append(dirs, here)
	}
	if program, err := os.Executable(); err == nil { // of a checkout that it was built in: with -trimpath the program does not know its folder
		dirs = append(dirs, filepath.Dir(program))
	}
	source, err := scaffold.Find(dirs...)
	if errors.Is(err, scaffold.ErrUnknown) {
		return source, fmt.Errorf("%w: name the folder of one with --parley DIR", err)
	}
	return source, err
}
