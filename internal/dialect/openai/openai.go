// Package openai is the dialect of OpenAI's chat completions, which most other
// vendors and every local server speak too.
//
// It promises that the functions here are pure: AppendRequest and DecodeResponse can
// serve a batch file as well as a connection. An answer that is not whole is an error,
// never a shorter answer. What a model refuses, by its provider.Capability, is left out
// and named in Response.Dropped.
//
// It is not for connections and their failures (package wire), nor for OpenAI's newer
// responses format (package responses).
package openai

import (
	"parley/internal/dialect/wire"
	"parley/internal/provider"
)

// Path is the endpoint below a provider's base URL.
const Path = "/chat/completions"

// New opens a provider that speaks this dialect. The result is an llm.Model.
func New(p provider.Provider) (*wire.Model, error) {
	return wire.Open(p, wire.Codec{
		Path:     Path,
		Config:   wire.Config{KeyPrefix: "Bearer "},
		Append:   AppendRequest,
		Decode:   DecodeResponse,
		Assemble: NewAssembler,
	})
}
