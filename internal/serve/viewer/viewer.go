// Package viewer serves run files as web pages, while they are played and afterwards.
//
// Pages are rendered here and read a window of the run file, so the browser holds a screen,
// whatever the size of the run. A page that is open learns by an event that its run has grown, and
// then fetches its live parts again.
//
// It promises to stay out of the way of a run that is being played: it never writes to the run
// file, and its reads are short. Text of models stays text. A browser needs the key of the server;
// it gets the key in the fragment of the address, which is sent to nobody, and exchanges it for a
// cookie.
//
// It has no statistics of its own: packages results and report make them.
//
// viewer.go has the server and its keys, and page.go and list.go what pages share. library.go finds and opens run files, and
// run.go follows an open one. Each other file is a page, or a part of some: the list of runs (catalog.go), a run
// (overview.go, statistics.go), its episodes (episodes.go, episode.go, transcript.go, markdown.go), searches,
// comparisons, the seats of people, and the export of pages as files.
package viewer

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"html/template"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/internal/kit/auth"
	"parley/internal/read/report"
	"parley/journal"
	"parley/world"
)

// Config says what a Viewer shows.
type Config struct {
	// Paths are run files, and folders with run files.
	Paths []string
	// KindOf returns the kind of a run, or zero if it is unknown.
	KindOf func(*journal.Begun) world.Kind
	// Keys are the keys of the server.
	Keys []string
	// Access lists other names of the server.
	Access auth.Access
	// ClientTimeout is how long a client may take to send a request. Default: 1 minute.
	ClientTimeout time.Duration
	// Tool is the program's name and version.
	Tool string
}

// Viewer serves run files.
type Viewer struct {
	cfg     Config
	pages   *template.Template
	guard   auth.Guard
	runs    *library
	stats   *statisticsCache
	catalog *catalog
	ctx     context.Context //nolint:containedctx // of Run: background work ends with it
	wg      sync.WaitGroup  // background work
	assets  assetSet
	token   string // the cookie of browsers that sent the key
	seed    maphash.Seed
	secrets seatSecrets
	slots   slots // for pages that are being made
	guests  slots // for pages of seats
	static  bool  // the pages are written to files: see Export
}

// New returns a viewer. It fails if a path does not exist.
func New(cfg Config) (*Viewer, error) {
	all, err := newLibrary(cfg.Paths, cfg.KindOf)
	if err != nil {
		return nil, err
	}
	v := &Viewer{cfg: cfg, runs: all, assets: newAssets(), token: rand.Text(), seed: maphash.MakeSeed(), slots: make(slots, maxPages), guests: make(slots, maxSeatPages)}
	v.stats = &statisticsCache{Tool: cfg.Tool, Background: func(f func(context.Context)) { v.wg.Go(func() { f(v.ctx) }) }}
	v.catalog = &catalog{Library: all, KindOf: cfg.KindOf, Background: v.stats.Background}
	if v.pages, err = templates(v.assets); err != nil {
		return nil, err
	}
	v.guard = auth.Guard{
		Access: cfg.Access, Keys: auth.HashKeys(cfg.Keys), Pages: true, ClientTimeout: cfg.ClientTimeout,
		Public: v.public, Refuse: v.refuse,
	}
	return v, nil
}

// Run serves until ctx is done.
func (v *Viewer) Run(ctx context.Context, ln net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	v.ctx = ctx
	srv := v.guard.Server(v.routes())
	srv.BaseContext = func(net.Listener) context.Context { return ctx } // pages that wait for events end with ctx
	served := make(chan error, 1)
	v.wg.Go(func() { served <- srv.Serve(ln) })
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	stop()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if closing := srv.Shutdown(late); closing != nil {
		closing = srv.Close()
		err = errors.Join(err, closing)
	}
	v.wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	v.runs.Close()
	return err
}

// get opens a run, and follows it until Run ends.
func (v *Viewer) get(ctx context.Context, name string) (*Run, error) {
	r, fresh, err := v.runs.Get(ctx, name)
	if fresh && v.static {
		_, err = r.Index.Update(ctx)
		return r, err
	}
	if fresh && v.ctx.Err() == nil {
		v.wg.Go(func() { r.Follow(v.ctx) })
	}
	return r, err
}

