package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"parley/internal/ask/cache"
	"parley/internal/ask/credential"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/internal/ask/redact"
	"parley/internal/ask/settings"
	"parley/internal/kit/auth"
	"parley/internal/run/engine"
	"parley/internal/run/program"
	"parley/internal/serve/gateway/format"
	"parley/llm"
	"parley/world"
)

// Relays are the providers of a run, for its programs: what asks a model also passes on their calls as they came.
type Relays struct {
	mu     sync.Mutex
	byName map[string]*relay
}

// Model returns a model that passes on the calls of programs to a server of a provider, and everything else to m. keys may be nil, as
// for a provider without a wire format: it gets every call through m.
func (r *Relays) Model(p provider.Provider, keys *credential.Source, m llm.Model) (llm.Model, error) {
	u, err := openRelay(p, keys)
	if err != nil {
		return nil, err
	}
	u.model = m
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]*relay{}
	}
	if r.byName[p.Name] == nil { // of several servers of a provider, the first describes it
		r.byName[p.Name] = u
	}
	return u, nil
}

func (r *Relays) of(name string) *relay {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

// ProgramsConfig configures Programs.
type ProgramsConfig struct {
	// Dispatch makes the calls. Its lanes have models of Relays.
	Dispatch *dispatch.Dispatcher
	Relays   *Relays
	// Cache stores answers. Default: none.
	Cache *cache.Store
	// Settings are those of the run.
	Settings *settings.Settings
}

// Programs serves the calls of programs that answer asks of a run. It implements program.Sessions.
//
// It promises that only who knows the address of a session can use it; that a session ends with its program; that every call that
// was answered is recorded with its ask before its client sees the end of the answer; that a call that is recorded is not sent again; and
// that a program gets no key of a provider.
type Programs struct {
	g      *Gateway
	url    string
	srv    *http.Server
	zip    *zstd.Encoder
	served chan error

	mu     sync.Mutex
	within *engine.Within
	open   map[string]*programSession // by secret
}

var _ program.Sessions = (*Programs)(nil)

// maxAtOnce is how many calls of a session are read and made at once. Others wait, unread.
const maxAtOnce = 64

// ServePrograms serves programs of this machine, until Close.
func ServePrograms(ctx context.Context, c ProgramsConfig) (*Programs, error) {
	zip, err := newZip()
	if err != nil {
		return nil, err
	}
	cfg := Config{Cache: c.Cache, Settings: c.Settings}
	cfg.fill()
	p := &Programs{zip: zip, open: map[string]*programSession{}, served: make(chan error, 1)}
	p.g = &Gateway{cfg: cfg, dispatch: c.Dispatch, relays: c.Relays}
	p.g.sessions = newSessionSet(cfg, nil, &ledgerContents{})
	p.g.metrics = newMetrics(p.g)
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the calls of programs: %w", err)
	}
	p.url = "http://" + ln.Addr().String()
	p.srv = p.g.server(context.WithoutCancel(ctx), http.HandlerFunc(p.handle))
	go func() { p.served <- p.srv.Serve(ln) }()
	return p, nil
}

// Begin is given the run, which records the calls, before the first session is opened.
func (p *Programs) Begin(s *engine.Steering) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.within = s.Within()
}

// Drain begins no more calls, and waits for those in flight.
func (p *Programs) Drain() {
	p.mu.Lock()
	p.g.draining.Store(true)
	p.mu.Unlock()
	p.g.calls.Wait()
}

// Close ends the server. The sessions are closed.
func (p *Programs) Close() error {
	p.mu.Lock()
	p.g.draining.Store(true)
	p.mu.Unlock()
	err := p.srv.Close()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	p.g.calls.Wait()
	return err
}

