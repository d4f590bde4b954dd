package simhttp

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

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/bedrock"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
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
	Refusal *sim.Refusal
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// invalid returns the error of an invalid request.
func invalid(param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

// notFound returns the error of an object that does not exist.
func notFound(style sim.Style, param, message string) *Error {
	e := &Error{Status: http.StatusNotFound, Type: "invalid_request_error", Param: param, Message: message}
	if style == sim.Anthropic {
		e.Type = "not_found_error"
	}
	return e
}

// tooLarge returns the error of a request body that exceeds its limit.
func tooLarge(style sim.Style, message string) *Error {
	e := &Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: message}
	if style == sim.Anthropic {
		e.Type = "request_too_large"
	}
	return e
}

// tooMany returns the error of a request that exceeds a limit.
func tooMany(style sim.Style, r *sim.Refusal) *Error {
	e := &Error{Status: http.StatusTooManyRequests, Refusal: r, Message: fmt.Sprintf("The limit of %.0f %s is reached.", r.Limit, r.What)}
	switch style {
	case sim.Anthropic:
		e.Type = "rate_limit_error"
	case sim.OpenAI:
		e.Type, e.Code = r.What, "rate_limit_exceeded"
		if r.TooLarge {
			e.Message = fmt.Sprintf("Request too large: the limit is %.0f %s, and %.0f were requested.", r.Limit, r.What, r.Asked)
		} else if r.After > 0 {
			e.Message += " Please try again in " + duration(r.After) + "."
		}
	}
	return e
}

// duration formats d as OpenAI does: 120ms, 1.5s, 6m0s.
func duration(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(int64(math.Ceil(float64(d)/float64(time.Millisecond))), 10) + "ms"
	}
	return d.Round(time.Millisecond).String()
}

// serverError returns the error of a server that fails.
func serverError(style sim.Style) *Error {
	e := &Error{Status: http.StatusInternalServerError, Type: "server_error", Message: "The server had an error."}
	if style == sim.Anthropic {
		e.Type = "api_error"
	}
	return e
}

// overloaded returns the error of a server without free capacity. OpenAI's flex tier has its own
// error, whose status is that of a rate limit.
func overloaded(style sim.Style, flex bool) *Error {
	e := &Error{Status: http.StatusServiceUnavailable, Type: "service_unavailable_error", Message: "The model is overloaded. Please try again later."}
	switch {
	case style == sim.Anthropic:
		e.Status, e.Type = 529, "overloaded_error"
	case style == sim.OpenAI && flex:
		e.Status, e.Type, e.Code = http.StatusTooManyRequests, "resource_unavailable", "resource_unavailable"
	}
	return e
}

// midStream returns the error that ends a stream.
func midStream(style sim.Style) *Error {
	if style != sim.OpenAI {
		return overloaded(style, false)
	}
	e := serverError(style)
	e.Code = "server_error"
	return e
}

// outOfCredit returns the error of an account without credit.
func outOfCredit(style sim.Style) *Error {
	switch style {
	case sim.Amazon:
		return &Error{Status: http.StatusBadRequest, Type: "ServiceQuotaExceededException", Message: "Your request exceeds the service quota for your account."}
	case sim.Google:
		return &Error{Status: http.StatusTooManyRequests, Message: "Your prepayment credits are depleted. Please manage your project and billing."}
	case sim.Anthropic:
		return invalid("", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")
	}
	return &Error{
		Status: http.StatusTooManyRequests, Type: "insufficient_quota", Code: "insufficient_quota",
		Message: "You exceeded your current quota, please check your plan and billing details.",
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
func (e *Error) InEvent(style sim.Style, requestID string) openai.Error {
	switch style {
	case sim.Amazon:
		name := e.amazonType()
		return openai.Error{Type: strings.ToLower(name[:1]) + name[1:], Message: e.Message}
	case sim.Anthropic:
		return openai.Error{Type: e.Type, Message: e.Message, RequestID: requestID}
	case sim.Google:
		wait := ""
		if e.Refusal != nil && e.Refusal.After > 0 {
			wait = strconv.FormatFloat(math.Ceil(e.Refusal.After.Seconds()*1000)/1000, 'f', -1, 64) + "s"
		}
		return openai.Error{Type: gemini.Status(e.Status), Message: e.Message, Code: strconv.Itoa(e.Status), Param: wait}
	}
	return openai.Error{Type: e.Type, Message: e.Message, Code: e.Code, Param: e.Param}
}

// Append appends the body of an answer that reports e.
func (e *Error) Append(dst []byte, style sim.Style, requestID string) []byte {
	if style == sim.Anthropic {
		return anthropic.AppendError(dst, e.InEvent(style, requestID))
	}
	if style == sim.Amazon {
		return bedrock.AppendError(dst, e.InEvent(style, ""))
	}
	if style == sim.Google {
		return append(gemini.AppendError(dst, e.InEvent(style, "")), '\n')
	}
	return append(openai.AppendError(dst, e.InEvent(style, "")), '\n')
}

// Write answers a request with e.
func (e *Error) Write(w http.ResponseWriter, style sim.Style, requestID string) {
	if style == sim.Amazon {
		w.Header().Set("X-Amzn-Errortype", e.amazonType()+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	}
	if r := e.Refusal; r != nil && r.After > 0 && style != sim.Google && style != sim.Amazon { // it is in the body, or nowhere
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.After.Seconds()))))
		if style == sim.OpenAI {
			w.Header().Set("Retry-After-Ms", strconv.Itoa(int(math.Ceil(float64(r.After)/float64(time.Millisecond)))))
		}
	}
	writeBody(w, e.Status, "application/json", e.Append(nil, style, requestID))
}

// readBody reads the body of r into buf, up to limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, limit int64, style sim.Style) *Error {
	if n := r.ContentLength; n > 0 && n <= limit {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		if style == sim.Anthropic {
			return tooLarge(style, "Request exceeds the maximum size")
		}
		return tooLarge(style, "Request too large.")
	}
	if err != nil {
		return invalid("", "The request body could not be read.")
	}
	return nil
}

// decodeSmall reads the body of a small request into v.
func (s *Server) decodeSmall(w http.ResponseWriter, r *http.Request, v any) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, s.cfg.MaxBody, sim.OpenAI); err != nil {
		return err
	}
	return decodeBody(buf.Bytes(), v)
}

// decodeBody reads the body of a small request into v.
func decodeBody(b []byte, v any) *Error {
	if err := json.Unmarshal(b, v); err != nil {
		return invalid("", "Invalid request: %s", err)
	}
	return nil
}

// writeJSON answers a request with v.
func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil { // no endpoint answers with what JSON cannot hold
		b = []byte("null")
	}
	writeBody(w, http.StatusOK, "application/json", append(b, '\n'))
}

// writeBody answers a request with a status and a body.
func writeBody(w http.ResponseWriter, status int, mediaType string, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{mediaType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
