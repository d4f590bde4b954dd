package main

import (
	"slices"
	"strings"
	"testing"
)

const listed = `
{"ImportPath": "runtime", "Standard": true}
{"ImportPath": "encoding/gob", "Standard": true, "Imports": ["runtime"]}
{"ImportPath": "example.com/nats.go", "Module": {"Path": "example.com/nats.go"}, "Imports": ["encoding/gob", "example.com/text"]}
{"ImportPath": "example.com/text", "Module": {"Path": "example.com/text"}}
{"ImportPath": "example.com/yaml", "Module": {"Path": "example.com/yaml"}, "Imports": ["example.com/text"]}
{"ImportPath": "parley/internal/cli/output", "Module": {"Path": "parley"}, "Imports": ["example.com/nats.go", "example.com/yaml"]}
{"ImportPath": "parley/cmd/parley", "Module": {"Path": "parley"}, "Imports": ["parley/internal/cli/output"]}`

func TestSymbolPackage(t *testing.T) {
	t.Parallel()
	packages, err := readPackages(strings.NewReader(listed))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"main.main":                             "parley/cmd/parley",
		"runtime.mheap_":                        "runtime",
		"encoding/gob.init":                     "encoding/gob",
		"example.com/nats%2ego.(*Conn).Publish": "example.com/nats.go",
		"type:.eq.example.com/yaml.Node":        "example.com/yaml",
		"go:itab.*example.com/yaml.Node,encoding/gob.GobEncoder":          "example.com/yaml",
		"parley/internal/cli/output.Open.encoding/gob.Register.func1":     "parley/internal/cli/output",
		"runtime.AddCleanup[go.shape.struct { example.com/yaml.x int }]":  "runtime",
		"slices.SortFunc[go.shape.*example.com/yaml.Node,encoding/gob.T]": "",
		"go:func.*": "",
		"":          "",
	} {
		got := ""
		if p := symbolPackage(packages, name); p != nil {
			got = p.ImportPath
		}
		if got != want {
			t.Errorf("%q is of %q, want %q", name, got, want)
		}
	}
}

func TestWeightRows(t *testing.T) {
	t.Parallel()
	packages, err := readPackages(strings.NewReader(listed))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{"runtime", "encoding/gob", "example.com/nats.go", "example.com/text", "example.com/yaml", "parley/internal/cli/output"} {
		packages[path].weight = weight{cpu: float64(int(1) << i), code: float64(i) * 1e6, data: 1e6}
	}
	got := weightRows(packages, 15e6, 100, 50e6)
	want := []string{
		"| what | CPU s | MB | with what only it needs: CPU s | MB |",
		"|---|---|---|---|---|",
		"| all | 100.0 | 50.00 |  |  |",
		"| linker and go command; types, strings and other data | 37.0 | 14.00 |  |  |",
		"| our own packages | 32.0 | 11.00 |  |  |",
		"| parley/internal/cli | 32.0 | 11.00 |  |  |",
		"| example.com/yaml | 16.0 | 9.00 | 16.0 | 9.00 |",
		"| example.com/text | 8.0 | 7.00 | 8.0 | 7.00 |",
		"| example.com/nats.go | 4.0 | 5.00 | 6.0 | 8.00 |", // with encoding/gob, and without text, which yaml needs too
		"| the standard library | 3.0 | 4.00 |  |  |",
		"| parley/cmd/parley | 0.0 | 0.00 |  |  |",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
