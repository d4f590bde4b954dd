package arch

import (
	"bytes"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestModulesAreChecked wants every module of its own in the step of .ci/run that checks them.
func TestModulesAreChecked(t *testing.T) {
	t.Parallel()
	steps := read(t, ".ci/run")
	found := 0
	err := walk(func(file string, _ []byte) error {
		if dir := path.Dir(file); path.Base(file) == "go.mod" && dir != "." {
			found++
			if !regexp.MustCompile(`(?m)^modules=\(.*\b` + regexp.QuoteMeta(dir) + `\b.*\)$`).MatchString(steps) {
				t.Errorf("%s is a module: add it to modules in .ci/run", dir)
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d modules: %v", found, err)
	}
}

// TestExamplesAreStrangers wants the modules of examples to use what anybody can: they require nothing but Parley, and
// import nothing that is internal to it. Go itself does not refuse it where a module's path is inside of another's.
func TestExamplesAreStrangers(t *testing.T) {
	t.Parallel()
	module := packages(t)[0].Module.Path
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.path, "examples/") {
			continue
		}
		for _, i := range s.file.Imports {
			if p, err := strconv.Unquote(i.Path.Value); err != nil || strings.HasPrefix(p, module+"/internal/") {
				t.Errorf("%s:%d: imports %s (%v): an example uses public packages only", s.path, s.line(i.Pos()), p, err)
			}
		}
	}
	err := walk(func(file string, text []byte) error {
		if !strings.HasPrefix(file, "examples/") || path.Base(file) != "go.mod" {
			return nil
		}
		for _, m := range requireRE.FindAllSubmatch(text, -1) {
			if string(m[1]) != module && !bytes.Contains(m[2], []byte("indirect")) {
				t.Errorf("%s requires %s: a world needs nothing but Parley", file, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
