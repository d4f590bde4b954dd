// Package gemini writes and reads Gemini's generateContent: requests, answers and streams.
//
// It promises pure functions. An incomplete answer is an error, never a shorter answer. A parameter
// that the model refuses, by its provider.Capability, is left out and listed in Response.Dropped.
//
// Gemini signs its tool calls and texts. A signature becomes a Thought with the ID of the call, or
// with the ID "text", so that it is sent back with the message.
//
// request.go writes requests and response.go reads answers, for calls to a provider. server.go does the reverse, for the
// gateway and the simulated server.
//
// It does not handle connections: internal/ask/transport does.
package gemini

import (
	"net/url"

	"parley/llm"
)

// Path returns the endpoint of a model below a provider's base URL.
func Path(model string, stream bool) string {
	if stream {
		return "/models/" + url.PathEscape(model) + ":streamGenerateContent?alt=sse"
	}
	return "/models/" + url.PathEscape(model) + ":generateContent"
}

// textID is the ID of the Thought that has the signature of a text.
const textID = "text"

// signature returns the signature of a tool call, or of the text of a message.
func signature(m *llm.Message, id string) string {
	for i := range m.Thoughts {
		if t := &m.Thoughts[i]; t.ID == id && id != "" {
			return t.Signature
		}
	}
	return ""
}
