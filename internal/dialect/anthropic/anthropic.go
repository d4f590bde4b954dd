// Package anthropic is the dialect of Anthropic's messages.
//
// It promises that the functions here are pure: AppendRequest and DecodeResponse can
// serve a batch as well as a connection. An answer that is not whole is an error,
// never a shorter answer. What a model refuses, by its provider.Capability, is left out
// and named in Response.Dropped. Thoughts keep their signatures, so that they can go
// back with the message they came with.
//
// It is not for connections and their failures (package wire).
package anthropic

import (
	"parley/internal/dialect/wire"
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

// New opens a provider that speaks this dialect. The result is an llm.Model.
func New(p provider.Provider) (*wire.Model, error) {
	return wire.Open(p, wire.Codec{
		Path:      Path,
		Config:    wire.Config{KeyHeader: "X-Api-Key", Header: map[string]string{"Anthropic-Version": Version}},
		Append:    AppendRequest,
		Decode:    DecodeResponse,
		Assemble:  NewAssembler,
		MaxTokens: MaxTokens,
	})
}

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
