package scaffold

import (
	"bytes"
	"errors"
	"go/format"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"parley/internal/kit/testkit"
)

// here is the checkout that is tested.
func here(t *testing.T) Source {
	t.Helper()
	s, err := Checkout("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExample: the module examples/auction is what a new module of that name is. Its go.mod and go.sum are what others
// are made of; that they are right shows when it is built. -update writes the rest.
func TestExample(t *testing.T) {
	t.Parallel()
	files, err := Module{Path: DefaultPath("auction"), Package: "auction", Source: here(t)}.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if name == "go.mod" || name == "go.sum" {
			continue
		}
		file := filepath.Join("..", "..", "..", example, name)
		if testkit.Update() {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the template makes (%v): change the template and run go test ./internal/cli/scaffold -update", file, err)
		}
	}
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"auction": "auction", "my-game": "mygame", "My_Game": "mygame", "a": "a", "x2": "x2", "com10": "com10", "lpt": "lpt",
		"": "", "2x": "", "-x": "", "my game": "", "my.game": "", "ä": "", "a/b": "", "a\nb": "", strings.Repeat("a", 65): "",
		"func": "", "Type": "", "main": "", "in-it": "", "parley": "", "internal": "", "vendor": "", "std": "", "true": "", "NULL": "", "y-e-s": "", "n": "", "append": "", "NUL": "", "com1": "", "lpt9": "",
	} {
		got, err := Package(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "game") {
			t.Errorf("%q: %v: the error names no better one", name, err)
		}
	}
}

func TestCheckPath(t *testing.T) {
	t.Parallel()
	for module, ok := range map[string]bool{
		DefaultPath("my-game"): true, "github.com/you/my-game": true, "github.com/you/my-game/v2": true, "a.example/x_y/z~": true,
		"": false, "/x": false, "x/": false, "a//b": false, "../x": false, "x/..": false, "x./y": false, "a b": false, "a\"b": false, "https://x.example/y": false,
		modulePath(): false, modulePath() + "/internal/mine": false, modulePath() + "ly/x": strings.Contains(modulePath(), "."), "example.com/" + modulePath(): true,
		"fmt": false, "net/http": false, "mygame": false, "test/mine": true, "example.com/aux": false, "example.com/Con.game": false, "example.com/x/lpt1": false, "example.com/auxiliary": true, "example.com/x~1": false, "example.com/x~1.y": false,
	} {
		if err := checkPath(module); (err == nil) != ok {
			t.Errorf("%q: %v", module, err)
		}
	}
}

