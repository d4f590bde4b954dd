package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"parley/world"
)

// manCmd prints the man page.
type manCmd struct{}

// Run prints the page as roff.
func (manCmd) Run(s *State, app *kong.Application) error {
	b := thisBuild()
	date, _, _ := strings.Cut(b.Date, "T")
	_, err := io.WriteString(s.Stdout, manPage(app, b.Version, date))
	return err
}

// manPage returns the man page of an application. Its footer has the version and the date.
func manPage(app *kong.Application, version, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"%s\" \"%s %s\" \"User Commands\"\n", strings.ToUpper(app.Name), roff(date), roff(app.Name), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(app.Name), roff(strings.TrimSuffix(app.Help, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[flags] [arguments]\n", roff(app.Name))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roffText(app.Help))
	if len(app.Flags) > 0 {
		b.WriteString(".SH FLAGS\nEvery command takes these:\n")
		writeRoffValues(&b, app.Node)
	}
	b.WriteString(".SH COMMANDS\n")
	for _, n := range commandTree(app.Node)[1:] {
		fmt.Fprintf(&b, ".SS %s\n", roff(n.FullPath()))
		fmt.Fprintf(&b, ".B %s\n.PP\n%s\n", roff(app.Name+" "+n.Summary()), roffText(n.Help))
		if n.Detail != "" {
			fmt.Fprintf(&b, ".PP\n%s\n", roffText(n.Detail))
		}
		writeRoffValues(&b, n)
	}
	return b.String()
}

// writeRoffValues writes a command's own arguments and flags.
func writeRoffValues(b *strings.Builder, n *kong.Node) {
	for _, p := range n.Positional {
		fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(p.Name), roffText(p.Help))
	}
	for _, f := range n.Flags {
		if f.Hidden {
			continue
		}
		bold := make([]string, len(spellings(f)))
		for i, s := range spellings(f) {
			bold[i] = `\fB` + roff(s) + `\fR`
		}
		value := ""
		if takesValue(f) {
			value = `=\fI` + roff(placeholder(f.Value)) + `\fR`
		}
		fmt.Fprintf(b, ".TP\n%s%s\n%s\n", strings.Join(bold, ", "), value, roffText(f.Help))
	}
}

// roffText escapes a paragraph for roff: no line may begin like a request.
func roffText(s string) string {
	s = roff(strings.Join(strings.Fields(s), " "))
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// roff escapes characters that roff or a terminal interprets.
func roff(s string) string {
	s = world.Visible(s)
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n", " ").Replace(s)
}

// overview returns the help of the whole application: one line for each command, by group. Commands
// for the shell and for several machines share a line: few people need them, and their names say what they do.
// The help of a single command is kong's.
func overview(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s COMMAND [ARGUMENTS] [FLAGS]\n%s\n", app.Name, app.Help)
	width, group := 0, ""
	short := map[string][]string{}
	for _, n := range visibleChildren(app.Node) {
		width = max(width, len(n.Name))
	}
	for _, n := range visibleChildren(app.Node) {
		title := ""
		if n.Group != nil {
			title = n.Group.Title
			if n.Group.Key == "shell" || n.Group.Key == "cluster" {
				short[n.Group.Key] = append(short[n.Group.Key], n.Name)
				continue
			}
		}
		if title != group {
			fmt.Fprintf(&b, "\n%s\n", title)
			group = title
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, n.Name, n.Help)
	}
	var line []string
	if list := short["cluster"]; len(list) > 0 {
		line = append(line, "Clusters: "+strings.Join(list, ", "))
	}
	if list := short["shell"]; len(list) > 0 {
		line = append(line, "Shell: "+strings.Join(list, ", "))
	}
	if len(line) > 0 {
		fmt.Fprintf(&b, "%s\n", strings.Join(line, ". "))
	}
	fmt.Fprintf(&b, "\"%s COMMAND --help\" explains a command, its arguments and its flags.\n", app.Name)
	return world.Visible(b.String())
}

// commandTree returns a node and the manualCommands below it, parents first.
func commandTree(n *kong.Node) []*kong.Node {
	all := []*kong.Node{n}
	for _, c := range visibleChildren(n) {
		all = append(all, commandTree(c)...)
	}
	return all
}

func visibleChildren(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool { return c.Hidden || c.Type != kong.CommandNode })
}

// commandNames returns the name of a command and its aliases.
func commandNames(n *kong.Node) []string { return append([]string{n.Name}, n.Aliases...) }

// allFlags returns the flags of a command, those of its parents first.
func allFlags(n *kong.Node) []*kong.Flag { return slices.Concat(n.AllFlags(true)...) }

// spellings returns the ways to write a flag: --out, -o.
func spellings(f *kong.Flag) []string {
	out := []string{"--" + f.Name}
	for _, a := range f.Aliases {
		out = append(out, "--"+a)
	}
	if f.Short != 0 {
		out = append(out, "-"+string(f.Short))
	}
	return out
}

// takesValue reports whether a flag takes a value.
func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// choices returns the values that a flag or an argument with an enum can have.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
}

// isPath reports whether a value is the name of a file or a folder, judged by its placeholder.
func isPath(v *kong.Value) bool {
	return slices.ContainsFunc(strings.Fields(placeholder(v)), func(w string) bool {
		return slices.Contains([]string{"FILE", "PLAN", "DIR", "OUT"}, w)
	})
}

func placeholder(v *kong.Value) string {
	switch {
	case v.Flag != nil && v.Flag.PlaceHolder != "":
		return v.Flag.PlaceHolder
	case v.Tag.PlaceHolder != "":
		return v.Tag.PlaceHolder
	}
	return strings.ToUpper(v.Name)
}

// firstSentence returns the first sentence of a help text, for a menu.
func firstSentence(help string) string {
	const maxRunes = 80
	help = strings.Join(strings.Fields(help), " ")
	if i := strings.Index(help, ". "); i >= 0 {
		help = help[:i]
	}
	help = strings.TrimSuffix(help, ".")
	if utf8.RuneCountInString(help) > maxRunes {
		help = string([]rune(help)[:maxRunes-1]) + "…"
	}
	return help
}
