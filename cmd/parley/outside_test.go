package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/internal/ask/sim/simhttp"
)

// tree is the top folder, seen from here.
const tree = "../.."

// TestOutside follows docs/how-to/writing-a-world.md in a folder outside of the tree: the module that parley init --go writes is
// built, tested, played, killed, resumed, checked and reported. examples/auction is the same module, so its README is followed there too:
// to build the same program twice takes longer than all the rest.
func TestOutside(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a whole program")
	}
	at := follow(t, t.TempDir(), filepath.Join(tree, "docs/how-to/writing-a-world.md"))
	if filepath.Base(at) != "auction" {
		t.Fatalf("the document ends in %s", at)
	}
	checkModule(t, at, "auction")
	for _, file := range []string{"auction.parley", "report.html"} {
		if err := os.Remove(filepath.Join(at, file)); err != nil { // or the commands of the README find what the others wrote
			t.Fatal(err)
		}
	}
	sameAsExample(t, at)
	follow(t, at, filepath.Join(at, "README.md"))
	addScore(t, at)
}

// sameAsExample wants the files of a new module to be those of examples/auction. Only the replacement in go.mod names the tree in another way.
// That none is missing is for TestExample of scaffold: here somebody may have played.
func sameAsExample(t *testing.T, dir string) {
	t.Helper()
	example := os.DirFS(filepath.Join(tree, "examples/auction"))
	err := fs.WalkDir(example, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		want, errWant := fs.ReadFile(example, name)
		if err := errors.Join(err, errWant); err != nil {
			return err
		}
		if name == "go.mod" {
			replace := regexp.MustCompile(`(?m)^(replace .* => )\.\./\.\.$`)
			if !replace.Match(want) {
				t.Errorf("go.mod of the example replaces nothing:\n%s", want)
			}
			want = replace.ReplaceAll(want, []byte("${1}"+strings.ReplaceAll(filepath.ToSlash(abs(t, tree)), "$", "$$")))
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not that of the example", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// addScore gives the world of a new module a second score, before the first, as its author may: its tests must still pass.
func addScore(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "auction.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for old, added := range map[string]string{
		"append(o.Scores,": "append(o.Scores, world.Score{Seat: seat, Name: \"sales\", Value: 1},",
		"[]world.Measure{": "[]world.Measure{{Name: \"sales\", Seats: seats, Bounds: world.AtLeast0()}, ",
	} {
		if !strings.Contains(string(text), old) {
			t.Fatalf("auction.go has no %q", old)
		}
		text = []byte(strings.Replace(string(text), old, added, 1))
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, []string{"go", "test", "./..."})
}

// TestNewNames builds modules of names that are not words.
func TestNewNames(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds whole packages")
	}
	dir := t.TempDir()
	var modules, packages []string
	for name, module := range map[string]string{"My-game_2": "", "time": "", "world": "", "string": "github.com/you/string/v2"} {
		args := []string{"init", name, "--go", "--parley", abs(t, tree)}
		if module != "" {
			args = append(args, "--module", module)
		}
		shell(t, dir, append([]string{"parley"}, args...))
		modules, packages = append(modules, filepath.Join(dir, name)), append(packages, "./"+name+"/...")
	}
	join(t, filepath.Join(dir, workFile), modules...)
	shell(t, dir, append([]string{"go", "list", "-export", "-test"}, packages...)) // compiles; go vet would look at every dependency
}

// follow runs the commands of a document one after the other and returns the folder where it ends. It wants every verb
// that it runs to succeed. The program of go run is built once.
func follow(t *testing.T, dir, doc string) string {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "    ")
		words := strings.Fields(command)
		switch {
		case !ok || len(words) == 0:
		case words[0] == "cd":
			dir = filepath.Join(dir, words[1])
		case words[0] == "parley" || words[0] == "go":
			if words[0] == "parley" && words[1] == "init" { // a program that was built with -trimpath cannot find it
				words = append(words, "--parley", abs(t, tree))
			}
			if strings.HasPrefix(strings.Join(words, " "), "go run ./cmd/parley ") {
				words = append([]string{built(t, dir)}, words[3:]...)
			}
			shell(t, dir, words)
			ran++
		}
	}
	if ran < 5 {
		t.Errorf("%s has only %d commands", doc, ran)
	}
	return dir
}

