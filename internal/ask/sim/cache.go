package sim

import (
	"sync"
	"time"

	"parley/llm"
)

const (
	cacheMin     = 1024 // minimum tokens of a cached prefix
	cacheBlock   = 128  // tokens in a block
	cacheTTL     = 5 * time.Minute
	cacheEntries = 1 << 18 // then it begins again
)

// Reading is what the prompt cache holds of a prompt, and what must be written to it.
type Reading struct {
	Cached int
	fresh  []uint64
}

// ReadCache looks up a case in the prompt cache: the longest prefix seen before, in whole blocks, as OpenAI's does. Others can read the new
// entries only after Keep.
func (b *Brain) ReadCache(c *Case, now time.Time) Reading {
	if c.Input < cacheMin {
		return Reading{}
	}
	return b.cache.read(c.blocks(), now)
}

// Keep writes the new entries of a Reading. Call it when the answer begins.
func (b *Brain) Keep(r Reading, now time.Time) {
	if len(r.fresh) > 0 {
		b.cache.put(r.fresh, now)
	}
}

// block is the end of a block of a prompt, with the number and a digest of the tokens before it.
type block struct {
	tokens int
	key    uint64
}

// blocks returns the ends of the blocks of the prompt.
func (c *Case) blocks() []block {
	w := blockWalk{h: c.top.mix(cacheBlock), tokens: c.preamble}
	for i := range c.Request.Messages {
		m := &c.Request.Messages[i]
		w.h = w.h.str(string(m.Role))
		w.tokens++
		for _, p := range m.Parts {
			var n int
			w.h, n = addMedia(w.h, &p)
			w.tokens += n
			w.text(p.Text)
		}
		for _, t := range m.ToolCalls {
			w.text(t.Name)
			w.text(t.Arguments)
		}
		w.tokens++
	}
	return w.found
}

// blockWalk walks a prompt and finds its blocks.
type blockWalk struct {
	h      hash
	tokens int
	found  []block
}

// text adds s, and the ends of the blocks in it.
func (w *blockWalk) text(s string) {
	from := 0
	for i := 0; i < len(s); {
		i = tokenEnd(s, i)
		w.tokens++
		if w.tokens%cacheBlock == 0 {
			w.h = w.h.str(s[from:i])
			from = i
			w.found = append(w.found, block{w.tokens, w.h.end()})
		}
	}
	w.h = w.h.str(s[from:])
}

// promptCache holds prefixes.
type promptCache struct {
	mu      sync.Mutex
	expires map[uint64]time.Time
}

func (p *promptCache) put(fresh []uint64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range fresh {
		if p.expires == nil || len(p.expires) >= cacheEntries {
			p.expires = map[uint64]time.Time{}
		}
		p.expires[key] = now.Add(cacheTTL)
	}
}

func (p *promptCache) read(blocks []block, now time.Time) (r Reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	missed := false
	for _, b := range blocks {
		if b.tokens < cacheMin {
			continue
		}
		if missed = missed || !p.expires[b.key].After(now); !missed {
			r.Cached = b.tokens
		}
		r.fresh = append(r.fresh, b.key) // a hit extends the entry
	}
	return r
}

// Usage returns the tokens of an answer.
func (c *Case) Usage(a *Answer, r Reading) llm.Usage {
	return llm.Usage{Input: c.Input, Audio: c.Audio, Cached: r.Cached, Output: a.Output, Reasoning: a.Reasoning}
}
