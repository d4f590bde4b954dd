package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/internal/cli/exit"
	"parley/world"
)

// completionCmd prints the completion script of a shell.
type completionCmd struct {
	Shell string `arg:"" enum:"${shells}" help:"The shell: ${enum}."`
}

// Run prints the script.
func (c completionCmd) Run(s *State, app *kong.Application) error {
	script, ok := completion(app, c.Shell)
	if !ok {
		return exit.Usagef("completion: no completions for %q; want one of %s", c.Shell, strings.Join(shells(), ", "))
	}
	_, err := io.WriteString(s.Stdout, script)
	return err
}

// shells lists the shells that have completions.
func shells() []string { return []string{"bash", "zsh", "fish"} }

// completion returns the completion script for a shell. It returns false for an unknown shell.
func completion(app *kong.Application, shell string) (string, bool) {
	write := map[string]func(app *kong.Application) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
	if write == nil {
		return "", false
	}
	return world.Visible(write(app)), true
}

// bashScript finds the command in the words before the cursor, then offers what fits there.
func bashScript(app *kong.Application) string {
	var paths []string
	var cases strings.Builder
	for _, n := range commandTree(app.Node) {
		for _, path := range spelledPaths(n) {
			paths = append(paths, path)
			fmt.Fprintf(&cases, "\t%q)\n", path)
			bashCommand(&cases, n)
			cases.WriteString("\t\t;;\n")
		}
	}
	return fmt.Sprintf(`# Completions of %[1]s for bash.
_%[1]s() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} path=%[1]s words= i
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		case "$path ${COMP_WORDS[i]}" in
		%[2]s) path="$path ${COMP_WORDS[i]}" ;;
		esac
	done
	case $path in
%[3]s	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _%[1]s %[1]s
`, app.Name, quotedPaths(paths[1:]), cases.String())
}

// quotedPaths returns a bash pattern that matches any of the paths.
func quotedPaths(paths []string) string {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = fmt.Sprintf("%q", p)
	}
	return strings.Join(quoted, " | ")
}

// spelledPaths returns the ways to write a command: the program, its parent commands, and its name or an alias.
func spelledPaths(n *kong.Node) []string {
	if n.Parent == nil {
		return []string{n.Name}
	}
	var out []string
	for _, parent := range spelledPaths(n.Parent) {
		for _, name := range commandNames(n) {
			out = append(out, parent+" "+name)
		}
	}
	return out
}

// bashCommand writes the completions after a command: values of flags, commands, arguments and flags.
func bashCommand(b *strings.Builder, n *kong.Node) {
	var offers, values, files, free []string
	for _, f := range allFlags(n) {
		names := strings.Join(spellings(f), " | ")
		offers = append(offers, spellings(f)...)
		switch {
		case !takesValue(f):
		case len(choices(f.Value)) > 0:
			values = append(values, fmt.Sprintf("\t\t%s) words=%q ;;\n", names, strings.Join(choices(f.Value), " ")))
		case isPath(f.Value):
			files = append(files, names)
		default:
			free = append(free, names)
		}
	}
	b.WriteString("\t\tcase $prev in\n")
	b.WriteString(strings.Join(values, ""))
	if len(files) > 0 {
		fmt.Fprintf(b, "\t\t%s) return ;;\n", strings.Join(files, " | "))
	}
	if len(free) > 0 {
		fmt.Fprintf(b, "\t\t%s) compopt +o default +o bashdefault 2>/dev/null; return ;;\n", strings.Join(free, " | "))
	}
	var words []string
	for _, c := range visibleChildren(n) {
		words = append(words, commandNames(c)...)
	}
	for _, p := range n.Positional {
		words = append(words, choices(p)...)
	}
	fmt.Fprintf(b, "\t\t*) if [[ $cur == -* ]]; then words=%q; else words=%q; fi ;;\n\t\tesac\n", strings.Join(offers, " "), strings.Join(words, " "))
}

// zshScript writes one function for each command, based on zsh's _arguments.
func zshScript(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# Completions of %s for zsh.\n", app.Name, app.Name)
	for _, n := range slices.Backward(commandTree(app.Node)) {
		fmt.Fprintf(&b, "%s() {\n", zshFunction(n))
		zshCommand(&b, n)
		b.WriteString("}\n")
	}
	// If the file is sourced, it registers the function. If it is found in fpath, it is the function.
	fmt.Fprintf(&b, "if [ \"$funcstack[1]\" = _%s ]; then\n\t_%s \"$@\"\nelse\n\tcompdef _%s %s\nfi\n", app.Name, app.Name, app.Name, app.Name)
	return b.String()
}

// zshFunction returns the name of the function that completes a command.
func zshFunction(n *kong.Node) string {
	return "_" + strings.NewReplacer(" ", "_", "-", "_").Replace(spelledPaths(n)[0])
}

