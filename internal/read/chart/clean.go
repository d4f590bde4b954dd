package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Clean returns a foreign SVG picture without anything that could
// fetch or run something: it keeps only elements and attributes that are known to be harmless.
// It returns style sheets separately, because a page declares them in its head. They apply to foreign pictures only: see scoped. A
// style sheet that refers to anything outside is left out.
func Clean(svg string) (picture template.HTML, style template.CSS, err error) {
	d := xml.NewDecoder(strings.NewReader(svg))
	c := &cleaner{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", "", fmt.Errorf("svg: %w", err)
		}
		c.take(token)
	}
	if !c.svg {
		return "", "", errors.New("svg: no <svg> element")
	}
	if sheet := c.style.String(); selfContained(sheet) && closed(sheet) {
		if sheet, ok := scoped(withoutComments(sheet)); ok {
			style = template.CSS(sheet) //nolint:gosec // checked
		}
	}
	return template.HTML(c.b.String()), style, nil //nolint:gosec // escaped by take
}

type cleaner struct {
	b     strings.Builder
	style strings.Builder
	svg   bool
	sheet bool // inside a style sheet
	skip  int  // depth inside an element that is left out
}

func (c *cleaner) take(token xml.Token) {
	switch t := token.(type) {
	case xml.StartElement:
		if c.skip == 0 && t.Name.Local == "style" {
			c.sheet = true
		}
		if c.skip > 0 || !slices.Contains(harmless(), t.Name.Local) {
			c.skip++
			return
		}
		c.svg = c.svg || t.Name.Local == "svg"
		c.b.WriteString("<" + t.Name.Local)
		for _, a := range t.Attr {
			if harmlessAttr(a) {
				if a.Name.Local == "class" {
					a.Value = foreignClasses(a.Value)
				}
				c.b.WriteString(" " + a.Name.Local + `="` + template.HTMLEscapeString(a.Value) + `"`)
			}
		}
		c.b.WriteString(">")
	case xml.EndElement:
		if c.skip > 0 {
			c.skip--
			c.sheet = false
			return
		}
		c.b.WriteString("</" + t.Name.Local + ">")
	case xml.CharData:
		switch {
		case c.sheet:
			c.style.Write(t)
		case c.skip == 0 && c.svg:
			c.b.WriteString(template.HTMLEscapeString(string(t)))
		}
	}
}

// harmless lists the elements that only draw.
func harmless() []string {
	return []string{
		"svg", "g", "defs", "symbol", "use", "title", "desc", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan",
		"marker", "linearGradient", "radialGradient", "stop", "pattern", "clipPath", "mask",
	}
}

// harmlessAttr reports whether an attribute only describes how to draw. A reference must point
// into the picture itself.
func harmlessAttr(a xml.Attr) bool {
	name := a.Name.Local
	switch {
	case !selfContained(a.Value):
		return false
	case name == "href":
		return strings.HasPrefix(a.Value, "#")
	case strings.HasPrefix(strings.ToLower(name), "on"), name == "style", name == "xmlns", a.Name.Space == "xmlns":
		return false
	default:
		return plainName(name)
	}
}

// selfContained reports whether a value or a style sheet refers to nothing outside.
func selfContained(text string) bool {
	text = strings.ToLower(text)
	for _, bad := range []string{"javascript:", "expression(", "@import", "@font-face", "src(", "image-set(", "\\"} {
		if strings.Contains(text, bad) {
			return false
		}
	}
	return strings.Count(text, "url(") == strings.Count(text, "url(#")
}

func plainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// closed reports whether everything that a style sheet opens is closed in order, so that it stays inside a block that it
// is put into. Browsers find the end of a block in the same way: brackets of other kinds, strings and comments are skipped
// as wholes. A sheet has no backslashes: see selfContained.
func closed(sheet string) bool {
	if strings.Contains(sheet, "<") || !plainURLs(strings.ToLower(sheet)) {
		return false
	}
	var open []byte
	for i := 0; i < len(sheet); i++ {
		switch c := sheet[i]; c {
		case '{', '(', '[':
			open = append(open, c)
		case '}', ')', ']':
			pairs := map[byte]byte{'}': '{', ')': '(', ']': '['}
			if len(open) == 0 || open[len(open)-1] != pairs[c] {
				return false
			}
			open = open[:len(open)-1]
		case '"', '\'':
			n := strings.IndexAny(sheet[i+1:], string(c)+"\n\r\f")
			if n < 0 || sheet[i+1+n] != c {
				return false // a string ends with its line
			}
			i += 1 + n
		case '/':
			if !strings.HasPrefix(sheet[i:], "/*") {
				continue
			}
			n := strings.Index(sheet[i+2:], "*/")
			if n < 0 {
				return false
			}
			i += n + 3
		}
	}
	return len(open) == 0
}

