package viewer

import (
	"fmt"
	"net/http"
	"net/url"
)

// formatted is the value of the parameter text of a page that shows texts as Markdown.
const formatted = "markdown"

// texts is how a page shows what was said: as it was written, or formatted.
type texts struct {
	format *formatter // nil: as it was written
	Switch string     // the same page with the other; empty: it has none
}

// Formatted reports whether texts are formatted.
func (t texts) Formatted() bool { return t.format != nil }

// textsOf reads the parameter text.
func (v *Viewer) textsOf(req *http.Request, anchor string) (t texts, err error) {
	q := req.URL.Query()
	switch text := q.Get("text"); text {
	case "":
		q.Set("text", formatted)
	case formatted:
		t.format = newMarkdown()
		q.Del("text")
	default:
		return t, fmt.Errorf("viewer: text=%q: %w: want %s, or nothing for texts as they were written", text, errBadRequest, formatted)
	}
	if !v.static {
		t.Switch = (&url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: q.Encode(), Fragment: anchor}).String()
	}
	return t, nil
}

// keep returns the address of a page that shows texts as this one does.
func (t texts) keep(address string) string {
	u, err := url.Parse(address)
	if err != nil || !t.Formatted() || address == "" {
		return address
	}
	q := u.Query()
	q.Set("text", formatted)
	u.RawQuery = q.Encode()
	return u.String()
}
