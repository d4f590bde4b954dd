package viewer

import (
	"bytes"
	"errors"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"strings"

	"parley/internal/report/page"
	"parley/internal/serve/viewer/library"
	"parley/internal/serve/viewer/listing"
	"parley/internal/serve/viewer/seats"
	"parley/internal/store/sqlite"
)

// errNotFound means that there is no such page.
var errNotFound = errors.New("there is no such page")

// screen is a page to render.
type screen struct {
	status   int    // of HTTP; 0: 200
	template string // its name
	to       string // redirect instead

	Title  string
	Above  []link // the pages above this one, from the list of runs down
	Tabs   []link
	Live   string       // the address of events; empty: the page does not change
	Static bool         // the page is a file: it has no forms
	Style  template.CSS // colours of the kind, and of drawings
	Data   any
}

// link is a link. Here means that it is the current page.
type link struct {
	Text, To string
	Here     bool
}

func functions() template.FuncMap {
	return template.FuncMap{"grouped": page.Grouped, "groupedFloat": func(x float64) string { return page.Grouped(int(math.Round(x))) }, "grouped64": func(n int64) string { return page.Grouped(int(n)) }, "dollars": page.Dollars, "duration": page.Duration}
}

// page returns a handler that renders what f returns.
func (v *Viewer) page(f func(*http.Request) (*screen, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case v.slots <- struct{}{}:
			defer func() { <-v.slots }()
		case <-r.Context().Done():
			return
		}
		p, err := f(r)
		if err != nil {
			p = failure(err)
		}
		if p.to != "" {
			http.Redirect(w, r, p.to, http.StatusSeeOther)
			return
		}
		v.write(w, p)
	}
}

// failure is the page of an error.
func failure(err error) *screen {
	p := &screen{status: http.StatusInternalServerError, template: "failure", Title: "Error", Data: err.Error()}
	switch {
	case errors.Is(err, errNotFound), errors.Is(err, library.ErrNotFound), errors.Is(err, seats.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		p.status, p.Title = http.StatusNotFound, "Not found"
	case errors.Is(err, errBadRequest):
		p.status, p.Title = http.StatusBadRequest, "Bad request"
	case errors.Is(err, sqlite.ErrDamaged):
		p.Title = "Damaged run file"
	}
	return p
}

// errBadRequest means that a parameter of the address is wrong.
var errBadRequest = listing.ErrAddress

// write renders a page. It is rendered whole before any of it is sent.
func (v *Viewer) write(w http.ResponseWriter, p *screen) {
	if p.Static = v.static; p.Static {
		p.Live = ""
	}
	var b bytes.Buffer
	err := v.pages.ExecuteTemplate(&b, p.template, p)
	if err != nil {
		http.Error(w, "viewer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy(p.Style))
	h.Set("Cache-Control", "no-store")
	secure(h)
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	_, _ = w.Write(b.Bytes()) // the browser is gone
}

// secure sets the headers that every page has.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without a referrer, a browser does not say from which origin a form is
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// policy is the content security policy of a page: its own scripts and styles, and nothing else.
func policy(style template.CSS) string {
	styles := "'self'"
	if style != "" {
		styles += " " + page.Hash(string(style))
	}
	return "default-src 'none'; script-src 'self'; style-src " + styles + "; connect-src 'self'; img-src 'self' data:; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"
}

// Policy is the content security policy of a page that is a file.
func (p *screen) Policy() string {
	var own []string
	for part := range strings.SplitSeq(policy(p.Style), "; ") {
		if !strings.HasPrefix(part, "frame-ancestors") { // it is for headers only
			own = append(own, strings.ReplaceAll(part, "'self'", "'self' file:"))
		}
	}
	return strings.Join(own, "; ")
}

// runPath returns the address of a page of a run.
func runPath(run string, more ...string) string {
	var path strings.Builder
	path.WriteString("/run/" + url.PathEscape(run))
	for _, m := range more {
		path.WriteString("/" + url.PathEscape(m))
	}
	return path.String()
}

// StyleElement returns the style sheet of the page as an element.
func (p *screen) StyleElement() template.HTML {
	if p.Style == "" {
		return ""
	}
	return template.HTML("<style>" + string(p.Style) + "</style>") //nolint:gosec // ours, or from chart.Clean
}

// stylesOf joins style sheets without duplicates.
func stylesOf(first template.CSS, blocks []page.Block) template.CSS {
	all := string(first)
	for _, b := range blocks {
		if s := string(b.Style); !strings.Contains(all, s) {
			all += s
		}
	}
	return template.CSS(all) //nolint:gosec // ours, or from chart.Clean
}
