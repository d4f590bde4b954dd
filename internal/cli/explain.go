package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/engine"
	"parley/internal/app"
	"parley/internal/config/document"
	"parley/internal/near"
	"parley/internal/store/sqlite"
	"parley/internal/view/failure"
	"parley/world"
)

// This file makes errors ones that help: what was meant, and how it is written.

// misused says what is wrong with a command line that cannot be parsed.
func misused(err error, args []string, kinds []world.Kind) error {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return asUsage(err)
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
	return usage("%s: %s\nusage: parley %s\n       parley %s --help says more", verb.Name, problem, verb.Summary(), verb.Name)
}

// noVerb says what the first word may have been meant for.
func noVerb(err error, args, verbs []string) error {
	i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 || !strings.HasPrefix(err.Error(), "unexpected argument") {
		return usage("%w\nusage: parley COMMAND; parley --help lists the commands", err)
	}
	word := shellWord(args[i])
	switch {
	case isPlan(args[i]):
		return usage("unknown command %s; to run a plan: parley run %s", word, word)
	case filepath.Ext(args[i]) == ".parley":
		return usage("unknown command %s; to look at a run: parley show %s; to resume it: parley resume %s", word, word, word)
	}
	hint := ""
	if n := near.Name(args[i], verbs); n != "" {
		hint = "; did you mean " + n + "?"
	}
	return usage("unknown command %s%s\nthe commands: %s; parley --help explains them", word, hint, strings.Join(verbs, ", "))
}

// isPlan says whether a file is a plan, by its name.
func isPlan(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// playError tells what the user can mend from what is broken. file is the run file.
func playError(file string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite.ErrForeign) && isPlan(file):
		return usage("%s is a plan, not a run file: parley run %s plays it, and parley check %s says what it takes", file, shellWord(file), shellWord(file))
	case errors.Is(err, fs.ErrNotExist) && !named(err):
		if n := near.Path(file); n != "" {
			return usage("%s; did you mean %s?", plainly(err.Error()), n)
		}
		return asUsage(err)
	}
	if errors.Is(err, engine.ErrDiverged) {
		return usage("%w (parley run PLAN --out FILE)", err)
	}
	if _, ok := errors.AsType[document.Errors](err); ok || app.IsUsage(err) {
		return asUsage(err)
	}
	return err
}

// named says whether an error of the system is in err, which names its own file: that is
// not the run file, of which the store speaks.
func named(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}

// ours finds the name of the package that noticed something.
var ours = regexp.MustCompile(`(^|: |\n)(?:app|cli|config|engine|journal|price|sqlite): `)

// again finds the system's words for what was just said in ours.
var again = regexp.MustCompile(`(?m)(no such run file.*|exists already.*): file (?:does not exist|already exists)$`)

// plainly is an error as its reader needs it: without the packages it came through, and
// without saying a thing twice.
func plainly(text string) string {
	return again.ReplaceAllString(ours.ReplaceAllString(text, "$1"), "$1")
}

// mostKinds is how many kinds of failures are listed in a line.
const mostKinds = 6

// failureLines say how calls failed, what the commonest failure said, and what can be done about it.
func failureLines(failures []failure.Failure, calls int) []string {
	if len(failures) == 0 {
		return nil
	}
	failed := 0
	var parts []string
	for i, f := range failures {
		failed += f.Calls
		if i < mostKinds {
			parts = append(parts, safe(f.String()))
		}
	}
	if more := len(failures) - mostKinds; more > 0 {
		parts = append(parts, several(more, "other sort", "other sorts"))
	}
	first := failures[0]
	lines := []string{fmt.Sprintf("%s of %s failed: %s", number(failed), several(calls, "call", "calls"), strings.Join(parts, ", "))}
	if first.Example != "" {
		lines = append(lines, "most often: "+quoted(first.Example))
	}
	return append(lines, "what to do: "+quoted(first.Remedy))
}