// plainURLs reports whether every url() is closed at once: what is inside one is not read as brackets and strings.
func plainURLs(sheet string) bool {
	for i, rest := range strings.Split(sheet, "url(") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(rest, "#"), ")"); i > 0 && (!ok || !plainName(name)) {
			return false
		}
	}
	return true
}

// foreignPrefix begins the classes of foreign pictures, which no element of a page outside of them has.
const foreignPrefix = "pic-"

// foreignClasses returns the value of a class attribute in a foreign picture.
func foreignClasses(value string) string {
	names := strings.Fields(value)
	for i := range names {
		names[i] = foreignPrefix + names[i]
	}
	return strings.Join(names, " ")
}

var classRE = regexp.MustCompile(`\.(-?[A-Za-z_])`)

// scoped makes a style sheet apply to foreign pictures only. A selector that begins with a class can match only where a picture has that class;
// any other gets an ancestor. The ancestor cannot be required of all: what <use> draws is matched without its ancestors, also by @scope. The
// sheet is closed and has no comments. It is not ok if it has blocks in rules, whose selectors reach further, or rules other than
// @media and @supports.
func scoped(sheet string) (out string, ok bool) {
	var b strings.Builder
	for sheet = strings.TrimSpace(sheet); sheet != ""; sheet = strings.TrimSpace(sheet) {
		start := indexOutside(sheet, "{;")
		if start < 0 || sheet[start] == ';' {
			return "", false
		}
		head, rest := strings.TrimSpace(sheet[:start]), sheet[start+1:]
		end := indexOutside(rest, "}")
		body := rest[:end]
		sheet = rest[end+1:]
		if strings.HasPrefix(head, "@") {
			name := strings.ToLower(head)
			if end := strings.IndexAny(name, "( \t\r\n\f"); end >= 0 {
				name = name[:end]
			}
			if name != "@media" && name != "@supports" {
				return "", false
			}
			if body, ok = scoped(body); !ok {
				return "", false
			}
		} else if head = foreignSelectors(head); head == "" || indexOutside(body, "{") >= 0 {
			return "", false
		}
		b.WriteString(head + "{" + body + "}")
	}
	return b.String(), b.Len() > 0
}

// foreignSelectors returns a list of selectors so that it matches in foreign pictures only, or "" if one is empty.
func foreignSelectors(list string) string {
	var out []string
	for more := true; more; {
		one := list
		if end := indexOutside(list, ","); end >= 0 {
			one, list = list[:end], list[end+1:]
		} else {
			more = false
		}
		if one = strings.TrimSpace(one); one == "" {
			return ""
		}
		// Elements beside one with a class can be outside of the picture, if that is the picture itself.
		beside := indexOutside(one, "+~|") >= 0
		one = classRE.ReplaceAllString(one, "."+foreignPrefix+"$1")
		if !strings.HasPrefix(one, ".") || beside {
			one = "svg:not(.chart) " + one
		}
		out = append(out, one)
	}
	return strings.Join(out, ",")
}

// indexOutside returns the place of the first of some characters that is in no string and no brackets, or -1.
func indexOutside(text, chars string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			i += 1 + max(0, strings.IndexByte(text[i+1:], c))
		case depth == 0 && strings.IndexByte(chars, c) >= 0:
			return i
		case c == '{' || c == '(' || c == '[':
			depth++
		case c == '}' || c == ')' || c == ']':
			depth--
		}
	}
	return -1
}

// withoutComments returns a closed style sheet without its comments.
func withoutComments(sheet string) string {
	var b strings.Builder
	for i := 0; i < len(sheet); i++ {
		end := i + 1
		switch c := sheet[i]; {
		case c == '"' || c == '\'':
			end = i + 2 + strings.IndexByte(sheet[i+1:], c)
		case strings.HasPrefix(sheet[i:], "/*"):
			i += 3 + strings.Index(sheet[i+2:], "*/")
			b.WriteByte(' ')
			continue
		}
		b.WriteString(sheet[i:end])
		i = end - 1
	}
	return b.String()
}
