package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/dispatch"
	"parley/internal/ask/wire/body"
	"parley/internal/kit/auth"
	"parley/internal/serve/gateway/format"
	"parley/world"
)

// moveKey moves a key in the address, where Gemini's clients may send it, to its header. So the guard checks it, and no address with a
// key gets further than this.
func moveKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			query := r.URL.Query()
			if key := query.Get("key"); key != "" && r.Header.Get("X-Goog-Api-Key") == "" {
				r.Header.Set("X-Goog-Api-Key", key)
			}
			query.Del("key")
			r.URL.RawQuery = query.Encode()
			r.RequestURI = r.URL.RequestURI()
		}
		next.ServeHTTP(w, r)
	})
}

// needsNoKey reports whether a request needs no key.
func needsNoKey(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// refuse answers a request that the guard refused, in the format of its endpoint.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	api := format.Chat
	if rt, ok := parseRoute(r.Method, r.URL.EscapedPath()); ok {
		api = rt.API
	}
	newClient(w, g.cfg.ClientTimeout).whole(why.Status, api.AppendError(nil, why.Status, why.Code, why.Message), nil)
}

// handle answers one request.
func (g *Gateway) handle(w http.ResponseWriter, r *http.Request) {
	g.calls.Add(1)
	defer g.calls.Done()
	rt, ok := parseRoute(r.Method, r.URL.EscapedPath())
	if ok && rt.What == routeCall {
		g.serve(w, r, rt)
		return
	}
	g.serveOther(w, r, rt, ok)
}

// serveOther answers a request that is not a call to a provider.
func (g *Gateway) serveOther(w http.ResponseWriter, r *http.Request, rt *route, ok bool) {
	newClient(w, closeWait+g.cfg.ClientTimeout).setDeadline()
	switch {
	case r.URL.Path == "/healthz":
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case r.URL.Path == "/readyz":
		g.readyz(w)
	case r.URL.Path == "/metrics":
		g.metrics.ServeHTTP(w, r)
	case !ok:
		g.serveUnknown(w, r)
	case rt.What == routeStatus:
		g.serveStatus(w, r, rt)
	case rt.What == routeOpen:
		g.serveOpen(w, r, rt)
	default:
		g.serveClose(w, r, rt)
	}
}

// serveUnknown answers a request for something that is not served.
func (g *Gateway) serveUnknown(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		// Codex asks for a WebSocket first. At this status it uses HTTP at once, and after any other one it tries again for ten seconds.
		w.Header().Set("Upgrade", "HTTP/1.1")
		w.Header().Set("Connection", "Upgrade")
		b := format.Responses.AppendError(nil, http.StatusUpgradeRequired, "websocket_refused", "the gateway has no WebSockets: send a POST")
		newClient(w, g.cfg.ClientTimeout).whole(http.StatusUpgradeRequired, b, nil)
		return
	}
	refuse(w, g, format.Chat, http.StatusNotFound, "unknown_url", "there is no "+r.Method+" "+r.URL.Path+": "+endpoints())
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

// writeFault answers a bad request about a session.
func writeFault(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]string{"type": code, "code": code, "message": message}})
}

// writeSessionFault answers an error of a session.
func writeSessionFault(w http.ResponseWriter, err error) {
	status, code := sessionFault(err)
	writeFault(w, status, code, err.Error())
}

func (g *Gateway) serveStatus(w http.ResponseWriter, r *http.Request, rt *route) {
	s, err := g.sessions.Find(r.Context(), sessionName{Owner: g.owner(r.Header), ID: rt.Session})
	if err != nil {
		writeSessionFault(w, err)
		return
	}
	status := s.Status()
	if g.dispatch != nil && status.Active > 0 {
		waits := slices.DeleteFunc(g.dispatch.Waits(time.Now()), func(w dispatch.Wait) bool { return w.Money == nil }) // the rest is about the calls of others
		status.Waits = dispatch.WaitTexts(waits)
	}
	writeJSON(w, http.StatusOK, status)
}

