package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/kit/testkit"
	"parley/llm"
)

// TestGone distinguishes failures to connect to a server that is down from those that waiting does not
// fix.
func TestGone(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return fmt.Errorf("post: %w", &net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	refused := dial(&os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED})
	unknown := dial(&net.DNSError{Name: "lab", IsNotFound: true})
	for _, c := range []struct {
		name          string
		err           error
		met, sent     bool
		gone, unknown bool
	}{
		{"refused", refused, false, false, true, false},
		{"no route", dial(errors.New("no route to host")), false, false, true, false},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, true, true, true, false},
		{"closed", io.EOF, true, true, true, false},
		{"no such host", unknown, false, false, false, true},
		{"a host that was there", unknown, true, false, true, false},
		{"no name server", dial(&net.DNSError{Name: "lab", IsTemporary: true}), false, false, false, false},
		{"too many files", dial(syscall.EMFILE), true, false, false, false},
		{"a certificate", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true, false, false, true},
		{"plain text", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, true, false, false, false},
	} {
		w := &Client{}
		if c.met {
			w.markReached()
		}
		e := w.broken(context.Background(), c.err)
		e.Uncertain = c.sent
		if e.Unreachable != c.gone || e.Final != c.unknown || e.Unserved() != (c.gone && !c.sent) {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

// TestGoneForReal asks a server that is stopped, and one that closes the connection.
func TestGoneForReal(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	_ = srv.Listener.Close()
	srv.Listener = testkit.StablePort(t) // hardly anybody else gets the port of the stopped server
	srv.Start()
	defer srv.Close()
	c, err := New(provider.Provider{Name: "lab", Dialect: "openai", BaseURL: srv.URL}, Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() *llm.Error {
		_, err := c.Do(t.Context(), Request{Path: "/chat/completions", Body: []byte("{}")})
		return llm.AsError(err)
	}
	if e := ask(); e == nil || !e.Unreachable || !e.Uncertain || e.Unserved() {
		t.Errorf("a server that hangs up: %+v", e)
	}
	srv.Close()
	if e := ask(); e == nil || !e.Unserved() {
		t.Errorf("a server that is stopped: %+v", e)
	}
	if e := llm.AsError(c.Alive(t.Context())); e == nil || !e.Unreachable {
		t.Errorf("a server that is stopped is alive: %+v", e)
	}
}

// TestMisplaced checks that only errors of unknown paths name the URL.
func TestMisplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at      string
		status  int
		message string
		want    string
	}{
		{"http://h:8080/v1/v1/chat/completions", 404, "File Not Found", "404 from http://h:8080/v1/v1/chat/completions: File Not Found; base_url should end in one /v1"},
		{"http://h:8080/chat/completions", 405, "no", "405 from http://h:8080/chat/completions: no; does base_url lack the /v1 at its end?"},
		{"http://h/v1/chat/completions/chat/completions", 404, "no", "404 from http://h/v1/chat/completions/chat/completions: no; base_url is everything before the endpoint, and should end in /v1"},
		{"http://me:secret@h/v1/files/x?key=secret", 404, "no", "404 from http://me:xxxxx@h/v1/files/x: no"},
		{"http://h/v1/chat/completions", 404, "The model `x` does not exist", "The model `x` does not exist"},
		{"http://h/chat/completions", 400, "no", "no"},
		{"http://h/api/paas/v4/chat/completions", 404, "no", "404 from http://h/api/paas/v4/chat/completions: no"},
	} {
		u, err := url.Parse(c.at)
		if err != nil {
			t.Fatal(err)
		}
		e := &llm.Error{Status: c.status, Message: c.message}
		(&Answer{url: u}).Misplaced(e)
		if e.Message != c.want {
			t.Errorf("%s: %s\nwant %s", c.at, e.Message, c.want)
		}
	}
}
