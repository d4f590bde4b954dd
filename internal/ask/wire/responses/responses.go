// Package responses writes and reads OpenAI's responses, in which its newer models think and call
// tools together: requests, answers, streams and errors.
//
// It promises pure functions, so that they serve a batch file as well as a connection. The provider
// stores nothing: encrypted reasoning becomes a Thought, and is sent back with its message. A
// parameter that the format or the model refuses is left out and listed in Response.Dropped.
//
// request.go writes requests and response.go reads answers, for calls to a provider. server.go does the reverse, for the
// gateway and the simulated server.
//
// It does not handle connections (internal/ask/transport does), or chat completions (package
// openai).
package responses

// Path is the endpoint below a provider's base URL.
const Path = "/responses"
