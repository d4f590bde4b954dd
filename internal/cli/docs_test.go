package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/cli/bulk"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/testkit"
	"parley/internal/kit/text"
	"parley/internal/run/command"
	"parley/llm"
)

// TestDocumentedCommandsParse parses every command line of the documents.
func TestDocumentedCommandsParse(t *testing.T) {
	t.Parallel()
	sequential(t)
	seen := 0
	for _, doc := range documents(t) {
		if base := filepath.Base(doc); base == "kind-parts.md" || base == "commands.md" { // cmd/parley runs the commands of the first; the second is help
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(read(t, doc), "\\\n", " ")) {
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
				if len(words) > 1 && (words[1] == "--version" || words[1] == "--completion") { // these are no commands
					continue
				}
				seen++
				k, err := newParser(&State{Stdout: io.Discard, Stderr: io.Discard, Kinds: standard()}, &grammar{}, words[min(1, len(words)-1)])
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

// documents lists README.md and every page below docs/.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../../docs/*.md")
	deeper, err2 := filepath.Glob("../../docs/*/*.md")
	if err != nil || err2 != nil || len(deeper) == 0 {
		t.Fatal("docs/ has no pages", err, err2)
	}
	return slices.Concat([]string{"../../README.md"}, docs, deeper)
}

// split splits a command line into words like a shell, as far as the documents need it.
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
	if i := slices.IndexFunc(words, func(w string) bool { return w == "<" || w == ">" }); i >= 0 {
		words = words[:i] // redirections are for the shell
	}
	return words
}

// TestExitCodesAreDocumented compares the constants with their document.
func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	text := read(t, "../../docs/reference/exit-codes.md")
	for code := exit.OK; code <= exit.Broken; code++ {
		if !strings.Contains(text, "| "+terminal.Number(code)+" |") {
			t.Errorf("docs/reference/exit-codes.md does not explain %d", code)
		}
	}
}

// TestFieldsAreDocumented compares the fields of a request line with their document.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "../../docs/how-to/ask.md")
	for _, name := range text.FieldNames(&bulk.RequestLine{}) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/how-to/ask.md does not explain %s", name)
		}
	}
}

// TestDocumentedPrices loads the example price file and checks a cost.
func TestDocumentedPrices(t *testing.T) {
	t.Parallel()
	_, rest, ok := strings.Cut(read(t, "../../docs/how-to/providers.md"), "```json\n")
	example, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("docs/how-to/providers.md has no example")
	}
	file := write(t, "prices.json", example)
	got := parley(t, State{}, "models", "--json", "--prices", file).want(t, exit.OK)
	var all modelList
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil {
		t.Fatal(err)
	}
	models := map[string]knownModel{}
	for _, m := range all.Models {
		models[m.Name] = m
	}
	large, mini := models["lab/large"], models["openai/gpt-5-mini"]
	if large.Input != 2*llm.Dollar || large.BatchOutput != 5*llm.Dollar || large.MaxOutput != 8192 || mini.Output != llm.Dollars(1.6) || models["lab/any-*"].Output != 5*llm.Dollar {
		t.Errorf("%+v\n%+v\n%+v", large, mini, models["lab/any-*"])
	}
	ask := []string{"ask", requests(t, 1), "--dialect", "sim", "--base-url", "https://llm.example.com", "--json", "--quiet", "--prices", file}
	priced := parley(t, State{}, append(ask, "--model", "lab/any-model")...).want(t, exit.OK)
	if !strings.Contains(priced.stderr, `"unpriced":[]`) {
		t.Error(priced.stderr)
	}
}

// TestCommandReference compares docs/reference/commands.md with the help of every command. -update writes the page.
func TestCommandReference(t *testing.T) {
	t.Parallel()
	sequential(t)
	k, err := newParser(&State{Stdout: io.Discard, Stderr: io.Discard, Kinds: standard()}, &grammar{}, "")
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("# Commands and flags\n\nThis page is written from the program: it is what `parley COMMAND --help` prints. " +
		"A flag that another command above explains in the same words is only named.\n")
	first := map[string]string{} // the command that explains a flag, by what is said of it
	for _, verb := range k.Model.Children {
		if verb.Hidden {
			continue
		}
		var from []string
		as := map[string][]string{}
		help := strings.TrimSpace(parley(t, State{}, verb.Name, "--help").want(t, exit.OK).stdout) + "\n"
		help = flagRE.ReplaceAllStringFunc(help, func(flag string) string {
			line := strings.Join(strings.Fields(flag), " ")
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "-h, "), " ")
			switch other := first[line]; {
			case other == "":
				first[line] = verb.Name
				return flag
			case name != "--help":
				if as[other] == nil {
					from = append(from, other)
				}
				as[other] = append(as[other], "`"+name+"`")
			}
			return ""
		})
		fmt.Fprintf(&page, "\n## %s\n\n```\n%s\n```\n", verb.Name, filled(help))
		for _, other := range from {
			fmt.Fprintf(&page, "\nAs [%s](#%s): %s.\n", other, other, strings.Join(as[other], ", "))
		}
	}
	testkit.Compare(t, "../../docs/reference/commands.md", page.String())
}

