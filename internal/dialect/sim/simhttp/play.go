package simhttp

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
)

// tick is the least time between two flushes of a stream: events that are due
// within it are sent together.
const tick = 20 * time.Millisecond

// failEarly does the faults that leave nothing of the answer to be sent, and says
// whether it did one. An error is for the caller to send.
func (s *Server) failEarly(w http.ResponseWriter, r *http.Request, rep *reply) (bool, *check.Error) {
	style := rep.format.style
	switch {
	case rep.fault == sim.FaultError500:
		return true, serverError(style)
	case rep.fault == sim.FaultOverloaded:
		if rep.flex {
			return true, unavailable()
		}
		return true, overloaded(style)
	case rep.fault == sim.FaultQuota:
		return true, outOfCredit(style)
	case rep.fault == sim.FaultReset:
		reset(w, r)
		return true, nil
	case rep.fault == sim.FaultHTML:
		writeBody(w, http.StatusOK, "text/html; charset=utf-8", []byte("<!DOCTYPE html><html><body><h1>Please wait</h1></body></html>\n"))
		return true, nil
	case rep.fault == sim.FaultStall && rep.marks == nil: // a stream stalls in its middle
		s.stall(r.Context())
		reset(w, r)
		return true, nil
	}
	return false, nil
}

// stall hangs until the client has had enough, the server stops, or StallFor is over.
func (s *Server) stall(ctx context.Context) {
	t := time.NewTimer(s.brain.Config().StallFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.stopping:
	}
}

// playStream sends the events of a stream, evenly from its first to its last, and
// says whether they were all sent as they should be.
func (s *Server) playStream(w http.ResponseWriter, r *http.Request, rep *reply) bool {
	if rep.fault == sim.FaultClose {
		return s.wait(r.Context(), rep.total-rep.first) && closeAfter(w, r, "text/event-stream; charset=utf-8", rep.body)
	}
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	if rep.fault == sim.FaultType {
		h["Content-Type"] = []string{"application/octet-stream"}
	}
	w.WriteHeader(http.StatusOK)
	events := len(rep.marks)
	switch rep.fault {
	case sim.FaultCut, sim.FaultStall, sim.FaultStreamErr:
		events /= 2
	case sim.FaultNoDone:
		events--
	}
	if rep.fault == sim.FaultTruncated { // in the middle of an event
		events /= 2
	}
	sent, ok := s.playEvents(w, r, rep, events)
	if !ok {
		return false
	}
	switch rep.fault {
	case sim.FaultTruncated:
		next := rep.marks[min(events, len(rep.marks)-1)]
		_, _ = w.Write(rep.body[sent : sent+(next-sent)/2])
	case sim.FaultStreamErr:
		_, _ = w.Write(rep.format.failEvent(nil, midStream(rep.format.style).Told(w.Header().Get("Request-Id"))))
	case sim.FaultStall:
		s.stall(r.Context())
		reset(w, r)
	case sim.FaultCut:
		reset(w, r)
	}
	return events == len(rep.marks)
}

// playEvents sends the first so many events, and returns how many bytes that were,
// and whether the client stayed.
func (s *Server) playEvents(w http.ResponseWriter, r *http.Request, rep *reply, events int) (int, bool) {
	gap := time.Duration(0)
	if n := len(rep.marks); n > 1 {
		gap = (rep.total - rep.first) / time.Duration(n-1)
	}
	group := events
	if gap > 0 {
		group = max(1, int(tick/gap))
	}
	flush := http.NewResponseController(w)
	sent := 0
	for i := 0; i < events; i += group {
		if i > 0 && !s.wait(r.Context(), gap*time.Duration(group)) {
			return sent, false
		}
		end := rep.marks[min(i+group, events)-1]
		if _, err := w.Write(rep.body[sent:end]); err != nil {
			return sent, false
		}
		sent = end
		if end < len(rep.body) {
			_ = flush.Flush() // the next write tells whether the client is gone
		}
	}
	return sent, true
}

// reset drops the connection as rudely as can be.
func reset(w http.ResponseWriter, r *http.Request) {
	if hj, ok := w.(http.Hijacker); ok && r.ProtoMajor == 1 {
		_ = http.NewResponseController(w).Flush()
		if conn, _, err := hj.Hijack(); err == nil {
			raw := conn
			if t, ok := conn.(*tls.Conn); ok {
				raw = t.NetConn()
			}
			if tcp, ok := raw.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = raw.Close()
			return
		}
	}
	panic(http.ErrAbortHandler) // the documented way to reset a stream of HTTP/2
}

// closeAfter sends a whole answer over a connection that promises to stay open, and
// closes it.
func closeAfter(w http.ResponseWriter, r *http.Request, media string, body []byte) bool {
	hj, ok := w.(http.Hijacker)
	if !ok || r.ProtoMajor != 1 {
		w.Header().Set("Connection", "close") // HTTP/2: no further requests on this connection
		writeBody(w, http.StatusOK, media, body)
		return true
	}
	conn, buf, err := hj.Hijack()
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(buf, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n", media, len(body))
	_, _ = buf.Write(body)
	return buf.Flush() == nil
}

func serverError(style quota.Style) *check.Error {
	if style == quota.Anthropic {
		return &check.Error{Status: http.StatusInternalServerError, Type: "api_error", Message: "Internal server error"}
	}
	return &check.Error{Status: http.StatusInternalServerError, Type: "server_error", Message: "The server had an error while processing your request. Sorry about that!"}
}

func overloaded(style quota.Style) *check.Error {
	if style == quota.Anthropic {
		return &check.Error{Status: 529, Type: "overloaded_error", Message: "Overloaded"}
	}
	return &check.Error{Status: http.StatusServiceUnavailable, Type: "service_unavailable_error", Message: "The engine is currently overloaded, please try again later."}
}

// unavailable is how the flex tier says that there is no spare capacity. It is not
// the client's quota, for all its status.
func unavailable() *check.Error {
	return &check.Error{Status: http.StatusTooManyRequests, Type: "resource_unavailable", Code: "resource_unavailable", Message: "Resource Unavailable"}
}

// midStream is the error of a stream that has begun.
func midStream(style quota.Style) *check.Error {
	if style == quota.Anthropic {
		return overloaded(style)
	}
	e := serverError(style)
	e.Code = "server_error"
	return e
}

func outOfCredit(style quota.Style) *check.Error {
	if style == quota.Anthropic {
		return check.Invalid("", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")
	}
	return &check.Error{
		Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: "insufficient_quota",
		Message: "You exceeded your current quota, please check your plan and billing details.",
	}
}
