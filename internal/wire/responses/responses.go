// Package responses is the format of OpenAI's responses, in which its newer models think
// and call tools together: requests, answers, streams and errors, each written and read.
//
// It promises that the functions here are pure: AppendRequest and DecodeResponse can
// serve a batch file as well as a connection. Nothing is stored at the provider;
// encrypted reasoning comes back as a Thought and goes out again with its message. What
// the format or the model refuses is left out and named in Response.Dropped.
//
// It is not for connections and their failures (internal/dialect/transport), nor for chat
// completions (package chat).
package responses

// Path is the endpoint below a provider's base URL.
const Path = "/responses"
