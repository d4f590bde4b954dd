package viewer

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"parley/world"
)

const (
	// maxText is how many bytes a text may have to be formatted.
	maxText = 64 << 10
	// maxPage is how many bytes a formatter formats in all.
	maxPage = 512 << 10
)

// formatter formats the texts of models on one page as HTML. A nil formatter formats nothing.
//
// The result consists of a fixed set of elements. The only attributes whose values come from the text are addresses of
// http and https, and the numbers of lists. Raw HTML, images and links to anything else stay text. A reader sees
// every word of the text, in the same order: marks become elements, and nothing else is left out. Any text takes
// little time and memory: see maxText, and the limits of nesting and tables.
type formatter struct {
	parser parser.Parser
	left   int // bytes
}

// newFormatter returns a formatter for a page.
func newFormatter() *formatter {
	return &formatter{left: maxPage, parser: parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(&headingParser{BlockParser: parser.NewSetextHeadingParser()}, 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(shallow{parser.NewListParser()}, 300),
			util.Prioritized(itemParser{parser.NewListItemParser()}, 400),
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

const (
	// maxNesting is how deep quotes and lists are nested. What is deeper is text.
	maxNesting = 16
	// maxMarks is how many marks of a kind count in a paragraph, such as brackets: the time to match them can grow with
	// the square of their number. The others are text.
	maxMarks = 500
	// maxCells is how many cells the tables of a page have. What would be more is text: rows are filled up to the width
	// of the first, so a short text can make very many cells.
	maxCells = 20_000
)

// shallow is a parser of blocks that are not nested too deep.
type shallow struct{ parser.BlockParser }

func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > maxNesting {
			return nil, parser.NoChildren
		}
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// few is a parser that reads the first marks of a paragraph.
type few struct {
	parser.InlineParser
	read int
}

func (f *few) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if f.read++; f.read > maxMarks {
		return nil
	}
	line, at := block.Position()
	n := f.InlineParser.Parse(parent, block, pc)
	switch n.(type) {
	case *ast.Link, *ast.Image:
		n.SetAttributeString(targetAttribute, between(block, line, at))
	}
	return n
}

// CloseBlock ends a paragraph.
func (f *few) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	f.read = 0
	if c, ok := f.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// tables makes tables of paragraphs.
type tables struct {
	parser.ParagraphTransformer
	left int // cells
}

func (t *tables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, widest := node.Lines(), 0
	for i := range lines.Len() {
		line := lines.At(i)
		widest = max(widest, bytes.Count(line.Value(reader.Source()), []byte("|")))
	}
	cells := (widest + 1) * lines.Len()
	if widest == 0 || cells > t.left || tooWide(lines, reader.Source()) {
		return
	}
	t.left -= cells
	t.ParagraphTransformer.Transform(node, reader, pc)
}

// The parser drops some of what it reads. What a reader must see is kept as attributes of nodes.
const (
	targetAttribute = "target" // of a link or an image: its end as it was written, from the bracket that closes its label
	numberAttribute = "number" // of an item of a list: its number as it was written, with the mark after it
)

// between returns the text from a position to where a reader is.
func between(block text.Reader, line int, at text.Segment) []byte {
	lastLine, last := block.Position()
	block.SetPosition(line, at)
	var out []byte
	for ; line < lastLine; line++ {
		part, _ := block.PeekLine()
		out = append(out, part...)
		block.AdvanceLine()
	}
	part, segment := block.PeekLine()
	out = append(out, part[:max(0, min(len(part), last.Start-segment.Start))]...)
	block.SetPosition(lastLine, last)
	return out
}

// itemParser is a parser of items that keeps their numbers.
type itemParser struct{ parser.BlockParser }

// numberRE finds the number of an item.
var numberRE = regexp.MustCompile(`^ *([0-9]+[.)])`)

func (i itemParser) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	n, state := i.BlockParser.Open(parent, reader, pc)
	if found := numberRE.FindSubmatch(line); n != nil && found != nil {
		n.SetAttributeString(numberAttribute, found[1])
	}
	return n, state
}

// attributeText returns an attribute of a node.
func attributeText(n ast.Node, name string) string {
	v, _ := n.AttributeString(name)
	b, _ := v.([]byte)
	return string(b)
}

// tooWide reports whether lines that may be a table have a row with more cells than the first: a table would not show them.
func tooWide(lines *text.Segments, source []byte) bool {
	widest := 0 // of the rows after a line
	for i := lines.Len() - 1; i > 0; i-- {
		line, head := lines.At(i), lines.At(i-1)
		value := line.Value(source)
		if isRule(value) && widest > cellsOf(head.Value(source)) {
			return true
		}
		widest = max(widest, cellsOf(value))
	}
	return false
}

// isRule reports whether a line may be the one under the first row of a table.
func isRule(line []byte) bool { return len(bytes.Trim(line, "|-: \t\r\n\v\f")) == 0 }

// headingParser is a parser of headings with a line under them. A heading that has a table stays text: the parser would move the lines before
// the table after it.
type headingParser struct {
	parser.BlockParser
	of    ast.Node // what was read last
	read  int      // its lines
	table bool     // one of these is under the first row of a table
}

func (h *headingParser) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	n, state := h.BlockParser.Open(parent, reader, pc)
	if n == nil {
		return nil, state
	}
	if last := pc.LastOpenedBlock().Node; h.of != last {
		h.of, h.read, h.table = last, 0, false
	}
	lines := h.of.Lines()
	for ; h.read < lines.Len() && !h.table; h.read++ {
		line := lines.At(h.read)
		h.table = h.read > 0 && isRule(line.Value(reader.Source()))
	}
	if h.table {
		return nil, parser.NoChildren
	}
	return n, state
}

