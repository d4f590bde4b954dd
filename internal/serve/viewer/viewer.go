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
// It has no statistics of its own: packages view and report make them.
package viewer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"html/template"
	"net"
	"net/http"
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
	// Patience is how long a client may take to send a request. Default: 1 minute.
	Patience time.Duration
	// Tool is the program's name and version.
	Tool string
}

// Viewer serves run files.
type Viewer struct {
	cfg     Config
	pages   *template.Template
	guard   auth.Guard
	runs    *runLibrary
	stats   *board
	catalog *runCatalog
	ctx     context.Context //nolint:containedctx // of Run: background work ends with it
	wg      sync.WaitGroup  // background work
	assets  staticAssets
	token   string // the cookie of browsers that sent the key
	seed    maphash.Seed
	seats   server
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
	v.stats = &board{Tool: cfg.Tool, Background: func(f func(context.Context)) { v.wg.Go(func() { f(v.ctx) }) }}
	v.catalog = &runCatalog{Library: all, KindOf: cfg.KindOf, Background: v.stats.Background}
	if v.pages, err = templates(v.assets); err != nil {
		return nil, err
	}
	v.seats = server{Get: v.get, File: v.runs.File, Path: runPath, Owner: v.owner, Wait: v.guests.without, Cookie: func(r *http.Request) string { return cookieName(r) + "-seat" }}
	v.guard = auth.Guard{
		Access: cfg.Access, Keys: auth.New(cfg.Keys), Pages: true, Patience: cfg.Patience,
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
	if err != nil {
		err = fmt.Errorf("viewer: %w", err)
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
		"GET /run/{run}/seats":                      v.seatList,
	} {
		mux.HandleFunc(pattern, v.page(v.slots, h))
	}
	mux.HandleFunc("GET /run/{run}/seats/{seat}", v.page(v.guests, shown(v.seats.Page)))
	mux.HandleFunc("POST /run/{run}/seats/{seat}", v.page(v.guests, shown(v.seats.Answer)))
	mux.HandleFunc("GET /run/{run}/episodes/{episode}/{call...}", v.calls)
	mux.HandleFunc("GET /run/{run}/report", v.report)
	mux.HandleFunc("GET /events", v.allEvents)
	mux.HandleFunc("GET /run/{run}/events", events(func(r *http.Request) (*Run, error) { return v.get(r.Context(), r.PathValue("run")) }))
	mux.HandleFunc("GET /run/{run}/seats/{seat}/events", events(v.seats.Run))
	mux.HandleFunc("GET /", v.page(v.slots, func(*http.Request) (*screen, error) { return nil, errNotFound }))
	return mux
}

// templates returns the templates of all pages.
func templates(assets staticAssets) (*template.Template, error) {
	t, err := report.Templates()
	if err != nil {
		return nil, err
	}
	t, err = t.Funcs(functions(assets)).ParseFS(pagesText, "*.gohtml")
	if err == nil {
		t, err = t.Parse(seatsText)
	}
	if err != nil {
		return nil, fmt.Errorf("viewer: template: %w", err)
	}
	return t, nil
}
