package cloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/dialect/sim/simhttp/endpoint"
	"parley/internal/provider"
	"parley/internal/wire/completion"
	"parley/internal/wire/gemini"
	"parley/llm"
)

// IsVertex reports whether a request is for one of the paths of Vertex AI.
func IsVertex(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/projects/") }

// VertexBody reads Anthropic's messages on Vertex AI: the version is in the body, and the model is not.
func VertexBody(read func([]byte) (*check.Ask, *endpoint.Error)) func([]byte) (*check.Ask, *endpoint.Error) {
	return func(b []byte) (*check.Ask, *endpoint.Error) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(b, &members); err != nil {
			return read(b) // it says what is wrong
		}
		var version string
		if json.Unmarshal(members["anthropic_version"], &version) != nil || version != provider.VertexVersion {
			return nil, endpoint.Invalid("", "anthropic_version: Field required")
		}
		if members["model"] != nil {
			return nil, endpoint.Invalid("", "model: Extra inputs are not permitted")
		}
		delete(members, "anthropic_version")
		members["model"] = json.RawMessage(`"in the address"`)
		b, err := json.Marshal(members)
		if err != nil {
			return nil, endpoint.Invalid("", "The request cannot be read: %s", err)
		}
		return read(b)
	}
}

// VertexGemini reads the address of a request in Gemini's format, and the service tier, which is in a header. As the real one does, it
// refuses a tier in the body.
func VertexGemini(r *http.Request, a *check.Ask) *endpoint.Error {
	if a.Request.Tier != "" {
		return &endpoint.Error{
			Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT",
			Message: fmt.Sprintf("Invalid value at 'service_tier' (type.googleapis.com/google.cloud.aiplatform.v1beta1.ServiceTier), %q", a.Request.Tier),
		}
	}
	a.Request.Tier = r.Header.Get(gemini.TierHeader)
	return GeminiAddress(r, a)
}

// VertexAnswer appends an answer in Gemini's format, which names the tier in another way.
func VertexAnswer(dst []byte, m completion.Meta, r *llm.Response) []byte {
	m.Tier = gemini.Traffic(m.Tier)
	return gemini.AppendResponse(dst, m, r)
}

// VertexWriter is VertexAnswer for a stream.
func VertexWriter(m completion.Meta) completion.Writer {
	m.Tier = gemini.Traffic(m.Tier)
	return gemini.NewWriter(m)
}

// GeminiAddress reads the model, and whether to stream.
func GeminiAddress(r *http.Request, a *check.Ask) *endpoint.Error {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	switch {
	case method == "streamGenerateContent" && r.URL.Query().Get("alt") != "sse":
		return endpoint.Invalid("", "A stream that is a JSON array is not simulated: use alt=sse")
	case model == "" || method != "generateContent" && method != "streamGenerateContent":
		return endpoint.NotFound(quota.Google, "", "models/"+model+" is not found for API version v1beta, or is not supported for "+method+".")
	}
	a.Request.Model, a.Stream = model, method == "streamGenerateContent"
	return nil
}

// VertexAddress reads the model. A stream is asked for in the body too.
func VertexAddress(r *http.Request, a *check.Ask) *endpoint.Error {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if model == "" || method != "rawPredict" && method != "streamRawPredict" || (method == "streamRawPredict") != a.Stream {
		return endpoint.NotFound(quota.Google, "", "Publisher Model "+model+" was not found, or does not support "+method+".")
	}
	a.Request.Model = model
	return nil
}
