// Package anthropic writes and reads Anthropic's messages: requests, answers, streams and errors.
//
// It promises pure functions, so that they serve a batch as well as a connection. An incomplete
// answer is an error, never a shorter answer. A parameter that the model refuses, by its
// provider.Capability, is left out and listed in Response.Dropped. Thoughts keep their signatures,
// so that they can be sent back.
//
// request.go writes requests and response.go reads answers, for calls to a provider. server.go does the reverse, for the
// gateway and the simulated server.
//
// It does not handle connections: internal/ask/transport does.
package anthropic

import (
	"parley/internal/ask/provider"
	"parley/llm"
)

const (
	// Path is the endpoint below a provider's base URL.
	Path = "/messages"
	// Version is the version of the format.
	Version = "2023-06-01"

	// defaultMaxTokens is sent if neither the request nor the capability has a limit, since the
	// format requires one.
	defaultMaxTokens = 4096
)

// MaxTokens returns the max_tokens of req: its own limit, at most the model's, or the model's if it
// has none.
func MaxTokens(req *llm.Request, c provider.Capability) int {
	switch {
	case req.MaxTokens > 0 && c.MaxOutput > 0:
		return min(req.MaxTokens, c.MaxOutput)
	case req.MaxTokens > 0:
		return req.MaxTokens
	case c.MaxOutput > 0:
		return c.MaxOutput
	}
	return defaultMaxTokens
}
