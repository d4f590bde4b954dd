package simhttp

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// countTokens answers how many tokens a prompt has.
func (s *Server) countTokens(f *format) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		ask, err := s.read(w, r, f)
		if err != nil {
			return err
		}
		c, bad := s.brain.Open(&ask.Request)
		if bad != nil {
			return invalid("", "%s", bad)
		}
		if f.style == sim.Google {
			writeJSON(w, map[string]int{"totalTokens": c.Input})
		} else {
			writeJSON(w, map[string]int{"input_tokens": c.Input})
		}
		return nil
	}
}

// counted returns the request whose tokens are counted: in Anthropic's format a request without max_tokens, in Gemini's the contents or a whole request.
func counted(b []byte) ([]byte, *Error) {
	if whole := request.Member(b, "generateContentRequest"); whole != nil {
		return whole, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil || members["messages"] == nil {
		return b, nil
	}
	members["max_tokens"] = json.RawMessage("100000")
	return line(members), nil
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
	var req embeddingRequest
	if err := s.decodeSmall(w, r, &req); err != nil {
		return err
	}
	texts, err := embeddingInput(&req)
	if err != nil {
		return err
	}
	dims := 256
	if req.Dimensions != nil {
		if dims = *req.Dimensions; dims < 1 || dims > 4096 {
			return invalid("dimensions", "Invalid value for 'dimensions': must be between 1 and 4096.")
		}
	}
	list := make([]any, len(texts))
	tokens := 0
	for i, t := range texts {
		c, bad := s.brain.Open(&llm.Request{Model: req.Model, Messages: []llm.Message{llm.User(t)}})
		if bad != nil {
			return invalid("input", "%s", bad)
		}
		tokens += c.Input
		list[i] = map[string]any{"object": "embedding", "index": i, "embedding": vector(c.Digest, dims, req.EncodingFormat == "base64")}
	}
	s.stats.tokens(llm.Usage{Input: tokens})
	writeJSON(w, map[string]any{
		"object": "list", "data": list, "model": req.Model, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
	})
	return nil
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