// Open implements program.Sessions.
func (p *Programs) Open(ctx context.Context, a program.Ask) (program.Session, error) {
	p.mu.Lock()
	within := p.within
	p.mu.Unlock()
	if within == nil {
		return nil, errors.New("a session of a program: the run has not begun")
	}
	asked, err := within.Ask(a.Turn, a.Index)
	if err != nil {
		return nil, err
	}
	rules, err := format.ParseRules(append([]string{"path:$.model"}, a.Ignore...)) // the agent's model answers, whatever is named
	if err != nil {
		return nil, fmt.Errorf("the rules of agent %s: %w", a.Agent.Name, err)
	}
	entries, err := asked.Past(ctx)
	if err != nil {
		return nil, err
	}
	calls, err := callsOf(entries)
	if err != nil {
		return nil, err
	}
	s := &programSession{programs: p, secret: secret(), key: "parley-" + secret(), asked: asked, agent: asked.Agent(), maxCalls: a.MaxCalls, maxTokens: a.MaxTokens, again: a.Try > 0, slots: make(chan struct{}, maxAtOnce)}
	s.hide = redact.New(s.secret, s.key, s.URL())
	s.session = p.g.sessions.newSession(sessionName{ID: "of a program"}, a.Turn.Episode)
	s.session.program = s
	s.seen = map[[16]byte]int{}
	s.past = newReplay(calls, &Config{Rules: rules})
	for i := range calls {
		s.turn = max(s.turn, calls[i].Turn.Turn+1)
	}
	s.ready.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[s.secret] = s
	return s, nil
}

// secret returns a text that nobody can guess.
func secret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// handle answers one request of a program: /s/SECRET, and then an endpoint of a vendor's API.
func (p *Programs) handle(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/s/")
	name, rest, more := strings.Cut(path, "/")
	p.mu.Lock()
	s, drains := p.open[name], p.g.draining.Load()
	if !drains {
		p.g.calls.Add(1) // Drain waits for it
		defer p.g.calls.Done()
	}
	p.mu.Unlock()
	rt, known := parseRoute(r.Method, "/"+rest)
	switch {
	case !ok || !more || s == nil:
		refuse(w, p.g, format.Chat, http.StatusNotFound, "session_unknown", "there is no such session, or its program has ended")
	case drains:
		refuse(w, p.g, format.Chat, http.StatusServiceUnavailable, "draining", "the run stops")
	case known && rt.Session == "" && rt.What == routeCall && rt.API == format.Models:
		writeJSON(w, http.StatusOK, s.models(rt))
	case known && rt.API.Batched():
		refuse(w, p.g, rt.API, http.StatusNotFound, "unknown_url", "batches are not served to programs of a run: they would outlive their episodes")
	case known && rt.Session == "" && rt.What == routeCall:
		select {
		case s.slots <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		defer func() { <-s.slots }()
		rt.program = s
		p.g.serve(w, r, rt)
	default:
		p.g.serveUnknown(w, r)
	}
}

// programSession is the session of one try of a program. It implements program.Session.
type programSession struct {
	*session
	programs    *Programs
	secret, key string
	hide        *redact.Redactor // of both, and the address
	asked       *engine.Asked
	agent       world.Agent
	maxCalls    int
	maxTokens   int
	again       bool // it is another try, which may ask what it likes
	slots       chan struct{}

	used program.Used // session.mu guards it
}

var _ program.Session = (*programSession)(nil)

// URL implements program.Session.
func (s *programSession) URL() string { return s.programs.url + "/s/" + s.secret }

// Key implements program.Session.
func (s *programSession) Key() string { return s.key }

// Hide implements program.Session.
func (s *programSession) Hide(b []byte) []byte { return s.hide.Folded(b) }

// Close implements program.Session.
func (s *programSession) Close(ctx context.Context) program.Used {
	s.programs.mu.Lock()
	delete(s.programs.open, s.secret)
	s.programs.mu.Unlock()
	// It waits for calls in flight, which end soon: what they cost must be recorded with the ask.
	_, _ = s.programs.g.sessions.Close(context.WithoutCancel(ctx), s.session, closeRequest{Mode: modeAbort})
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.info.Record; r == nil || r.Found == r.Calls || s.again {
		s.used.Diverged = "" // it asked in another order
	}
	return s.used
}

// Keep records a call with its ask. It returns only when the call survives kill -9, or with the error.
func (s *programSession) Keep(c *Call) error {
	turned, replied := c.entries("", s.programs.zip)
	if err := s.asked.Keep(c.Turn.Turn, turned.Digest, turned.Notes, replied); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c)
	return nil
}

