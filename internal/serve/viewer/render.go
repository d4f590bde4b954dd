package viewer

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
	if depth > 3*maxMarkdownDepth {
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
		r.text(resolved(n.Value(r.source)))
	}
	if n.SoftLineBreak() || n.HardLineBreak() {
		r.out.WriteString("<br>")
	}
}

// escapeRE finds what stands for another character.
var escapeRE = regexp.MustCompile("\\\\[!-/:-@[-`{-~]|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][0-9A-Za-z]*);")

// resolved returns a text with the characters that its escapes stand for.
func resolved(value []byte) string {
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
		written := kept(item, number)
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
	r.text(kept(n, target))
}

// hostRE finds hosts that a browser and we read the same way.
var hostRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?$`)

// page returns an address if it is one of a web page.
func page(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.Opaque != "" || !hostRE.MatchString(u.Host) {
		return nil
	}
	return u
}

// link writes a link with its address and its title beside it if it leads to a web page, and else as text. So is one whose
// address has escapes: a reader could not tell where it leads.
func (r *renderer) link(n *ast.Link, depth int) {
	u := page(string(n.Destination))
	if u == nil || r.linked || resolved(n.Destination) != string(n.Destination) {
		r.written("[", n, depth)
		return
	}
	r.linked = true
	r.open(u)
	r.children(n, depth)
	r.linked = false
	r.close(strings.TrimSuffix(strings.TrimPrefix(kept(n, target), "]("), ")"))
}

// autoLink writes an address in angle brackets: a link with its host beside it, or text.
func (r *renderer) autoLink(address string) {
	u := page(address)
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
