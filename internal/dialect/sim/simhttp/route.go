package simhttp

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/dialect/sim/simhttp/cloud"
	"parley/internal/dialect/sim/simhttp/endpoint"
	"parley/internal/dialect/sim/simhttp/promptstore"
	"parley/internal/kit/auth"
	"parley/internal/wire/bedrock"
	"parley/internal/wire/chat"
	"parley/internal/wire/completion"
	"parley/internal/wire/gemini"
	"parley/internal/wire/messages"
	"parley/internal/wire/responses"
	"parley/llm"
)

// format reads the requests of an endpoint and writes its answers.
type format struct {
	style      quota.Style
	id, callID string // prefixes of the IDs of answers and of tool calls
	decode     func(body []byte) (*check.Ask, *endpoint.Error)
	append     func(dst []byte, m completion.Meta, r *llm.Response) []byte
	writer     func(m completion.Meta) completion.Writer
	failEvent  func(dst []byte, e completion.Error) []byte
	address    func(r *http.Request, a *check.Ask) *endpoint.Error // reads what is in the address; nil: nothing is
	host       quota.Style                                         // whose server fails, if it is not style's
}

// vendor returns whose server fails.
func (f *format) vendor() quota.Style { return cmp.Or(f.host, f.style) }

const responseID = "resp_"

// formats are the formats of the server.
type formats struct {
	chat, responses, messages format
	gemini, bedrock           format
	vertex, vertexGemini      format // messages and generateContent on Vertex AI
	deployed, versioned       format // Azure's older paths: chat completions by deployment, and responses
	batched                   format // messages in a batch
	count                     format // messages whose tokens are counted
}

func newFormats(c *check.Checker, prompts *promptstore.Store) (f formats) {
	f.chat = format{
		quota.OpenAI, "chatcmpl-", "call_", c.Chat, chat.AppendResponse,
		func(m completion.Meta) completion.Writer { return chat.NewWriter(m) }, chat.AppendErrorEvent, nil, "",
	}
	f.responses = format{
		quota.OpenAI, responseID, "call_", c.Responses, responses.AppendResponse,
		func(m completion.Meta) completion.Writer { return responses.NewWriter(m) }, responses.AppendErrorEvent, nil, "",
	}
	f.messages = format{
		quota.Anthropic, "msg_", "toolu_", c.Messages, messages.AppendResponse,
		func(m completion.Meta) completion.Writer { return messages.NewWriter(m) }, messages.AppendErrorEvent, nil, "",
	}
	f.gemini = format{
		quota.Google, "", "", prompts.Read, gemini.AppendResponse,
		func(m completion.Meta) completion.Writer { return gemini.NewWriter(m) }, gemini.AppendErrorEvent, cloud.GeminiAddress, "",
	}
	f.bedrock = format{
		quota.Amazon, "", "tooluse_", c.Bedrock, bedrock.AppendResponse,
		func(m completion.Meta) completion.Writer { return bedrock.NewWriter(m) }, bedrock.AppendErrorEvent, cloud.BedrockAddress, "",
	}
	f.vertexGemini = f.gemini
	f.vertexGemini.append, f.vertexGemini.writer, f.vertexGemini.address = cloud.VertexAnswer, cloud.VertexWriter, cloud.VertexGemini
	f.vertex = f.messages
	f.vertex.decode, f.vertex.address, f.vertex.host = cloud.VertexBody(c.Messages), cloud.VertexAddress, quota.Google
	f.deployed, f.versioned = f.chat, f.responses
	f.deployed.address, f.versioned.address = cloud.AzureAddress, cloud.AzureAddress
	f.batched, f.count = f.messages, f.messages
	f.batched.decode, f.count.decode = c.Batched, c.Count
	return f
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, style quota.Style, e endpoint.Func) {
		mux.HandleFunc(pattern, s.guard(pattern, style, e))
	}
	count := func(pattern string, style quota.Style, e endpoint.Func) {
		handle(pattern, style, func(w http.ResponseWriter, r *http.Request) *endpoint.Error {
			err := e(w, r)
			if err == nil {
				s.stats.ok.Add(1)
			}
			return err
		})
	}
	handle("POST /v1/chat/completions", quota.OpenAI, s.answer(&s.formats.chat))
	handle("POST /v1/responses", quota.OpenAI, s.answer(&s.formats.responses))
	count("POST /v1/embeddings", quota.OpenAI, s.embeddings)
	handle("GET /v1/models", quota.OpenAI, endpoint.OpenAIModels)

	handle("POST /v1/messages", quota.Anthropic, s.answer(&s.formats.messages))
	handle("POST /v1/messages/count_tokens", quota.Anthropic, s.countTokens)
	s.cloudRoutes(handle)
	handle("POST /v1beta/models/{call}", quota.Google, s.geminiCall)
	handle("GET /v1beta/models", quota.Google, endpoint.GeminiModels)
	for _, vendor := range []string{"mistral", "together", "xai"} { // whose batch APIs are there
		handle("POST /"+vendor+"/v1/chat/completions", quota.OpenAI, s.answer(&s.formats.chat))
		handle("GET /"+vendor+"/v1/models", quota.OpenAI, endpoint.OpenAIModels)
	}
	s.batches.Routes(count)
	s.prompts.Routes(count)
	s.sessionRoutes(handle)
	handle("POST /update_weight_version", quota.OpenAI, s.updateWeightVersion)
	handle("/", quota.OpenAI, s.notFound)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /stats", s.serveStats)
	mux.HandleFunc("GET /{$}", endpoint.Index)
	return mux
}

