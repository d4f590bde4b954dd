package simhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/llm"
)

// cloudRoutes adds the paths at which Azure, AWS and Google serve models.
func (s *Server) cloudRoutes(handle func(pattern string, style sim.Style, e Func)) {
	for path, f := range map[string]*format{
		"/openai/v1/chat/completions":                  &s.formats.chat,
		"/openai/v1/responses":                         &s.formats.responses,
		"/openai/deployments/{model}/chat/completions": &s.formats.deployed,
		"/openai/responses":                            &s.formats.versioned,
	} {
		answer := s.answer(f)
		handle("POST "+path, sim.OpenAI, func(w http.ResponseWriter, r *http.Request) *Error {
			if err := answer(w, r); err != nil {
				return azureError(err)
			}
			return nil
		})
	}

	handle("POST /model/{model}/converse", sim.Amazon, s.answer(&s.formats.bedrock))
	handle("POST /model/{model}/converse-stream", sim.Amazon, s.answer(&s.formats.bedrock))

	const models = "POST /v1/projects/{project}/locations/{location}/publishers/"
	handle(models+"google/models/{call}", sim.Google, s.answer(&s.formats.vertexGemini))
	answer := s.answer(&s.formats.vertex)
	handle(models+"anthropic/models/{call}", sim.Google, func(w http.ResponseWriter, r *http.Request) *Error {
		err := answer(w, r)
		switch {
		case err == nil:
		case err.Refusal != nil:
			return tooMany(sim.Google, err.Refusal)
		case err.Status == http.StatusBadRequest: // Anthropic's own words
			s.fail(w, sim.Anthropic, err, s.requestID())
			return nil
		}
		return err
	})
}

// isAzure reports whether a request is for one of Azure's paths.
func isAzure(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/openai/") }

// azureAddress reads the deployment in the address, which counts instead of the model in the body.
func azureAddress(r *http.Request, a *ask) *Error {
	if r.URL.Query().Get("api-version") == "" {
		return notFound(sim.OpenAI, "", "There is no api-version.")
	}
	if model := r.PathValue("model"); model != "" {
		a.Request.Model = model
	}
	return nil
}

// azureError writes what Azure itself refuses as it does: the code is the status, and there is no type.
func azureError(e *Error) *Error {
	if e.Refusal == nil && e.Status != http.StatusUnauthorized && e.Status != http.StatusNotFound {
		return e
	}
	out := *e
	out.Type, out.Code = "", strconv.Itoa(e.Status)
	return &out
}

// isVertex reports whether a request is for one of the paths of Vertex AI.
func isVertex(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/projects/") }

// fromVertex returns Anthropic's messages of a request on Vertex AI: there the version is in the body, and the model is not.
func fromVertex(b []byte) ([]byte, *Error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil {
		return b, nil // it is refused as what it is
	}
	var version string
	if json.Unmarshal(members["anthropic_version"], &version) != nil || version != provider.VertexVersion {
		return nil, invalid("", "anthropic_version: want %s", provider.VertexVersion)
	}
	if members["model"] != nil {
		return nil, invalid("", "model: it is in the address")
	}
	delete(members, "anthropic_version")
	members["model"] = json.RawMessage(`"in the address"`)
	return line(members), nil
}

// vertexGeminiAddress reads the address of a request in Gemini's format, and the service tier, which is in a header. As the real one does, it
// refuses a tier in the body.
func vertexGeminiAddress(r *http.Request, a *ask) *Error {
	if a.Request.Tier != "" {
		return invalid("", "serviceTier: want it in the header %s", gemini.TierHeader)
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
func geminiAddress(r *http.Request, a *ask) *Error {
	model, method := gemini.SplitCall(r.PathValue("call"))
	switch {
	case method == gemini.Stream && r.URL.Query().Get("alt") != "sse":
		return invalid("", "A stream that is a JSON array is not simulated: use alt=sse")
	case model == "" || method != gemini.Generate && method != gemini.Stream:
		return notFound(sim.Google, "", "models/"+model+" is not found for API version v1beta, or is not supported for "+method+".")
	}
	a.Request.Model, a.Stream = model, method == gemini.Stream
	return nil
}

// vertexAddress reads the model. A stream is asked for in the body too.
func vertexAddress(r *http.Request, a *ask) *Error {
	model, method := gemini.SplitCall(r.PathValue("call"))
	if model == "" || method != "rawPredict" && method != "streamRawPredict" || (method == "streamRawPredict") != a.Stream {
		return notFound(sim.Google, "", "Publisher Model "+model+" was not found, or does not support "+method+".")
	}
	a.Request.Model = model
	return nil
}

// bedrockAddress reads the model, and whether to stream.
func bedrockAddress(r *http.Request, a *ask) *Error {
	if r.Header.Get("Authorization") == "" {
		return &Error{Status: http.StatusForbidden, Message: "Missing Authentication Token"}
	}
	a.Request.Model, a.Stream = r.PathValue("model"), strings.HasSuffix(r.URL.Path, "/converse-stream")
	return nil
}