// flagRE finds a flag with its words in the help of a command.
var flagRE = regexp.MustCompile(`(?m)^  (?:-\w, |    )?--.*\n(?: {12,}.*\n)*`)

// filled leaves out the groups of a help that have no flag any more.
func filled(help string) string {
	parts := slices.DeleteFunc(strings.Split(help, "\n\n"), func(part string) bool { return strings.TrimSpace(part) == "" })
	var kept []string
	for i, part := range parts {
		switch heading := strings.TrimSpace(part); {
		case !strings.HasSuffix(heading, ":") || strings.Contains(heading, "\n"):
			kept = append(kept, strings.Trim(part, "\n"))
		case i+1 < len(parts) && strings.HasPrefix(strings.TrimLeft(parts[i+1], "\n"), "  "): // --help stood between them
			parts[i+1] = heading + "\n" + strings.TrimLeft(parts[i+1], "\n")
		}
	}
	return strings.Join(kept, "\n\n")
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"ask", "--help"}, {"models", "-h"}, {"ctl", "--help"}} {
		got := parley(t, State{}, args...).want(t, exit.OK)
		if !strings.HasPrefix(got.stdout, "Usage: parley") || got.stderr != "" {
			t.Errorf("%v: stdout %q, stderr %q", args, got.stdout, got.stderr)
		}
	}
	all := parley(t, State{}, "--help").stdout
	golden(t, "help", all)
	if n := strings.Count(all, "\n"); n > 40 {
		t.Errorf("parley --help has %d lines, want at most 40: it must fit one screen", n)
	}
	for line := range strings.Lines(all) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of parley --help has %d columns, want at most 80: %s", n, line)
		}
	}
	golden(t, "help-ask", parley(t, State{}, "ask", "--help").stdout)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := parley(t, State{}, "--version").want(t, exit.OK)
	if flag := parley(t, State{}, "--version").want(t, exit.OK); !strings.HasPrefix(got.stdout, "parley ") || flag != got {
		t.Errorf("%q, with a flag %q", got.stdout, flag.stdout)
	}
	got = parley(t, State{}, "--version", "--json").want(t, exit.OK)
	var b build
	if err := json.Unmarshal([]byte(got.stdout), &b); err != nil || b != thisBuild() {
		t.Errorf("%q: %+v, %v", got.stdout, b, err)
	}
}

// TestReadmeShowsTheRun checks that the first command of README.md prints what README.md shows.
func TestReadmeShowsTheRun(t *testing.T) {
	t.Parallel()
	readme := read(t, "../../README.md")
	_, shown, ok := strings.Cut(readme, "and ends like this:\n\n")
	shown, _, found := strings.Cut(shown, "\n    run file:")
	if !ok || !found {
		t.Fatal("README.md does not show how the run ends")
	}
	got := parley(t, State{}, "run", "../../examples/secrets.yaml", "--out", filepath.Join(t.TempDir(), "run.parley")).want(t, exit.OK)
	for line := range strings.Lines(shown) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "…") // the time it takes, and more rows
		if !strings.Contains(got.stdout+got.stderr, line) {
			t.Errorf("README.md shows %q; the run printed\n%s", line, got.stdout)
		}
	}
}

var verbRE = regexp.MustCompile(`(?m)(?:^|[\s` + "`" + `/])parley ([a-z][a-z-]*)`)

// TestDocumentsUseRealVerbs checks every `parley verb` in code.
func TestDocumentsUseRealVerbs(t *testing.T) {
	t.Parallel()
	verbs := Verbs(standard())
	for _, doc := range append(documents(t), "../../ARCHITECTURE.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md") {
		for _, code := range codeOf(read(t, doc)) {
			for _, m := range verbRE.FindAllStringSubmatch(code, -1) {
				if !slices.Contains(verbs, m[1]) {
					t.Errorf("%s speaks of parley %s; the verbs are %v", doc, m[1], verbs)
				}
			}
		}
	}
}

// TestOwnCommands: what the tests of kinds know of the command line's own verbs is all of them.
func TestOwnCommands(t *testing.T) {
	t.Parallel()
	own := slices.Sorted(maps.Keys(command.Own()))
	verbs := append(Verbs(nil), "help")
	slices.Sort(verbs)
	if !slices.Equal(own, verbs) {
		t.Errorf("command.Own lists %v, the verbs are %v", own, verbs)
	}
}

// codeOf returns the code of a Markdown text: its blocks, and what stands between
// backticks.
func codeOf(text string) []string {
	var code []string
	for i, block := range strings.Split(text, "```") {
		if i%2 == 1 {
			code = append(code, block)
			continue
		}
		for j, span := range strings.Split(block, "`") {
			if j%2 == 1 {
				code = append(code, span)
			}
		}
	}
	return code
}
