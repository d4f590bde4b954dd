package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"parley/internal/ask/wire/body"
	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
)

// httpServer returns the server of the gateway. Its requests live until base is done.
func (g *Gateway) httpServer(base context.Context) *http.Server {
	guard := &auth.Guard{Access: g.cfg.Access, Keys: g.keys, Public: public, Refuse: g.refuse, Patience: g.cfg.Patience}
	var srv *http.Server
	take := func(x *exchange, w http.ResponseWriter, r *http.Request) bool { return g.take(base, srv, x, w, r) }
	srv = guard.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.handle(w, r, take) }))
	srv.BaseContext = func(net.Listener) context.Context { return base }
	srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 250}
	srv.Protocols = &http.Protocols{}
	srv.ConnContext = connContext
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	return srv
}

// public reports whether a request needs no key.
func public(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// refuse answers a request that the guard refused, in the format of its endpoint.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	api := format.Chat
	if rt, ok := parse(r.Method, r.URL.EscapedPath()); ok {
		api = rt.API
	}
	newClient(w, g.cfg.Patience).whole(why.Status, api.AppendError(nil, why.Status, why.Code, why.Message), nil)
}

// take answers a call over its own connection: see package conn.
func (g *Gateway) take(base context.Context, srv *http.Server, x *exchange, w http.ResponseWriter, r *http.Request) bool {
	l, ok := g.streams.Take(w, r)
	if !ok {
		return false
	}
	x.out = newClient(l, g.cfg.Patience)
	x.out.drop = l.Drop
	g.calls.Go(func() {
		ctx, cancel := context.WithCancelCause(base)
		defer cancel(nil)
		l.Watch(func() { cancel(context.Canceled) })
		defer l.Release(srv)
		defer x.count()
		defer func() {
			if recover() != nil { // as in net/http, a panic ends only its call
				l.Drop()
			}
		}()
		x.answer(ctx, cancel)
	})
	return true
}

// handle answers one request.
func (g *Gateway) handle(w http.ResponseWriter, r *http.Request, take takeFunc) {
	g.calls.Add(1)
	defer g.calls.Done()
	rt, ok := parse(r.Method, r.URL.EscapedPath())
	if ok && rt.What == routeCall {
		g.serve(w, r, rt, take)
		return
	}
	g.other(w, r, rt, ok)
}

// other answers a request that is not a call to a provider.
func (g *Gateway) other(w http.ResponseWriter, r *http.Request, rt *gatewayRoute, ok bool) {
	newClient(w, closeWait+g.cfg.Patience).bound()
	switch {
	case r.URL.Path == "/healthz":
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case r.URL.Path == "/readyz":
		g.readyz(w)
	case r.URL.Path == "/metrics":
		g.metrics.ServeHTTP(w, r)
	case !ok:
		b := format.Chat.AppendError(nil, http.StatusNotFound, "unknown_url", "there is no "+r.Method+" "+r.URL.Path+": "+endpoints())
		newClient(w, g.cfg.Patience).whole(http.StatusNotFound, b, nil)
	case rt.What == routeStatus:
		g.status(w, r, rt)
	default:
		g.close(w, r, rt)
	}
}

// readyz reports whether calls can be served.
func (g *Gateway) readyz(w http.ResponseWriter) {
	open, all := g.sessions.Counts()
	state := map[string]any{"status": "ready", "sessions_open": open, "sessions": all, "replay": g.cfg.Replay}
	status := http.StatusOK
	switch {
	case g.ledger != nil && g.ledger.Err() != nil:
		status, state["status"], state["error"] = http.StatusServiceUnavailable, "broken", g.ledger.Err().Error()
	case g.draining.Load():
		status, state["status"] = http.StatusServiceUnavailable, "draining"
	}
	writeJSON(w, status, state)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{}`) // not reached: v is plain data
	}
	w.Header()["Content-Type"] = []string{"application/json"}
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone
}

// gatewayFault answers a bad request about a session.
func gatewayFault(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]string{"type": code, "code": code, "message": message}})
}

func (g *Gateway) status(w http.ResponseWriter, r *http.Request, rt *gatewayRoute) {
	s, err := g.sessions.Find(r.Context(), Name{Owner: g.owner(r.Header), ID: rt.Session}, false)
	if err != nil {
		g.missing(w, rt.Session, err)
		return
	}
	writeJSON(w, http.StatusOK, s.Status())
}

func (g *Gateway) missing(w http.ResponseWriter, id string, err error) {
	if errors.Is(err, errUnknown) {
		gatewayFault(w, http.StatusNotFound, "session_unknown", "there is no session "+id+" of this key: a session belongs to the key that opened it")
		return
	}
	gatewayFault(w, http.StatusInternalServerError, "record_failed", err.Error())
}

// closeWait is how long closing a session waits for its calls in flight.
const closeWait = 30 * time.Second

func (g *Gateway) close(w http.ResponseWriter, r *http.Request, rt *gatewayRoute) {
	s, err := g.sessions.Find(r.Context(), Name{Owner: g.owner(r.Header), ID: rt.Session}, false)
	if err != nil {
		g.missing(w, rt.Session, err)
		return
	}
	var c closing
	b, err := newClient(w, g.cfg.Patience).read(r, 1<<20)
	if err == nil && len(b) > 0 {
		err = cmp.Or(body.CheckNames(b, nil), json.Unmarshal(b, &c))
	}
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		gatewayFault(w, http.StatusBadRequest, "body_invalid", "close: "+err.Error()+`: want {"reason": TEXT, "completion_mode": "complete", "seal" or "abort", "scores": {NAME: NUMBER}}`)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), closeWait)
	defer cancel()
	status, err := g.sessions.Close(ctx, s, c)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		writeJSON(w, http.StatusAccepted, status) // it ends with its last call
	case err != nil:
		gatewayFault(w, http.StatusInternalServerError, "record_failed", err.Error())
	default:
		writeJSON(w, http.StatusOK, status)
	}
}
