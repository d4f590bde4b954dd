package format

import (
	"bytes"
	"net/http"
	"strconv"

	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/internal/kit/sse"
	"parley/llm"
)

// NewWriter returns the writer of an endpoint's streams.
func (a API) NewWriter(m openai.Meta) openai.CompletionWriter {
	switch a {
	case Messages:
		return openai.InSequence(anthropic.NewWriter(m))
	case Responses:
		return openai.InSequence(responses.NewWriter(m))
	case Gemini:
		return gemini.NewWriter(m)
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
	case Gemini:
		return gemini.AppendResponse(b, m, r)
	default:
		return openai.AppendResponse(b, m, r)
	}
}

// AppendError appends the body of an error in the vendor's format. code is ours, for programs.
func (a API) AppendError(b []byte, status int, code, message string) []byte {
	if a.Anthropic() {
		return anthropic.AppendError(b, openai.Error{Type: anthropicType(status), Message: message, Code: code})
	}
	if a.Google() {
		return gemini.AppendError(b, geminiError(status, code, message))
	}
	return openai.AppendError(b, openai.Error{Type: openAIType(status), Message: message, Code: code})
}

func geminiError(status int, code, message string) openai.Error {
	return openai.Error{Type: gemini.Status(status), Message: message, Code: strconv.Itoa(status), Reason: code}
}

// AppendErrorEvent appends an error as the last event of a stream.
func (a API) AppendErrorEvent(b []byte, status int, code, message string) []byte {
	e := openai.Error{Type: openAIType(status), Message: message, Code: code}
	switch a {
	case Responses:
		return responses.AppendErrorEvent(b, e)
	case Gemini:
		return gemini.AppendErrorEvent(b, geminiError(status, code, message))
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

// Ends reports whether an event ends an answer; only bookkeeping follows. A stream with several answers has
// one such event for each.
func (a API) Ends(e sse.Event) bool {
	switch a {
	case Chat:
		return saysFinish(e.Data, `"finish_reason"`)
	case Messages:
		return saysFinish(e.Data, `"stop_reason"`)
	case Gemini:
		return saysFinish(e.Data, `"finishReason"`) || saysFinish(e.Data, `"blockReason"`)
	default:
		return false
	}
}

// Last reports whether an event is the last of a stream.
func (a API) Last(e sse.Event) bool {
	name := string(e.Name)
	if name == "" && a == Responses {
		name = request.Str(e.Data, "type") // some servers leave out the name
	}
	switch name {
	case "message_stop", "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true
	}
	return e.Done()
}

// Fails reports whether an event says that the answer failed.
func (a API) Fails(e sse.Event) bool {
	if string(e.Name) == "error" {
		return true
	}
	return bytes.Contains(e.Data, []byte(`"error"`)) && (request.Member(e.Data, "error") != nil || request.Str(e.Data, "type") == "error")
}

// saysFinish reports whether a member of that name has a non-empty string value. Inside a string its quotes
// would be escaped, so the text of a model cannot imitate it.
func saysFinish(b []byte, name string) bool {
	for {
		i := bytes.Index(b, []byte(name))
		if i < 0 {
			return false
		}
		b = b[i+len(name):]
		rest := bytes.TrimLeft(b, " \t")
		if value, ok := bytes.CutPrefix(rest, []byte{':'}); ok {
			if value = bytes.TrimLeft(value, " \t"); len(value) > 1 && value[0] == '"' && value[1] != '"' {
				return true
			}
		}
	}
}

// Whole returns the whole answer in the last event of a stream, or nil.
func (a API) Whole(e sse.Event) []byte {
	if a != Responses || !a.Last(e) {
		return nil
	}
	return request.Member(e.Data, "response")
}

// MoveMembers adds the members of e to the last event of held that lacks them, byte for byte, except the
// usage. ok is false if nothing was added.
func MoveMembers(held []byte, e sse.Event) (_ []byte, ok bool) {
	var last []byte // the data of the last event with members
	at, end := 0, -1
	for raw := range sse.Split(held) {
		at += len(raw)
		if data := sse.Parse(raw).Data; len(data) > 0 && data[0] == '{' {
			last, end = data, at-len(raw)+bytes.LastIndexByte(raw, '}')
		}
	}
	if end < 0 {
		return held, false
	}
	more := bytes.Clone(held[:end])
	body.Members(e.Data, func(key, value []byte) bool {
		if string(key) != "usage" && !hasMember(last, string(key)) {
			more = append(append(more, ',', '"'), key...)
			more = append(append(more, '"', ':'), value...)
		}
		return true
	})
	return append(more, held[end:]...), len(more) > end
}

// OnlyUsage reports whether an event of a chat completion holds only the usage. A client that did not ask for
// it does not expect it.
func OnlyUsage(e sse.Event) bool {
	if !bytes.Contains(e.Data, []byte(`"usage"`)) {
		return false
	}
	choices := request.Member(e.Data, "choices")
	return choices != nil && request.Member(e.Data, "usage") != nil && body.Elements(choices, func([]byte) bool { return false })
}