// cellsOf returns how many cells the parser reads in a row.
func cellsOf(row []byte) int {
	row = bytes.Trim(row, " \t\r\n")
	at, end, n := 0, len(row), 0
	if end > 0 && row[0] == '|' {
		at++
	}
	if end > 0 && row[end-1] == '|' {
		end--
	}
	for ; at < end; at++ {
		for at < end && (row[at] != '|' || at > 0 && row[at-1] == '\\') {
			at++
		}
		n++
	}
	return n
}

// renderer writes the nodes of one text.
type renderer struct {
	source []byte
	out    strings.Builder
	linked bool // in a link: there are none in each other
}

// text writes text.
func (r *renderer) text(s string) { r.out.WriteString(html.EscapeString(world.Visible(s))) }

// children writes the nodes in a node.
func (r *renderer) children(n ast.Node, depth int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		r.node(c, depth+1)
	}
}

// element writes a node as an element. Those that are too deep have only their text.
func (r *renderer) element(name, attributes string, n ast.Node, depth int) {
	if depth > 3*maxNesting {
		r.children(n, depth)
		return
	}
	r.out.WriteString("<" + name + attributes + ">")
	r.children(n, depth)
	r.out.WriteString("</" + name + ">")
}

// node writes a node. One of a kind that is not known has only what is in it.
func (r *renderer) node(n ast.Node, depth int) {
	switch n := n.(type) {
	case *ast.Text:
		r.words(n)
	case *ast.String:
		r.text(string(n.Value))
	case *ast.CodeSpan:
		r.element("code", "", n, depth)
	case *ast.CodeBlock:
		r.code(n, nil)
	case *ast.FencedCodeBlock:
		r.code(n, n.Info)
	case *ast.ThematicBreak:
		r.out.WriteString("<hr>")
	case *ast.AutoLink:
		r.autoLink(string(n.Label(r.source)))
	case *ast.Link:
		r.link(n, depth)
	case *ast.Image:
		r.written("![", n, depth)
	case *ast.List:
		r.list(n, depth)
	default:
		name, attributes := elementOf(n)
		if name == "" {
			r.children(n, depth)
			return
		}
		r.element(name, attributes, n, depth)
	}
}

// elementOf returns the element of a node that needs nothing else.
func elementOf(n ast.Node) (name, attributes string) {
	switch n := n.(type) {
	case *ast.Paragraph:
		return "p", ""
	case *ast.Heading: // the page has the first three levels
		return "h" + strconv.Itoa(min(6, n.Level+3)), ""
	case *ast.Blockquote:
		return "blockquote", ""
	case *ast.Emphasis:
		if n.Level == 2 {
			return "strong", ""
		}
		return "em", ""
	case *extended.Strikethrough:
		return "del", ""
	case *extended.Table:
		return "table", ""
	case *extended.TableHeader, *extended.TableRow:
		return "tr", ""
	case *extended.TableCell:
		if _, ok := n.Parent().(*extended.TableHeader); ok {
			return "th", ` scope="col"`
		}
		return "td", ""
	default:
		return "", ""
	}
}

