// Package chat is the format of OpenAI's chat completions, which most other vendors and
// every local server speak too: requests, answers, streams and errors, each written and read.
//
// It promises that the functions here are pure: AppendRequest and DecodeResponse can
// serve a batch file as well as a connection. An answer that is not whole is an error,
// never a shorter answer. What a model refuses, by its provider.Capability, is left out
// and named in Response.Dropped.
//
// It is not for connections and their failures (internal/dialect/transport), nor for OpenAI's newer
// responses format (package responses).
package chat

// Path is the endpoint below a provider's base URL.
const Path = "/chat/completions"
