package main

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// source is a package of the program, with what it weighs.
type source struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     struct{ Path string }
	weight     weight
}

// weight is the seconds of CPU to compile something, and its bytes of code and data in the program.
type weight struct{ cpu, code, data float64 }

func (w *weight) add(v weight) { w.cpu, w.code, w.data = w.cpu+v.cpu, w.code+v.code, w.data+v.data }

const (
	mainPackage = "parley/cmd/parley"
	shownRows   = 16 // in the page, with the head of the table
)

func (p *source) own() bool { return p.Module.Path == "parley" }

// row is what p counts for: its module, the standard library, or our folder that it is in.
func (p *source) row() string {
	switch {
	case p.Standard:
		return "the standard library"
	case !p.own():
		return p.Module.Path
	}
	parts := strings.Split(p.ImportPath, "/")
	return strings.Join(parts[:min(len(parts), 3)], "/")
}

// weights measures what each module, and each of our folders, adds to the time of a first build and to the size of the program.
func weights(b *bench, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("weights takes no argument, and got %q", args[0])
	}
	graph, full, stripped := filepath.Join(b.dir, "graph.json"), filepath.Join(b.dir, "full"), filepath.Join(b.dir, "stripped")
	_, cpu, err := b.forLinux("build", "-trimpath", "-debug-actiongraph", graph, "-o", full, "./cmd/parley")
	if err != nil {
		return err
	}
	if _, _, err := b.forLinux("build", "-trimpath", "-ldflags=-s -w", "-o", stripped, "./cmd/parley"); err != nil {
		return err
	}
	list, _, err := b.forLinux("list", "-deps", "-json=ImportPath,Imports,Standard,Module", "./cmd/parley")
	if err != nil {
		return err
	}
	packages, err := readPackages(strings.NewReader(list))
	if err != nil {
		return err
	}
	table, err := weigh(packages, graph, full)
	if err != nil {
		return err
	}
	info, err := os.Stat(stripped)
	if err != nil {
		return err
	}
	lines := weightRows(packages, table, cpu, float64(info.Size()))
	b.printf("%s\n", strings.Join(lines, "\n"))
	about := fmt.Sprintf("Measured on %s, with a table of functions of %.1f MB. %d lighter rows are left out.", time.Now().Format(time.DateOnly), table/1e6, max(0, len(lines)-shownRows))
	return replaceTable("weights", slices.Concat([]string{about, ""}, lines[:min(len(lines), shownRows)]))
}

// forLinux runs the go command at the top of the tree, for Linux, with a build cache of its own. It returns the CPU time with that of the compilers.
func (b *bench) forLinux(args ...string) (out string, cpu float64, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOCACHE="+filepath.Join(b.dir, "cold"))
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", 0, fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(text), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// readPackages reads what go list wrote.
func readPackages(r io.Reader) (map[string]*source, error) {
	packages := map[string]*source{}
	for d := json.NewDecoder(r); ; {
		p := &source{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages[p.ImportPath] = p
	}
}

// weigh adds to each package its CPU time in a graph of actions, and its bytes in a program. It returns the bytes of the program's table of functions.
func weigh(packages map[string]*source, graph, program string) (table float64, err error) {
	text, err := os.ReadFile(graph)
	if err != nil {
		return 0, err
	}
	var actions []struct {
		Mode, Package   string
		CmdUser, CmdSys time.Duration
	}
	if err := json.Unmarshal(text, &actions); err != nil {
		return 0, fmt.Errorf("the graph of actions: %w", err)
	}
	for _, a := range actions {
		if p := packages[a.Package]; p != nil && a.Mode == "build" { // the linker is of no package
			p.weight.cpu += (a.CmdUser + a.CmdSys).Seconds()
		}
	}
	f, err := elf.Open(program)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		p := symbolPackage(packages, s.Name)
		switch {
		case p == nil || int(s.Section) >= len(f.Sections) || f.Sections[s.Section].Type == elf.SHT_NOBITS:
		case f.Sections[s.Section].Flags&elf.SHF_EXECINSTR != 0:
			p.weight.code += float64(s.Size)
		default:
			p.weight.data += float64(s.Size)
		}
	}
	functions := f.Section(".gopclntab")
	if functions == nil {
		return 0, fmt.Errorf("%s has no table of functions", program)
	}
	return float64(functions.Size), nil
}

// symbolPackage returns the package that a symbol is of, or nil. An instance of a generic function is of the package that declares it.
func symbolPackage(packages map[string]*source, name string) *source {
	name = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(name, "type:.eq."), "go:itab."), "*")
	for i, c := range name {
		if c == '[' || c == ',' {
			break
		}
		if c != '.' {
			continue
		}
		if name[:i] == "main" {
			return packages[mainPackage]
		}
		if p := packages[strings.ReplaceAll(name[:i], "%2e", ".")]; p != nil {
			return p
		}
	}
	return nil
}

// without returns what the packages weigh that would not be in the program if a module were not.
func without(packages map[string]*source, module string) (w weight) {
	left := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		p := packages[path]
		if p == nil || left[path] || p.row() == module {
			return
		}
		left[path] = true
		for _, i := range p.Imports {
			visit(i)
		}
	}
	visit(mainPackage)
	visit("runtime") // the linker adds it
	for path, p := range packages {
		if !left[path] {
			w.add(p.weight)
		}
	}
	return w
}

// weightRows returns a table: all of it, what is of no package, and then the heaviest first. The table of functions counts for packages in
// proportion to their code.
func weightRows(packages map[string]*source, table, cpu, size float64) []string {
	var all, ours weight
	sums, modules := map[string]weight{}, map[string]bool{}
	for _, p := range packages {
		sum := sums[p.row()]
		sum.add(p.weight)
		sums[p.row()] = sum
		modules[p.row()] = !p.own() && !p.Standard
		all.add(p.weight)
		if p.own() {
			ours.add(p.weight)
		}
	}
	bytes := func(w weight) float64 { return w.code*(1+table/all.code) + w.data }
	cells := func(cpu, bytes float64) string { return fmt.Sprintf("%.1f | %.2f", cpu, bytes/1e6) }
	lines := []string{
		tableRow("what", "CPU s", "MB", "with what only it needs: CPU s", "MB"),
		"|---|---|---|---|---|",
		tableRow("all", cells(cpu, size), "", ""),
		tableRow("linker and go command; types, strings and other data", cells(cpu-all.cpu, size-bytes(all)), "", ""),
		tableRow("our own packages", cells(ours.cpu, bytes(ours)), "", ""),
	}
	share := func(name string) float64 { return sums[name].cpu/cpu + bytes(sums[name])/size }
	for _, name := range slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(share(b), share(a)), cmp.Compare(a, b)) }) {
		more := " | "
		if modules[name] {
			w := without(packages, name)
			more = cells(w.cpu, bytes(w))
		}
		lines = append(lines, tableRow(name, cells(sums[name].cpu, bytes(sums[name])), more))
	}
	return lines
}