// TestPathsOfDependencies: a module cannot have the path of one that Parley needs, whatever it takes Parley from.
func TestPathsOfDependencies(t *testing.T) {
	t.Parallel()
	for p, ok := range map[string]bool{"golang.org/x/sys": false, "golang.org/x/sys/mine": false, "golang.org/x/mine": true} {
		if _, err := (Module{Path: p, Package: "mine", Source: here(t)}).Files(); (err == nil) != ok {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// TestPublished wants only versions that others can fetch.
func TestPublished(t *testing.T) {
	t.Parallel()
	const module = "example.com/you/parley"
	for _, c := range []struct {
		name   string
		module string
		of     debug.Module
		want   string
	}{
		{"installed", module, debug.Module{Version: "v1.2.3", Sum: "h1:x"}, "v1.2.3"},
		{"installed between tags", module, debug.Module{Version: "v1.2.4-0.20260102030405-0123456789ab", Sum: "h1:x"}, "v1.2.4-0.20260102030405-0123456789ab"},
		{"a release", module, debug.Module{Version: "v1.2.3"}, "v1.2.3"},
		{"a candidate", module, debug.Module{Version: "v1.2.3-rc.1"}, "v1.2.3-rc.1"},
		{"a clone", module, debug.Module{Version: "v1.2.4-0.20260102030405-0123456789ab"}, ""},
		{"a clone without tags", module, debug.Module{Version: "v0.0.0-20260102030405-0123456789ab"}, ""},
		{"a clone after a candidate", module, debug.Module{Version: "v1.2.3-rc.1.0.20260102030405-0123456789ab"}, ""},
		{"a changed clone", module, debug.Module{Version: "v1.2.3+dirty"}, ""},
		{"no version", module, debug.Module{Version: "(devel)"}, ""},
		{"replaced", module, debug.Module{Version: "v1.2.3", Replace: &debug.Module{Path: "../parley"}}, ""},
		{"no address", "parley", debug.Module{Version: "v1.2.3", Sum: "h1:x"}, ""},
	} {
		c.of.Path = c.module
		for _, info := range []*debug.BuildInfo{{Main: c.of}, {Main: debug.Module{Path: "example/mine"}, Deps: []*debug.Module{{Path: "x.example/y", Version: "v1.0.0", Sum: "h1:x"}, &c.of}}} {
			if got := published(info, c.module); got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
	}
	files, err := Module{Path: "example/x", Package: "x", Source: Source{version: "v1.2.3"}}.Files()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^go .*$`).FindString(string(root))
	if want := "module example/x\n\n" + line + "\n\nrequire " + modulePath() + " v1.2.3\n"; string(files["go.mod"]) != want {
		t.Errorf("go.mod is\n%swant\n%s", files["go.mod"], want)
	}
	if files["go.sum"] != nil || strings.Contains(string(files["README.md"]), "-replace") {
		t.Errorf("a published version has a folder: %s", files["README.md"])
	}
}

// checkout makes a folder that looks like a checkout.
func checkout(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"go.mod": "module " + modulePath() + "\n", "examples/auction/go.mod": "module x\n\nreplace y => ../..\n", "examples/auction/go.sum": "sums\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNear looks for a checkout in every place where one may be.
func TestNear(t *testing.T) {
	t.Parallel()
	base := path.Base(modulePath())
	for _, c := range []struct{ at, from string }{
		{"src", "src"}, {"src", "src/a/b"}, {base, "."}, {base, "games"}, {"src", "src/" + base},
	} {
		top := t.TempDir()
		if _, err := findNear([]string{filepath.Join(top, c.from)}); !errors.Is(err, ErrUnknown) {
			t.Errorf("from %s: %v", c.from, err)
		}
		checkout(t, filepath.Join(top, c.at))
		s, err := findNear([]string{t.TempDir(), filepath.Join(top, c.from)})
		if err != nil || s.dir != filepath.Join(top, c.at) {
			t.Errorf("%s from %s: %v, %v", c.at, c.from, s, err)
		}
	}
}

// TestCheckout refuses other folders, and quotes paths as go.mod wants them.
func TestCheckout(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my src (1)")
	checkout(t, dir)
	s, err := Checkout(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "module example/x\n\nreplace " + modulePath() + " => " + strconv.Quote(filepath.ToSlash(dir)) + "\n"
	if files := s.goFiles("example/x"); string(files["go.mod"]) != want || string(files["go.sum"]) != "sums\n" {
		t.Errorf("go.mod is\n%swant\n%s", files["go.mod"], want)
	}
	if err := os.Remove(filepath.Join(dir, example, "go.sum")); err != nil {
		t.Fatal(err)
	}
	if _, err := Checkout(dir); err == nil || !strings.Contains(err.Error(), "not a whole checkout") {
		t.Errorf("without an example: %v", err)
	}
	for text, says := range map[string]string{"module other\n": "does not say module", "": "does not say module"} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Checkout(dir); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Checkout(t.TempDir()); err == nil || !strings.Contains(err.Error(), "top folder of a checkout") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestWrite writes all or nothing.
func TestWrite(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "game")
	if err := Free(dir); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, map[string][]byte{"a": []byte("1"), "a/b": []byte("2")}); err == nil {
		t.Error("a file became a folder")
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("a failure left %v, %v", left, err)
	}
	if err := Write(dir, map[string][]byte{"a": []byte("1"), "b/c": []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b", "c")); err != nil || string(b) != "2" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
		t.Errorf("beside the folder: %v, %v", left, err)
	}
	if err := Write(dir, map[string][]byte{"a": []byte("3")}); err == nil {
		t.Error("a folder was written over")
	}
	for path, says := range map[string]string{dir: "exists already", filepath.Join(dir, "a"): "exists already", filepath.Join(parent, "no", "x"): "does not exist", filepath.Join(dir, "a", "x"): ""} {
		if err := Free(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestFormatted wants the Go files to be as gofmt writes them, whatever the names.
func TestFormatted(t *testing.T) {
	t.Parallel()
	for _, m := range []Module{
		{Path: "a.example/a", Package: "a", Source: here(t)},
		{Path: "zebra.example/my-very-long-game", Package: "myverylonggame", Source: here(t)},
	} {
		files, err := m.Files()
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if path.Ext(name) != ".go" {
				continue
			}
			if want, err := format.Source(text); err != nil || !bytes.Equal(text, want) {
				t.Errorf("%s of %s is not formatted: %v", name, m.Package, err)
			}
		}
	}
}
