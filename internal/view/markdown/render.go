package markdown

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"parley/world"
)

// renderer writes the nodes of one text.
type renderer struct {
	source []byte
	out    strings.Builder
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
	if depth > 3*maxDepth {
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
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		r.out.WriteString(`<pre tabindex="0"><code>`)
		r.text(string(n.Lines().Value(r.source)))
		r.out.WriteString("</code></pre>")
	case *ast.ThematicBreak:
		r.out.WriteString("<hr>")
	case *ast.AutoLink:
		address := string(n.URL(r.source))
		r.link(address, func() { r.text(address) }, func() { r.text(string(n.Label(r.source))) })
	case *ast.Link:
		address := resolved(n.Destination)
		r.link(address, func() { r.children(n, depth) }, func() { r.written("[", n, address, depth) })
	case *ast.Image:
		r.written("![", n, resolved(n.Destination), depth)
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
	case *ast.ListItem:
		return "li", ""
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
		r.text(resolved(n.Value(r.source)))
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		r.out.WriteString("<br>")
	}
}

// resolved returns a text with the characters that its escapes stand for.
func resolved(value []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value))))
}

func (r *renderer) list(n *ast.List, depth int) {
	switch {
	case !n.IsOrdered():
		r.element("ul", "", n, depth)
	case n.Start == 1:
		r.element("ol", "", n, depth)
	default:
		r.element("ol", fmt.Sprintf(` start="%d"`, n.Start), n, depth)
	}
}

// written writes something with an address as it was written.
func (r *renderer) written(open string, n ast.Node, address string, depth int) {
	r.text(open)
	r.children(n, depth)
	r.text("](" + address + ")")
}

// hostRE finds hosts that a browser and we read the same way.
var hostRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)

// link writes a link with its host if it leads to a web page, and else as text.
func (r *renderer) link(address string, label, plain func()) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Opaque != "" || !hostRE.MatchString(u.Host) {
		plain()
		return
	}
	r.out.WriteString(`<a href="`)
	r.text(u.String())
	r.out.WriteString(`" rel="noopener noreferrer nofollow">`)
	label()
	r.out.WriteString(`</a> <small class="host">`)
	r.text(u.Host)
	r.out.WriteString("</small>")
}
