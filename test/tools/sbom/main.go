// Command sbom lists the modules that a Go program was built from, as CycloneDX JSON: a software
// bill of materials.
//
//	go run ./test/tools/sbom PROGRAM DOCUMENT
//
// It reads what Go recorded in the program, which can be of any platform.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/tools/sbom PROGRAM DOCUMENT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(program, file string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("sbom: %w", err)
	}
	text, err := json.MarshalIndent(documentOf(info), "", "  ")
	if err != nil {
		return fmt.Errorf("sbom: %s: %w", program, err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("sbom: %w", err)
	}
	return nil
}

// document is a bill of materials as CycloneDX writes it.
type document struct {
	BOMFormat   string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// documentOf lists the program, Go's standard library and every module.
func documentOf(info *debug.BuildInfo) document {
	program := componentOf(&info.Main, "application")
	program.Name = path.Base(info.Path)
	d := document{BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{Component: program}}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.time":
			d.Metadata.Timestamp = s.Value
		case "GOOS", "GOARCH", "vcs.revision":
			d.Metadata.Component.Properties = append(d.Metadata.Component.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	release, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	d.Components = append(d.Components, componentOf(&debug.Module{Path: "std", Version: release}, "library"))
	for _, m := range info.Deps {
		d.Components = append(d.Components, componentOf(m, "library"))
	}
	return d
}

// componentOf describes a module, or its replacement if it has one.
func componentOf(m *debug.Module, kind string) component {
	for m.Replace != nil {
		m = m.Replace
	}
	purl := "pkg:golang/" + m.Path
	if m.Version != "" {
		purl += "@" + url.QueryEscape(m.Version)
	}
	c := component{Ref: purl, Type: kind, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