// words writes text of a line. Its end stays an end of a line: models write them on purpose.
func (r *renderer) words(n *ast.Text) {
	if _, code := n.Parent().(*ast.CodeSpan); code || n.IsRaw() {
		r.text(string(n.Value(r.source)))
	} else {
		r.text(unescaped(n.Value(r.source)))
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		r.out.WriteString("<br>")
	}
}

// escapeRE finds what stands for another character.
var escapeRE = regexp.MustCompile("\\\\[!-/:-@[-`{-~]|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][0-9A-Za-z]*);")

// unescaped returns a text with the characters that its escapes stand for.
func unescaped(value []byte) string {
	return string(escapeRE.ReplaceAllFunc(value, func(escape []byte) []byte {
		if escape[0] == '\\' {
			return escape[1:]
		}
		return util.ResolveEntityNames(util.ResolveNumericReferences(escape))
	}))
}

// code writes a block of code, after what its first line says about it.
func (r *renderer) code(n ast.Node, info *ast.Text) {
	r.out.WriteString(`<pre tabindex="0">`)
	if info != nil {
		r.out.WriteString("<small>")
		r.text(string(info.Value(r.source)))
		r.out.WriteString("</small>\n")
	}
	r.out.WriteString("<code>")
	r.text(string(n.Lines().Value(r.source)))
	r.out.WriteString("</code></pre>")
}

// list writes a list. Items have the numbers that were written, and also as text if a browser would write them differently.
func (r *renderer) list(n *ast.List, depth int) {
	name := "ul"
	if n.IsOrdered() {
		name = "ol"
	}
	r.out.WriteString("<" + name + ">")
	next := 1
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		written := attributeText(item, numberAttribute)
		is, err := strconv.Atoi(strings.TrimRight(written, ".)"))
		r.out.WriteString("<li")
		if err == nil && is != next {
			fmt.Fprintf(&r.out, ` value="%d"`, is)
		}
		r.out.WriteString(">")
		if len(written) > 2 && written[0] == '0' {
			r.text(written + " ")
		}
		r.children(item, depth+1)
		r.out.WriteString("</li>")
		next = is + 1
	}
	r.out.WriteString("</" + name + ">")
}

// written writes something with an address as it was written.
func (r *renderer) written(open string, n ast.Node, depth int) {
	r.text(open)
	r.children(n, depth)
	r.text(attributeText(n, targetAttribute))
}

// hostRE finds hosts that a browser and we read the same way.
var hostRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)

// webPage returns an address if it is one of a web page.
func webPage(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Opaque != "" || !hostRE.MatchString(u.Host) {
		return nil
	}
	return u
}

// link writes a link with its address and its title beside it if it leads to a web page, and else as text. So is one whose
// address has escapes: a reader could not tell where it leads.
func (r *renderer) link(n *ast.Link, depth int) {
	u := webPage(string(n.Destination))
	if u == nil || r.linked || unescaped(n.Destination) != string(n.Destination) {
		r.written("[", n, depth)
		return
	}
	r.linked = true
	r.open(u)
	r.children(n, depth)
	r.linked = false
	r.close(strings.TrimSuffix(strings.TrimPrefix(attributeText(n, targetAttribute), "]("), ")"))
}

// autoLink writes an address in angle brackets: a link with its host beside it, or text.
func (r *renderer) autoLink(address string) {
	u := webPage(address)
	if u == nil || r.linked {
		r.text("<" + address + ">")
		return
	}
	r.open(u)
	r.text(address)
	r.close(u.Host)
}

// open begins a link.
func (r *renderer) open(u *url.URL) {
	r.out.WriteString(`<a href="`)
	r.text(u.String())
	r.out.WriteString(`" rel="noopener noreferrer nofollow">`)
}

// close ends a link, and writes where it leads.
func (r *renderer) close(where string) {
	r.out.WriteString(`</a> <small class="host">`)
	r.text(where)
	r.out.WriteString("</small>")
}
