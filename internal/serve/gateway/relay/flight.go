package relay

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"parley/internal/dialect/wire/fault"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// Flight is a client's call on its way to a provider and back. It is one call's own.
type Flight struct {
	Call *format.Call
	Body []byte // as it came
	// Suffix follows the endpoint's path.
	Suffix string
	// Header is the client's, to be sent along as far as it may.
	Header http.Header
	// Key is the client's own, sent along to a provider that we have no key for.
	Key string
	// Session is told to the provider, so that it can keep a session on one replica.
	Session string
	// Created is the time of an answer that has to be written anew, in seconds since 1970.
	Created int64
	// Out is where a stream goes.
	Out Out
	// Admitted, where it is set, is told when the call may go out: its place in the queue.
	Admitted func(order int64)

	// What came of it. Status is 0 while there is nothing to send.
	Status int
	Type   string      // of the content, once the client was sent any of it
	Answer http.Header // to be sent; nil once it was
	Sent   []byte      // what the client was sent
	Held   []byte      // what it is still to be sent
	// Said means that Held ends with the provider's own words for what went wrong.
	Said  bool
	begun bool
	err   error // of the try that ended it
}

// Out takes the beginning of an answer and its pieces to the client.
type Out interface {
	Begin(status int, h http.Header)
	// Write sends p at once. Its error means that the client is gone.
	Write(p []byte) (int, error)
}

type flightKey struct{}

// With returns a context in which an Upstream carries out f.
func With(ctx context.Context, f *Flight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
}

// Begun says whether the client has been sent anything.
func (f *Flight) Begun() bool { return f.begun }

// late is why a flight that has begun cannot be carried out again.
func (f *Flight) late() error {
	if f.err != nil {
		return f.err
	}
	return &llm.Error{Kind: llm.KindServer, Message: "the answer has begun to be sent: it cannot be asked for again", Final: true}
}

func (f *Flight) reset() {
	f.Status, f.Type, f.Answer, f.Sent, f.Held, f.Said, f.err = 0, "", nil, nil, nil, false, nil
}

// answer takes in a whole answer.
func (f *Flight) answer(status int, h http.Header, b []byte) {
	f.Status, f.Answer, f.Held = status, backward(h), b
}

// shortKey is what is too short for a key: it would be found everywhere.
const shortKey = 6

// redact takes the client's own key out of s.
func (f *Flight) redact(s string) string {
	if len(f.Key) < shortKey {
		return s
	}
	return strings.ReplaceAll(s, f.Key, "[key]")
}

func (f *Flight) redactBytes(b []byte) []byte {
	if len(f.Key) < shortKey {
		return b
	}
	return bytes.ReplaceAll(b, []byte(f.Key), []byte("[key]"))
}

// header is what is sent along: all of the client's but what is between it and us. To
// another vendor than it was meant for goes nothing but the session.
func (f *Flight) header(translated bool) http.Header {
	out := make(http.Header, len(f.Header)+1)
	for k, v := range f.Header {
		if !translated && !hop(k) && !strings.HasPrefix(k, "X-Parley-") {
			out[k] = v
		}
	}
	if f.Key != "" && !translated {
		if f.Call.API.Anthropic() {
			out["X-Api-Key"] = []string{f.Key}
		} else {
			out["Authorization"] = []string{"Bearer " + f.Key}
		}
	}
	if f.Session != "" {
		out["X-Session-Id"] = []string{f.Session}
	}
	return out
}

// hop says whether a header is about one connection, or about who a client is to us.
func hop(name string) bool {
	switch name {
	case "Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length", "Cookie", "Expect",
		"Forwarded", "Host", "Keep-Alive", "Origin", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Referer",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via", "X-Api-Key", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
		"X-Real-Ip", "X-Session-Id":
		return true
	}
	return strings.HasPrefix(name, "Sec-")
}

// backward is what of a provider's header a client is sent.
func backward(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for k, v := range h {
		switch k {
		case "Alt-Svc", "Connection", "Content-Encoding", "Content-Length", "Date", "Keep-Alive", "Proxy-Authenticate", "Server", "Set-Cookie",
			"Strict-Transport-Security", "Trailer", "Transfer-Encoding", "Upgrade", "Via":
		default:
			out[k] = v
		}
	}
	return out
}

func requestID(h http.Header) string { return fault.RequestID(h) }
func rate(h http.Header) *llm.Rate   { return fault.Rate(h) }
