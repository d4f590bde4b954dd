package simhttp

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/bedrock"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/internal/kit/auth"
	"parley/llm"
)

// format reads the requests of an endpoint and writes its answers.
type format struct {
	style      sim.Style
	id, callID string                             // prefixes of the IDs of answers and of tool calls
	rewrite    func(body []byte) ([]byte, *Error) // before it is read; nil: it stays
	read       func(r *request.Reader, key string, v []byte) bool
	required   []string           // members
	more       func(a *ask) error // reads what only this format has; nil: nothing
	append     func(dst []byte, m openai.Meta, r *llm.Response) []byte
	writer     func(m openai.Meta) openai.CompletionWriter
	failEvent  func(dst []byte, e openai.Error) []byte
	address    func(r *http.Request, a *ask) *Error // reads what is in the address and the header; nil: nothing is
	host       sim.Style                            // whose server fails, if it is not style's
}

// vendor returns whose server fails.
func (f *format) vendor() sim.Style { return cmp.Or(f.host, f.style) }

const responseID = "resp_"

// formats are the formats of the server.
type formats struct {
	chat, responses, messages format
	gemini, bedrock           format
	vertex, vertexGemini      format // messages and generateContent on Vertex AI
	deployed, versioned       format // Azure's older paths: chat completions by deployment, and responses
	count, geminiCount        format // messages and contents whose tokens are counted
}

func newFormats() (f formats) {
	f.chat = format{
		style: sim.OpenAI, id: "chatcmpl-", callID: "call_", read: openai.ReadMember, required: []string{"model", "messages"}, more: (*ask).chat,
		append: openai.AppendResponse, writer: func(m openai.Meta) openai.CompletionWriter { return openai.NewWriter(m) }, failEvent: openai.AppendErrorEvent,
	}
	f.responses = format{
		style: sim.OpenAI, id: responseID, callID: "call_", read: responses.ReadMember, required: []string{"model", "input"}, more: (*ask).responses,
		append: responses.AppendResponse, writer: func(m openai.Meta) openai.CompletionWriter { return responses.NewWriter(m) }, failEvent: responses.AppendErrorEvent,
	}
	f.messages = format{
		style: sim.Anthropic, id: "msg_", callID: "toolu_", read: anthropic.ReadMember, required: []string{"model", "messages", "max_tokens"}, more: (*ask).messages,
		append: anthropic.AppendResponse, writer: func(m openai.Meta) openai.CompletionWriter { return anthropic.NewWriter(m) }, failEvent: anthropic.AppendErrorEvent,
	}
	f.gemini = format{
		style: sim.Google, read: gemini.ReadMember, address: geminiAddress,
		append: gemini.AppendResponse, writer: func(m openai.Meta) openai.CompletionWriter { return gemini.NewWriter(m) }, failEvent: gemini.AppendErrorEvent,
	}
	f.bedrock = format{
		style: sim.Amazon, callID: "tooluse_", read: bedrock.ReadMember, required: []string{"messages"}, address: bedrockAddress,
		append: bedrock.AppendResponse, writer: func(m openai.Meta) openai.CompletionWriter { return bedrock.NewWriter(m) }, failEvent: bedrock.AppendErrorEvent,
	}
	f.vertexGemini = f.gemini
	f.vertexGemini.append, f.vertexGemini.writer, f.vertexGemini.address = vertexAnswer, vertexWriter, vertexGeminiAddress
	f.vertex = f.messages
	f.vertex.rewrite, f.vertex.address, f.vertex.host = fromVertex, vertexAddress, sim.Google
	f.deployed, f.versioned = f.chat, f.responses
	f.deployed.address, f.versioned.address = azureAddress, azureAddress
	f.count, f.geminiCount = f.messages, f.gemini
	f.count.rewrite, f.geminiCount.rewrite = counted, counted
	f.geminiCount.address = nil
	return f
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, style sim.Style, e Func) {
		mux.HandleFunc(pattern, s.guard(pattern, style, e))
	}
	count := func(pattern string, style sim.Style, e Func) {
		handle(pattern, style, func(w http.ResponseWriter, r *http.Request) *Error {
			err := e(w, r)
			if err == nil {
				s.stats.ok()
			}
			return err
		})
	}
	handle("POST /v1/chat/completions", sim.OpenAI, s.answer(&s.formats.chat))
	handle("GET /v1/models", sim.OpenAI, openAIModels)
	if !s.cfg.ChatOnly {
		handle("POST /v1/responses", sim.OpenAI, s.answer(&s.formats.responses))
		count("POST /v1/embeddings", sim.OpenAI, s.embeddings)
		handle("POST /v1/messages", sim.Anthropic, s.answer(&s.formats.messages))
		handle("POST /v1/messages/count_tokens", sim.Anthropic, s.countTokens(&s.formats.count))
		s.cloudRoutes(handle)
		handle("POST /v1beta/models/{call}", sim.Google, s.geminiCall)
		handle("POST /v1/models/{call}", sim.Google, s.geminiCall) // what Google's SDKs ask by default
		s.batches.Routes(count)
	}
	handle("/", sim.OpenAI, s.notFound)
	mux.HandleFunc("GET /stats", s.serveStats)
	return mux
}

