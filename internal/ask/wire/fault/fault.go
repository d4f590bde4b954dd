// Package fault turns a server's status, header and body, in the forms of all known providers, into
// an *llm.Error with its Kind, or into an llm.Rate.
//
// It promises a sensible result for any bytes: nothing here fails, and no text that it returns has
// control characters or is longer than MaxMessage.
//
// It does not handle failures of the connection, or remove keys from texts: package transport does.
package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

// Classify returns the error that a status, a header and a body describe. With status 0 or 200 only
// the body describes it, as in the error event of a stream.
func Classify(status int, h http.Header, body []byte) *llm.Error {
	f := parseFault(body)
	if name, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":"); f.code == "" {
		f.code = name // AWS has it only there
	}
	if status < 300 {
		status = f.status
	}
	e := &llm.Error{
		Kind: kind(status, f), Message: f.message, Status: status, Code: f.code,
		RequestID: RequestID(h), Rate: Rate(h), RetryAfter: RetryAfter(h, time.Now()),
	}
	if e.RequestID == "" {
		e.RequestID = f.requestID
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = f.retryAfter
	}
	if e.Message == "" {
		e.Message = strings.ToLower(http.StatusText(status))
	}
	if e.Message == "" {
		e.Message = "the server reported an error without a message"
	}
	if status >= 300 && status < 400 {
		e.Message = "the server redirects to " + h.Get("Location") + ": base_url must be the address itself"
	}
	if e.Code == "" {
		e.Code = f.kind
	}
	switch h.Get("X-Should-Retry") {
	case "false":
		e.Final = true
	case "true":
		if e.Kind == llm.KindBadRequest {
			e.Kind = llm.KindServer
		}
	}
	e.Unreachable = !e.Final && unreachable(status, f)
	e.Message = Clean(e.Message, MaxMessage)
	return e
}

// unreachable reports whether the server itself was not reached: a proxy answers for a server that
// is down, or the server is still loading its model. A server that explains itself was reached.
func unreachable(status int, f fault) bool {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 521, 522, 523: // the last are Cloudflare's
	default:
		return false
	}
	text := strings.ToLower(f.message)
	return f.bare || text == "" || strings.EqualFold(text, http.StatusText(status)) ||
		strings.Contains(text, "loading") && (strings.Contains(text, "model") || f.kind == "unavailable_error")
}

// kind decides by the name that the server gives the fault, then by its text, then by the status.
func kind(status int, f fault) llm.Kind {
	if k := kindOfName(f); k != "" {
		return k
	}
	if k := kindOfText(status, strings.ToLower(f.message)); k != "" {
		return k
	}
	return kindOfStatus(status, f)
}

func kindOfName(f fault) llm.Kind {
	for _, name := range [...]string{f.code, f.kind} {
		switch strings.ToLower(name) {
		case "insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active",
			"insufficient_balance", "insufficient_credits", "payment_required", "credit_balance_too_low", "servicequotaexceededexception":
			return llm.KindQuota
		case "overloaded_error", "overloaded", "resource_unavailable", "engine_overloaded", "engine_overloaded_error",
			"service_tier_capacity_exceeded", "capacity_exceeded", "unavailable", "service_unavailable", "service_unavailable_error",
			"serviceunavailableexception", "modelnotreadyexception":
			return llm.KindOverloaded
		case "rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "rate_limited", "throttlingexception":
			switch text := strings.ToLower(f.message); {
			case strings.Contains(text, "credits are depleted"): // Gemini
				return llm.KindQuota
			case saysNoCapacity(text):
				return llm.KindOverloaded
			}
			return llm.KindRateLimited
		case "context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length":
			return llm.KindTooLong
		case "content_filter", "content_policy_violation", "invalid_prompt", "responsibleaipolicyviolation",
			"image_content_policy_violation", "bio_policy", "misalignment_policy_violation", "content_filtered":
			return llm.KindRefused
		case "invalid_api_key", "authentication_error", "permission_error", "unauthenticated", "permission_denied", "api_key_invalid",
			"accessdeniedexception", "expiredtokenexception", "unrecognizedclientexception", "invalidsignatureexception":
			return llm.KindAuth
		case "internalserverexception", "modelerrorexception", "modelstreamerrorexception":
			return llm.KindServer
		case "timeout_error", "deadline_exceeded", "modeltimeoutexception":
			return llm.KindTimeout
		}
	}
	return ""
}

