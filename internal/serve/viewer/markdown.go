// Part markdown formats the text of a model as HTML, for a reader who asks for it.
//
// It promises that the result consists of a fixed set of elements: the only attributes whose values come from the text are addresses
// of http and https, and the numbers of lists. Raw HTML and images stay text. So do links to anything else. It promises that
// a reader sees every word of the text, in the same order: marks become elements, and nothing else is left out. It also
// promises to take little time and memory for any text: see MaxText, and the limits of nesting and tables.
//
// What it is not for: to show exactly what was said. The plain text does that.

package viewer

import (
	"html/template"
	"strings"

	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxText is how many bytes a text may have to be formatted.
	maxText = 64 << 10
	// maxPage is how many bytes a Formatter formats in all.
	maxPage = 512 << 10
)

// formatter formats the texts of one page. A nil formatter formats nothing.
type formatter struct {
	parser parser.Parser
	left   int // bytes
}

// newMarkdown returns a Formatter for a page.
func newMarkdown() *formatter {
	return &formatter{left: maxPage, parser: parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(&headings{BlockParser: parser.NewSetextHeadingParser()}, 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(shallow{parser.NewListParser()}, 300),
			util.Prioritized(items{parser.NewListItemParser()}, 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(&few{InlineParser: parser.NewCodeSpanParser()}, 100),
			util.Prioritized(&few{InlineParser: parser.NewLinkParser()}, 200),
			util.Prioritized(&few{InlineParser: parser.NewAutoLinkParser()}, 300),
			util.Prioritized(&few{InlineParser: parser.NewEmphasisParser()}, 500),
			util.Prioritized(&few{InlineParser: extension.NewStrikethroughParser()}, 500),
		),
		parser.WithParagraphTransformers(util.Prioritized(&tables{extension.NewTableParagraphTransformer(), maxCells}, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)}
}

// Format returns a text as HTML. It returns nothing, and why, if the text is too long.
func (f *formatter) Format(source string) (formatted template.HTML, why string) {
	switch {
	case f == nil || strings.TrimSpace(source) == "":
		return "", ""
	case len(source) > maxText:
		return "", "not formatted: it has more than 64 KB"
	case len(source) > f.left:
		return "", "not formatted: the texts before it on this page have 512 KB"
	}
	f.left -= len(source)
	r := renderer{source: []byte(source + "\n")} // the parser drops the last character of some lines without an end
	r.children(f.parser.Parse(text.NewReader(r.source)), 0)
	return template.HTML(r.out.String()), "" //nolint:gosec // the renderer escapes every text
}
