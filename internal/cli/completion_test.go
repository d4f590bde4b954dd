package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"parley/internal/cli/exit"
)

// TestCompletionsAndManNameEverything wants every verb with every flag in the completions of every
// shell and in the man page, in the part of that verb.
func TestCompletionsAndManNameEverything(t *testing.T) {
	t.Parallel()
	sequential(t)
	k, err := newParser(&State{Kinds: standard()}, &grammar{}, "")
	if err != nil {
		t.Fatal(err)
	}
	// How the part of a verb begins and ends, and how a flag is written there.
	forms := map[string]struct{ part, flag string }{
		"bash": {`(?s)\n\t"parley VERB"\)\n.*?\n\t\t;;\n`, `--FLAG[ "]`},
		"zsh":  {`(?s)\n_parley_VERB\(\) \{\n.*?\n\}\n`, `[')]--FLAG[=[]|'\*--FLAG=`},
		"fish": {`(?m)(^complete -c parley -n '__fish_seen_subcommand_from VERB' .*\n)+`, ` -l FLAG `},
		"man":  {`(?s)\n\.SS parley VERB\n.*?(\n\.SS |$)`, `\\fB\\-\\-FLAG\\fR`},
	}
	for _, s := range append(shells(), "man") {
		args := []string{"completion", s}
		if s == "man" {
			args = args[1:]
		}
		text := parley(t, State{}, args...).want(t, exit.OK).stdout
		for _, verb := range k.Model.Children {
			part := regexp.MustCompile(strings.ReplaceAll(forms[s].part, "VERB", verb.Name)).FindString(text)
			if part == "" {
				t.Errorf("%s: no part of %s", s, verb.Name)
			}
			for _, f := range verb.Flags {
				name := f.Name
				if s == "man" {
					name = strings.ReplaceAll(name, "-", `\\-`)
				}
				if regexp.MustCompile(strings.ReplaceAll(forms[s].flag, "FLAG", name)).MatchString(part) == f.Hidden {
					t.Errorf("%s: %s: --%s, which is hidden: %v:\n%s", s, verb.Name, f.Name, f.Hidden, part)
				}
			}
		}
	}
	got := parley(t, State{}, "completion", "csh").want(t, exit.Misuse)
	if !strings.Contains(got.stderr, `"bash","zsh","fish"`) {
		t.Errorf("%q", got.stderr)
	}
}

// TestVersionOfABuild checks what is made of Go's record of a build.
func TestVersionOfABuild(t *testing.T) {
	t.Parallel()
	machine := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	tagged := debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "00ff"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "false"},
	}}
	edited := debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0+dirty"}, Settings: append(tagged.Settings[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})}
	for want, info := range map[string]debug.BuildInfo{
		"parley (devel)": {},
		"parley v1.2.3":  {Main: debug.Module{Version: "v1.2.3"}},
		"parley v1.2.3 commit 00ff 2026-01-02T03:04:05Z":                    tagged,
		"parley v1.2.4-0+dirty commit 00ff (modified) 2026-01-02T03:04:05Z": edited,
	} {
		if got := buildOf(&info).String(); got != want+machine {
			t.Errorf("%q, want %q", got, want+machine)
		}
	}
}

// TestParserOfOneCommand: a parser for one of our own commands knows only that one. For any other word it knows all, so that the command
// of a kind is found, and the nearest name is suggested.
func TestParserOfOneCommand(t *testing.T) {
	t.Parallel()
	all := len(Verbs(standard()))
	for only, want := range map[string]int{"": all, "run": 1, "sim": 1, "env": all, "nothing": all, "--help": all} {
		k, err := newParser(&State{Kinds: standard()}, &grammar{}, only)
		if err != nil || len(k.Model.Children) != want || want == 1 && k.Model.Children[0].Name != only {
			t.Errorf("%q: %d commands, want %d: %v", only, len(k.Model.Children), want, err)
		}
	}
}

// manualSample has everything that a command line can have: nested commands, aliases, enums, files, flags of a parent,
// hidden flags, and text with special characters for shells and roff.
type manualSample struct {
	Loud bool `help:"It's [loud]: 'very' $HOME \\ \"so\"." short:"l"`
	Play struct {
		Plan string   `arg:"" placeholder:"PLAN" help:".starts like a request"`
		Mode string   `enum:"fast,slow" default:"fast" help:"How. Default: fast."`
		Set  []string `placeholder:"KEY=VALUE" help:"Again and again."`
		Out  string   `placeholder:"FILE" aliases:"to" short:"o" help:"Where."`
		Veil bool     `hidden:""`
	} `cmd:"" aliases:"go" help:"Plays."`
	Box struct {
		Put struct {
			What string `arg:"" enum:"red,blue" help:"A colour."`
			Deep bool   `help:"Deep down."`
		} `cmd:"" help:"Puts."`
		Take struct{} `cmd:"" help:"Takes."`
	} `cmd:"" help:"A box."`
	Secret struct{} `cmd:"" hidden:""`
}

