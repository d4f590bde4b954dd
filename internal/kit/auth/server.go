package auth

import (
	"io"
	"log"
	"net/http"
	"time"
)

// Server returns an http.Server that answers what the guard admits. It makes all servers of Parley.
func (g *Guard) Server(next http.Handler) *http.Server {
	patience := g.patience()
	return &http.Server{
		Handler:           g.Wrap(next),
		ReadHeaderTimeout: min(patience, 30*time.Second),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // it would log the mistakes of clients

		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * before the guard
	}
}

// Wrap returns a handler that passes admitted requests to next.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	patience := g.patience()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = bound(w, r.Body, patience)
		}
		if why := g.refusal(r); why != nil {
			if r.ProtoMajor == 1 && r.ContentLength != 0 {
				w.Header().Set("Connection", "close") // otherwise the server would wait for the body
			}
			g.Refuse(w, r, *why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Guard) patience() time.Duration {
	if g.Patience <= 0 {
		return time.Minute
	}
	return g.Patience
}

// body is the body of a request, with a deadline. Reading it to its end removes the deadline, which would
// otherwise end the answer. If a handler leaves some of it unread, the deadline stays, since the server then
// reads a little more.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func bound(w http.ResponseWriter, in io.ReadCloser, patience time.Duration) io.ReadCloser {
	b := &body{in, http.NewResponseController(w)}
	_ = b.control.SetReadDeadline(time.Now().Add(patience)) // only tests have a writer without deadlines
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
