package dispatch

import (
	"context"
	"encoding/json"

	"parley/internal/cachestore"
	"parley/llm"
)

// cache answers a question that was answered before. Its key is the digest of the
// request: everything that can change the answer, and the sample number, so that two
// samples of one question are never one.
type cache struct {
	next  llm.Model
	store *cachestore.Store
}

func newCache(next llm.Model, store *cachestore.Store) llm.Model {
	if store == nil {
		return next
	}
	return &cache{next: next, store: store}
}

// Ask looks the answer up, or asks and keeps it.
func (c *cache) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	key := req.Digest()
	if b, ok := c.store.Load(key); ok {
		var resp llm.Response
		if json.Unmarshal(b, &resp) == nil {
			resp.Trail = llm.Trail{Cached: true, Parsed: resp.Trail.Parsed}
			return &resp, nil
		}
	}
	resp, err := c.next.Ask(ctx, req)
	if err != nil {
		return nil, err
	}
	if resp.Finish != llm.FinishAborted {
		// A cache that cannot be written is slower, not wrong: the store counts it.
		if b, err := json.Marshal(resp); err == nil {
			_ = c.store.Save(key, b)
		}
	}
	return resp, nil
}
