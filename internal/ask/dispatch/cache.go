package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"parley/internal/ask/cache"
	"parley/internal/ask/provider"
	"parley/llm"
)

// cached answers requests that were answered before. Its key is the digest of the request:
// everything that can change the answer, and the sample number, so that two samples of one request
// are never the same. The provider's address is part of the key: an answer from one address is
// never used for another, whatever the provider is called.
type cached struct {
	next    layer
	store   *cache.Store
	find    func(name string) (provider.Provider, error)
	origins sync.Map // of [32]byte, by provider name
}

func newCache(next layer, store *cache.Store, find func(string) (provider.Provider, error)) layer {
	if store == nil {
		return next
	}
	return &cached{next: next, store: store, find: find}
}

// origin returns a hash that identifies the provider of a model.
func (k *cached) origin(model string) (origin [32]byte, err error) {
	name, _ := llm.SplitModel(model)
	if known, ok := k.origins.Load(name); ok {
		return known.([32]byte), nil
	}
	p, err := k.find(name)
	if err != nil {
		return origin, err
	}
	origin = p.Origin()
	k.origins.Store(name, origin)
	return origin, nil
}

// key returns the key for answers to req. Fallbacks at other providers may answer too.
func (k *cached) key(req *llm.Request) (key [32]byte, err error) {
	own, err := k.origin(req.Model)
	if err != nil {
		return key, err
	}
	digest := req.Digest()
	var space [4 * 32]byte
	b := append(append(space[:0], own[:]...), digest[:]...)
	for _, model := range req.Fallbacks {
		other, err := k.origin(model)
		if err != nil {
			return key, err
		}
		if other != own {
			b = append(b, other[:]...)
		}
	}
	return sha256.Sum256(b), nil
}

// ask looks the answer up, or asks and stores it.
func (k *cached) ask(ctx context.Context, c *call) (*llm.Response, error) {
	if c.relayed {
		return k.next.ask(ctx, c)
	}
	key, err := k.key(c.req)
	if err != nil {
		return k.next.ask(ctx, c) // the next layers report what is wrong with the provider
	}
	if b, ok := k.store.Load(ctx, key); ok {
		var resp llm.Response
		if json.Unmarshal(b, &resp) == nil {
			resp.Metadata = llm.Metadata{Cached: true, Parsed: resp.Metadata.Parsed}
			return &resp, nil
		}
	}
	resp, err := k.next.ask(ctx, c)
	if err != nil {
		return nil, err
	}
	if resp.Finish != llm.FinishAborted {
		// A cache that cannot be written is slower, not wrong.
		if b, err := json.Marshal(resp); err == nil {
			_ = k.store.Save(key, b)
		}
	}
	return resp, nil
}
