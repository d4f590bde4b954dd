// Package messages is the format of Anthropic's messages: requests, answers, streams and errors,
// each written and read.
//
// It promises that the functions here are pure: AppendRequest and DecodeResponse can
// serve a batch as well as a connection. An answer that is not whole is an error,
// never a shorter answer. What a model refuses, by its provider.Capability, is left out
// and named in Response.Dropped. Thoughts keep their signatures, so that they can go
// back with the message they came with.
//
// It is not for connections and their failures (internal/dialect/transport).
package messages

import (
	"parley/internal/provider"
	"parley/llm"
)

const (
	// Path is the endpoint below a provider's base URL.
	Path = "/messages"
	// Version is the version of the format that is spoken.
	Version = "2023-06-01"

	// defaultMaxTokens is sent where neither the request nor the table says how long
	// an answer may be: the format has no way to leave it open.
	defaultMaxTokens = 4096
)

// MaxTokens is the max_tokens that goes out with req: what it asks for, but no more
// than the model gives, and that when it asks for nothing.
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
