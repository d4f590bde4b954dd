package script

import (
	"fmt"
	"strings"
)

// Page is a text being written.
type Page struct{ strings.Builder }

// Line writes a line.
func (p *Page) Line(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// Heading writes a line with an empty line before it.
func (p *Page) Heading(format string, args ...any) {
	if p.Len() > 0 {
		p.WriteByte('\n')
	}
	p.Line(format, args...)
}

// Quote writes the words of a model or a file. Each line begins with >, so that none of them can look like a heading.
func (p *Page) Quote(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.Line("%s", strings.TrimRight("> "+line, " \r"))
	}
}

// List writes lines under a title, or nothing if there are no lines.
func (p *Page) List(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.Line("%s", title)
	for _, l := range lines {
		p.Line("- %s", OneLine(l))
	}
}

// Field writes a line with a name, unless the text is empty.
func (p *Page) Field(name, text string) {
	if text != "" {
		p.Line("%s: %s", name, text)
	}
}

// OneLine returns a text on one line.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// clean returns a model's text as it is kept: valid, without white space around it, and of
// at most limit characters.
func clean(text string, limit int) string {
	return Cut(strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")), limit)
}

// Cut shortens a text to limit characters and an ellipsis.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}

// Tail returns the last limit characters of a text, after an ellipsis if there were more.
func Tail(text string, limit int) string {
	text = strings.TrimSpace(text)
	if runes := []rune(text); len(runes) > limit {
		return "…" + string(runes[len(runes)-limit:])
	}
	return text
}
