package simhttp

import (
	"net/http"
	"strconv"
	"strings"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/anthropic"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/dialect/sim/simhttp/openai"
	"parley/internal/serve/auth"
	"parley/internal/wire/chat"
	"parley/internal/wire/completion"
	"parley/internal/wire/messages"
	"parley/internal/wire/responses"
	"parley/llm"
)

// format is how one endpoint's requests are read and its answers written.
type format struct {
	style      quota.Style
	id, callID string // what the ids of answers and of tool calls begin with
	decode     func(body []byte, lax bool) (*check.Ask, *check.Error)
	append     func(dst []byte, m completion.Meta, r *llm.Response) []byte
	writer     func(m completion.Meta) completion.Writer
	failEvent  func(dst []byte, e completion.Error) []byte
}

const responseID = "resp_"

// formats are those the server knows.
type formats struct {
	chat, responses, messages format
	batched                   format // messages without what a batch refuses
	count                     format // messages to be counted only
}

func newFormats() formats {
	var f formats
	f.chat = format{
		quota.OpenAI, "chatcmpl-", "call_", openai.DecodeChat, chat.AppendResponse,
		func(m completion.Meta) completion.Writer { return chat.NewWriter(m) }, chat.AppendErrorEvent,
	}
	f.responses = format{
		quota.OpenAI, responseID, "call_", openai.DecodeResponses, responses.AppendResponse,
		func(m completion.Meta) completion.Writer { return responses.NewWriter(m) }, responses.AppendErrorEvent,
	}
	f.messages = format{
		quota.Anthropic, "msg_", "toolu_", anthropic.Decode, messages.AppendResponse,
		func(m completion.Meta) completion.Writer { return messages.NewWriter(m) }, messages.AppendErrorEvent,
	}
	f.batched, f.count = f.messages, f.messages
	f.batched.decode, f.count.decode = anthropic.DecodeBatched, anthropic.DecodeCount
	return f
}

// endpoint answers a request, or returns the error to answer it with.
type endpoint func(w http.ResponseWriter, r *http.Request) *check.Error

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, style quota.Style, e endpoint) {
		mux.HandleFunc(pattern, s.guard(pattern, style, e))
	}
	handle("POST /v1/chat/completions", quota.OpenAI, s.answer(&s.formats.chat))
	handle("POST /v1/responses", quota.OpenAI, s.answer(&s.formats.responses))
	handle("POST /v1/embeddings", quota.OpenAI, s.embeddings)
	handle("GET /v1/models", quota.OpenAI, s.models)
	handle("POST /v1/files", quota.OpenAI, s.uploadFile)
	handle("GET /v1/files", quota.OpenAI, s.listFiles)
	handle("GET /v1/files/{id}", quota.OpenAI, s.showFile)
	handle("DELETE /v1/files/{id}", quota.OpenAI, s.deleteFile)
	handle("GET /v1/files/{id}/content", quota.OpenAI, s.fileContent)
	handle("POST /v1/batches", quota.OpenAI, s.createBatch)
	handle("GET /v1/batches", quota.OpenAI, s.listBatches)
	handle("GET /v1/batches/{id}", quota.OpenAI, s.showBatch)
	handle("POST /v1/batches/{id}/cancel", quota.OpenAI, s.cancelBatch)

	handle("POST /v1/messages", quota.Anthropic, s.answer(&s.formats.messages))
	handle("POST /v1/messages/count_tokens", quota.Anthropic, s.countTokens)
	handle("POST /v1/messages/batches", quota.Anthropic, s.createMessageBatch)
	handle("GET /v1/messages/batches", quota.Anthropic, s.listMessageBatches)
	handle("GET /v1/messages/batches/{id}", quota.Anthropic, s.showMessageBatch)
	handle("DELETE /v1/messages/batches/{id}", quota.Anthropic, s.deleteMessageBatch)
	handle("POST /v1/messages/batches/{id}/cancel", quota.Anthropic, s.cancelMessageBatch)
	handle("GET /v1/messages/batches/{id}/results", quota.Anthropic, s.messageBatchResults)

	s.sessionRoutes(handle)
	handle("POST /update_weight_version", quota.OpenAI, s.updateWeightVersion)
	handle("/", quota.OpenAI, s.notFound)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /stats", s.serveStats)
	mux.HandleFunc("GET /{$}", index)
	return mux
}

// guard is what all endpoints have in common: counting, request ids, keys, errors.
func (s *Server) guard(name string, style quota.Style, e endpoint) http.HandlerFunc {
	counter := s.stats.endpoint(name)
	return func(w http.ResponseWriter, r *http.Request) {
		s.stats.begin(counter)
		defer s.stats.end()
		id := s.requestID()
		err := s.admit(r, style)
		if style == quota.Anthropic {
			w.Header()["Request-Id"] = []string{id}
		} else {
			w.Header()["X-Request-Id"] = []string{id}
		}
		if err == nil {
			err = e(w, r)
		}
		if err != nil {
			s.writeError(w, style, err, id)
		}
	}
}

// checksKey says whether a request is for an endpoint that checks the key itself, and answers
// as its vendor does.
func checksKey(r *http.Request) bool {
	switch r.URL.Path {
	case "/metrics", "/stats", "/":
		return false
	default:
		return true
	}
}

// refuse answers a request that the guard refuses, in the format of its endpoint.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, why auth.Refusal) {
	e := &check.Error{Status: why.Status, Type: "invalid_request_error", Code: why.Code, Message: why.Message}
	style := quota.OpenAI
	if strings.HasPrefix(r.URL.Path, "/v1/messages") {
		e.Type, style = "permission_error", quota.Anthropic
	}
	s.writeError(w, style, e, s.requestID())
}

// requestID returns a new id. It counts, so that it costs no entropy.
func (s *Server) requestID() string { return "req_sim" + strconv.FormatUint(s.ids.Add(1), 36) }

// admit checks the key, where one is needed, and the version header of Anthropic's.
func (s *Server) admit(r *http.Request, style quota.Style) *check.Error {
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if k := r.Header.Get("X-Api-Key"); k != "" && style == quota.Anthropic {
		given = k
	}
	if len(s.keys) > 0 && !s.keys.Has(given) {
		if style == quota.Anthropic {
			return &check.Error{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "invalid x-api-key"}
		}
		return &check.Error{Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided."}
	}
	if style == quota.Anthropic && r.Header.Get("Anthropic-Version") == "" {
		return check.Invalid("", "anthropic-version: header is required")
	}
	return nil
}

func (s *Server) notFound(_ http.ResponseWriter, r *http.Request) *check.Error {
	return &check.Error{
		Status: http.StatusNotFound, Type: "invalid_request_error",
		Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")", Code: "unknown_url",
	}
}

// index says what this is.
func index(w http.ResponseWriter, _ *http.Request) {
	writeBody(w, http.StatusOK, "text/plain; charset=utf-8", []byte(`This is parley sim, a simulated provider of language models.

OpenAI's format:    POST /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/files, /v1/batches; GET /v1/models
Anthropic's format: POST /v1/messages, /v1/messages/count_tokens, /v1/messages/batches
As engines have it: the above below /v1/SESSION or /v1/sessions/SESSION too, and POST …/close; POST /update_weight_version with {"new_version": "2"}; GET /metrics
What happened:      GET /stats

Any model name works. Answers depend on the request and the seed only.
`))
}