// geminiCall answers what is asked of one of Gemini's models.
func (s *Server) geminiCall(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	if model, ok := strings.CutSuffix(r.PathValue("call"), ":batchGenerateContent"); ok {
		return s.batches.CreateGemini(w, r, model)
	}
	return s.answer(&s.formats.gemini)(w, r)
}

// guard wraps an endpoint: it counts requests, checks keys, and writes request IDs and errors.
func (s *Server) guard(name string, style quota.Style, e endpoint.Func) http.HandlerFunc {
	counter := s.stats.endpoint(name)
	return func(w http.ResponseWriter, r *http.Request) {
		s.stats.begin(counter)
		defer s.stats.end()
		id := s.requestID()
		err := s.admit(r, style)
		switch style {
		case quota.Anthropic:
			w.Header()["Request-Id"] = []string{id}
		case quota.Amazon:
			w.Header()["X-Amzn-Requestid"] = []string{id}
		default:
			w.Header()["X-Request-Id"] = []string{id}
		}
		if err == nil {
			err = e(w, r)
		}
		if err != nil {
			s.fail(w, style, err, id)
		}
	}
}

// fail answers a request with an error.
func (s *Server) fail(w http.ResponseWriter, style quota.Style, e *endpoint.Error, requestID string) {
	s.stats.failure(e.Status)
	e.Write(w, style, requestID)
}

// checksKey reports whether the endpoint of a request checks the key itself, to refuse it in the
// vendor's words.
func checksKey(r *http.Request) bool {
	switch r.URL.Path {
	case "/metrics", "/stats", "/":
		return false
	default:
		return true
	}
}

// refuse answers a request that package auth refuses, in the format of its endpoint.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	e := &endpoint.Error{Status: why.Status, Type: "invalid_request_error", Code: why.Code, Message: why.Message}
	style := quota.OpenAI
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/messages"):
		e.Type, style = "permission_error", quota.Anthropic
	case strings.HasPrefix(r.URL.Path, "/model/"):
		style = quota.Amazon
	case strings.Contains(r.URL.Path, "/v1beta/"):
		style = quota.Google
	}
	s.fail(w, style, e, s.requestID())
}

// requestID returns a new request ID.
func (s *Server) requestID() string { return "req_sim" + strconv.FormatUint(s.ids.Add(1), 36) }

// admit checks the key, if the server has one, and Anthropic's version header.
func (s *Server) admit(r *http.Request, style quota.Style) *endpoint.Error {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if k := r.Header.Get("Api-Key"); k != "" && cloud.IsAzure(r) {
		given = k
	}
	if k := r.Header.Get("X-Api-Key"); k != "" && style == quota.Anthropic {
		given = k
	}
	if style == quota.Google && !cloud.IsVertex(r) {
		given = r.Header.Get("X-Goog-Api-Key")
	}
	if len(s.keys) > 0 && !s.keys.Has(given) {
		switch {
		case style == quota.Amazon:
			return &endpoint.Error{Status: http.StatusForbidden, Message: "The security token included in the request is invalid."}
		case cloud.IsVertex(r):
			return &endpoint.Error{Status: http.StatusUnauthorized, Message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."}
		case style == quota.Google:
			return &endpoint.Error{Status: http.StatusBadRequest, Type: "INVALID_ARGUMENT", Message: "API key not valid. Please pass a valid API key."}
		case style == quota.Anthropic:
			return &endpoint.Error{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "invalid x-api-key"}
		case cloud.IsAzure(r):
			return cloud.AzureError(&endpoint.Error{Status: http.StatusUnauthorized}, r)
		}
		return &endpoint.Error{Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided."}
	}
	if style == quota.Anthropic && r.Header.Get("Anthropic-Version") == "" {
		return endpoint.Invalid("", "anthropic-version: header is required")
	}
	return nil
}

func (s *Server) notFound(_ http.ResponseWriter, r *http.Request) *endpoint.Error {
	e := endpoint.NotFound(quota.OpenAI, "", "Invalid URL ("+r.Method+" "+r.URL.Path+")")
	e.Code = "unknown_url"
	return e
}
