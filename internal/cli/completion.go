package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"parley/internal/cli/exit"
	"parley/world/exhibit"
)

// The scripts make a shell ask parley --complete for what it offers. If parley offers nothing, the shell offers files.
const (
	bashHook = `_parley() {
	local IFS=$'\n'
	COMPREPLY=($(parley --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _parley parley
`
	zshHook = `#compdef parley
_parley() {
	local -a offers
	offers=(${(f)"$(parley --complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
	if (( $#offers )); then compadd -a offers; else _files; fi
}
compdef _parley parley
`
	fishHook = `complete -c parley -a '(parley --complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`
)

// completionHook returns the script for a shell.
func completionHook(args []string) (string, error) {
	hooks := map[string]string{"bash": bashHook, "zsh": zshHook, "fish": fishHook}
	if len(args) == 1 && hooks[args[0]] != "" {
		return hooks[args[0]], nil
	}
	return "", exit.Usagef("--completion: want bash, zsh or fish")
}

// completions returns what fits at the end of a command line, whose last word may be empty or begun.
func completions(app *kong.Application, words []string) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "=" }) // bash takes --flag=value apart
	if len(words) == 0 {
		words = []string{""}
	}
	node, value, arguments := app.Node, (*kong.Flag)(nil), 0
	last := words[len(words)-1]
	for _, w := range words[:len(words)-1] {
		switch {
		case value != nil:
			value = nil
		case strings.HasPrefix(w, "-"):
			value = valueFlag(node, w)
		default:
			if child := childOf(node, w); child != nil {
				node = child
			} else {
				arguments++
			}
		}
	}
	var all []string
	switch {
	case value != nil:
		all = choices(value.Value)
	case strings.HasPrefix(last, "-"):
		for _, f := range slices.Concat(node.AllFlags(true)...) {
			all = append(all, spellings(f)...)
		}
	default:
		for _, c := range visibleChildren(node) {
			all = append(all, c.Name)
		}
		if arguments < len(node.Positional) {
			all = append(all, choices(node.Positional[arguments])...)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, last) })
	slices.Sort(all)
	return all
}

// valueFlag returns the flag of a command that is written like this, if the next word is its value.
func valueFlag(n *kong.Node, word string) *kong.Flag {
	for _, f := range slices.Concat(n.AllFlags(true)...) {
		if slices.Contains(spellings(f), word) && !f.IsBool() && !f.IsCounter() {
			return f
		}
	}
	return nil
}

func childOf(n *kong.Node, name string) *kong.Node {
	for _, c := range visibleChildren(n) {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			return c
		}
	}
	return nil
}

func visibleChildren(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool { return c.Hidden || c.Type != kong.CommandNode })
}

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

// choices returns the values that a flag or an argument with an enum can have.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(s string) bool { return s == "" })
}

// overview returns the help of the whole application: one line for each command, by group. Commands
// for several machines share a line: few people need them, and their names say what they do.
// The help of a single command is kong's.
func overview(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s COMMAND [ARGUMENTS] [FLAGS]\n%s\n", app.Name, app.Help)
	width, group := 0, ""
	var cluster []string
	for _, n := range visibleChildren(app.Node) {
		width = max(width, len(n.Name))
	}
	for _, n := range visibleChildren(app.Node) {
		title := ""
		if n.Group != nil {
			title = n.Group.Title
			if n.Group.Key == "cluster" {
				cluster = append(cluster, n.Name)
				continue
			}
		}
		if title != group {
			fmt.Fprintf(&b, "\n%s\n", title)
			group = title
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, n.Name, n.Help)
	}
	if len(cluster) > 0 {
		fmt.Fprintf(&b, "\nClusters: %s. Shell: --version, --completion SHELL.\n", strings.Join(cluster, ", "))
	}
	fmt.Fprintf(&b, "\"%s COMMAND --help\" explains a command, its arguments and its flags.\n", app.Name)
	return exhibit.Visible(b.String())
}
