package auth

import (
	"io"
	"log"
	"net/http"
	"time"
)

// Server returns an http.Server that answers what the guard admits. All servers of Parley are
// made by it.
func (g *Guard) Server(next http.Handler) *http.Server {
	patience := g.patience()
	return &http.Server{
		Handler:           g.Wrap(next),
		ReadHeaderTimeout: min(patience, 30*time.Second),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // it would say what clients did wrong

		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * before the guard
	}
}

// Wrap returns a handler that hands on to next what the guard admits.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	patience := g.patience()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = bound(w, r.Body, patience)
		}
		if why := g.refusal(r); why != nil {
			if r.ProtoMajor == 1 && r.ContentLength != 0 {
				w.Header().Set("Connection", "close") // or the body would be waited for
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

// body is that of a request, which must come in time. The time ends with the body: a deadline
// that were still there would end an answer that is waited for. It stays where a handler leaves
// some of the body unread, since the server then reads a little more of it.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func bound(w http.ResponseWriter, in io.ReadCloser, patience time.Duration) io.ReadCloser {
	b := &body{in, http.NewResponseController(w)}
	_ = b.control.SetReadDeadline(time.Now().Add(patience)) // a writer without deadlines is a test's
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
