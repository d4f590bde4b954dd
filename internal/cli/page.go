package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"parley/world"
)

// manualPage returns the man page of an application. Its footer has the version and the date.
func manualPage(app *kong.Application, version, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"%s\" \"%s %s\" \"User Commands\"\n", strings.ToUpper(app.Name), roff(date), roff(app.Name), roff(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(app.Name), roff(strings.TrimSuffix(app.Help, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[flags] [arguments]\n", roff(app.Name))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", manualText(app.Help))
	if len(app.Flags) > 0 {
		b.WriteString(".SH FLAGS\nEvery command takes these:\n")
		values(&b, app.Node)
	}
	b.WriteString(".SH COMMANDS\n")
	for _, n := range manualCommands(app.Node)[1:] {
		fmt.Fprintf(&b, ".SS %s\n", roff(n.FullPath()))
		fmt.Fprintf(&b, ".B %s\n.PP\n%s\n", roff(app.Name+" "+n.Summary()), manualText(n.Help))
		if n.Detail != "" {
			fmt.Fprintf(&b, ".PP\n%s\n", manualText(n.Detail))
		}
		values(&b, n)
	}
	return b.String()
}

// values writes a command's own arguments and flags.
func values(b *strings.Builder, n *kong.Node) {
	for _, p := range n.Positional {
		fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(p.Name), manualText(p.Help))
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
		if takes(f) {
			value = `=\fI` + roff(placeholder(f.Value)) + `\fR`
		}
		fmt.Fprintf(b, ".TP\n%s%s\n%s\n", strings.Join(bold, ", "), value, manualText(f.Help))
	}
}

// manualText escapes a paragraph for roff: no line may begin like a request.
func manualText(s string) string {
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
