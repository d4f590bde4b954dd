package viewer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"html/template"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/kit/sse"
	"parley/internal/kit/statmath"
	"parley/internal/kit/text"
	"parley/internal/read/report"
	"parley/internal/run/runfile"
)

// errNoPage means that there is no such page.
var errNoPage = errors.New("there is no such page")

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
	of     *Run         // whose page it is; nil: of no run
	known  string       // the tag of the page that the browser has
	Style  template.CSS // colours of the kind, and of drawings
	Data   any
}

// link is a link. Here means that it is the current page.
type link struct {
	Text, To string
	Here     bool
}

func templateFuncs(assets assetSet) template.FuncMap {
	return template.FuncMap{"asset": assets.Address, "grouped": text.GroupDigits, "groupedFloat": func(x float64) string { return text.GroupDigits(int(math.Round(x))) }, "grouped64": func(n int64) string { return text.GroupDigits(int(n)) }, "dollars": report.Dollars, "cost": report.Cost, "duration": report.Duration, "quantity": report.Interval, "mean": meanText, "share": percent, "list": func(all ...any) []any { return all }, "float": func(n int) float64 { return float64(n) }}
}

// percent returns a part of a whole in percent.
func percent(part, whole int) string {
	return strconv.FormatFloat(100*float64(part)/float64(max(1, whole)), 'f', 2, 64)
}

// meanText formats a number without its interval.
func meanText(q statmath.Quantity) string {
	text, _, _ := strings.Cut(report.Interval(q), " ")
	return text
}

// page returns a handler that renders what f returns. A page is made in one of the slots. The form is read before that,
// and the page is sent after it: a client may take its time.
func (v *Viewer) page(in slots, f func(*http.Request) (*screen, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := readForm(r, maxSeatForm); err != nil {
			v.render(errorPage(fmt.Errorf("%w: it did not arrive: %w", errForm, err)))(w)
			return
		}
		var send func(http.ResponseWriter)
		made := in.with(r.Context(), func() {
			p, err := (*screen)(nil), fmt.Errorf("%w: it is longer than %d bytes", errBadRequest, maxAddress)
			if len(r.URL.RawQuery) <= maxAddress {
				p, err = f(r)
			}
			if errors.Is(err, runfile.ErrDamaged) && v.salvage(r) {
				p, err = f(r) // what can be read
			}
			if err != nil {
				p = errorPage(err)
			}
			if to := p.to; to != "" {
				send = func(w http.ResponseWriter) { http.Redirect(w, r, to, http.StatusSeeOther) }
				return
			}
			p.known = r.Header.Get("If-None-Match")
			send = v.render(p)
		})
		if made {
			send(w)
		}
	}
}

// maxAddress is how long the parameters of an address may be: pages repeat them in their links.
const maxAddress = 8 << 10

// salvage finds out what is damaged in the runs of a request, so that the rest can be read. It reports whether
// that is known, by this request or another.
func (v *Viewer) salvage(req *http.Request) (found bool) {
	q := req.URL.Query()
	for _, name := range []string{req.PathValue("run"), q.Get("a"), q.Get("b")} {
		if name == "" {
			continue
		}
		r, err := v.get(req.Context(), name)
		if err == nil && r.Store.Lost() == nil {
			err = r.Store.Salvage(req.Context())
		}
		found = found || err == nil && r.Store.Lost() != nil
	}
	return found
}

// problem is what the page of an error says: plain words, and the error itself for those who look for its cause.
type problem struct{ Words, Detail string }

// errorPage is the page of an error.
func errorPage(err error) *screen {
	p := &screen{status: http.StatusInternalServerError, template: "failure", Title: "Error"}
	d := problem{Words: "This page could not be made. Load it again. If that does not help, the detail below says why.", Detail: err.Error()}
	switch {
	case errors.Is(err, errUnreadable) && !errors.Is(err, errNoRun) && !errors.Is(err, fs.ErrNotExist):
		p.Title, d.Words = "Unreadable run file", "Nothing of this file can be read, so it has no pages. Other runs are not affected. The detail below says what is wrong with it."
	case errors.Is(err, errNoPage), errors.Is(err, errNoRun), errors.Is(err, errNoSeat), errors.Is(err, fs.ErrNotExist):
		p.status, p.Title, d.Words = http.StatusNotFound, "Not found", "There is no such page. The run file may have been moved or deleted."
	case errors.Is(err, errForm):
		_, why, _ := strings.Cut(err.Error(), errForm.Error()+": ")
		p.status, p.Title, d.Words = http.StatusBadRequest, "Nothing was changed", "The form cannot be used as it is: "+why+". Go back and change it."
	case errors.Is(err, errBadRequest):
		p.status, p.Title, d.Words = http.StatusBadRequest, "Bad request", "The address has something that this page cannot use. The detail below says what. Go back and change it."
	case errors.Is(err, runfile.ErrDamaged):
		p.status, p.Title, d.Words = http.StatusGone, "Damaged run file", "This part of the run file is damaged. Other pages show what can still be read."
	}
	p.Data = d
	return p
}

// errBadRequest means that a parameter of the address is wrong.
var errBadRequest = errors.New("the address is wrong")

// errForm means that a form has something that cannot be used.
var errForm = errors.New("the form is wrong")