func model(t *testing.T) *kong.Application {
	t.Helper()
	k, err := kong.New(&manualSample{}, kong.Name("toy"), kong.Description("A toy."), kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	return k.Model
}

// offers returns what a shell must offer at the end of each line.
func offers() []struct{ line, want string } {
	return []struct{ line, want string }{
		{"toy ", "box go play"},
		{"toy p", "play"},
		{"toy -", "--loud -l"},
		{"toy play -", "--loud --mode --out --set --to -l -o"},
		{"toy go --m", "--mode"},
		{"toy play --mode ", "fast slow"},
		{"toy play --out here.", "here.txt"},
		{"toy play -o here.", "here.txt"},
		{"toy play --set here.", ""},
		{"toy play here.", "here.txt"},
		{"toy box ", "put take"},
		{"toy box put ", "blue red"},
		{"toy box put --d", "--deep"},
		{"toy -l box t", "take"},
	}
}

// shell runs a script in a shell, in a folder with the file here.txt, and returns its output. If the shell is
// not installed, it skips the test.
func shell(t *testing.T, name, script string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name, "is not installed")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "here.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// check compares the offers of a shell, one block of lines for each of offers, with the expected ones.
func check(t *testing.T, out string) {
	t.Helper()
	blocks := strings.Split(out, "==\n")[1:]
	for i, o := range offers() {
		var got []string
		for line := range strings.Lines(blocks[i]) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			got = append(got, word)
		}
		slices.Sort(got)
		if g := strings.Join(slices.Compact(got), " "); g != o.want {
			t.Errorf("%q: %q, want %q", o.line, g, o.want)
		}
	}
}

// TestBash checks the offers of bash. Bash itself completes file names if the function offers nothing and did
// not disable that.
func TestBash(t *testing.T) {
	t.Parallel()
	text, _ := completion(model(t), "bash")
	script := "compopt() { files=; }\n" + text
	for _, o := range offers() {
		words := strings.Split(o.line, " ")
		script += fmt.Sprintf("echo ==; COMP_WORDS=(%s); COMP_CWORD=%d; COMPREPLY=(); files=1; _toy\n", "'"+strings.Join(words, "' '")+"'", len(words)-1)
		script += "if ((${#COMPREPLY[@]})); then printf '%s\\n' \"${COMPREPLY[@]}\"; elif [[ $files ]]; then compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\"; fi\n"
	}
	check(t, shell(t, "bash", script+"true\n"))
}

// TestFish checks the offers of fish.
func TestFish(t *testing.T) {
	t.Parallel()
	script, _ := completion(model(t), "fish")
	for _, o := range offers() {
		script += fmt.Sprintf("echo ==; complete -C '%s'\n", o.line)
	}
	check(t, shell(t, "fish", script))
}

// TestZsh loads the script in zsh and searches it for the offers: zsh completes only on a terminal.
func TestZsh(t *testing.T) {
	t.Parallel()
	text, _ := completion(model(t), "zsh")
	for _, want := range []string{
		"#compdef toy\n", "'(--loud -l)-l[It'\\''s \\[loud\\]\\: '\\''very'\\'' $HOME \\ \"so\"]'",
		"'--mode=[How]:MODE:(fast slow)'", "'*--set=[Again and again]:KEY=VALUE: '", "'(--out --to -o)-o+[Where]:FILE:_files'",
		"'1:plan:_files'", "'1:what:(red blue)'", "play | go) _toy_play ;;", "put) _toy_box_put ;;", "'take:Takes'",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	shell(t, "zsh", "compdef() { }\n"+text)
}

func TestHiddenStaysHidden(t *testing.T) {
	t.Parallel()
	all := manPage(model(t), "v1", "2026-01-02")
	for _, s := range shells() {
		text, ok := completion(model(t), s)
		if !ok || text == "" {
			t.Errorf("nothing for %s", s)
		}
		all += text
	}
	if strings.Contains(all, "secret") || strings.Contains(all, "veil") {
		t.Error(all)
	}
	if _, ok := completion(model(t), "sh"); ok {
		t.Error("completions for a shell that has none")
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	page := manPage(model(t), "v1.2.3", "2026-01-02")
	for _, want := range []string{
		".TH TOY 1 \"2026\\-01\\-02\" \"toy v1.2.3\" \"User Commands\"\n", "toy \\- A toy\n", ".SS toy play (go)\n", ".SS toy box put\n",
		"\n\\&.starts like a request\n", "\n\\fB\\-\\-out\\fR, \\fB\\-\\-to\\fR, \\fB\\-o\\fR=\\fIFILE\\fR\n", "$HOME \\e \\(dqso\\(dq",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for help, want := range map[string]string{
		"One. Two.": "One", "a\n  b.": "a b", "": "", strings.Repeat("é", 81): strings.Repeat("é", 79) + "…", strings.Repeat("é", 80): strings.Repeat("é", 80),
	} {
		if got := firstSentence(help); got != want {
			t.Errorf("%q: %q, want %q", help, got, want)
		}
	}
}