// geminiCall answers what is asked of one of Gemini's models.
func (s *Server) geminiCall(w http.ResponseWriter, r *http.Request) *Error {
	model, method := gemini.SplitCall(r.PathValue("call"))
	switch method {
	case "batchGenerateContent":
		return s.batches.createGemini(w, r, model)
	case gemini.Count:
		return s.countTokens(&s.formats.geminiCount)(w, r)
	}
	return s.answer(&s.formats.gemini)(w, r)
}

// guard wraps an endpoint: it counts requests, checks keys, and writes request IDs and errors.
func (s *Server) guard(name string, style sim.Style, e Func) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.stats.begin(name)
		defer s.stats.end()
		id := s.requestID()
		err := s.admit(r, style)
		switch style {
		case sim.Anthropic:
			w.Header()["Request-Id"] = []string{id}
		case sim.Amazon:
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
func (s *Server) fail(w http.ResponseWriter, style sim.Style, e *Error, requestID string) {
	s.stats.failure(e.Status)
	e.Write(w, style, requestID)
}

// checksKey reports whether the endpoint of a request checks the key itself, to refuse it in the
// vendor's words.
func checksKey(r *http.Request) bool {
	return r.URL.Path != "/stats"
}

// refuse answers a request that package auth refuses, in the format of its endpoint.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	e := &Error{Status: why.Status, Type: "invalid_request_error", Code: why.Code, Message: why.Message}
	style := sim.OpenAI
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/messages"):
		e.Type, style = "permission_error", sim.Anthropic
	case strings.HasPrefix(r.URL.Path, "/model/"):
		style = sim.Amazon
	case strings.Contains(r.URL.Path, "/v1beta/") || strings.HasPrefix(r.URL.Path, "/v1/models/") || isVertex(r):
		style = sim.Google
	}
	s.fail(w, style, e, s.requestID())
}

// requestID returns a new request ID.
func (s *Server) requestID() string { return "req_sim" + strconv.FormatUint(s.ids.Add(1), 36) }

// admit checks the key, if the server has one, and Anthropic's version header.
func (s *Server) admit(r *http.Request, style sim.Style) *Error {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if k := r.Header.Get("Api-Key"); k != "" && isAzure(r) {
		given = k
	}
	if k := r.Header.Get("X-Api-Key"); k != "" && style == sim.Anthropic {
		given = k
	}
	if style == sim.Google && !isVertex(r) {
		given = r.Header.Get("X-Goog-Api-Key")
	}
	if len(s.keys) > 0 && !s.keys.Has(given) {
		return badKey(r, style)
	}
	if style == sim.Anthropic && r.Header.Get("Anthropic-Version") == "" {
		return invalid("", "anthropic-version: header is required")
	}
	return nil
}

// badKey returns the error of a request with a wrong key.
func badKey(r *http.Request, style sim.Style) *Error {
	e := &Error{Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key", Message: "The API key is not valid."}
	switch {
	case style == sim.Amazon:
		e.Status = http.StatusForbidden
	case style == sim.Google && !isVertex(r):
		e.Status, e.Message = http.StatusBadRequest, "API key not valid. Please pass a valid API key." // nothing else tells it from other errors
	case style == sim.Anthropic:
		e.Type = "authentication_error"
	case isAzure(r):
		return azureError(e)
	}
	return e
}

func (s *Server) notFound(_ http.ResponseWriter, r *http.Request) *Error {
	e := notFound(sim.OpenAI, "", "Invalid URL ("+r.Method+" "+r.URL.Path+")")
	e.Code = "unknown_url"
	return e
}
