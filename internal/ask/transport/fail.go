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
	"net/url"
	"strings"
	"syscall"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/fault"
	"parley/internal/kit/files"
	"parley/llm"
)

// Fail completes the error of a call: it adds the provider, the model and what the header of the
// answer says, and removes the key from all texts. a may be nil.
func (c *Client) Fail(err error, model string, a *Answer) error {
	e := *llm.AsError(err)
	e.Provider, e.Model = c.name, model
	if a != nil {
		if e.RequestID == "" {
			e.RequestID = fault.RequestID(a.Header)
		}
		if e.Rate == nil {
			e.Rate = fault.Rate(a.Header)
		}
		e.Metadata.FirstByte, e.Metadata.Latency = a.FirstByte, a.Latency()
		a.hide.Error(&e)
	}
	c.Hide().Error(&e)
	e.Message = fault.Clean(e.Message, fault.MaxMessage)
	e.Code, e.RequestID = fault.Clean(e.Code, 100), fault.Clean(e.RequestID, 200)
	return &e
}

// broken returns the error of an exchange without a header.
func (c *Client) broken(ctx context.Context, err error) *llm.Error {
	e := &llm.Error{Err: err}
	switch {
	case ctx.Err() != nil:
		ended(ctx, e)
	case errors.Is(err, errSilent):
		e.Kind, e.Message = llm.KindTimeout, err.Error()
	default:
		e.Kind, e.Message = llm.KindTransport, plain(err)
		e.Final = isTrust(err) || c.unknownHost(err)
		e.Unreachable = !e.Final && c.isDown(err)
	}
	return e
}

// wasRefused reports whether a server of HTTP/2 said that it has not processed a request: it refused the stream, or a GOAWAY
// left the stream out. net/http would send such a request again, and says so in a text.
func wasRefused(err error) bool {
	_, why, ok := strings.Cut(err.Error(), "http2: Transport: cannot retry err [")
	return ok && (strings.Contains(why, "; REFUSED_STREAM") || strings.HasPrefix(why, "http2: Transport received Server's graceful shutdown GOAWAY"))
}

// markReached records that the server has answered.
func (c *Client) markReached() {
	if !c.reached.Load() {
		c.reached.Store(true)
	}
}

// unknownHost reports that no host has that name. If the name was found before, the failure is
// temporary.
func (c *Client) unknownHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound && !c.reached.Load()
}

// isDown reports whether an exchange without a header failed because the server is down: it refuses
// the connection, or closes it before the first byte.
func (c *Client) isDown(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return c.reached.Load()
	case files.IsExhausted(err):
		return false // our own limit
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &op):
		return op.Op == "dial" || op.Op == "read" || op.Op == "write" || op.Op == "proxyconnect"
	}
	return false
}

// cut returns the error of a body that could not be read to its end.
func (a *Answer) cut(ctx context.Context, err error) *llm.Error {
	e := &llm.Error{Err: err, Uncertain: true}
	switch {
	case ctx.Err() != nil:
		ended(ctx, e)
	case !a.timer.Stop(): // it fired, and ended the call
		e.Kind, e.Message = llm.KindTimeout, a.stalled()
	case isGzip(err):
		e.Kind, e.Message = llm.KindMalformed, "the answer cannot be decompressed: "+err.Error()
	default:
		e.Kind, e.Message = llm.KindTransport, "the connection was cut off in the middle of the answer: "+plain(err)
	}
	return e
}

// stalled describes how an answer was late.
func (a *Answer) stalled() string {
	switch {
	case max(a.spent+a.quiet, a.Latency()) >= a.c.longest() && a.c.timeout < a.c.longest():
		return fmt.Sprintf("the answer did not end within %v", a.c.longest())
	case a.whole:
		return fmt.Sprintf("the answer stalled: its body did not arrive within %v", a.c.timeout)
	default:
		return fmt.Sprintf("the answer stalled: nothing complete arrived for %v", a.c.timeout)
	}
}

func (a *Answer) tooLarge() error {
	return fault.Malformed(fmt.Sprintf("the answer is larger than %d MB", maxBody>>20), nil)
}

// ended describes how the caller ended the call.
func ended(ctx context.Context, e *llm.Error) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Kind, e.Message = llm.KindTimeout, "the deadline of the call passed"
		return
	}
	e.Kind, e.Message = llm.KindCanceled, "the call was canceled"
}

func plain(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: no server listens there (" + err.Error() + ")"
	case errors.Is(err, syscall.ECONNRESET):
		return "the server reset the connection"
	case files.IsExhausted(err):
		return "too many open files: raise the limit (ulimit -n), lower the concurrency, or set http2: true"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host " + dns.Name + " does not exist"
	}
	return err.Error()
}

// isTrust reports that the server's certificate is not trusted, which a retry cannot fix.
func isTrust(err error) bool {
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &host)
}

func isGzip(err error) bool {
	s := err.Error()
	return strings.HasPrefix(s, "gzip:") || strings.HasPrefix(s, "flate:")
}

// Misplaced adds the URL, and advice about the base URL, to the error of an unknown path. It does not
// change other errors, and returns false for them.
func (a *Answer) Misplaced(e *llm.Error) bool {
	if e.Status != http.StatusNotFound && e.Status != http.StatusMethodNotAllowed || a.url == nil {
		return false
	}
	if strings.Contains(strings.ToLower(e.Message+e.Code), "model") {
		return false // the path is right: the model does not exist
	}
	at := *a.url
	at.RawQuery, at.Fragment = "", ""
	e.Message = fmt.Sprintf("%d from %s: %s%s", e.Status, at.Redacted(), e.Message, advice(&at))
	return true
}

// advice says what may be wrong with the base URL of a URL that was not found.
func advice(at *url.URL) string {
	path := at.Path
	switch {
	case strings.HasSuffix(path, "/generate"):
		return "; vLLM and SGLang have this endpoint"
	case strings.Contains(path, "/v1/v1/"):
		return "; base_url should end in one /v1"
	case provider.Unversioned(at.String()):
		return "; does base_url lack the /v1 at its end?"
	case strings.Count(path, "/chat/completions")+strings.Count(path, "/messages")+strings.Count(path, "/responses") > 1:
		return "; base_url is everything before the endpoint, and should end in /v1"
	default:
		return ""
	}
}
