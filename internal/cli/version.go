package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCmd prints what was built of what.
type versionCmd struct {
	JSON bool `name:"json" help:"Print it as JSON."`
}

// build is what the program was made of.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints one line.
func (c versionCmd) Run(s *State) error {
	b := buildOf()
	if c.JSON {
		return json.NewEncoder(s.Stdout).Encode(b)
	}
	_, err := fmt.Fprintln(s.Stdout, b)
	return err
}

func (b build) String() string {
	revision := ""
	if b.Revision != "" {
		revision = " " + b.Revision
	}
	return fmt.Sprintf("parley %s%s %s %s", b.Version, revision, b.Go, b.Platform)
}

func version() string { return buildOf().String() }

func buildOf() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			b.Version = info.Main.Version
		}
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" {
				b.Revision = kv.Value
			}
		}
	}
	return b
}