func kindOfText(status int, text string) llm.Kind {
	switch {
	case status == http.StatusTooManyRequests && saysNoCapacity(text):
		return llm.KindOverloaded
	case status != http.StatusTooManyRequests && hasAny(text, "credit balance is too low", "insufficient balance", "insufficient credits", "out of credits", "used all available credits"):
		return llm.KindQuota
	case status < 500 && hasAny(text, "api key not valid", "invalid api key", "incorrect api key"):
		return llm.KindAuth
	case status < 500 && hasAny(text, "cachedcontent", "cached content") && hasAny(text, "not found", "expired"):
		return llm.KindAuth // Gemini's status is 403 for a cache that has expired: no call can be answered without it
	case status != http.StatusTooManyRequests && hasAny(text,
		"context length", "context_length", "context window", "context size", "exceed context limit", "maximum context",
		"prompt is too long", "input is too long", "too many input tokens", "reduce the length of the messages", "input length exceeds"):
		return llm.KindTooLong
	case status >= 500 && hasAny(text, "json.exception", "invalid json", "cannot unmarshal", "json parse error", "failed to parse json", "invalid character '"):
		// Some servers answer a request that they cannot parse with 500. A retry cannot help.
		return llm.KindBadRequest
	}
	return ""
}

// saysNoCapacity reports whether the provider lacks capacity, rather than that our quota is used up.
func saysNoCapacity(text string) bool {
	return hasAny(text, "resource unavailable", "overloaded", "at capacity", "capacity exceeded", "no capacity", "model is loading")
}

func kindOfStatus(status int, f fault) llm.Kind {
	switch status {
	case 0:
		return kindOfBareName(f)
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.KindAuth
	case http.StatusPaymentRequired:
		return llm.KindQuota
	case http.StatusRequestTimeout, http.StatusGatewayTimeout, 522, 524:
		return llm.KindTimeout
	case http.StatusConflict, http.StatusTooEarly, http.StatusLocked:
		return llm.KindServer
	case http.StatusRequestEntityTooLarge:
		return llm.KindTooLong
	case http.StatusTooManyRequests:
		return llm.KindRateLimited
	case http.StatusServiceUnavailable, 529:
		return llm.KindOverloaded
	}
	if status >= 500 {
		return llm.KindServer
	}
	return llm.KindBadRequest
}

// kindOfBareName decides without a status. A fault of the server, or one without an explanation, may
// be temporary.
func kindOfBareName(f fault) llm.Kind {
	if strings.HasPrefix(f.kind, "invalid") || strings.HasPrefix(f.code, "invalid") || strings.EqualFold(f.code, "ValidationException") || f.kind == "not_found_error" {
		return llm.KindBadRequest
	}
	return llm.KindServer
}

func hasAny(s string, subs ...string) bool {
	return slices.ContainsFunc(subs, func(sub string) bool { return strings.Contains(s, sub) })
}

// fault is the content of an error's body, in any provider's form.
type fault struct {
	message    string
	code       string // the provider's own, when it is a word
	kind       string // the type, in the provider's words
	status     int    // of HTTP, when the body repeats it
	requestID  string
	retryAfter time.Duration
	bare       bool // the body is not JSON, such as a proxy's page
}

// wireFault covers OpenAI, Anthropic, Gemini, vLLM, SGLang, Ollama, llama.cpp,
// Mistral and FastAPI. Any of its fields may be of any type.
type wireFault struct {
	Error     json.RawMessage `json:"error"`
	Message   json.RawMessage `json:"message"`
	Detail    json.RawMessage `json:"detail"`
	Type      json.RawMessage `json:"type"`
	Code      json.RawMessage `json:"code"`
	Status    json.RawMessage `json:"status"`
	Details   json.RawMessage `json:"details"`
	RequestID json.RawMessage `json:"request_id"`
}

func parseFault(body []byte) fault {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' { // Gemini wraps its errors in a list
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	var w wireFault
	if json.Unmarshal(body, &w) != nil {
		return fault{message: textFault(body), bare: true}
	}
	f := readFault(w)
	inner := bytes.TrimSpace(w.Error)
	if len(inner) > 0 && inner[0] == '{' {
		var in wireFault
		if json.Unmarshal(inner, &in) == nil {
			id := f.requestID
			if f = readFault(in); f.requestID == "" {
				f.requestID = id
			}
		}
	} else if s := word(w.Error); s != "" { // Ollama: {"error":"…"}
		f.message = s
	}
	return f
}