// count counts a call with its answer. session.mu is held.
func (s *programSession) count(c *Call) {
	s.used.Cost = s.used.Cost.Plus(c.Cost())
	switch {
	case c.Response != nil && c.Request != nil:
		s.used.Usage = s.used.Usage.Plus(c.Response.Usage)
	case c.Error != nil:
		s.used.Usage = s.used.Usage.Plus(c.Error.Usage)
	}
}

// repeated counts a call that a recorded one answered.
func (s *programSession) repeated(c *Call) {
	s.asked.Repeated()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.Calls++
	s.used.Repeated++
	s.count(c)
}

// missed notes that a call is not recorded, and how it differs.
func (s *programSession) missed(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used.Diverged == "" {
		s.used.Diverged = why
	}
}

// admit counts a call that is to be made. If a limit of the session is reached, it returns what to tell the program.
func (s *programSession) admit() (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.maxCalls > 0 && s.used.Calls >= s.maxCalls:
		s.used.Limit = "calls"
		return fmt.Sprintf("the limit of %d calls for this task is reached (params.calls): further calls are refused", s.maxCalls)
	case s.maxTokens > 0 && s.used.Usage.Total() >= s.maxTokens:
		s.used.Limit = "tokens"
		return fmt.Sprintf("the limit of %d tokens for this task is reached (params.tokens): further calls are refused", s.maxTokens)
	}
	s.used.Calls++
	return ""
}

// fault reports whether an error is about the run, and not about the call. Then the call is not recorded: it is made again when the run is
// resumed.
func (s *programSession) fault(e *llm.Error, gone bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e == nil:
		return false
	case errors.Is(e, llm.ErrMaxCost):
		s.used.Limit = "episode budget"
		return false
	case e.Kind == llm.KindBudget:
		s.used.Limit = "budget"
	case e.Kind == llm.KindCanceled && !gone && s.state == stateOpen: // the run stops
	case !engine.AboutRun(e):
		return false
	}
	if s.used.Fault == nil {
		s.used.Fault = e
	}
	return true
}

// failed returns the fault of an earlier call of the session; nil: there was none.
func (s *programSession) failed() *llm.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used.Fault
}

// target returns the model of the agent.
func (s *programSession) target() (*target, *llm.Error) {
	if err := s.programs.g.dispatch.Ready(s.agent.Model); err != nil {
		return nil, llm.AsError(err)
	}
	name, _ := llm.SplitModel(s.agent.Model)
	u := s.programs.g.relays.of(name)
	if u == nil {
		return nil, &llm.Error{Kind: llm.KindBadRequest, Message: "provider " + name + " does not serve programs"}
	}
	return &target{upstream: u, model: s.agent.Model, fallbacks: s.agent.Fallbacks}, nil
}

// models lists the one model that a program can ask, under every name, as the vendors list theirs.
func (s *programSession) models(rt *route) any {
	one := map[string]any{
		"id": s.agent.Model, "object": "model", "created": 0, "owned_by": "parley",
		"type": "model", "display_name": s.agent.Model, "created_at": "1970-01-01T00:00:00Z",
	}
	if rt.Suffix != "" {
		return one
	}
	return map[string]any{"object": "list", "data": []any{one}, "has_more": false}
}

func refuse(w http.ResponseWriter, g *Gateway, api format.API, status int, code, message string) {
	newClient(w, g.cfg.ClientTimeout).whole(status, api.AppendError(nil, status, code, message), nil)
}

// server returns a server of h for clients that the guard admits. Its requests live until base is done.
func (g *Gateway) server(base context.Context, h http.Handler) *http.Server {
	guard := &auth.Guard{Access: g.cfg.Access, Keys: g.keys, Public: needsNoKey, Refuse: g.refuse, ClientTimeout: g.cfg.ClientTimeout}
	srv := guard.Server(h)
	srv.Handler = moveKey(srv.Handler)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 250}
	srv.Protocols = &http.Protocols{}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	return srv
}
