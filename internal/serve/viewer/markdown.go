package viewer

import (
	"html"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	markup "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"parley/world/exhibit"
)

const (
	// maxText is how many bytes a text may have to be formatted.
	maxText = 64 << 10
	// maxPage is how many bytes a formatter formats in all.
	maxPage = 512 << 10
	// maxMarks is how many marks a paragraph may have, such as brackets: the time to match them grows faster than their number.
	maxMarks = 1000
	// maxCells is how many cells the tables of a text may have: rows are filled up to the width of the first, so a short text can make very
	// many cells.
	maxCells = 20_000
)

// formatter formats the texts of models on one page as HTML. A nil formatter formats nothing.
//
// The result has only elements and attributes of a short list, and every word of the text in the same order. Raw HTML and images stay
// text. Links lead to web pages and have their address beside them.
type formatter struct {
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
	left     int // bytes
}

// newFormatter returns a formatter for a page.
func newFormatter() *formatter {
	without := func(all []util.PrioritizedValue, one any) []util.PrioritizedValue {
		return slices.DeleteFunc(all, func(p util.PrioritizedValue) bool { return p.Value == one })
	}
	policy := bluemonday.NewPolicy()
	policy.AllowElements("p", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "em", "strong", "del", "code", "pre", "table", "tr", "th", "td", "br", "hr", "small")
	policy.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	policy.AllowAttrs("href").OnElements("a")
	for _, scheme := range []string{"http", "https"} {
		policy.AllowURLSchemeWithCustomPolicy(scheme, isWebPage)
	}
	policy.RequireParseableURLs(true)
	policy.RequireNoFollowOnLinks(true)
	policy.RequireNoReferrerOnLinks(true)
	policy.AddTargetBlankToFullyQualifiedLinks(true) // adds noopener
	return &formatter{left: maxPage, policy: policy, markdown: goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
			parser.WithInlineParsers(without(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser()), parser.NewAutoLinkParser())...),
		)),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithRendererOptions(markup.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(wholeNodes{}, 100))),
	)}
}

// hostRE finds hosts that a browser and we read the same way.
var hostRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)

// isWebPage reports whether an address shows to which host it leads.
func isWebPage(u *url.URL) bool { return u.User == nil && hostRE.MatchString(u.Host) }

// Format returns a text as HTML. It returns nothing, and why, if the text is not formatted.
func (f *formatter) Format(source string) (formatted template.HTML, why string) {
	switch {
	case f == nil || strings.TrimSpace(source) == "":
		return "", ""
	case len(source) > maxText:
		return "", "not formatted: it has more than 64 KB"
	case len(source) > f.left:
		return "", "not formatted: the texts before it on this page have 512 KB"
	case tooComplex(source):
		return "", "not formatted: it has too many marks"
	}
	f.left -= len(source)
	source = exhibit.Visible(source)
	var out strings.Builder
	if err := f.markdown.Convert([]byte(source+"\n"), &out); err != nil { // the parser drops the last character of some lines without an end
		return "", "not formatted: " + err.Error()
	}
	safe := exhibit.Visible(f.policy.Sanitize(out.String())) // what stands for a character may stand for one that hides text
	if !hasWords(safe, source) {
		return "", "not formatted: that would hide some of its words"
	}
	return template.HTML(safe), "" //nolint:gosec // bluemonday has cleaned it
}

var (
	// nestedRE finds the begin of a line that is too deep in quotes and lists.
	nestedRE = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|(?:[-*+]|[0-9]{1,9}[.)])[ \t])){17}`)
	// paragraphRE finds what separates paragraphs: an empty line, and an item of a list.
	paragraphRE = regexp.MustCompile(`\n[ \t\r>]*\n|\n {0,3}[-*+] +[^ \t\r\n]`)
)

// tooComplex reports whether a text may take much time or memory to format.
func tooComplex(source string) bool {
	if nestedRE.MatchString(source) {
		return true
	}
	cells := 0
	for _, paragraph := range paragraphRE.Split(source, -1) {
		marks, lines, widest := 0, 0, 0
		for line := range strings.SplitSeq(paragraph, "\n") {
			pipes := strings.Count(line, "|")
			lines, widest = lines+1, max(widest, pipes)
			marks += len(line) - len(strings.Map(withoutMarks, line))
		}
		if widest > 0 {
			cells += lines * (widest + 1)
		}
		if marks > maxMarks || cells > maxCells {
			return true
		}
	}
	return false
}

// withoutMarks drops the characters that mark a part of a line.
func withoutMarks(r rune) rune {
	if strings.ContainsRune("[]*_~`<", r) {
		return -1
	}
	return r
}

var (
	tagRE  = regexp.MustCompile(`<[^>]*>`)
	wordRE = regexp.MustCompile(`[\pL\pN]+`)
	// otherRE finds what is shown as something else: a character by its name or number, and the number of an item of a list.
	otherRE = regexp.MustCompile(`(?m)&#?[0-9A-Za-z]+;|^[ \t>*+-]*[0-9]{1,9}[.)]`)
)

// hasWords reports whether a reader of HTML sees every word and number of its source, in the same order.
func hasWords(formatted, source string) bool {
	left := html.UnescapeString(tagRE.ReplaceAllString(formatted, ""))
	for _, word := range wordRE.FindAllString(otherRE.ReplaceAllString(source, " "), -1) {
		_, after, found := strings.Cut(left, word)
		if !found {
			return false
		}
		left = after
	}
	return true
}

// wholeNodes renders the nodes of which goldmark's renderer would hide a part, and headings below those of the page.
type wholeNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (wholeNodes) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindHeading, renderHeading)
	to.Register(ast.KindFencedCodeBlock, renderFenced)
	to.Register(ast.KindLink, renderLink)
	to.Register(ast.KindImage, renderImage)
}

// renderHeading renders a heading. The page has the first three levels.
func renderHeading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	mark := "</h"
	if entering {
		mark = "<h"
	}
	_, err := w.WriteString(mark + strconv.Itoa(min(6, n.(*ast.Heading).Level+3)) + ">")
	return ast.WalkContinue, err
}

// renderFenced renders a block of code, after what its first line says about it.
func renderFenced(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	info := ""
	if of := n.(*ast.FencedCodeBlock).Info; of != nil {
		info = "<small>" + html.EscapeString(string(of.Value(source))) + "</small>\n"
	}
	_, err := w.WriteString("<pre>" + info + "<code>" + html.EscapeString(string(n.Lines().Value(source))) + "</code></pre>")
	return ast.WalkSkipChildren, err
}

// renderLink renders a link with its address and its title beside it.
func renderLink(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	link := n.(*ast.Link)
	address := util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(link.Destination)))
	out := `<a href="` + html.EscapeString(string(util.URLEscape(address, false))) + `">`
	if !entering {
		out = "</a> <small>" + html.EscapeString(string(address)+titled(link.Title)) + "</small>"
	}
	_, err := w.WriteString(out)
	return ast.WalkContinue, err
}

// renderImage renders an image as text.
func renderImage(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	out := "!["
	if image := n.(*ast.Image); !entering {
		out = "](" + html.EscapeString(string(image.Destination)+titled(image.Title)) + ")"
	}
	_, err := w.WriteString(out)
	return ast.WalkContinue, err
}

// titled returns a title to follow an address.
func titled(title []byte) string {
	if title == nil {
		return ""
	}
	return ` "` + string(title) + `"`
}
