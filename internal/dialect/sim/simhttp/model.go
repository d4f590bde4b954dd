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
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
	"parley/llm"
)

// models lists a few names. Any other works as well.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) *check.Error {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, id := range []string{"sim/small", "sim/large", "sim/echo"} {
		list.Data = append(list.Data, model{ID: id, Object: "model", Created: 1_700_000_000, OwnedBy: "sim"})
	}
	writeJSON(w, list)
	return nil
}

func writeJSON(w http.ResponseWriter, v any) {
	writeBody(w, http.StatusOK, "application/json", append(check.Marshal(v), '\n'))
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) *check.Error {
	ask, err := s.read(w, r, &s.formats.count)
	if err != nil {
		return err
	}
	c, bad := s.brain.Open(ask.Request)
	if bad != nil {
		return check.Invalid("", "%s", bad)
	}
	writeJSON(w, map[string]int{"input_tokens": c.Input})
	return nil
}

type embeddingRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	Dimensions     *int            `json:"dimensions"`
	EncodingFormat string          `json:"encoding_format"`
	User           json.RawMessage `json:"user"`
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// embeddings answers POST /v1/embeddings with unit vectors that depend on the text.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) *check.Error {
	var buf bytes.Buffer
	if err := s.body(w, r, &buf, s.cfg.MaxBody, quota.OpenAI); err != nil {
		return err
	}
	var req embeddingRequest
	if p := check.Decode(buf.Bytes(), &req, s.cfg.Lax); p != nil {
		return check.Invalid(p.Field+p.Unknown, "Invalid request: %+v", *p)
	}
	texts, err := embeddingInput(&req)
	if err != nil {
		return err
	}
	dims := 256
	if req.Dimensions != nil {
		if dims = *req.Dimensions; dims < 1 || dims > 4096 {
			return check.Invalid("dimensions", "Invalid value for 'dimensions': must be between 1 and 4096.")
		}
	}
	list := make([]embedding, len(texts))
	tokens := 0
	for i, t := range texts {
		c, bad := s.brain.Open(&llm.Request{Model: req.Model, Messages: []llm.Message{llm.User(t)}})
		if bad != nil {
			return check.Invalid("input", "%s", bad)
		}
		tokens += c.Input
		list[i] = embedding{Object: "embedding", Index: i, Embedding: vector(c.Digest, dims, req.EncodingFormat == "base64")}
	}
	s.stats.ok.Add(1)
	s.stats.tokens(llm.Usage{Input: tokens})
	writeJSON(w, map[string]any{
		"object": "list", "data": list, "model": req.Model, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})
	return nil
}

func embeddingInput(req *embeddingRequest) ([]string, *check.Error) {
	if req.Model == "" || body.IsNull(req.Input) {
		return nil, check.Invalid("input", "you must provide a model and an input parameter")
	}
	if t, ok := check.Text(req.Input); ok {
		return []string{t}, nil
	}
	var texts []string
	if json.Unmarshal(req.Input, &texts) == nil && len(texts) > 0 && len(texts) <= 2048 {
		return texts, nil
	}
	return nil, check.Invalid("input", "'input' must be a string or a list of 1 to 2048 strings.")
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

// newID returns an id with a prefix.
func (s *Server) newID(prefix string) string {
	return fmt.Sprintf("%s%08x%06x", prefix, uint32(time.Now().UnixNano()), s.ids.Add(1))
}
