package simhttp

import (
	"context"
	"net"
	"net/http"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/eventstream"
)

// tick is the minimum time between two flushes of a stream. Events that are due within it are
// sent together.
const tick = 20 * time.Millisecond

// failEarly carries out a fault that replaces the whole answer, and reports whether there was
// one. The caller sends the error.
func (s *Server) failEarly(w http.ResponseWriter, r *http.Request, rep *prepared) (bool, *Error) {
	style := rep.format.vendor()
	switch {
	case rep.fault == sim.FaultError500:
		return true, serverError(style)
	case rep.fault == sim.FaultOverloaded:
		return true, overloaded(style, rep.flex)
	case rep.fault == sim.FaultQuota:
		return true, outOfCredit(style)
	case rep.fault == sim.FaultReset:
		reset(w, r)
		return true, nil
	case rep.fault == sim.FaultHTML:
		writeBody(w, http.StatusOK, "text/html; charset=utf-8", []byte("<!DOCTYPE html><html><body><h1>Please wait</h1></body></html>\n"))
		return true, nil
	case rep.fault == sim.FaultStall && rep.ends == nil: // a stream stalls in its middle
		s.stall(r.Context())
		reset(w, r)
		return true, nil
	}
	return false, nil
}

// stall waits until the client gives up, the server stops, or StallFor has passed.
func (s *Server) stall(ctx context.Context) {
	t := time.NewTimer(s.brain.Config().StallFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-s.stopping:
	}
}

// sendStream sends the events of a stream at an even pace, and reports whether it sent them all.
func (s *Server) sendStream(w http.ResponseWriter, r *http.Request, rep *prepared) bool {
	h := w.Header()
	h["Content-Type"] = []string{rep.format.streams()}
	h["Cache-Control"] = []string{"no-cache"}
	w.WriteHeader(http.StatusOK)
	events := len(rep.ends)
	switch rep.fault {
	case sim.FaultCut, sim.FaultStall, sim.FaultStreamErr, sim.FaultTruncated:
		events /= 2
	}
	sent, ok := s.sendEvents(w, r, rep, events)
	if !ok {
		return false
	}
	switch rep.fault {
	case sim.FaultTruncated: // in the middle of an event
		next := rep.ends[min(events, len(rep.ends)-1)]
		_, _ = w.Write(rep.body[sent : sent+(next-sent)/2])
	case sim.FaultStreamErr:
		_, _ = w.Write(rep.format.failEvent(nil, midStream(rep.format.style).InEvent(rep.format.style, w.Header().Get("Request-Id"))))
	case sim.FaultStall:
		s.stall(r.Context())
		reset(w, r)
	case sim.FaultCut:
		reset(w, r)
	}
	return events == len(rep.ends)
}

// sendEvents sends the first events of a stream. It returns the number of bytes, and whether the
// client is still there.
func (s *Server) sendEvents(w http.ResponseWriter, r *http.Request, rep *prepared, events int) (int, bool) {
	gap := time.Duration(0)
	if n := len(rep.ends); n > 1 {
		gap = (rep.total - rep.first) / time.Duration(n-1)
	}
	group := events
	if gap > 0 {
		group = max(1, int(tick/gap))
	}
	flush := http.NewResponseController(w)
	sent := 0
	for i := 0; i < events; i += group {
		if i > 0 && !sim.Wait(r.Context(), gap*time.Duration(group)) {
			return sent, false
		}
		end := rep.ends[min(i+group, events)-1]
		if _, err := w.Write(rep.body[sent:end]); err != nil {
			return sent, false
		}
		sent = end
		if end < len(rep.body) {
			_ = flush.Flush() // the next write fails if the client is gone
		}
	}
	return sent, true
}

// reset resets the connection, without a clean end.
func reset(w http.ResponseWriter, r *http.Request) {
	if hj, ok := w.(http.Hijacker); ok && r.ProtoMajor == 1 {
		_ = http.NewResponseController(w).Flush()
		if conn, _, err := hj.Hijack(); err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = conn.Close()
			return
		}
	}
	panic(http.ErrAbortHandler) // the documented way to reset a stream of HTTP/2
}

// streams returns the content type of a stream.
func (f *format) streams() string {
	if f.style == sim.Amazon {
		return eventstream.MediaType
	}
	return "text/event-stream; charset=utf-8"
}
