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

// build is what the program was made of. Version is the tag; between tags, and in a clone, it is
// a version that Go derives from the last tag and the commit.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the files were not those of the commit
	Date     string `json:"date,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints one line.
func (c versionCmd) Run(s *State) error {
	b := thisBuild()
	if c.JSON {
		return json.NewEncoder(s.Stdout).Encode(b)
	}
	_, err := fmt.Fprintln(s.Stdout, b)
	return err
}

func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = " commit " + b.Commit
		if b.Modified {
			commit += " (modified)"
		}
		commit += " " + b.Date
	}
	return fmt.Sprintf("parley %s%s %s %s", b.Version, commit, b.Go, b.Platform)
}

// Version is the version that run files record.
func Version() string { return thisBuild().String() }

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: info.Main.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, kv := range info.Settings {
		switch kv.Key {
		case "vcs.revision":
			b.Commit = kv.Value
		case "vcs.modified":
			b.Modified = kv.Value == "true"
		case "vcs.time":
			b.Date = kv.Value
		}
	}
	return b
}
