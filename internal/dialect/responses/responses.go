// Package responses is the dialect of OpenAI's responses, the format in which its
// newer models think and call tools together.
//
// It promises that the functions here are pure: AppendRequest and DecodeResponse can
// serve a batch file as well as a connection. Nothing is stored at the provider;
// encrypted reasoning comes back as a Thought and goes out again with its message. What
// the format or the model refuses is left out and named in Response.Dropped.
//
// It is not for connections and their failures (package wire), nor for chat
// completions (package openai).
package responses

import (
	"parley/internal/dialect/wire"
	"parley/internal/provider"
)

// Path is the endpoint below a provider's base URL.
const Path = "/responses"

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