// built returns the program of a module, which it builds if it is not there yet.
func built(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "program.exe")
	if _, err := os.Stat(bin); err != nil {
		shell(t, dir, []string{"go", "build", "-ldflags=-s", "-o", bin, "./cmd/parley"})
	}
	return bin
}

// shell runs a command in a folder and returns what it prints. parley is the program under test. Go may
// fetch modules: a cache that holds what the tree needs can lack what another module needs.
func shell(t *testing.T, dir string, words []string) string {
	t.Helper()
	name := words[0]
	if name == "parley" {
		name = os.Args[0]
	}
	cmd := exec.CommandContext(t.Context(), abs(t, name), words[1:]...)
	if name == "go" {
		cmd = exec.CommandContext(t.Context(), name, words[1:]...)
	}
	cmd.Dir = dir
	work := "off"
	if name == "go" && (slices.Contains([]string{"build", "run", "test"}, words[1]) || slices.Contains(words, "-export")) {
		work = workspace(t, dir)
	}
	cmd.Env = append(os.Environ(), "GOWORK="+work, beParley+"=1", "PWD="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("in %s: %s: %v\n%s%s", dir, strings.Join(words, " "), err, out, stderr.String())
	}
	return string(out)
}

// workFile is the name of the file of a workspace.
const workFile = "program.work"

// workspace returns the file of a workspace of the module in a folder.
func workspace(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, workFile)
	if _, err := os.Stat(file); err != nil {
		join(t, file, dir)
	}
	return file
}

