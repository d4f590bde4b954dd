// Package endpoint is what the endpoints of the simulated server share: they read a body, write
// JSON, and fail in the words of the vendor whose format they speak.
//
// It promises that every error has a status, a type and a message. It does not decide what
// fails: package check refuses requests, and package simhttp draws faults.
package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/internal/wire/bedrock"
	"parley/internal/wire/chat"
	"parley/internal/wire/completion"
	"parley/internal/wire/gemini"
	"parley/internal/wire/messages"
)

// Func answers a request, or returns the error to answer it with.
type Func func(w http.ResponseWriter, r *http.Request) *Error

// Error is a failure before it is written in a vendor's format.
type Error struct {
	Status  int
	Type    string
	Code    string // "" is written as null
	Param   string // "" is written as null
	Message string
	// Refusal is the limit that the request exceeded, or nil.
	Refusal *quota.Refusal
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Invalid returns the error of an invalid request.
func Invalid(param, format string, args ...any) *Error {
	return InvalidCode("", param, format, args...)
}

// InvalidCode is Invalid with one of OpenAI's error codes.
func InvalidCode(code, param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

// NotFound returns the error of an object that does not exist.
func NotFound(style quota.Style, param, message string) *Error {
	e := &Error{Status: http.StatusNotFound, Type: "invalid_request_error", Param: param, Message: message}
	if style == quota.Anthropic {
		e.Type = "not_found_error"
	}
	return e
}

// TooLarge returns the error of a request body that exceeds its limit.
func TooLarge(style quota.Style, message string) *Error {
	e := &Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: message}
	if style == quota.Anthropic {
		e.Type = "request_too_large"
	}
	return e
}

// TooMany returns the error of a request that exceeds a rate limit.
func TooMany(style quota.Style, r *quota.Refusal) *Error {
	e := &Error{Status: http.StatusTooManyRequests, Refusal: r}
	if style == quota.Amazon {
		e.Message = fmt.Sprintf("Too many %s, please wait before trying again.", r.What)
		return e
	}
	if style == quota.Google {
		e.Type, e.Message = googleStatus(e.Status), fmt.Sprintf("You exceeded your current quota of %.0f %s. Please retry in %s.", r.Limit, r.What, Duration(r.After))
		return e
	}
	if style == quota.Anthropic {
		e.Type = "rate_limit_error"
		e.Message = fmt.Sprintf("This request would exceed your organization's rate limit of %.0f %s per minute.", r.Limit, r.What)
		if r.What == "concurrency" {
			e.Message = "Number of concurrent connections has exceeded your rate limit. Please try again later."
		}
		return e
	}
	e.Type, e.Code = r.What, "rate_limit_exceeded"
	unit := map[string]string{"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)"}[r.What]
	switch {
	case r.What == "concurrency":
		e.Type, e.Message = "requests", fmt.Sprintf("Too many concurrent requests. Limit: %.0f.", r.Limit)
	case r.TooLarge:
		e.Message = fmt.Sprintf("Request too large on %s: Limit %.0f, Requested %.0f. The input or output tokens must be reduced in order to run successfully.", unit, r.Limit, r.Asked)
	default:
		e.Message = fmt.Sprintf("Rate limit reached on %s: Limit %.0f, Used %.0f, Requested %.0f. Please try again in %s.", unit, r.Limit, r.Used, r.Asked, Duration(r.After))
	}
	return e
}

// Duration formats d as OpenAI does: 120ms, 1.5s, 6m0s.
func Duration(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(int64(math.Ceil(float64(d)/float64(time.Millisecond))), 10) + "ms"
	}
	return d.Round(time.Millisecond).String()
}

// Server returns the error of a server that fails.
func Server(style quota.Style) *Error {
	switch style {
	case quota.Anthropic:
		return &Error{Status: http.StatusInternalServerError, Type: "api_error", Message: "Internal server error"}
	case quota.Amazon:
		return &Error{Status: http.StatusInternalServerError, Message: "The system encountered an unexpected error during processing. Try your request again."}
	case quota.Google:
		return &Error{Status: http.StatusInternalServerError, Message: "An internal error has occurred. Please retry."}
	}
	return &Error{Status: http.StatusInternalServerError, Type: "server_error", Message: "The server had an error while processing your request. Sorry about that!"}
}

// Overloaded returns the error of a server without free capacity. OpenAI's flex tier has its own
// error, whose status is that of a rate limit.
func Overloaded(style quota.Style, flex bool) *Error {
	switch {
	case style == quota.Amazon:
		return &Error{Status: http.StatusServiceUnavailable, Message: "Bedrock is unable to process your request."}
	case style == quota.Google:
		return &Error{Status: http.StatusServiceUnavailable, Message: "The model is overloaded. Please try again later."}
	case flex:
		return &Error{Status: http.StatusTooManyRequests, Type: "resource_unavailable", Code: "resource_unavailable", Message: "Resource Unavailable"}
	case style == quota.Anthropic:
		return &Error{Status: 529, Type: "overloaded_error", Message: "Overloaded"}
	}
	return &Error{Status: http.StatusServiceUnavailable, Type: "service_unavailable_error", Message: "The engine is currently overloaded, please try again later."}
}

