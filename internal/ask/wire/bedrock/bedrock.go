// Package bedrock writes and reads the Converse API of AWS Bedrock: requests, answers and streams.
//
// It promises pure functions. An incomplete answer is an error, never a shorter answer. A parameter that the format does
// not have is left out and listed in Response.Dropped.
//
// request.go writes requests and response.go reads answers, for calls to a provider. server.go does the reverse, for the
// gateway and the simulated server.
//
// It does not sign requests: internal/ask/credential does. The frames of streams are those of package eventstream.
package bedrock

import (
	"net/url"
	"strings"
)

// Path returns the endpoint of a model below a provider's base URL. The model may be the ARN of an inference profile.
func Path(model string, stream bool) string {
	at := "/model/" + strings.ReplaceAll(url.PathEscape(model), ":", "%3A")
	if stream {
		return at + "/converse-stream"
	}
	return at + "/converse"
}

// The members of a request.
const (
	messages  = "messages"
	system    = "system"
	inference = "inferenceConfig"
	tools     = "toolConfig"
	output    = "outputConfig"
	tier      = "serviceTier"
)

// cachePoint is the block after which the provider caches the prompt.
const cachePoint = "cachePoint"
