package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"parley/internal/cli/exit"
)

// build describes the program's source. Version is the tag. Between tags and in a clone, Go derives it from the
// last tag and the commit.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // files differ from the commit
	Date     string `json:"date,omitempty"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionText returns the version of the program in one line, with --json as JSON.
func versionText(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return Version() + "\n", nil
	case len(args) == 1 && args[0] == "--json":
		b, err := json.Marshal(thisBuild())
		return string(b) + "\n", err
	}
	return "", exit.Usagef("--version: want nothing after it, or --json")
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

// Version returns the version that run files record.
func Version() string { return thisBuild().String() }

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: cmp.Or(info.Main.Version, "(devel)"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// buildID identifies this program for a cluster. Programs of the same commit are the same on every system; of
// others, only the same file is.
func buildID() string {
	b := thisBuild()
	id := b.Version + " " + b.Commit
	if b.Commit != "" && !b.Modified {
		return id
	}
	self, err := os.Executable()
	if err != nil {
		return id
	}
	file, err := os.Open(self)
	if err != nil {
		return id
	}
	defer func() { _ = file.Close() }()
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli)) // processors compute it; SHA-256 of 80 MB delayed every worker
	if _, err := io.Copy(h, file); err != nil {
		return id
	}
	return fmt.Sprintf("%s %08x", id, h.Sum32())
}
