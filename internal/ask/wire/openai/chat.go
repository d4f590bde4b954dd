// Package openai writes and reads OpenAI's chat completions, which most other vendors and every local
// server speak too: requests, answers, streams and errors.
//
// It promises pure functions, so that they serve a batch file as well as a connection. An
// incomplete answer is an error, never a shorter answer. A parameter that the model refuses, by its
// provider.Capability, is left out and listed in Response.Dropped.
//
// It does not handle connections (internal/ask/transport does), or OpenAI's newer format
// (package responses).
package openai

// Path is the endpoint below a provider's base URL.
const Path = "/chat/completions"
