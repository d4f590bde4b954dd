package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"net/http"

	"parley/llm"
)

// kept is a cached answer: the bytes that the client got, and the decoded response.
type kept struct {
	Status   int           `json:"status"`
	Type     string        `json:"type"`
	Body     []byte        `json:"body"`
	Response *llm.Response `json:"response"`
}

// cacheKey hashes everything that can change the answer, and who may get it: the account that pays, the
// endpoint, the model, every member of the body, and the number of the draw in the session.
func (x *exchange) cacheKey(t *target, sample int) [32]byte {
	h := sha256.New()
	account, model := t.upstream.Account(x.flight), sha256.Sum256([]byte(t.model))
	h.Write([]byte("gateway 2\x00"))
	h.Write(account[:])
	h.Write(model[:])
	h.Write(x.call.Digest[:]) // includes the endpoint
	h.Write(binary.AppendVarint(nil, int64(sample)))
	var key [32]byte
	h.Sum(key[:0])
	return key
}

// cached answers from the cache, if it can.
func (x *exchange) cached(t *target, rec *Call) bool {
	if x.g.cfg.Cache == nil {
		return false
	}
	x.key = x.cacheKey(t, x.session.Sample(x.call.Turn()))
	b, ok := x.g.cfg.Cache.Load(x.key)
	if !ok {
		return false
	}
	var c kept
	if json.Unmarshal(b, &c) != nil || c.Response == nil {
		return false
	}
	c.Response.Metadata = llm.Metadata{Cached: true}
	rec.Response = c.Response
	x.flight.Status, x.flight.Held = c.Status, c.Body
	x.flight.Answer = http.Header{"Content-Type": {c.Type}, "X-Parley-Cached": {"true"}}
	return true
}

// keep stores an answer in the cache, unless a fallback gave it. Errors are ignored.
func (x *exchange) keep(rec *Call) {
	r := rec.Response
	if x.g.cfg.Cache == nil || r.Finish == llm.FinishAborted || rec.Wire.Cut || x.flight.Asked != x.target.model {
		return
	}
	if b, err := json.Marshal(kept{rec.Wire.Status, rec.Wire.Type, rec.Wire.Body, r}); err == nil {
		_ = x.g.cfg.Cache.Save(x.key, b)
	}
}