func zshCommand(b *strings.Builder, n *kong.Node) {
	below := visibleChildren(n)
	b.WriteString("\tlocal line state\n\t_arguments -C")
	for _, f := range allFlags(n) {
		for _, s := range zshFlag(f) {
			b.WriteString(" \\\n\t\t" + zshQuote(s))
		}
	}
	for i, p := range n.Positional {
		at := fmt.Sprint(i + 1)
		if p.IsCumulative() {
			at = "*"
		}
		b.WriteString(" \\\n\t\t" + zshQuote(at+":"+escapeColons(p.Name)+":"+zshValue(p)))
	}
	if len(below) == 0 {
		b.WriteString("\n")
		return
	}
	b.WriteString(" \\\n\t\t'1:command:->command' \\\n\t\t'*::argument:->argument'\n\tcase $state in\n\tcommand)\n\t\tlocal -a commands=(\n")
	for _, c := range below {
		for _, name := range commandNames(c) {
			fmt.Fprintf(b, "\t\t\t%s\n", zshQuote(escapeColons(name)+":"+firstSentence(c.Help)))
		}
	}
	b.WriteString("\t\t)\n\t\t_describe command commands\n\t\t;;\n\targument)\n\t\tcase $line[1] in\n")
	for _, c := range below {
		fmt.Fprintf(b, "\t\t%s) %s ;;\n", strings.Join(commandNames(c), " | "), zshFunction(c))
	}
	b.WriteString("\t\tesac\n\t\t;;\n\tesac\n")
}

// zshFlag returns a flag in the syntax of _arguments, once for each spelling.
func zshFlag(f *kong.Flag) []string {
	help := "[" + strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(firstSentence(f.Help)) + "]"
	all := spellings(f)
	lead := ""
	switch {
	case f.IsCumulative():
		lead = "*"
	case len(all) > 1:
		lead = "(" + strings.Join(all, " ") + ")"
	}
	var out []string
	for _, s := range all {
		switch {
		case !takesValue(f):
			out = append(out, lead+s+help)
		case strings.HasPrefix(s, "--"):
			out = append(out, lead+s+"="+help+":"+escapeColons(placeholder(f.Value))+":"+zshValue(f.Value))
		default:
			out = append(out, lead+s+"+"+help+":"+escapeColons(placeholder(f.Value))+":"+zshValue(f.Value))
		}
	}
	return out
}

func zshValue(v *kong.Value) string {
	switch {
	case len(choices(v)) > 0:
		return "(" + strings.Join(choices(v), " ") + ")"
	case isPath(v):
		return "_files"
	}
	return " "
}

func escapeColons(s string) string { return strings.ReplaceAll(s, ":", `\:`) }

// zshQuote quotes a word for zsh.
func zshQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// fishScript lists what may follow each command.
func fishScript(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completions of %s for fish.\ncomplete -c %s -f\n", app.Name, app.Name)
	for _, n := range commandTree(app.Node) {
		begin := fmt.Sprintf("complete -c %s -n %s", app.Name, fishQuote(fishCondition(n)))
		for _, c := range visibleChildren(n) {
			for _, name := range commandNames(c) {
				fmt.Fprintf(&b, "%s -a %s -d %s\n", begin, fishQuote(name), fishQuote(firstSentence(c.Help)))
			}
		}
		for _, p := range n.Positional {
			if len(choices(p)) > 0 {
				fmt.Fprintf(&b, "%s -a %s\n", begin, fishQuote(strings.Join(choices(p), " ")))
			} else if isPath(p) {
				fmt.Fprintf(&b, "%s -F\n", begin)
			}
		}
		for _, f := range allFlags(n) {
			fmt.Fprintf(&b, "%s%s -d %s\n", begin, fishFlag(f), fishQuote(firstSentence(f.Help)))
		}
	}
	return b.String()
}

// fishCondition returns a fish condition: the command line names this command and none below it.
func fishCondition(n *kong.Node) string {
	var all []string
	for at := n; at.Parent != nil; at = at.Parent {
		all = append([]string{"__fish_seen_subcommand_from " + strings.Join(commandNames(at), " ")}, all...)
	}
	var below []string
	for _, c := range visibleChildren(n) {
		below = append(below, commandNames(c)...)
	}
	if len(below) > 0 {
		all = append(all, "not __fish_seen_subcommand_from "+strings.Join(below, " "))
	}
	return strings.Join(all, "; and ")
}

func fishFlag(f *kong.Flag) string {
	var out strings.Builder
	for _, s := range spellings(f) {
		if long, ok := strings.CutPrefix(s, "--"); ok {
			out.WriteString(" -l " + long)
		} else {
			out.WriteString(" -s " + strings.TrimPrefix(s, "-"))
		}
	}
	switch {
	case !takesValue(f):
	case len(choices(f.Value)) > 0:
		out.WriteString(" -x -a " + fishQuote(strings.Join(choices(f.Value), " ")))
	case isPath(f.Value):
		out.WriteString(" -r -F")
	default:
		out.WriteString(" -x")
	}
	return out.String()
}

// fishQuote quotes a word for fish, which interprets backslashes between single quotes.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
