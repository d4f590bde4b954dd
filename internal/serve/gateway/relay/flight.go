package relay

import (
	"context"
	"net/http"

	"parley/internal/serve/gateway/format"
	"parley/internal/wire/fault"
	"parley/internal/wire/redact"
	"parley/llm"
)

// Flight is a client's call on its way to a provider and back. It is one call's own.
type Flight struct {
	Call *format.Call
	Body []byte // as it came
	// Suffix follows the endpoint's path, escaped.
	Suffix string
	// Header is the client's, to be sent along as far as it may.
	Header http.Header
	// OwnKey means that the provider is asked with the client's own key, and not with one of
	// ours. A client may have sent none.
	OwnKey bool
	// Keys are the client's own, those of Header, where OwnKey is set.
	Keys []string
	// Session is told to the provider, so that it can keep a session on one replica.
	Session string
	// Created is the time of an answer that has to be written anew, in seconds since 1970.
	Created int64
	// Out is where a stream goes.
	Out Out
	// Admitted, where it is set, is told when the call may go out: its place in the queue.
	Admitted func(order int64)

	// Asked is the model that was asked last, as provider/model.
	Asked string
	// What came of it. Status is 0 while there is nothing to send.
	Status int
	Type   string      // of the content, once the client was sent any of it
	Answer http.Header // to be sent; nil once it was
	Sent   []byte      // what the client was sent
	Held   []byte      // what it is still to be sent
	// Said means that Held ends with the provider's own words for what went wrong.
	Said  bool
	begun bool
	hide  *redact.Redactor // of Keys
	err   error            // of the try that ended it
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

// attribute says of a failure whether it is the client's alone. Where its own key is used, the
// provider's word about the key, the credit and the rates is about that client's account. A
// provider that got no key can count calls by address only, and that is the same for all: such
// a rate limit is shared.
func (f *Flight) attribute(e *llm.Error) {
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

func (f *Flight) reset() {
	if f.hide == nil {
		f.hide = redact.New(f.Keys...)
	}
	f.Status, f.Type, f.Answer, f.Sent, f.Held, f.Said, f.err = 0, "", nil, nil, nil, false, nil
}

// answer takes in a whole answer.
func (f *Flight) answer(status int, h http.Header, b []byte) {
	f.Status, f.Answer, f.Held = status, backward(h), b
}

func requestID(h http.Header) string { return fault.RequestID(h) }
func rate(h http.Header) *llm.Rate   { return fault.Rate(h) }
