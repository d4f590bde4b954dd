package simhttp

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) *Error {
	ask, err := s.read(w, r, &s.formats.count)
	if err != nil {
		return err
	}
	c, bad := s.brain.Open(ask.Request)
	if bad != nil {
		return invalid("", "%s", bad)
	}
	writeJSON(w, map[string]int{"input_tokens": c.Input})
	return nil
}

// geminiCount answers POST …:countTokens.
func (s *Server) geminiCount(w http.ResponseWriter, r *http.Request) *Error {
	ask, err := s.read(w, r, &s.formats.geminiCount)
	if err != nil {
		return err
	}
	c, bad := s.brain.Open(ask.Request)
	if bad != nil {
		return invalid("", "%s", bad)
	}
	writeJSON(w, map[string]any{"totalTokens": c.Input, "promptTokensDetails": []any{map[string]any{"modality": "TEXT", "tokenCount": c.Input}}})
	return nil
}

// counted reads the body of …:countTokens: the contents, or a whole request.
func counted(read Read) Read {
	return func(b []byte) (*Ask, *Error) {
		if whole := request.Member(b, "generateContentRequest"); whole != nil {
			b = whole
		}
		return read(b)
	}
}

// geminiEmbedding is a request for one of Gemini's embeddings.
type geminiEmbedding struct {
	Model   string `json:"model"`
	Content struct {
		Role  string `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"content"`
	TaskType   string `json:"taskType"`
	Title      string `json:"title"`
	Dimensions *int   `json:"outputDimensionality"`
}

// geminiEmbeddings answers POST …:embedContent, and …:batchEmbedContents if there are many.
func (s *Server) geminiEmbeddings(w http.ResponseWriter, r *http.Request, model string, many bool) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, s.cfg.MaxBody, sim.Google); err != nil {
		return err
	}
	var req struct {
		Requests []geminiEmbedding `json:"requests"`
	}
	var err *Error
	if many {
		err = decodeBody(buf.Bytes(), &req, s.cfg.Lax)
	} else {
		req.Requests = make([]geminiEmbedding, 1)
		err = decodeBody(buf.Bytes(), &req.Requests[0], s.cfg.Lax)
	}
	if err != nil {
		return err
	}
	if n := len(req.Requests); n < 1 || n > 100 {
		return invalid("", "* BatchEmbedContentsRequest.requests: want 1 to 100 requests, but got %d", n)
	}
	list := make([]any, len(req.Requests))
	tokens := 0
	for i, one := range req.Requests {
		var text strings.Builder
		for _, p := range one.Content.Parts {
			text.WriteString(p.Text)
		}
		if text.Len() == 0 {
			return invalid("", "* EmbedContentRequest.content: contents is not specified")
		}
		v, n, err := s.embed(model, text.String(), one.Dimensions, false)
		if err != nil {
			return err
		}
		tokens += n
		list[i] = map[string]any{"values": v}
	}
	s.stats.ok.Add(1)
	s.stats.tokens(llm.Usage{Input: tokens})
	if many {
		writeJSON(w, map[string]any{"embeddings": list})
	} else {
		writeJSON(w, map[string]any{"embedding": list[0]})
	}
	return nil
}

type embeddingRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	Dimensions     *int            `json:"dimensions"`
	EncodingFormat string          `json:"encoding_format"`
	User           json.RawMessage `json:"user"`
}

// embeddings answers POST /v1/embeddings with unit vectors that depend on the text.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, s.cfg.MaxBody, sim.OpenAI); err != nil {
		return err
	}
	var req embeddingRequest
	if err := decodeBody(buf.Bytes(), &req, s.cfg.Lax); err != nil {
		return err
	}
	texts, err := embeddingInput(&req)
	if err != nil {
		return err
	}
	list := make([]any, len(texts))
	tokens := 0
	for i, t := range texts {
		v, n, err := s.embed(req.Model, t, req.Dimensions, req.EncodingFormat == "base64")
		if err != nil {
			return err
		}
		tokens += n
		list[i] = map[string]any{"object": "embedding", "index": i, "embedding": v}
	}
	s.stats.tokens(llm.Usage{Input: tokens})
	writeJSON(w, map[string]any{
		"object": "list", "data": list, "model": req.Model, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})
	return nil
}

