package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is the kind of a failure, for callers to branch on.
type Kind string

// The kinds. The dialect that saw the wire decides.
const (
	KindRateLimited Kind = "rate_limited" // our quota is used up for now (429)
	KindOverloaded  Kind = "overloaded"   // the provider lacks capacity (503, 529, flex 429); not our quota
	KindTimeout     Kind = "timeout"      // no answer, or no progress, in time
	KindTransport   Kind = "transport"    // the connection failed: refused, reset, cut off
	KindServer      Kind = "server"       // the provider failed (500, 502, …)
	KindMalformed   Kind = "malformed"    // the answer is broken: HTML, half a JSON, a stream without an end
	KindInvalid     Kind = "invalid"      // a complete answer that does not follow the Schema, even after repairs
	KindCutOff      Kind = "cut_off"      // an answer to a Schema that reached the limit of output tokens before its end
	KindRefused     Kind = "refused"      // the provider does not answer this (policy)
	KindTooLong     Kind = "too_long"     // prompt and answer do not fit the model's context window
	KindBadRequest  Kind = "bad_request"  // the request is wrong; asking again cannot help
	KindAuth        Kind = "auth"         // the key is missing, wrong or lacks a permission
	KindQuota       Kind = "quota"        // the account is out of credit: final until somebody pays
	KindBudget      Kind = "budget"       // our own budget has no room; nothing was sent
	KindCanceled    Kind = "canceled"     // the caller canceled the call
	KindRaised      Kind = "raised"       // code that a world runs outside raised an error: no model was asked
)

// ErrMaxCost is wrapped by the error, of KindBudget, of a call that would cost more than Request.MaxCost.
var ErrMaxCost = errors.New("llm: the call may cost no more")

// Kinds lists every Kind.
func Kinds() []Kind {
	return []Kind{
		KindRateLimited, KindOverloaded, KindTimeout, KindTransport, KindServer, KindMalformed, KindInvalid, KindCutOff, KindRefused, KindTooLong, KindBadRequest, KindAuth, KindQuota, KindBudget, KindCanceled, KindRaised,
	}
}

// Retryable reports whether the same request may succeed a little later.
func (k Kind) Retryable() bool {
	switch k {
	case KindRateLimited, KindOverloaded, KindTimeout, KindTransport, KindServer, KindMalformed:
		return true
	default:
		return false
	}
}

// Error is the error of a Model. Its text never contains a key.
type Error struct {
	Kind     Kind   `json:"kind"`
	Message  string `json:"message"`
	Status   int    `json:"status,omitempty"` // of HTTP, if there was one
	Code     string `json:"code,omitempty"`   // the provider's own
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`

	RequestID string `json:"request_id,omitempty"`
	// RetryAfter is how long the server asks us to wait; 0 if it does not say.
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	// Final means that it is not tried again, whatever the kind: the server said so, or nothing would change.
	Final bool `json:"final,omitempty"`
	// Uncertain means that the provider may have done the work, and may bill it.
	Uncertain bool `json:"uncertain,omitempty"`
	// Unreachable means that the server did not respond, or said that it is not ready yet: it may answer once it has
	// started.
	Unreachable bool `json:"-"`
	// Stale means that the connection had been used before and ended before an answer began: the server may have closed it
	// before it saw the request.
	Stale bool `json:"-"`
	// Caller means that the failure is about the caller's own key or account, which other calls to the provider do not
	// share: those may succeed.
	Caller bool `json:"-"`
	// Usage is the known usage of the failed attempt, such as that of a complete answer that does not follow its Schema.
	Usage Usage `json:"usage,omitzero"`
	// Received is how many bytes of content arrived before the failure.
	Received int `json:"-"`
	// Partial is the part of the answer that arrived, if it can be continued. To continue it, send a request with Partial as Begun.
	Partial *Response `json:"-"`
	// Rate is what the server reported about its limits, or nil.
	Rate *Rate `json:"-"`
	// Metadata says what was tried.
	Metadata Metadata `json:"metadata,omitzero"`

	Err error `json:"-"` // the wrapped error, or nil
}

// Error returns "provider/model: kind (status code): message".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" || e.Model != "" {
		b.WriteString(strings.Trim(e.Provider+"/"+e.Model, "/") + ": ")
	}
	b.WriteString(strings.ReplaceAll(string(e.Kind), "_", " "))
	if s := strings.TrimSpace(statusText(e.Status) + " " + e.Code); s != "" {
		b.WriteString(" (" + s + ")")
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return fmt.Sprint(status)
}

// Unserved reports whether the server certainly did nothing for the call: it did not accept the connection, or only
// said that it is not ready yet.
func (e *Error) Unserved() bool {
	return e.Unreachable && !e.Uncertain && (e.Kind == KindTransport || e.Kind == KindOverloaded)
}

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error. Any other error becomes one of KindTransport, unless it is from a context that is
// done.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	kind := KindTransport
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = KindTimeout
	case errors.Is(err, context.Canceled):
		kind = KindCanceled
	}
	return &Error{Kind: kind, Message: err.Error(), Err: err}
}

// ContextError returns the error of a call whose context is done: the cause, if that is an *Error; otherwise KindTimeout
// or KindCanceled, with the cause's text.
func ContextError(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*Error](cause); ok {
		return e
	}
	kind := KindCanceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = KindTimeout
	}
	return &Error{Kind: kind, Message: cause.Error(), Err: cause}
}

// KindOf returns the Kind of err, or "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return AsError(err).Kind
}
