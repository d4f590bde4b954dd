package gateway

import (
	"context"
	"net/http"

	"parley/internal/kit/redact"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// relayFlight is a client's call on its way to a provider and back. It belongs to one call.
type relayFlight struct {
	Call *format.Call
	Body []byte // unchanged
	// Suffix follows the endpoint's path, escaped.
	Suffix string
	// Header is the client's, of which most is sent along.
	Header http.Header
	// OwnKey means that the provider gets the client's own key, if it sent one, instead of ours.
	OwnKey bool
	// Keys are the client's own keys, if OwnKey is set.
	Keys []string
	// Session is sent to the provider, so that it can keep a session on one replica.
	Session string
	// Created is the time of a translated answer, in seconds since 1970.
	Created int64
	// Out receives a stream.
	Out Out
	// Admitted, if not nil, is called with the order of the call when it leaves the queue.
	Admitted func(order int64)

	// Asked is the last model that was asked, as provider/model.
	Asked string
	// The answer. Status is 0 while there is none.
	Status int
	Type   string      // content type, once the client got a part of the answer
	Answer http.Header // nil once it was sent
	Sent   []byte      // what the client got
	Held   []byte      // what the client has still to get
	// Said means that Held ends with the provider's own error.
	Said bool
	// aborted means that the server cut the answer off, and that the client gets it as it is.
	aborted bool
	begun   bool
	hide    *redact.Redactor // of Keys
	err     error            // of the last attempt
}

// Out sends an answer to the client.
type Out interface {
	Begin(status int, h http.Header)
	// Write sends p at once. An error means that the client is gone.
	Write(p []byte) (int, error)
}

type flightKey struct{}

// with returns a context in which an Upstream sends f.
func with(ctx context.Context, f *relayFlight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
}

// Begun reports whether the client got a part of the answer.
func (f *relayFlight) Begun() bool { return f.begun }

// late returns why a flight that has begun cannot be sent again.
func (f *relayFlight) late() error {
	if f.err != nil {
		return f.err
	}
	return &llm.Error{Kind: llm.KindServer, Message: "a part of the answer was sent: the call cannot be retried", Final: true}
}

// attribute marks an error that concerns only the client. With its own key, errors about the key, the credit
// and the rates are about its account. A provider that got no key can only count calls by address, which all
// clients share: that rate limit is shared too.
func (f *relayFlight) attribute(e *llm.Error) {
	switch e.Kind {
	case llm.KindAuth, llm.KindQuota:
		e.Caller = f.OwnKey
	case llm.KindRateLimited:
		e.Caller = len(f.Keys) > 0
	}
	if len(f.Keys) > 0 {
		e.Rate = nil
	}
}

func (f *relayFlight) reset(u *relayUpstream) {
	f.hide = u.hideKeys(f.Keys)
	f.Status, f.Type, f.Answer, f.Sent, f.Held, f.Said, f.aborted, f.err = 0, "", nil, nil, nil, false, false, nil
}

// Recorded returns an answer as it is recorded.
func (f *relayFlight) Recorded(resp *llm.Response) *llm.Response {
	if f.aborted {
		resp.Finish = llm.FinishAborted
	}
	return resp
}

// answer sets a whole answer.
func (f *relayFlight) answer(status int, h http.Header, b []byte) {
	f.Status, f.Answer, f.Held = status, backward(h), b
}
