package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// Clean returns a foreign SVG picture without anything that could
// fetch or run something: it keeps only elements and attributes that are known to be harmless.
// It returns style sheets separately, because a page declares them in its head. They apply to foreign pictures only. A
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
			return "", "", fmt.Errorf("chart: svg: %w", err)
		}
		c.take(token)
	}
	if !c.svg {
		return "", "", errors.New("chart: svg: no <svg> element")
	}
	if sheet := c.style.String(); strings.TrimSpace(sheet) != "" && selfContained(sheet) && closed(sheet) {
		style = template.CSS("@scope(svg:not(.chart)){" + sheet + "}") //nolint:gosec // checked
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
