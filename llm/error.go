package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is a family of failures: what a caller branches on.
type Kind string

// The kinds. They are decided once, by the dialect that saw the wire.
const (
	KindRateLimited Kind = "rate_limited" // our quota is used up for now (429)
	KindOverloaded  Kind = "overloaded"   // the provider is short of capacity (503, 529, flex 429): not our quota
	KindTimeout     Kind = "timeout"      // no answer, or no progress, in time
	KindTransport   Kind = "transport"    // the connection failed: refused, reset, cut off
	KindServer      Kind = "server"       // the provider failed (500, 502, …)
	KindMalformed   Kind = "malformed"    // an answer came that is not one: HTML, half a JSON, a stream without an end
	KindInvalid     Kind = "invalid"      // a whole answer that does not follow the Schema, repairs included
	KindCutOff      Kind = "cut_off"      // an answer to a Schema that ended at the limit of output tokens before it was whole
	KindRefused     Kind = "refused"      // the provider will not answer this (policy)
	KindTooLong     Kind = "too_long"     // prompt and answer do not fit the model's context window
	KindBadRequest  Kind = "bad_request"  // the request is wrong; asking again cannot help
	KindAuth        Kind = "auth"         // the key is missing, wrong or not allowed this
	KindQuota       Kind = "quota"        // the account is out of credit: final until somebody pays
	KindBudget      Kind = "budget"       // our own budget has no room; nothing was sent
	KindCanceled    Kind = "canceled"     // the caller went away
)

// ErrMaxCost is in the error, of KindBudget, of a call that would have cost more than its
// Request allows.
var ErrMaxCost = errors.New("llm: the call may cost no more")

// Kinds lists every Kind.
func Kinds() []Kind {
	return []Kind{
		KindRateLimited, KindOverloaded, KindTimeout, KindTransport, KindServer, KindMalformed, KindInvalid, KindCutOff,
		KindRefused, KindTooLong, KindBadRequest, KindAuth, KindQuota, KindBudget, KindCanceled,
	}
}

// Retryable says whether the same request may well succeed a little later.
func (k Kind) Retryable() bool {
	switch k {
	case KindRateLimited, KindOverloaded, KindTimeout, KindTransport, KindServer, KindMalformed:
		return true
	default:
		return false
	}
}

// Error is how a Model fails. Its text never holds a key.
type Error struct {
	Kind     Kind   `json:"kind"`
	Message  string `json:"message"`
	Status   int    `json:"status,omitempty"` // of HTTP, where there was one
	Code     string `json:"code,omitempty"`   // the provider's own
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`

	RequestID string `json:"request_id,omitempty"`
	// RetryAfter is how long the server asks us to wait; 0 when it does not say.
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	// Final means that the server said not to try again, whatever the kind.
	Final bool `json:"final,omitempty"`
	// Uncertain means that the provider may have done, and may bill, the work.
	Uncertain bool `json:"uncertain,omitempty"`
	// Unreachable means that the server was not there, or said that it is not ready yet: it may
	// well answer once it has started.
	Unreachable bool `json:"-"`
	// Caller means that the failure is about the key or the account of whoever asked, and not
	// about one that all calls to the provider share: others may well be answered.
	Caller bool `json:"-"`
	// Usage is what the failed try is known to have cost, such as an answer that was
	// whole but not of its Schema.
	Usage Usage `json:"usage,omitzero"`
	// Received is how many bytes of the answer's content came before it failed.
	Received int `json:"-"`
	// Rate is what the server said of its limits, or nil.
	Rate *Rate `json:"-"`
	// Metadata says what was tried.
	Metadata Metadata `json:"trail,omitzero"`

	Err error `json:"-"` // underneath, or nil
}

// Error writes "provider/model: kind (status code): message".
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

// Unserved says that the server certainly did nothing for the call: nobody took the connection,
// or all that came was that the server is not ready yet.
func (e *Error) Unserved() bool {
	return e.Unreachable && !e.Uncertain && (e.Kind == KindTransport || e.Kind == KindOverloaded)
}

// Unwrap returns the error underneath.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an *Error. One that is none is taken for a failure of
// transport, unless it comes of a context that is done.
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

// ContextError returns what a call fails with whose context is done: the cause, if that
// is an *Error; otherwise KindTimeout or KindCanceled, with the cause's words.
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
