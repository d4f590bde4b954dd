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

// Clean returns an SVG picture that somebody else drew with nothing left in it that could
// fetch or run anything: elements and attributes that are not known to be harmless are
// left out. Its style sheets come apart, since a page says in its head which ones it
// has; one that refers to anything outside is left out too. The error says why it is no SVG.
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
		return "", "", errors.New("chart: svg: there is no <svg> in it")
	}
	if sheet := c.style.String(); calm(sheet) && !strings.Contains(sheet, "<") {
		style = template.CSS(sheet) //nolint:gosec // calm
	}
	return template.HTML(c.b.String()), style, nil //nolint:gosec // it was written by take, word by word
}

type cleaner struct {
	b     strings.Builder
	style strings.Builder
	svg   bool
	sheet bool // inside a style sheet
	skip  int  // how deep inside an element that is left out
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
			if quiet(a) {
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

// quiet says whether an attribute only says how to draw. Those that refer to something may
// refer to the picture itself.
func quiet(a xml.Attr) bool {
	name := a.Name.Local
	switch {
	case !calm(a.Value):
		return false
	case name == "href":
		return strings.HasPrefix(a.Value, "#")
	case strings.HasPrefix(strings.ToLower(name), "on"), name == "style", name == "xmlns", a.Name.Space == "xmlns":
		return false
	default:
		return plainName(name)
	}
}

// calm says whether a value or a style sheet refers to nothing outside.
func calm(text string) bool {
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
