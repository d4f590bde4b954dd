package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/engine"
	"parley/internal/app"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/config/document"
	"parley/internal/near"
	"parley/internal/store/sqlite"
	"parley/world"
)

// misused explains what is wrong with a command line that cannot be parsed.
func misused(err error, args []string, kinds []world.Kind) error {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return exit.AsUsage(err)
	}
	verb := parse.Context.Selected()
	if verb == nil {
		return noVerb(err, args, Verbs(kinds))
	}
	problem := err.Error()
	if what, ok := strings.CutPrefix(problem, "expected "); ok && strings.HasPrefix(what, `"<`) {
		problem = strings.ReplaceAll(what, `"`, "") + " is missing"
	}
	if _, got, ok := strings.Cut(problem, ` but got "`); ok && slices.Contains(Verbs(kinds), strings.TrimSuffix(got, `"`)) {
		problem += "; there is a command of that name: parley " + strings.TrimSuffix(got, `"`)
	}
	return exit.Usagef("%s: %s\nusage: parley %s\n       parley %s --help explains it", verb.Name, problem, verb.Summary(), verb.Name)
}

// noVerb suggests a command for an unknown first word.
func noVerb(err error, args, verbs []string) error {
	i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 || !strings.HasPrefix(err.Error(), "unexpected argument") {
		return exit.Usagef("%w\nusage: parley COMMAND; parley --help lists the commands", err)
	}
	word := terminal.ShellWord(args[i])
	switch {
	case isPlan(args[i]):
		return exit.Usagef("unknown command %s; to run a plan: parley run %s", word, word)
	case filepath.Ext(args[i]) == ".parley":
		return exit.Usagef("unknown command %s; to look at a run: parley show %s; to resume it: parley resume %s", word, word, word)
	}
	hint := ""
	if n := near.Name(args[i], verbs); n != "" {
		hint = "; did you mean " + n + "?"
	}
	return exit.Usagef("unknown command %s%s\nthe commands: %s; parley --help explains them", word, hint, strings.Join(verbs, ", "))
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
	case errors.Is(err, sqlite.ErrForeign) && isPlan(file):
		return exit.Usagef("%s is a plan, not a run file: parley run %s runs it, and parley check %s estimates its cost", file, terminal.ShellWord(file), terminal.ShellWord(file))
	case errors.Is(err, fs.ErrNotExist) && !named(err):
		if n := near.Path(file); n != "" {
			return exit.Usagef("%s; did you mean %s?", exit.Plain(err.Error()), n)
		}
		return exit.AsUsage(err)
	}
	if errors.Is(err, engine.ErrDiverged) {
		return exit.Usagef("%w (parley run PLAN --out FILE)", err)
	}
	if _, ok := errors.AsType[document.Errors](err); ok || app.IsUsage(err) {
		return exit.AsUsage(err)
	}
	return err
}

// named reports whether err holds a system error for a file it names. That file is not the run file: the store
// reports errors of its own file.
func named(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}
