package format

import (
	"net/http"

	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/responses"
	"parley/llm"
)

// NewWriter returns the writer of an endpoint's streams.
func (a API) NewWriter(m openai.Meta) openai.CompletionWriter {
	switch a {
	case Messages:
		return anthropic.NewWriter(m)
	case Responses:
		return responses.NewWriter(m)
	default:
		return openai.NewWriter(m)
	}
}

// AppendResponse appends a whole answer in the format of the endpoint.
func (a API) AppendResponse(b []byte, m openai.Meta, r *llm.Response) []byte {
	switch a {
	case Messages:
		return anthropic.AppendResponse(b, m, r)
	case Responses:
		return responses.AppendResponse(b, m, r)
	default:
		return openai.AppendResponse(b, m, r)
	}
}

// AppendError appends the body of an error in the vendor's format. code is ours, for programs.
func (a API) AppendError(b []byte, status int, code, message string) []byte {
	if a.Anthropic() {
		return anthropic.AppendError(b, openai.Error{Type: anthropicType(status), Message: message, Code: code})
	}
	return openai.AppendError(b, openai.Error{Type: openAIType(status), Message: message, Code: code})
}

// AppendErrorEvent appends an error as the last event of a stream.
func (a API) AppendErrorEvent(b []byte, status int, code, message string) []byte {
	e := openai.Error{Type: openAIType(status), Message: message, Code: code}
	switch a {
	case Responses:
		return responses.AppendErrorEvent(b, e)
	case Messages:
		e.Type = anthropicType(status)
		return anthropic.AppendErrorEvent(b, e)
	default:
		return openai.AppendErrorEvent(b, e)
	}
}

func anthropicType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable, 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func openAIType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "requests"
	case status >= 500:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}