// render renders a page whole. send sends it.
func (v *Viewer) render(p *screen) (send func(http.ResponseWriter)) {
	if p.Static = v.static; p.Static {
		p.Live = ""
	}
	var b bytes.Buffer
	err := v.pages.ExecuteTemplate(&b, p.template, p)
	tag := fmt.Sprintf(`"%x"`, maphash.Bytes(v.seed, b.Bytes())) // a page that did not change is not sent again
	return func(w http.ResponseWriter) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", contentPolicy(p.Style))
		h.Set("Cache-Control", "no-store")
		h.Set("ETag", tag)
		secureHeaders(h)
		if p.status != 0 {
			w.WriteHeader(p.status)
		} else if p.known == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(b.Bytes()) // the browser is gone
	}
}

// secureHeaders sets the headers that every page has.
func secureHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without a referrer, a browser does not say from which origin a form is
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// contentPolicy is the content security policy of a page: its own scripts and styles, and nothing else.
func contentPolicy(style template.CSS) string {
	styles := "'self'"
	if style != "" {
		styles += " " + report.PolicyHash(string(style))
	}
	return "default-src 'none'; script-src 'self'; style-src " + styles + "; connect-src 'self'; img-src 'self' data:; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"
}

// Policy is the content security policy of a page that is a file.
func (p *screen) Policy() string {
	var own []string
	for part := range strings.SplitSeq(contentPolicy(p.Style), "; ") {
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
func stylesOf(first template.CSS, blocks []report.Block) template.CSS {
	all := string(first)
	for _, b := range blocks {
		if s := string(b.Style); !strings.Contains(all, s) {
			all += s
		}
	}
	return template.CSS(all) //nolint:gosec // ours, or from chart.Clean
}

// slots bound how many pages are made at once. Who waits for a client, or for the process that plays a run, holds none.
type slots chan struct{}

// maxPages is how many pages are made at once: each may need its own connection to a run file. Pages of seats have
// slots of their own, so that people with a link do not keep the owner of the run waiting.
const (
	maxPages     = 16
	maxSeatPages = 4
)

// with calls f in a slot. It reports whether it did: not if ctx is done before a slot is free.
func (s slots) with(ctx context.Context, f func()) bool {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-s }()
	f()
	return true
}

// without calls f, which waits, and lends the slot of its caller to others meanwhile.
func (s slots) without(f func()) {
	<-s
	defer func() { s <- struct{}{} }()
	f()
}

// readForm reads the form of a request into memory. A form that is too long is cut there: who reads it finds that it is.
func readForm(r *http.Request, limit int64) error {
	if r.Method != http.MethodPost {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	r.Body = io.NopCloser(bytes.NewReader(b))
	return err
}

// assetSet are the style sheets and scripts of a server, by the last step of their address.
type assetSet map[string]asset

type asset struct{ kind, body, tag string }

// newAssetSet returns assets with the given texts.
func newAssetSet(texts map[string]string) assetSet {
	all := assetSet{}
	for name, body := range texts {
		kind := "text/javascript; charset=utf-8"
		if strings.HasSuffix(name, ".css") {
			kind = "text/css; charset=utf-8"
		}
		sum := sha256.Sum256([]byte(body))
		all[name] = asset{kind, body, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return all
}

// version is the query of an address that a browser may keep for ever: another text has another one.
func (a asset) version() string { return "v=" + strings.Trim(a.tag, `"`) }

// Address returns the address of an asset.
func (all assetSet) Address(name string) string {
	return "/assets/" + name + "?" + all[name].version()
}

// ServeHTTP serves the asset of the path value "name".
func (all assetSet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := all[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Etag", a.tag)
	h.Set("Cache-Control", "no-cache")
	if r.URL.RawQuery == a.version() {
		h.Set("Cache-Control", "max-age=31536000, immutable")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = io.WriteString(w, a.body) // the browser is gone
}

// heartbeat is how often an event stream says that it is alive, so that a browser that is gone is noticed.
const heartbeat = 15 * time.Second

// runEvents returns a handler that tells a page whenever its run has grown, and not what it has become: the page fetches
// that.
func runEvents(open func(*http.Request) (*Run, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		r, err := open(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		changed, end := r.Watch()
		defer end()
		// When the run is gone, the browser asks again, and gets the events of a file that took its place.
		sendEvents(w, req, changed, r.Gone(), heartbeat, func() bool { return false })
	}
}

// allEvents tells the list of runs that one of them was changed, added or removed.
func (v *Viewer) allEvents(w http.ResponseWriter, req *http.Request) {
	last := v.runs.Stamp()
	sendEvents(w, req, nil, nil, listTick, func() bool {
		before := last
		last = v.runs.Stamp()
		return last != before
	})
}

// sendEvents sends an event for each change, until gone is closed. It looks for one at every tick too, and shows then at least that it
// is alive.
func sendEvents(w http.ResponseWriter, req *http.Request, changed <-chan int, gone <-chan struct{}, tick time.Duration, look func() bool) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	secureHeaders(h)
	control := http.NewResponseController(w)
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for control.Flush() == nil {
		grown := true
		select {
		case <-req.Context().Done():
			return
		case <-gone:
			return
		case <-changed:
		case <-beat.C:
			grown = look()
		}
		text := []byte(": alive\n\n")
		if grown {
			text = sse.End(append(sse.Begin(nil, "grown"), '1'))
		}
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

// listTick is how often the files of the list are looked at.
const listTick = 2 * time.Second
