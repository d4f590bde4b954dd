// Package fault turns a server's status, header and body, in the forms of all known providers, into
// an *llm.Error with its Kind, or into an llm.Rate.
//
// It promises a sensible result for any bytes: nothing here fails, and no text that it returns has
// control characters or is longer than MaxMessage.
//
// It does not handle failures of the connection, or remove keys from texts: package transport does.
package fault

import (
	"net/http"
	"slices"
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
