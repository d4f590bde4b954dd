package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"net/http"

	"parley/internal/serve/gateway/ledger"
	"parley/llm"
)

// kept is an answer as the cache keeps it: what the client was sent, and what it came to.
type kept struct {
	Status   int           `json:"status"`
	Type     string        `json:"type"`
	Body     []byte        `json:"body"`
	Response *llm.Response `json:"response"`
}

// cacheKey is of everything that can change what a client is sent, and of who may be sent it:
// the account that pays, the endpoint, the model that is really asked, every member of the
// body, and which draw of a session it is.
func (x *exchange) cacheKey(t *target, sample int) [32]byte {
	h := sha256.New()
	account, model := t.upstream.Account(x.flight), sha256.Sum256([]byte(t.model))
	h.Write([]byte("gateway 2\x00"))
	h.Write(account[:])
	h.Write(model[:])
	h.Write(x.call.Digest[:]) // the endpoint is in it
	h.Write(binary.AppendVarint(nil, int64(sample)))
	var key [32]byte
	h.Sum(key[:0])
	return key
}

// cached answers from the cache, if it can.
func (x *exchange) cached(t *target, rec *ledger.Call) bool {
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

// keep keeps an answer in the cache, unless a fallback gave it. One that cannot be written is
// slower, not wrong.
func (x *exchange) keep(rec *ledger.Call) {
	r := rec.Response
	if x.g.cfg.Cache == nil || r.Finish == llm.FinishAborted || rec.Wire.Cut || x.flight.Asked != x.target.model {
		return
	}
	if b, err := json.Marshal(kept{rec.Wire.Status, rec.Wire.Type, rec.Wire.Body, r}); err == nil {
		_ = x.g.cfg.Cache.Save(x.key, b)
	}
}
