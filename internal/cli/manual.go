// Part manual describes a command line: its overview, completions for bash, zsh and fish, and a man page.
//
// The overview lists every command. The completions and the man page also list every flag. Hidden commands and
// flags are left out. The same model gives the same bytes.
//
// It does not write the help of a single command: kong does.

package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"parley/world"
)

// shells lists the shells that have completions.
func shells() []string { return []string{"bash", "zsh", "fish"} }

// completion returns the completion script for a shell. It returns false for an unknown shell.
func completion(app *kong.Application, shell string) (string, bool) {
	write := map[string]func(app *kong.Application) string{"bash": bash, "zsh": zsh, "fish": fish}[shell]
	if write == nil {
		return "", false
	}
	return world.Visible(write(app)), true
}

// manualCommands returns a node and the manualCommands below it, parents first.
func manualCommands(n *kong.Node) []*kong.Node {
	all := []*kong.Node{n}
	for _, c := range children(n) {
		all = append(all, manualCommands(c)...)
	}
	return all
}

func children(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool { return c.Hidden || c.Type != kong.CommandNode })
}

// names returns the name of a command and its aliases.
func names(n *kong.Node) []string { return append([]string{n.Name}, n.Aliases...) }

// flags returns the flags of a command, those of its parents first.
func flags(n *kong.Node) []*kong.Flag { return slices.Concat(n.AllFlags(true)...) }

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

// takes reports whether a flag takes a value.
func takes(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// choices returns the values that a flag or an argument with an enum can have.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
}

// isFile reports whether a value is the name of a file or a folder, judged by its placeholder.
func isFile(v *kong.Value) bool {
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

// short returns the first sentence of a help text, for a menu.
func short(help string) string {
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