func readFault(w wireFault) fault {
	f := fault{message: word(w.Message), kind: word(w.Type), requestID: word(w.RequestID)}
	if f.message == "" {
		f.message = word(w.Detail)
	}
	if f.kind == "error" { // the type of the envelope, not of the error
		f.kind = ""
	}
	for _, raw := range [...]json.RawMessage{w.Code, w.Status} {
		s := word(raw)
		if n, err := strconv.Atoi(s); err == nil {
			if n >= 400 && n <= 599 {
				f.status = n
			}
		} else if f.code == "" {
			f.code = s
		}
	}
	f.retryAfter = retryInfo(w.Details)
	return f
}

// textFault returns a message for a body that is not JSON.
func textFault(body []byte) string {
	switch {
	case len(body) == 0:
		return ""
	case isHTML(body):
		return "an HTML page" + title(body) + ": is base_url right, or is a proxy in the way?"
	}
	return excerpt(body)
}

// word returns a JSON value as text: the content of a string, "" for null, and the JSON of anything
// else.
func word(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	}
	return string(raw)
}

// retryInfo returns the delay in Google's error details.
func retryInfo(details json.RawMessage) time.Duration {
	if !bytes.Contains(details, []byte("retryDelay")) {
		return 0
	}
	var list []struct {
		Type  string          `json:"@type"`
		Delay json.RawMessage `json:"retryDelay"`
	}
	if json.Unmarshal(details, &list) != nil {
		return 0
	}
	for _, d := range list {
		if strings.HasSuffix(d.Type, "RetryInfo") {
			return capped(parseWait(word(d.Delay)))
		}
	}
	return 0
}

// Malformed returns the error of an answer that cannot be read. It may have been billed.
func Malformed(message string, err error) *llm.Error {
	if err != nil {
		message += ": " + err.Error()
	}
	return &llm.Error{Kind: llm.KindMalformed, Message: message, Uncertain: true, Err: err}
}

// BadRequest returns the error of a request that cannot be sent.
func BadRequest(format string, args ...any) *llm.Error {
	return &llm.Error{Kind: llm.KindBadRequest, Message: fmt.Sprintf(format, args...)}
}

// LooksJSON returns an error if a body cannot be JSON, by its content type and its first bytes. The
// most common faults are a proxy's page and an empty body.
func LooksJSON(b []byte, contentType string) error {
	t := bytes.TrimLeft(b, " \t\r\n")
	switch {
	case len(t) == 0:
		return Malformed("the answer is empty", nil)
	case isHTML(t):
		return Malformed("the answer is an HTML page"+title(t)+": is base_url right, or is a proxy in the way?", nil)
	case contentType != "" && !strings.Contains(strings.ToLower(contentType), "json"):
		return Malformed(fmt.Sprintf("the content type is %q, not JSON: %s", contentType, excerpt(t)), nil)
	case t[0] != '{' && t[0] != '[':
		return Malformed("the answer is not JSON: "+excerpt(t), nil)
	}
	return nil
}

func isHTML(b []byte) bool {
	if len(b) == 0 || b[0] != '<' {
		return false
	}
	head := bytes.ToLower(b[:min(len(b), 512)])
	return bytes.Contains(head, []byte("<html")) || bytes.Contains(head, []byte("<!doctype")) ||
		bytes.Contains(head, []byte("<head")) || bytes.Contains(head, []byte("<body"))
}

// title returns the title of an HTML page, in quotes.
func title(b []byte) string {
	low := bytes.ToLower(b[:min(len(b), 4096)])
	_, rest, ok := bytes.Cut(low, []byte("<title>"))
	t, _, end := bytes.Cut(rest, []byte("</title>"))
	if !ok || !end {
		return ""
	}
	return fmt.Sprintf(" (%q)", Clean(string(bytes.TrimSpace(t)), 80))
}

func excerpt(b []byte) string { return Clean(string(b[:min(len(b), 200)]), 200) }

// MaxMessage is the maximum size of a server's text that is kept, in bytes.
const MaxMessage = 1000

// Clean makes a server's text safe for a line on a terminal: valid, without control characters, and
// at most n bytes long.
func Clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// RequestID returns the server's ID of the exchange.
func RequestID(h http.Header) string {
	for _, k := range [...]string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "X-Generation-Id", "Cf-Ray"} {
		if v := h[k]; len(v) > 0 {
			return v[0]
		}
	}
	return ""
}
