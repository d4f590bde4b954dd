package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"parley/internal/wire/fault"
	"parley/llm"
)

// Fail finishes an error of a call: it names the provider and the model, adds what
// the header of the answer says (a may be nil), and takes the key out of every text.
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
	}
	c.hide.Error(&e)
	e.Message = fault.Clean(e.Message, fault.MaxMessage)
	e.Code, e.RequestID = fault.Clean(e.Code, 100), fault.Clean(e.RequestID, 200)
	return &e
}

// broken makes the error of an exchange that got no header.
func (c *Client) broken(ctx context.Context, err error, sent bool) *llm.Error {
	e := &llm.Error{Err: err, Uncertain: sent}
	switch {
	case ctx.Err() != nil:
		ended(ctx, e)
	case errors.Is(err, errSilent):
		e.Kind, e.Message = llm.KindTimeout, err.Error()
	default:
		e.Kind, e.Message = llm.KindTransport, plain(err)
		e.Final = isTrust(err) || c.unknownHost(err)
		e.Unreachable = !e.Final && c.gone(err)
	}
	return e
}

// met notes that the server has answered once.
func (c *Client) met() {
	if !c.reached.Load() {
		c.reached.Store(true)
	}
}

// unknownHost says that there is no host of that name, and never was: a name that was found
// before is back soon.
func (c *Client) unknownHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound && !c.reached.Load()
}

// gone says whether an exchange that got no header failed since the server is not there, or
// went away: nobody takes the connection, or it ends before a byte came.
func (c *Client) gone(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return c.reached.Load()
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return false // ours
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &op):
		return op.Op == "dial" || op.Op == "read" || op.Op == "write" || op.Op == "proxyconnect"
	}
	return false
}

// cut makes the error of a body that could not be read to its end.
func (a *Answer) cut(ctx context.Context, err error) *llm.Error {
	e := &llm.Error{Err: err, Uncertain: true}
	switch {
	case ctx.Err() != nil:
		ended(ctx, e)
	case !a.life.Stop(): // it fired, so it was what ended the call
		e.Kind, e.Message = llm.KindTimeout, a.stalled()
	case isGzip(err):
		e.Kind, e.Message = llm.KindMalformed, "the answer cannot be decompressed: "+err.Error()
	default:
		e.Kind, e.Message = llm.KindTransport, "the connection was cut off in the middle of the answer: "+plain(err)
	}
	return e
}

// stalled says in which way an answer did not come in time.
func (a *Answer) stalled() string {
	switch {
	case max(a.spent+a.quiet, a.Latency()) >= a.c.longest() && a.c.timeout < a.c.longest():
		return fmt.Sprintf("the answer did not end within %v", a.c.longest())
	case a.whole:
		return fmt.Sprintf("the answer stalled: its body did not come within %v", a.c.timeout)
	default:
		return fmt.Sprintf("the answer stalled: nothing complete came for %v", a.c.timeout)
	}
}

func (a *Answer) tooLarge() error {
	return fault.Malformed(fmt.Sprintf("the answer is larger than %d MB", a.c.maxBody>>20), nil)
}

// ended says how the caller ended the call.
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
		return "connection refused: nothing listens there (" + err.Error() + ")"
	case errors.Is(err, syscall.ECONNRESET):
		return "the server reset the connection"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "too many open files: raise the limit (ulimit -n), lower the concurrency, or set http2: true"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host " + dns.Name + " does not exist"
	}
	return err.Error()
}

// isTrust says that the server's certificate is not trusted, which will not pass.
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
