package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCmd prints what was built of what.
type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(s *State) error {
	_, err := fmt.Fprintln(s.Stdout, version())
	return err
}

func version() string {
	v, revision := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v = info.Main.Version
		}
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" {
				revision = " " + kv.Value
			}
		}
	}
	return fmt.Sprintf("parley %s%s %s %s/%s", v, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