// embed returns the vector of a text, and how many tokens the text has.
func (s *Server) embed(model, text string, dimensions *int, packed bool) (v any, tokens int, err *Error) {
	dims := 256
	if dimensions != nil {
		if dims = *dimensions; dims < 1 || dims > 4096 {
			return nil, 0, invalid("dimensions", "Invalid value for 'dimensions': must be between 1 and 4096.")
		}
	}
	c, bad := s.brain.Open(&llm.Request{Model: model, Messages: []llm.Message{llm.User(text)}})
	if bad != nil {
		return nil, 0, invalid("input", "%s", bad)
	}
	return vector(c.Digest, dims, packed), c.Input, nil
}

func embeddingInput(req *embeddingRequest) ([]string, *Error) {
	if req.Model == "" || body.IsNull(req.Input) {
		return nil, invalid("input", "you must provide a model and an input parameter")
	}
	var texts []string
	if request.Texts(req.Input, &texts) && len(texts) > 0 && len(texts) <= 2048 {
		return texts, nil
	}
	return nil, invalid("input", "'input' must be a string or a list of 1 to 2048 strings.")
}

func vector(seed uint64, dims int, packed bool) any {
	r := rand.New(rand.NewPCG(seed, 11))
	v := make([]float32, dims)
	sum := 0.0
	for i := range v {
		f := r.NormFloat64()
		v[i] = float32(f)
		sum += f * f
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	if !packed {
		return v
	}
	b := make([]byte, 0, 4*dims)
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// NewID returns an ID that no other object has.
func (s *Server) NewID(prefix string) string {
	return fmt.Sprintf("%s%08x%06x", prefix, uint32(time.Now().UnixNano()), s.ids.Add(1))
}

// listed are the models that are listed. Any other name works too.
func listed() []string { return []string{"small", "large", "echo"} }

// openAIModels answers GET /v1/models.
func openAIModels(w http.ResponseWriter, _ *http.Request) *Error {
	var list []map[string]any
	for _, name := range listed() {
		list = append(list, map[string]any{"id": "sim/" + name, "object": "model", "created": 1_700_000_000, "owned_by": "sim"})
	}
	writeJSON(w, map[string]any{"object": "list", "data": list})
	return nil
}

// geminiModels answers GET /v1beta/models.
func geminiModels(w http.ResponseWriter, _ *http.Request) *Error {
	var list []map[string]any
	for _, name := range listed() {
		list = append(list, geminiModelObject(name))
	}
	writeJSON(w, map[string]any{"models": list})
	return nil
}

// geminiModel answers GET /v1beta/models/NAME.
func geminiModel(w http.ResponseWriter, r *http.Request) *Error {
	writeJSON(w, geminiModelObject(r.PathValue("name")))
	return nil
}

func geminiModelObject(name string) map[string]any {
	return map[string]any{
		"name": "models/" + name, "version": "1", "displayName": name, "inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
		"supportedGenerationMethods": []string{"generateContent", "countTokens", "embedContent", "batchGenerateContent"},
	}
}

// bedrockModels answers GET /foundation-models.
func bedrockModels(w http.ResponseWriter, _ *http.Request) *Error {
	var list []map[string]any
	for _, name := range listed() {
		list = append(list, map[string]any{
			"modelId": "sim." + name, "modelArn": "arn:aws:bedrock:us-east-1::foundation-model/sim." + name, "modelName": name, "providerName": "sim",
			"inputModalities": []string{"TEXT"}, "outputModalities": []string{"TEXT"}, "inferenceTypesSupported": []string{"ON_DEMAND"}, "responseStreamingSupported": true,
		})
	}
	writeJSON(w, map[string]any{"modelSummaries": list})
	return nil
}

// bedrockProfiles answers GET /inference-profiles.
func bedrockProfiles(w http.ResponseWriter, _ *http.Request) *Error {
	writeJSON(w, map[string]any{"inferenceProfileSummaries": []any{}})
	return nil
}
