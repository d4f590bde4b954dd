package simhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/llm"
)

// isVertex reports whether a request is for one of the paths of Vertex AI.
func isVertex(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/projects/") }

// vertexBody reads Anthropic's messages on Vertex AI: the version is in the body, and the model is not.
func vertexBody(read func([]byte) (*Ask, *Error)) func([]byte) (*Ask, *Error) {
	return func(b []byte) (*Ask, *Error) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(b, &members); err != nil {
			return read(b) // it says what is wrong
		}
		var version string
		if json.Unmarshal(members["anthropic_version"], &version) != nil || version != provider.VertexVersion {
			return nil, invalid("", "anthropic_version: Field required")
		}
		if members["model"] != nil {
			return nil, invalid("", "model: Extra inputs are not permitted")
		}
		delete(members, "anthropic_version")
		members["model"] = json.RawMessage(`"in the address"`)
		b, err := json.Marshal(members)
		if err != nil {
			return nil, invalid("", "The request cannot be read: %s", err)
		}
		return read(b)
	}
}

// cloudVertexGemini reads the address of a request in Gemini's format, and the service tier, which is in a header. As the real one does, it
// refuses a tier in the body.
func cloudVertexGemini(r *http.Request, a *Ask) *Error {
	if a.Request.Tier != "" {
		return &Error{
			Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT",
			Message: fmt.Sprintf("Invalid value at 'service_tier' (type.googleapis.com/google.cloud.aiplatform.v1beta1.ServiceTier), %q", a.Request.Tier),
		}
	}
	a.Request.Tier = r.Header.Get(gemini.TierHeader)
	return geminiAddress(r, a)
}

// vertexAnswer appends an answer in Gemini's format, which names the tier in another way.
func vertexAnswer(dst []byte, m openai.Meta, r *llm.Response) []byte {
	m.Tier = gemini.Traffic(m.Tier)
	return gemini.AppendResponse(dst, m, r)
}

// vertexWriter is VertexAnswer for a stream.
func vertexWriter(m openai.Meta) openai.CompletionWriter {
	m.Tier = gemini.Traffic(m.Tier)
	return gemini.NewWriter(m)
}

// geminiAddress reads the model, and whether to stream.
func geminiAddress(r *http.Request, a *Ask) *Error {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	switch {
	case method == "streamGenerateContent" && r.URL.Query().Get("alt") != "sse":
		return invalid("", "A stream that is a JSON array is not simulated: use alt=sse")
	case model == "" || method != "generateContent" && method != "streamGenerateContent":
		return endpointNotFound(sim.Google, "", "models/"+model+" is not found for API version v1beta, or is not supported for "+method+".")
	}
	a.Request.Model, a.Stream = model, method == "streamGenerateContent"
	return nil
}

// vertexAddress reads the model. A stream is asked for in the body too.
func vertexAddress(r *http.Request, a *Ask) *Error {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if model == "" || method != "rawPredict" && method != "streamRawPredict" || (method == "streamRawPredict") != a.Stream {
		return endpointNotFound(sim.Google, "", "Publisher Model "+model+" was not found, or does not support "+method+".")
	}
	a.Request.Model = model
	return nil
}
