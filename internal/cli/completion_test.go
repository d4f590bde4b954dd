package cli

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"parley/internal/cli/exit"
)

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

// TestCompletions checks what is offered at the end of a line. Where nothing is offered, a shell completes names of files.
func TestCompletions(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                       "box play",
		"p":                      "play",
		"-":                      "--loud -l",
		"play -":                 "--loud --mode --out --set --to -l -o",
		"go --m":                 "--mode",
		"play --mode ":           "fast slow",
		"play --mode = f":        "fast",
		"play --out here.":       "",
		"play here.":             "",
		"box ":                   "put take",
		"box put ":               "blue red",
		"box put red ":           "",
		"box put --d":            "--deep",
		"-l box t":               "take",
		"play --mode fast --se":  "--set",
		"play --out x --mode sl": "slow",
		"s":                      "", // it is hidden
		"nothing ":               "box play",
	} {
		if got := strings.Join(completions(model(t), strings.Split(line, " ")), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if got := completions(model(t), nil); !slices.Equal(got, []string{"box", "play"}) {
		t.Errorf("of nothing: %q", got)
	}
}

// TestShellHooks sources the scripts for shells that are installed, and asks them as a user does with a tab.
func TestShellHooks(t *testing.T) {
	t.Parallel()
	sequential(t)
	for shell, ask := range map[string]string{
		"bash": `COMP_WORDS=(parley run --pa); COMP_CWORD=2; _parley; printf '%s\n' "${COMPREPLY[@]}"`,
		"fish": `complete -C 'parley run --pa'`,
		"zsh":  `words=(parley run --pa); CURRENT=3; compadd() { print -l $offers }; _parley`,
	} {
		hook := parley(t, State{}, "--completion", shell).want(t, exit.OK).stdout
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		program := "parley() { test \"$1 $2 $3\" = '--complete run --pa' && echo --pace; }\ncompdef() { true; }\n"
		if shell == "fish" {
			program = "function parley; test \"$argv\" = '--complete run --pa'; and echo --pace; end\n"
		}
		cmd := exec.CommandContext(t.Context(), path, "-c", program+hook+ask)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--pace") {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	parley(t, State{}, "--completion", "csh").want(t, exit.Misuse).wantErr(t, "bash, zsh or fish")
	if got := parley(t, State{}, "--complete", "ctl", "x.parley", "w").want(t, exit.OK).stdout; got != "wait\n" {
		t.Errorf("%q", got)
	}
}
