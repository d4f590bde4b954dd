package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedCommandsParse feeds every command line of the documents to the parser.
func TestDocumentedCommandsParse(t *testing.T) {
	t.Parallel()
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, doc := range append(docs, "../../README.md") {
		for line := range strings.Lines(read(t, doc)) {
			code, ok := strings.CutPrefix(line, "    ")
			if !ok {
				continue
			}
			for command := range strings.SplitSeq(code, "|") {
				words := split(command)
				for len(words) > 0 && words[0] != "parley" && words[0] != "./cmd/parley" {
					words = words[1:]
				}
				if len(words) == 0 || strings.ContainsAny(code, "{}") {
					continue
				}
				seen++
				k, err := newParser(&State{Stdout: io.Discard, Stderr: io.Discard}, &grammar{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := k.Parse(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", doc, strings.TrimSpace(code), err)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d commands found", seen)
	}
}

// split splits a command line into words as a shell does, as far as documents need it.
func split(line string) []string {
	var words []string
	line, _, _ = strings.Cut(line, " #")
	for i, quoted := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, quoted)
			continue
		}
		words = append(words, strings.Fields(quoted)...)
	}
	return words
}

// TestExitCodesAreDocumented compares the constants with their document.
func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	text := read(t, "../../docs/exit-codes.md")
	for code := ExitOK; code <= ExitBroken; code++ {
		if !strings.Contains(text, "| "+number(code)+" |") {
			t.Errorf("docs/exit-codes.md does not explain %d", code)
		}
	}
}

// TestFieldsAreDocumented compares the fields of a request line with their document.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	text := read(t, "../../docs/ask.md")
	for _, name := range fieldNames(&requestLine{}) {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/ask.md does not explain %s", name)
		}
	}
}

// TestFlagsAreDocumented wants every flag of ask and sim in its document.
func TestFlagsAreDocumented(t *testing.T) {
	t.Parallel()
	k, err := newParser(&State{Stdout: io.Discard, Stderr: io.Discard}, &grammar{})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range k.Model.Children {
		path := filepath.Join("../../docs", verb.Name+".md")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		text := read(t, path) + read(t, "../../docs/providers.md")
		for _, f := range verb.Flags {
			if f.Name != "help" && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s does not explain --%s", path, f.Name)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--help"}, {"ask", "--help"}, {"models", "-h"}, {"version", "--help"}} {
		got := parley(t, State{}, args...).want(t, ExitOK)
		if !strings.HasPrefix(got.stdout, "Usage: parley") || got.stderr != "" {
			t.Errorf("%v: stdout %q, stderr %q", args, got.stdout, got.stderr)
		}
	}
	golden(t, "help", parley(t, State{}).stdout)
	golden(t, "help-ask", parley(t, State{}, "ask", "--help").stdout)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got := parley(t, State{}, "version").want(t, ExitOK); !strings.HasPrefix(got.stdout, "parley ") {
		t.Errorf("%q", got.stdout)
	}
}
