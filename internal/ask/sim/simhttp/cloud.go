package simhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

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
				return azureError(err, r)
			}
			return nil
		})
	}
	handle("GET /openai/v1/models", sim.OpenAI, openAIModels)
	handle("GET /openai/models", sim.OpenAI, withAPIVersion(openAIModels))
	s.batches.OpenAIRoutes("/openai/v1", func(pattern string, style sim.Style, e Func) { handle(pattern, style, azureBatch(e)) })
	s.batches.OpenAIRoutes("/openai", func(pattern string, style sim.Style, e Func) {
		handle(pattern, style, withAPIVersion(azureBatch(e)))
	})

	handle("POST /model/{model}/converse", sim.Amazon, s.answer(&s.formats.bedrock))
	handle("POST /model/{model}/converse-stream", sim.Amazon, s.answer(&s.formats.bedrock))
	handle("GET /foundation-models", sim.Amazon, bedrockModels)
	handle("GET /inference-profiles", sim.Amazon, bedrockProfiles)

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
func azureAddress(r *http.Request, a *Ask) *Error {
	if r.URL.Query().Get("api-version") == "" {
		return &Error{Status: http.StatusNotFound}
	}
	if model := r.PathValue("model"); model != "" {
		a.Request.Model = model
	}
	return nil
}

// withAPIVersion is an endpoint at one of Azure's older paths, which need a version.
func withAPIVersion(inner Func) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		if r.URL.Query().Get("api-version") == "" {
			return azureError(&Error{Status: http.StatusNotFound}, r)
		}
		return inner(w, r)
	}
}

// azureError writes an error as Azure does: its code is the status, and there is no type.
func azureError(e *Error, r *http.Request) *Error {
	out := *e
	switch e.Status {
	case http.StatusUnauthorized:
		out.Message = "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."
	case http.StatusNotFound:
		out.Message = "Resource not found"
	case http.StatusTooManyRequests:
		if e.Refusal == nil {
			return e
		}
		version, what := r.URL.Query().Get("api-version"), "token"
		if version == "" {
			version = "v1"
		}
		if e.Refusal.What == "requests" {
			what = "call"
		}
		out.Message = fmt.Sprintf("Requests to the ChatCompletions_Create Operation under Azure OpenAI API version %s have exceeded %s rate limit of your current OpenAI S0 pricing tier. Please retry after %d seconds.",
			version, what, int(math.Ceil(e.Refusal.After.Seconds())))
	default:
		return e
	}
	out.Type, out.Code = "", strconv.Itoa(e.Status)
	return &out
}

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

// vertexGeminiAddress reads the address of a request in Gemini's format, and the service tier, which is in a header. As the real one does, it
// refuses a tier in the body.
func vertexGeminiAddress(r *http.Request, a *Ask) *Error {
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
func vertexAddress(r *http.Request, a *Ask) *Error {
	model, method := gemini.SplitCall(r.PathValue("call"))
	if model == "" || method != "rawPredict" && method != "streamRawPredict" || (method == "streamRawPredict") != a.Stream {
		return notFound(sim.Google, "", "Publisher Model "+model+" was not found, or does not support "+method+".")
	}
	a.Request.Model = model
	return messagesHeader(r, a)
}

// azureBatch makes an endpoint of OpenAI's batches one of Azure's: a batch is created for an endpoint without /v1, its times are texts, and
// its status begins with a capital letter. Files are as OpenAI's.
func azureBatch(inner Func) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/batches") {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err != nil {
				return invalid("", "The request cannot be read: %s", err)
			}
			r.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte(`"endpoint":"/`), []byte(`"endpoint":"/v1/`), 1)))
		}
		if !strings.Contains(r.URL.Path, "/batches") {
			return inner(w, r)
		}
		kept := &buffer{ResponseWriter: w}
		if err := inner(kept, r); err != nil {
			return err
		}
		var object map[string]any
		if json.Unmarshal(kept.Bytes(), &object) != nil {
			_, _ = w.Write(kept.Bytes())
			return nil
		}
		list, _ := object["data"].([]any)
		for _, one := range append(list, object) {
			if b, ok := one.(map[string]any); ok && b["object"] == "batch" {
				azureObject(b)
			}
		}
		writeJSON(w, object)
		return nil
	}
}

// azureObject changes an object of OpenAI's to Azure's.
func azureObject(b map[string]any) {
	for _, name := range []string{"created_at", "expires_at"} {
		if seconds, ok := b[name].(float64); ok {
			b[name] = time.Unix(int64(seconds), 0).UTC().Format("2006-01-02T15:04:05.0000000+00:00")
		}
	}
	if status, _ := b["status"].(string); status != "" {
		b["status"] = strings.ToUpper(status[:1]) + status[1:]
	}
}

// buffer keeps what is written.
type buffer struct {
	http.ResponseWriter
	bytes.Buffer
}

// Write keeps b.
func (k *buffer) Write(b []byte) (int, error) { return k.Buffer.Write(b) }

// WriteHeader does nothing: only successes are written here.
func (k *buffer) WriteHeader(int) {}

// bedrockAddress reads the model, and whether to stream.
func bedrockAddress(r *http.Request, a *Ask) *Error {
	if r.Header.Get("Authorization") == "" {
		return &Error{Status: http.StatusForbidden, Message: "Missing Authentication Token"}
	}
	a.Request.Model, a.Stream = r.PathValue("model"), strings.HasSuffix(r.URL.Path, "/converse-stream")
	return nil
}