// join writes the file of a workspace of modules and of the tree. It wants each module to be complete without the workspace, which
// saves compiling: without it, Go compiles all packages of the tree once more, under the path of a dependency.
func join(t *testing.T, file string, modules ...string) {
	t.Helper()
	var text strings.Builder
	for _, dir := range modules {
		shell(t, dir, []string{"go", "list", "-deps", "-test", "./..."})
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		version := regexp.MustCompile(`(?m)^go .*$`).Find(mod)
		if err != nil || version == nil {
			t.Fatalf("%s: go.mod names no version of Go: %v", dir, err)
		}
		if text.Len() == 0 {
			fmt.Fprintf(&text, "%s\nuse %q\n", version, abs(t, tree))
		}
		fmt.Fprintf(&text, "use %q\n", dir)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// checkModule wants a module to import no package that is internal to Parley, and plays its kind: once undisturbed, and
// once killed in the middle of its calls and resumed. The outcomes must be the same.
func checkModule(t *testing.T, dir, kind string) {
	t.Helper()
	imports := shell(t, dir, []string{"go", "list", "-f", `{{join .Imports "\n"}} {{join .TestImports "\n"}} {{join .XTestImports "\n"}}`, "./..."})
	if !strings.Contains(imports, "/world/worldtest") {
		t.Errorf("the module has no test of its kind: it imports\n%s", imports)
	}
	for i := range strings.FieldsSeq(imports) {
		if strings.Contains("/"+i+"/", "/internal/") {
			t.Errorf("the module imports %s, which is not public", i)
		}
	}
	bin := built(t, dir)
	lab := newLab(t)
	plan, err := os.ReadFile(filepath.Join(dir, kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(plan), "sim/", "lab/") + fmt.Sprintf("providers:\n  lab: {dialect: openai, base_url: %q}\nlimits: {concurrency: 8}\n", lab.url)
	file := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := decoded(t, shell(t, dir, []string{bin, "run", file, "--out", "whole.parley", "--json", "--quiet"}))
	if want.State != "complete" || want.Calls.Total < 100 || int64(want.Calls.Total) != lab.calls.Load() {
		t.Fatalf("undisturbed: %+v, %d calls", want, lab.calls.Load())
	}
	cmd := exec.CommandContext(t.Context(), bin, "run", file, "--out", "cut.parley", "--quiet")
	cmd.Dir = dir
	lab.killAfter(t, want.Calls.Total/2, cmd)
	got := decoded(t, shell(t, dir, []string{bin, "run", "cut.parley", "--json", "--quiet"}))
	if got.State != "complete" || got.Digest != want.Digest || got.Calls.Total != want.Calls.Total || got.Calls.Asked >= got.Calls.Total {
		t.Errorf("resumed: %+v, want %+v", got, want)
	}
	shell(t, dir, []string{bin, "check", "cut.parley"})
	if report := shell(t, dir, []string{bin, "report", "cut.parley"}); !strings.Contains(report, "profit") {
		t.Errorf("the report does not show the score:\n%s", report)
	}
}

func decoded(t *testing.T, text string) (out summary) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return out
}

// lab is a model server that can kill who asks it.
type lab struct {
	url   string
	calls atomic.Int64
	fatal atomic.Int64 // the call that kills
	kill  chan struct{}
}

func newLab(t *testing.T) *lab {
	t.Helper()
	inner, err := simhttp.New(simhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{kill: make(chan struct{}, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.calls.Add(1) == l.fatal.Load() {
			l.kill <- struct{}{}
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client is gone
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	l.url = server.URL + "/v1"
	return l
}

// killAfter runs a program and kills it when it has made so many calls, of which the last is never answered.
func (l *lab) killAfter(t *testing.T, calls int, cmd *exec.Cmd) {
	t.Helper()
	l.fatal.Store(l.calls.Load() + int64(calls))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("it ended before it was killed: %v: %s", err, stderr.String())
	case <-l.kill:
		err := cmd.Process.Kill()
		if after := <-ended; err != nil || after == nil {
			t.Fatalf("it was not killed: %v", err)
		}
	}
}

// TestLibraryOutside follows the first part of docs/how-to/library.md in a folder outside of the tree: its program is built
// and prints what the document says.
func TestLibraryOutside(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a whole program")
	}
	text, err := os.ReadFile(filepath.Join(tree, "docs/how-to/library.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(text), "\n## A first program\n")
	first, _, _ = strings.Cut(first, "\n## ")
	before, rest, _ := strings.Cut(first, "```go\n")
	program, after, _ := strings.Cut(rest, "```")
	after, want, ok := strings.Cut(after, "\nIt prints\n")
	if !ok {
		t.Fatal("the document does not say what its first program prints")
	}
	dir, printed := t.TempDir(), ""
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range indented(before + after) {
		words := strings.Fields(strings.ReplaceAll(command, "/path/to/parley", abs(t, tree)))
		if words[0] == "go" {
			printed = shell(t, dir, words)
		}
	}
	if want := strings.Join(indented(want), "\n") + "\n"; printed != want {
		t.Errorf("it prints\n%s\nand the document says\n%s", printed, want)
	}
}

// TestPartsOutside puts the file of docs/reference/kind-parts.md into a new module, and uses what it adds.
func TestPartsOutside(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a whole program")
	}
	text, err := os.ReadFile(filepath.Join(tree, "docs/reference/kind-parts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```go\n")
	file, rest, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	shell(t, dir, []string{"parley", "init", "auction", "--go", "--parley", abs(t, tree)})
	dir = filepath.Join(dir, "auction")
	if err := os.WriteFile(filepath.Join(dir, "parts.go"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := map[string]string{} // by verb
	for _, line := range indented(rest) {
		switch words := strings.Fields(line); {
		case len(words) > 3 && words[1] == "run":
			printed[words[3]] = shell(t, dir, append([]string{built(t, dir)}, words[3:]...))
		case words[0] == "go":
			shell(t, dir, words)
		}
	}
	for verb, want := range map[string]string{"price": "40\n", "report": "Profit by seat"} {
		if !strings.Contains(printed[verb], want) {
			t.Errorf("%s prints %q, which lacks %q", verb, printed[verb], want)
		}
	}
}

// indented returns the lines of a document that are commands or output.
func indented(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, strings.TrimSuffix(code, "\n"))
		}
	}
	return lines
}