// serveOpen begins a session, and says what it is.
func (g *Gateway) serveOpen(w http.ResponseWriter, r *http.Request, rt *route) {
	b, err := newClient(w, g.cfg.ClientTimeout).read(r, 1<<20)
	var a about
	if err == nil && len(b) > 0 {
		err = cmp.Or(body.CheckNames(b, nil), world.DecodeStrict(b, &a))
	}
	if err == nil {
		a, err = rt.About.over(a).withHeaders(r.Header)
	}
	if err == nil {
		_, _, err = requestSession(rt, r.Header)
	}
	if err != nil {
		writeFault(w, http.StatusBadRequest, "body_invalid", "open: "+err.Error()+`: want {"agent": NAME, "condition": NAME, "task": NAME, "tags": {NAME: TEXT}}`)
		return
	}
	s, err := g.sessions.Begin(r.Context(), sessionName{Owner: g.owner(r.Header), ID: rt.Session}, a)
	if err != nil {
		writeSessionFault(w, err)
		return
	}
	writeJSON(w, http.StatusOK, s.Status())
}

// closeWait is how long closing a session waits for its calls in flight.
const closeWait = 30 * time.Second

func (g *Gateway) serveClose(w http.ResponseWriter, r *http.Request, rt *route) {
	s, err := g.sessions.Find(r.Context(), sessionName{Owner: g.owner(r.Header), ID: rt.Session})
	if err != nil {
		writeSessionFault(w, err)
		return
	}
	var c closeRequest
	b, err := newClient(w, g.cfg.ClientTimeout).read(r, 1<<20)
	if err == nil && len(b) > 0 {
		err = cmp.Or(body.CheckNames(b, nil), world.DecodeStrict(b, &c))
	}
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		writeFault(w, http.StatusBadRequest, "body_invalid", "close: "+err.Error()+`: want {"reason": TEXT, "completion_mode": "complete", "seal" or "abort", "scores": {NAME: NUMBER}}`)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), closeWait)
	defer cancel()
	status, err := g.sessions.Close(ctx, s, c)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		writeJSON(w, http.StatusAccepted, status) // it ends with its last call
	case err != nil:
		writeSessionFault(w, err)
	default:
		writeJSON(w, http.StatusOK, status)
	}
}

// client is the receiver of an answer.
type client struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	begun   func()   // called when the answer begins; may be nil
	episode []string // sent with the answer; may be nil
	status  int      // 0 until it is sent
	gone    bool
	stuck   bool // gone because it was too slow
}

func newClient(w http.ResponseWriter, timeout time.Duration) *client {
	return &client{w: w, rc: http.NewResponseController(w), timeout: timeout}
}

// read reads the body of a request. The guard of the server bounds the time.
func (c *client) read(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength == 0 || r.Body == http.NoBody {
		return nil, nil
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, errors.New("the body is compressed: send it as it is")
	}
	return readUntilEOF(http.MaxBytesReader(c.w, r.Body, limit).Read, r.ContentLength)
}

// Begin sends the head of a stream.
func (c *client) Begin(status int, h http.Header) {
	if c.begun != nil {
		c.begun()
	}
	c.setDeadline()
	c.head(h)
	c.status = status
	c.w.WriteHeader(status)
	_ = c.rc.Flush() // the first piece shows if the client is gone
}

// head returns the header of the answer, with h added.
func (c *client) head(h http.Header) http.Header {
	to := c.w.Header()
	maps.Copy(to, h)
	if c.episode != nil {
		to["X-Parley-Episode"] = c.episode
	}
	return to
}

// Write sends a piece of a stream. The client must take it in time.
func (c *client) Write(p []byte) (int, error) {
	c.setDeadline()
	n, err := c.w.Write(p)
	if err == nil {
		err = c.rc.Flush()
	}
	c.gone = c.gone || err != nil
	c.stuck = c.stuck || errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// whole sends an answer in one piece.
func (c *client) whole(status int, b []byte, h http.Header) {
	to := c.head(h)
	if to["Content-Type"] == nil {
		to["Content-Type"] = []string{"application/json"}
	}
	to["Content-Length"] = []string{strconv.Itoa(len(b))}
	if status >= 400 {
		// The gateway has retried already: the SDKs need not.
		to["X-Should-Retry"] = []string{"false"}
	}
	c.setDeadline()
	c.status = status
	c.w.WriteHeader(status)
	if _, err := c.w.Write(b); err != nil {
		c.gone = true
	}
}

// setDeadline sets the deadline for the next write. A connection keeps its deadline from one answer to the next, so
// every answer sets it.
func (c *client) setDeadline() {
	_ = c.rc.SetWriteDeadline(time.Now().Add(c.timeout)) // a writer without deadlines needs none
}
