package worldtest

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, code, want string }{
		{"pure", `import ("bufio"; "context"; "fmt"; "math/rand/v2"; "parley/world"; "example.com/game/board")
			var _ = fmt.Sprint; type x struct { r *rand.Rand; t *world.Table; b board.B }; func f() { rand.New(rand.NewPCG(1, 2)) }`, ""},
		{"clock", `import "time"`, "imports time"},
		{"files", `import "os"`, "imports os"},
		{"others", `import "example.com/other"`, "imports example.com/other"},
		{"engine", `import "parley/internal/run/engine"`, "imports parley/internal/run/engine"},
		{"lookalike", `import "example.com/gamely"`, "imports example.com/gamely"},
		{"old chance", `import "math/rand"`, "imports math/rand:"},
		{"chance", `import "math/rand/v2"; var x = rand.IntN(3)`, "rand.IntN"},
		{"chance renamed", `import dice "math/rand/v2"; var x = dice.N(3)`, "rand.N:"},
		{"dot", `import . "math/rand/v2"`, "as a dot"},
		{"printing", `import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		{"goroutine", `func f() { go f() }`, "go statement"},
		{"channel", `var c chan int`, "a channel"},
		{"templates", `import "text/template"; var t, _ = template.New("").ParseFiles("x")`, "ParseFiles"},
	} {
		dir := t.TempDir()
		write(t, dir, "go.mod", "// a comment\nmodule example.com/game\n\ngo 1.26\n")
		write(t, dir, "game.go", "package game\n"+c.code+"\n")
		write(t, dir, "game_test.go", "package game\nimport \"os\"\n")
		got, err := impurities(dir)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if found := strings.Join(got, "; "); (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, found, c.want)
		}
	}
}

func TestImportsLooksBelow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/game\n")
	write(t, dir, "game.go", "package game\n")
	write(t, filepath.Join(dir, "board"), "board.go", "package board\nimport \"net\"\n")
	write(t, filepath.Join(dir, "testdata"), "x.go", "package x\nimport \"net\"\n")
	write(t, filepath.Join(dir, "cmd"), "main.go", "package main\nimport \"net\"\n")
	got, err := impurities(dir)
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "board.go:2:8: imports net") {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := impurities(filepath.Join(dir, "cmd")); err == nil || !strings.Contains(err.Error(), "only package main is in") {
		t.Errorf("a program: %v", err)
	}
	for _, empty := range []string{t.TempDir(), filepath.Join(dir, "missing")} {
		if _, err := impurities(empty); err == nil {
			t.Errorf("%s holds no package, and passes", empty)
		}
	}
}
