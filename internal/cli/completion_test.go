package cli

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

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
