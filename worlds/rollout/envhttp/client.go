package envhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"

	"parley/llm"
)

// maxAnswer is the maximum size of an answer: screenshots are large.
const maxAnswer = 64 << 20

// keyHeader is the header with the name of a step.
const keyHeader = "Idempotency-Key"

// Client sends requests to one server, each at most once: not even net/http sends one twice. No answer is read
// beyond its limit. Every failure is an *llm.Error that says whether the server may have acted. It is safe for
// concurrent use.
type Client struct {
	base string
	// There is no http.Client, since redirects and cookies are not wanted and cost time.
	transport *http.Transport
}

// newClient returns a client of the server at an address, with as many connections as sessions.
func newClient(address string, sessions int) *Client {
	return &Client{base: strings.TrimRight(address, "/"), transport: newTransport(sessions + 8)}
}

// newTransport returns a transport that keeps this many idle connections.
func newTransport(idle int) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConns:        idle,
		MaxIdleConnsPerHost: idle,
		// Below the five seconds after which common servers close connections: the result of a step on a
		// closing connection would be unknown.
		IdleConnTimeout: 4 * time.Second,
	}
}

// Name returns the server's address.
func (c *Client) Name() string { return c.base }

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends one request and decodes its answer into into, unless that is nil. A json.Unmarshaler must itself
// reject invalid JSON. key names the request, or is empty.
func (c *Client) Do(ctx context.Context, method, path, key string, body, into any) error {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return &llm.Error{Kind: llm.KindBadRequest, Status: http.StatusBadRequest, Provider: c.base, Message: err.Error(), Err: err}
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return &llm.Error{Kind: llm.KindBadRequest, Provider: c.base, Message: "is no address", Err: err}
	}
	setBody(req, payload)
	req.Header = http.Header{"User-Agent": {"parley"}}
	if body != nil {
		req.Header["Content-Type"] = []string{"application/json"}
	}
	if key != "" {
		req.Header[keyHeader] = []string{key}
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return interruptedError(ctx, c.base, err)
	}
	defer resp.Body.Close()
	text, err := readAnswer(resp)
	if err != nil {
		return interruptedError(ctx, c.base, err)
	}
	if len(text) > maxAnswer {
		return malformedError(c.base, fmt.Errorf("an answer of more than %d bytes", maxAnswer))
	}
	if resp.StatusCode != http.StatusOK {
		return c.refused(resp, text)
	}
	if into == nil {
		return nil
	}
	if err := decode(text, into); err != nil {
		what := path[strings.LastIndexByte(path, '/')+1:] // reset, step: the ids before it differ
		return decodeError(c.base, text, fmt.Errorf("%s: %w", what, err))
	}
	return nil
}

// setBody gives a request a body that cannot be read again. Then net/http never sends it twice, not even a GET, which changes some
// environments. Of an empty body nothing is sent: without "identity", net/http tries to read from a body of unknown length, and sends chunks if
// that takes a fifth of a second, as on a busy machine.
func setBody(req *http.Request, payload []byte) {
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(payload)), int64(len(payload))
	if len(payload) == 0 {
		req.ContentLength, req.TransferEncoding = -1, []string{"identity"}
	}
}

// readAnswer reads an answer, up to one byte beyond the limit.
func readAnswer(resp *http.Response) ([]byte, error) {
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		b.Grow(int(min(n, 1<<20)) + bytes.MinRead) // the size is only what the server claims
	}
	_, err := b.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1))
	return b.Bytes(), err
}

// interruptedError returns the error of an exchange with a server that was interrupted.
func interruptedError(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil {
		e := *llm.ContextError(ctx)
		e.Uncertain = true
		return &e
	}
	e := &llm.Error{Kind: llm.KindTransport, Uncertain: true, Provider: address, Message: err.Error(), Err: err}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		e.Uncertain = false // nothing was sent
	}
	return e
}

// refused returns the error of a status other than 200.
func (c *Client) refused(resp *http.Response, text []byte) error {
	e := refusedError(c.base, resp.StatusCode, shortMessage(text))
	if e.Status == http.StatusNotFound { // the session is gone after a restart of the server: another try may succeed
		e.Kind = llm.KindServer
	}
	return e
}

