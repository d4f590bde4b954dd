package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"parley/internal/ask/provider"
	"parley/internal/cli/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/internal/run/engine"
	"parley/internal/run/planfile"
	"parley/internal/run/runfile"
	"parley/world"
)

// usageProblem explains what is wrong with a command line that cannot be parsed.
func usageProblem(err error, args []string, kinds []world.Kind) error {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return exit.AsUsage(err)
	}
	verb := parse.Context.Selected()
	if verb == nil {
		return unknownCommand(err, args, Verbs(kinds))
	}
	problem := flagProblem(err.Error(), verb) + insteadOf(err.Error(), args, verb)
	if what, ok := strings.CutPrefix(problem, "expected "); ok && strings.HasPrefix(what, `"<`) {
		problem = strings.ReplaceAll(what, `"`, "") + " is missing"
	}
	return exit.Usagef("%s: %s\nusage: parley %s\n       parley %s --help explains it", verb.Name, problem, verb.Summary(), verb.Name)
}

// flagProblem rewords what kong says about the value of a flag: what is wrong, and how to write it. Other problems stay
// as they are.
func flagProblem(problem string, verb *kong.Node) string {
	name, rest, _ := strings.Cut(problem, " ")
	name = strings.TrimSuffix(name, ":")
	i := slices.IndexFunc(verb.Flags, func(f *kong.Flag) bool { return "--"+f.Name == name })
	if i < 0 {
		return problem
	}
	f := verb.Flags[i]
	_, got, _ := strings.Cut(rest, " but got ")
	quoted, _ := strconv.QuotedPrefix(got)
	found, _ := strconv.Unquote(quoted)
	kind := f.Target.Type()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case looksNegative(found) && strings.Contains(got, " flag)"):
		return fmt.Sprintf("%s %s: that reads as a flag; if %s may be negative, write %s=%s", name, found, name, name, found)
	case strings.HasPrefix(rest, "missing value"), strings.HasSuffix(got, "(<EOL>)"), strings.Contains(got, " flag)"):
		return fmt.Sprintf("%s needs a value: write %s %s", name, name, f.FormatPlaceHolder())
	case f.Enum != "" && got != "":
		return fmt.Sprintf("%s: unknown %q%s want one of %s", name, found, cmp.Or(text.Suggest(found, f.EnumSlice()), ";"), strings.Join(f.EnumSlice(), ", "))
	case kind.Kind() == reflect.Float64 && got != "":
		return fmt.Sprintf("%s: want a number, found %q%s", name, found, yamltree.Point(found))
	case kind == reflect.TypeFor[time.Duration]() && got != "":
		return fmt.Sprintf("%s: want a time with its unit, as 90s or 10m, found %q", name, found)
	case kind.Kind() == reflect.Int || kind.Kind() == reflect.Int64:
		return fmt.Sprintf("%s: want a whole number, found %q", name, found)
	}
	return problem
}

// insteadOf suggests another way to write what is not part of a command: a key of the plan as a flag, and the number of an episode.
func insteadOf(problem string, args []string, verb *kong.Node) string {
	has := func(name string) bool {
		return slices.ContainsFunc(verb.Flags, func(f *kong.Flag) bool { return f.Name == name })
	}
	if word, ok := strings.CutPrefix(problem, "unexpected argument "); ok && has("episode") {
		if n, err := strconv.Atoi(word); err == nil && n >= 0 {
			return "; to name an episode: --episode " + word
		}
	}
	key, ok := strings.CutPrefix(problem, "unknown flag --")
	if !ok || !has("set") || planfile.PlanShape(nil, planfile.Record()).Key(key) == nil {
		return ""
	}
	value := "VALUE"
	if i := slices.Index(args, "--"+key); i >= 0 && i+1 < len(args) && len(provider.Secrets(args[i+1])) == 0 {
		value = args[i+1]
	}
	return "; to change a key of the plan: --set " + terminal.ShellWord(key+"="+value)
}

// looksNegative reports whether a word begins as a negative number does.
func looksNegative(word string) bool {
	return len(word) > 1 && word[0] == '-' && (word[1] >= '0' && word[1] <= '9' || word[1] == '.')
}

// unknownCommand suggests a command for an unknown first word.
func unknownCommand(err error, args, verbs []string) error {
	if at := slices.IndexFunc(args, func(a string) bool { return slices.Contains(verbs, a) }); at > 0 {
		return exit.Usagef("%w: flags follow the command: %s", err, commandOf(slices.Concat(args[at:], args[:at])))
	}
	i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 || !strings.HasPrefix(err.Error(), "unexpected argument") {
		return exit.Usagef("%w\nusage: parley COMMAND; parley --help lists the commands", err)
	}
	word := terminal.ShellWord(args[i])
	switch {
	case isPlan(args[i]):
		return exit.Usagef("unknown command %s; to run a plan: parley run %s", word, word)
	case filepath.Ext(args[i]) == ".parley":
		return exit.Usagef("unknown command %s; to look at a run: parley show %s; to resume it: parley run %s", word, word, word)
	}
	return exit.Usagef("unknown command %s%s\nthe commands: %s; parley --help explains them", word, text.Suggest(args[i], verbs), strings.Join(verbs, ", "))
}

// isPlan reports whether a file is a plan, by its name.
func isPlan(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// playError marks errors that the user can fix as usage errors. file is the run file.
func playError(file string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, runfile.ErrForeign) && isPlan(file):
		return exit.Usagef("%s is a plan, not a run file: parley run %s runs it, and parley check %s estimates its cost", file, terminal.ShellWord(file), terminal.ShellWord(file))
	case errors.Is(err, fs.ErrNotExist) && !namesOtherFile(err):
		hint := text.SuggestPath(file)
		if _, err := os.Stat(file + ".parley"); err == nil {
			hint = fmt.Sprintf("; did you mean %s.parley?", file)
		}
		return exit.Usagef("%w%s", err, hint)
	}
	if errors.Is(err, engine.ErrDiverged) {
		return exit.Usagef("%w (parley run PLAN --out FILE)", err)
	}
	if _, ok := errors.AsType[planfile.Errors](err); ok || app.IsUsage(err) {
		return exit.AsUsage(err)
	}
	return err
}

// namesOtherFile reports whether err names a file other than the run file: the store reports errors of its own file.
func namesOtherFile(err error) bool {
	_, system := errors.AsType[*fs.PathError](err)
	_, missing := errors.AsType[*files.MissingError](err)
	return system || missing
}

// pipeEnd returns err, or nil if err means that the reader closed the pipe, as head does.
func pipeEnd(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
