package format

import (
	"net/http"

	"parley/internal/dialect/wire/body"
)

// AppendError appends the body of an error in the words of the endpoint's vendor. code is
// ours: what a program branches on.
func (a API) AppendError(b []byte, status int, code, message string) []byte {
	if a.Anthropic() {
		b = append(b, `{"type":"error","error":{`...)
		b = body.Str(body.Str(b, "type", anthropicType(status)), "message", message)
		b = append(b, '}')
		return append(body.Str(b, "code", code), '}')
	}
	b = append(b, `{"error":{`...)
	b = body.Str(body.Str(b, "message", message), "type", openAIType(status))
	b = append(body.Key(b, "param"), "null"...)
	return append(body.Str(b, "code", code), '}', '}')
}

// AppendErrorEvent appends an error as the last event of a stream.
func (a API) AppendErrorEvent(b []byte, status int, code, message string) []byte {
	switch a {
	case Responses:
		b = append(b, "event: error\ndata: {\"type\":\"error\""...)
		b = body.Str(body.Str(b, "code", code), "message", message)
		return append(b, ",\"param\":null,\"sequence_number\":0}\n\n"...)
	case Messages:
		b = append(b, "event: error\n"...)
	}
	b = append(b, "data: "...)
	return append(a.AppendError(b, status, code, message), '\n', '\n')
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
