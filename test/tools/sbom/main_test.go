package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestDocument checks the list of the modules of a program.
func TestDocument(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8 X:test", Path: "example.com/you/toy/cmd/toy", Main: debug.Module{Path: "example.com/you/toy", Version: "v1.2.3+dirty"},
		Deps: []*debug.Module{
			{Path: "a.example/x", Version: "v1.0.0", Sum: "h1:abc="},
			{Path: "b.example/y", Version: "v1.0.0", Replace: &debug.Module{Path: "c.example/z", Version: "v2.0.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "plan9"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "-ldflags", Value: "-s"}},
	}
	got, err := json.Marshal(documentOf(info))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"metadata":{"timestamp":"2026-01-02T03:04:05Z","component":` +
		`{"bom-ref":"pkg:golang/example.com/you/toy@v1.2.3%2Bdirty","type":"application","name":"toy","version":"v1.2.3+dirty","purl":"pkg:golang/example.com/you/toy@v1.2.3%2Bdirty",` +
		`"properties":[{"name":"go:GOOS","value":"plan9"}]}},"components":[` +
		`{"bom-ref":"pkg:golang/std@1.26.8","type":"library","name":"std","version":"1.26.8","purl":"pkg:golang/std@1.26.8"},` +
		`{"bom-ref":"pkg:golang/a.example/x@v1.0.0","type":"library","name":"a.example/x","version":"v1.0.0","purl":"pkg:golang/a.example/x@v1.0.0","properties":[{"name":"go:sum","value":"h1:abc="}]},` +
		`{"bom-ref":"pkg:golang/c.example/z@v2.0.0","type":"library","name":"c.example/z","version":"v2.0.0","purl":"pkg:golang/c.example/z@v2.0.0"}]}`
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestWrite reads this test, which is a Go program, and a file that is not one.
func TestWrite(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sbom.json")
	if err := write(self, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil || !slices.ContainsFunc(d.Components, func(c component) bool { return c.Name == "std" }) {
		t.Errorf("%s: %v", text, err)
	}
	if err := write(file, file); err == nil || !strings.HasPrefix(err.Error(), "sbom: ") || !strings.Contains(err.Error(), file) {
		t.Errorf("of a text: %v", err)
	}
}