func (v *Viewer) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{name}", v.assets)
	mux.HandleFunc("POST /session", v.signIn)
	for pattern, h := range map[string]func(*http.Request) (*screen, error){
		"GET /compare":                              v.compare,
		"GET /search":                               v.searchAll,
		"GET /{$}":                                  v.list,
		"GET /run/{run}":                            v.overview,
		"GET /run/{run}/episodes":                   v.episodes,
		"GET /run/{run}/episodes/{episode}":         v.episode,
		"GET /run/{run}/search":                     v.search,
		"POST /run/{run}/episodes/{episode}/labels": v.label,
		"GET /run/{run}/steer":                      v.steer,
		"POST /run/{run}/steer":                     v.steer,
		"GET /run/{run}/seats":                      v.seatLinks,
	} {
		mux.HandleFunc(pattern, v.page(v.slots, h))
	}
	mux.HandleFunc("GET /run/{run}/seats/{seat}", v.page(v.guests, v.seat))
	mux.HandleFunc("POST /run/{run}/seats/{seat}", v.page(v.guests, v.answerSeat))
	mux.HandleFunc("GET /run/{run}/episodes/{episode}/{call...}", v.calls)
	mux.HandleFunc("GET /run/{run}/report", v.report)
	mux.HandleFunc("GET /events", v.allEvents)
	mux.HandleFunc("GET /run/{run}/events", runEvents(func(r *http.Request) (*Run, error) { return v.get(r.Context(), r.PathValue("run")) }))
	mux.HandleFunc("GET /run/{run}/seats/{seat}/events", runEvents(v.seatRun))
	mux.HandleFunc("GET /", v.page(v.slots, func(*http.Request) (*screen, error) { return nil, errNoPage }))
	return mux
}

// templates returns the templates of all pages.
func templates(assets assetSet) (*template.Template, error) {
	t, err := report.Templates()
	if err != nil {
		return nil, err
	}
	t, err = t.Funcs(templateFuncs(assets)).ParseFS(pagesText, "*.gohtml")
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return t, nil
}

var (
	//go:embed view.css
	styleText string
	//go:embed view.js
	scriptText string
	//go:embed signin.js
	signInText string
	//go:embed seat.css
	seatStyleText string
	//go:embed seat.js
	seatScriptText string
	//go:embed *.gohtml
	pagesText embed.FS
)

func newAssets() assetSet {
	style, script := report.Assets()
	return newAssetSet(map[string]string{
		"view.css": style + styleText + seatStyleText, "page.js": script, "view.js": scriptText, "signin.js": signInText, "seat.js": seatScriptText,
	})
}

// cookieName is the name of the cookie. A browser sends it to every port of a host, so it has the port.
func cookieName(r *http.Request) string {
	port := "0"
	if i := strings.LastIndexByte(r.Host, ':'); i >= 0 {
		port = r.Host[i+1:]
	}
	return "parley-" + strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, port)
}

// public reports whether a request needs no key in a header: it has the cookie, or it is for
// what a browser needs to sign in.
func (v *Viewer) public(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, "/assets/") || r.URL.Path == "/session" {
		return true
	}
	return v.owner(r) || v.isGuest(r)
}

// owner reports whether a request has the cookie or the key of the server.
func (v *Viewer) owner(r *http.Request) bool {
	if v.guard.Keys.Has(auth.SentKey(r.Header)) {
		return true
	}
	c, err := r.Cookie(cookieName(r))
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(v.token)) == 1
}

// maxKey is how long a key may be.
const maxKey = 1 << 16

// signIn exchanges the key, which is the body, for a cookie that is valid until the server ends. The cookie is not the
// key: browsers send cookies to every port of a host.
func (v *Viewer) signIn(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxKey))
	switch {
	case err == nil && v.signInSeat(w, r, r.URL.Query().Get("page"), string(b)):
		w.WriteHeader(http.StatusNoContent)
		return
	case err != nil || !v.guard.Keys.Has(string(b)):
		http.Error(w, "this is not the key of this server", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: v.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: auth.Encrypted(r)}) //nolint:gosec // the server speaks HTTP on the loopback interface
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers a refused request. A browser without a key gets a page that looks for the key in
// the address.
func (v *Viewer) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	if why.Status == http.StatusUnauthorized && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		v.render(&screen{status: why.Status, template: "signin", Title: "Sign in", Data: isSeatPage(r.URL.EscapedPath())})(w)
		return
	}
	body, err := json.Marshal(map[string]any{"error": map[string]string{"code": why.Code, "message": why.Message}})
	if err != nil {
		body = nil // cannot happen: it is text
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	secureHeaders(h)
	w.WriteHeader(why.Status)
	_, _ = w.Write(body) // the client is gone
}
