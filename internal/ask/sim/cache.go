package sim

import (
	"sync"
	"time"

	"parley/llm"
)

const (
	cacheMin      = 1024 // minimum tokens of a cached prefix
	cacheBlock    = 128  // tokens in a block of OpenAI's cache
	cacheLookback = 20   // blocks before a breakpoint in which Anthropic's cache looks for an entry
	cacheTTL      = 5 * time.Minute
	cacheTTLLong  = time.Hour
	cacheEntries  = 1 << 17 // kept in each of two generations
)

// Break is a breakpoint of Anthropic's and Amazon's prompt caches: after a part of a message, or after the tools if
// Message is negative.
type Break struct {
	Message, Part int
	Long          bool // for an hour
}

// Reading is what the prompt cache holds of a prompt, and what must be written to it.
type Reading struct {
	Cached, Write, WriteLong int
	fresh                    []cacheEntry
}

type cacheEntry struct {
	key uint64
	ttl time.Duration
}

// ReadCache looks up a case in the prompt cache of a style. Others can read the new entries only after
// Keep.
func (b *Brain) ReadCache(c *Case, style Style, breaks []Break, now time.Time) Reading {
	marked := style == Anthropic || style == Amazon
	if c.Input < cacheMin || marked && len(breaks) == 0 {
		return Reading{}
	}
	if marked {
		return b.cache.atBreaks(c.boundaries(0), breaks, now)
	}
	return b.cache.byBlocks(c.boundaries(cacheBlock), now)
}

// Keep writes the new entries of a Reading. Call it when the answer begins.
func (b *Brain) Keep(r Reading, now time.Time) {
	if len(r.fresh) > 0 {
		b.cache.put(r.fresh, now)
	}
}

// boundary is a position in a prompt, with the number and a digest of the tokens before it.
type boundary struct {
	tokens        int
	key           uint64
	message, part int
}

// boundaries returns the boundaries of the prompt: after every so many tokens or, if every is 0, after
// the tools and after every part.
func (c *Case) boundaries(every int) []boundary {
	w := prefixes{every: every, h: c.top.mix(uint64(every)), tokens: c.preamble}
	w.note(-1, 0)
	for i := range c.Request.Messages {
		m := &c.Request.Messages[i]
		w.h = w.h.str(string(m.Role))
		w.tokens++
		for k, p := range m.Parts {
			var n int
			w.h, n = addMedia(w.h, &p)
			w.tokens += n
			w.text(p.Text)
			w.note(i, k)
		}
		for _, t := range m.ToolCalls {
			w.text(t.Name)
			w.text(t.Arguments)
		}
		w.tokens++
	}
	return w.found
}

// prefixes walks a prompt and finds its boundaries.
type prefixes struct {
	every  int
	h      hash
	tokens int
	found  []boundary
}

// note adds the end of a part.
func (w *prefixes) note(message, part int) {
	if w.every == 0 {
		w.found = append(w.found, boundary{w.tokens, w.h.end(), message, part})
	}
}

// text adds s, and the ends of the blocks in it.
func (w *prefixes) text(s string) {
	if w.every == 0 {
		w.h = w.h.str(s)
		w.tokens += CountTokens(s)
		return
	}
	from := 0
	for i := 0; i < len(s); {
		i = tokenEnd(s, i)
		w.tokens++
		if w.tokens%w.every == 0 {
			w.h = w.h.str(s[from:i])
			from = i
			w.found = append(w.found, boundary{tokens: w.tokens, key: w.h.end()})
		}
	}
	w.h = w.h.str(s[from:])
}

// promptCache holds prefixes in two generations, to be bounded: when the young one is full it
// replaces the old one.
type promptCache struct {
	mu         sync.Mutex
	young, old map[uint64]int64 // expiry in Unix nanoseconds
}

func (p *promptCache) has(key uint64, now int64) bool {
	return p.young[key] > now || p.old[key] > now
}

func (p *promptCache) put(fresh []cacheEntry, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range fresh {
		if p.young == nil || len(p.young) >= cacheEntries {
			p.young, p.old = map[uint64]int64{}, p.young
		}
		p.young[e.key] = now.Add(e.ttl).UnixNano()
	}
}

// byBlocks is OpenAI's lookup: the longest prefix seen before, in whole blocks.
func (p *promptCache) byBlocks(marks []boundary, now time.Time) Reading {
	var r Reading
	p.mu.Lock()
	defer p.mu.Unlock()
	missed := false
	for _, m := range marks {
		if m.tokens < cacheMin {
			continue
		}
		if missed = missed || !p.has(m.key, now.UnixNano()); !missed {
			r.Cached = m.tokens
		}
		r.fresh = append(r.fresh, cacheEntry{m.key, cacheTTL}) // a hit extends the entry
	}
	return r
}

// atBreaks is Anthropic's lookup: it reads the longest entry at or shortly before a breakpoint, and
// writes the rest up to the last breakpoint.
func (p *promptCache) atBreaks(marks []boundary, breaks []Break, now time.Time) Reading {
	var r Reading
	p.mu.Lock()
	defer p.mu.Unlock()
	written := 0
	for _, br := range breaks {
		at := -1
		for i, m := range marks {
			if m.message < br.Message || m.message == br.Message && m.part <= br.Part {
				at = i
			}
		}
		if at < 0 || marks[at].tokens < cacheMin {
			continue
		}
		for i := at; i >= 0 && i > at-cacheLookback; i-- {
			if p.has(marks[i].key, now.UnixNano()) {
				r.Cached = max(r.Cached, marks[i].tokens)
				break
			}
		}
		ttl := cacheTTL
		if br.Long {
			ttl = cacheTTLLong
		}
		r.fresh = append(r.fresh, cacheEntry{marks[at].key, ttl})
		if n := marks[at].tokens - max(r.Cached, written); n > 0 {
			if br.Long {
				r.WriteLong += n
			} else {
				r.Write += n
			}
			written = marks[at].tokens
		}
	}
	return r
}

// Usage returns the tokens of an answer.
func (c *Case) Usage(a *Answer, r Reading) llm.Usage {
	return llm.Usage{
		Input: c.Input, Audio: c.Audio, Cached: r.Cached, CacheWrite: r.Write, CacheWriteLong: r.WriteLong,
		Output: a.Output, Reasoning: a.Reasoning,
	}
}