// refusedError returns the error of a status that is not the one of an answer.
func refusedError(address string, status int, message string) *llm.Error {
	e := &llm.Error{Kind: llm.KindServer, Status: status, Provider: address, Message: message}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Kind = llm.KindAuth
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		e.Kind = llm.KindOverloaded
	case status >= 500:
		e.Uncertain = true
	case status >= 400:
		e.Kind = llm.KindBadRequest
	default: // a redirect, or another success
		e.Kind, e.Uncertain = llm.KindMalformed, true
	}
	return e
}

// shortMessage returns the beginning of a server's message.
func shortMessage(text []byte) string {
	var detail struct {
		Detail string `json:"detail"`
		Error  string `json:"error"`
	}
	if json.Unmarshal(text, &detail) == nil && detail.Detail+detail.Error != "" {
		text = []byte(detail.Detail + detail.Error)
	}
	return strings.ToValidUTF8(fmt.Sprintf("%.300s", strings.TrimSpace(string(text))), "")
}

// malformedError returns the error of an answer of a server that cannot be read. The same request may succeed later: a proxy
// sends pages of its own while a server restarts.
func malformedError(address string, err error) error {
	return &llm.Error{Kind: llm.KindMalformed, Uncertain: true, Provider: address, Message: err.Error(), Err: err}
}

// invalidError returns the error of an answer that is complete and not in the form of the protocol. Waiting does not help.
func invalidError(address string, err error) error {
	return &llm.Error{Kind: llm.KindInvalid, Uncertain: true, Provider: address, Message: err.Error(), Err: err}
}

// decodeError returns the error of an answer that could not be decoded: Invalid if it is JSON or has only a number that JSON
// does not have, otherwise Malformed.
func decodeError(address string, text []byte, err error) error {
	if _, ok := errors.AsType[numberError](err); ok || json.Valid(text) {
		return invalidError(address, err)
	}
	return malformedError(address, err)
}

// numberError is about a number that JSON does not have.
type numberError struct{ key, number string }

func (e numberError) Error() string {
	return fmt.Sprintf("%s is %s, which JSON does not have: want a number", e.key, e.number)
}

// decode reads an answer. It calls a json.Unmarshaler directly: json.Unmarshal would scan the data twice
// before, and a prompt may be long.
func decode(text []byte, into any) error {
	var err error
	if u, ok := into.(json.Unmarshaler); ok && len(bytes.TrimSpace(text)) > 0 {
		err = u.UnmarshalJSON(text)
	} else {
		err = json.Unmarshal(text, into)
	}
	if err == nil {
		return nil
	}
	return describeDecode(text, err)
}

// describeDecode says in words what is wrong with an answer, without names of Go types.
func describeDecode(text []byte, err error) error {
	if !json.Valid(text) {
		return notJSON(text)
	}
	if wrong, ok := err.(*json.UnmarshalTypeError); ok { // one that is wrapped is about a part of the answer
		if wrong.Field == "" {
			return fmt.Errorf("the answer is a JSON %s: want an object", wrong.Value)
		}
		return fmt.Errorf("%s is a JSON %s: want %s", wrong.Field, wrong.Value, wanted(wrong.Type))
	}
	return err
}

// lastKey matches the key of the value that follows a text.
var lastKey = regexp.MustCompile(`"([^"]{1,40})"\s*:\s*\[?[^"\[\]{}]*$`)

// notJSON describes a text that is not JSON.
func notJSON(text []byte) error {
	var raw json.RawMessage
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &raw))
	if !ok || len(bytes.TrimSpace(text)) == 0 {
		return errors.New("the answer is empty: want JSON")
	}
	at := int(min(max(wrong.Offset-1, 0), int64(len(text))))
	for _, number := range []string{"NaN", "Infinity"} {
		if bytes.HasPrefix(text[at:], []byte(number)) {
			e := numberError{"a value", number}
			if m := lastKey.FindSubmatch(text[:at]); m != nil {
				e.key = string(m[1])
			}
			return e
		}
	}
	return fmt.Errorf("the answer is not JSON; it begins with %q", strings.ToValidUTF8(fmt.Sprintf("%.40s", bytes.TrimSpace(text)), ""))
}

// wanted describes what a Go type takes.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String:
		return "a text"
	case k >= reflect.Int && k <= reflect.Float64:
		return "a number"
	case k == reflect.Slice || k == reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}
