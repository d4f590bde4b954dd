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
	"strings"
)

// The methods of a model.
const (
	Generate = "generateContent"
	Stream   = "streamGenerateContent"
	Count    = "countTokens"
)

// Path returns the endpoint of a model below a provider's base URL.
func Path(model string, stream bool) string {
	if stream {
		return path(model, Stream) + "?alt=sse"
	}
	return path(model, Generate)
}

// CountPath returns the endpoint that counts the tokens of a prompt.
func CountPath(model string) string { return path(model, Count) }

func path(model, method string) string { return "/models/" + url.PathEscape(model) + ":" + method }

// SplitCall splits the end of a path, as in m:generateContent, into the model and the method. Names of models may have colons.
func SplitCall(call string) (model, method string) {
	i := strings.LastIndexByte(call, ':')
	if i < 0 {
		return call, ""
	}
	return call[:i], call[i+1:]
}

// textID is the ID of the Thought that has the signature of a text.
const textID = "text"