// MidStream returns the error that ends a stream.
func MidStream(style quota.Style) *Error {
	if style != quota.OpenAI {
		return Overloaded(style, false)
	}
	e := Server(style)
	e.Code = "server_error"
	return e
}

// OutOfCredit returns the error of an account without credit.
func OutOfCredit(style quota.Style) *Error {
	switch style {
	case quota.Amazon:
		return &Error{Status: http.StatusBadRequest, Type: "ServiceQuotaExceededException", Message: "Your request exceeds the service quota for your account."}
	case quota.Google:
		return &Error{Status: http.StatusTooManyRequests, Message: "Your prepayment credits are depleted. Please manage your project and billing."}
	case quota.Anthropic:
		return Invalid("", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")
	}
	return &Error{
		Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: "insufficient_quota",
		Message: "You exceeded your current quota, please check your plan and billing details.",
	}
}

// googleStatus returns Google's name of a status.
func googleStatus(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	default:
		return "INTERNAL"
	}
}

// amazonType returns the name of AWS for an error.
func (e *Error) amazonType() string {
	switch e.Status {
	case http.StatusForbidden, http.StatusUnauthorized:
		return "AccessDeniedException"
	case http.StatusNotFound:
		return "ResourceNotFoundException"
	case http.StatusTooManyRequests:
		return "ThrottlingException"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableException"
	case http.StatusInternalServerError:
		return "InternalServerException"
	default:
		if strings.HasSuffix(e.Type, "Exception") {
			return e.Type
		}
		return "ValidationException"
	}
}

// InEvent returns e as a format writes it. Only Anthropic's format has request IDs, and it has no
// codes. Google's has the status as its code, and the time to wait.
func (e *Error) InEvent(style quota.Style, requestID string) completion.Error {
	switch style {
	case quota.Amazon:
		name := e.amazonType()
		return completion.Error{Type: strings.ToLower(name[:1]) + name[1:], Message: e.Message}
	case quota.Anthropic:
		return completion.Error{Type: e.Type, Message: e.Message, RequestID: requestID}
	case quota.Google:
		wait := ""
		if e.Refusal != nil && e.Refusal.After > 0 {
			wait = strconv.FormatFloat(math.Ceil(e.Refusal.After.Seconds()*1000)/1000, 'f', -1, 64) + "s"
		}
		return completion.Error{Type: googleStatus(e.Status), Message: e.Message, Code: strconv.Itoa(e.Status), Param: wait}
	}
	return completion.Error{Type: e.Type, Message: e.Message, Code: e.Code, Param: e.Param}
}

// Append appends the body of an answer that reports e.
func (e *Error) Append(dst []byte, style quota.Style, requestID string) []byte {
	if style == quota.Anthropic {
		return messages.AppendError(dst, e.InEvent(style, requestID))
	}
	if style == quota.Amazon {
		return bedrock.AppendError(dst, e.InEvent(style, ""))
	}
	if style == quota.Google {
		return append(gemini.AppendError(dst, e.InEvent(style, "")), '\n')
	}
	return append(chat.AppendError(dst, e.InEvent(style, "")), '\n')
}

// Write answers a request with e.
func (e *Error) Write(w http.ResponseWriter, style quota.Style, requestID string) {
	if style == quota.Amazon {
		w.Header().Set("X-Amzn-Errortype", e.amazonType()+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	}
	if r := e.Refusal; r != nil && r.After > 0 && style != quota.Google && style != quota.Amazon { // it is in the body, or nowhere
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.After.Seconds()))))
		if style == quota.OpenAI {
			w.Header().Set("Retry-After-Ms", strconv.Itoa(int(math.Ceil(float64(r.After)/float64(time.Millisecond)))))
		}
	}
	WriteBody(w, e.Status, "application/json", e.Append(nil, style, requestID))
}

// ReadBody reads the body of r into buf, up to limit bytes.
func ReadBody(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, limit int64, style quota.Style) *Error {
	if n := r.ContentLength; n > 0 && n <= limit {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		if style == quota.Anthropic {
			return TooLarge(style, "Request exceeds the maximum size")
		}
		return TooLarge(style, "Request too large.")
	}
	if err != nil {
		return Invalid("", "The request body could not be read.")
	}
	return nil
}

// Decode reads the body of a small request into v, strictly unless lax.
func Decode(b []byte, v any, lax bool) *Error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if !lax {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(v); err != nil {
		return Invalid("", "Invalid request: %s", err)
	}
	if dec.InputOffset() != int64(len(bytes.TrimRight(b, " \t\r\n"))) {
		return Invalid("", "Invalid request: there is more after the value")
	}
	return nil
}

// WriteJSON answers a request with v.
func WriteJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil { // no endpoint answers with what JSON cannot hold
		b = []byte("null")
	}
	WriteBody(w, http.StatusOK, "application/json", append(b, '\n'))
}

// WriteBody answers a request with a status and a body.
func WriteBody(w http.ResponseWriter, status int, mediaType string, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{mediaType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
