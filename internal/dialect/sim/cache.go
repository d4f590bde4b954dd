package sim

import (
	"sync"
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/llm"
)

const (
	cacheMin     = 1024 // tokens a prefix must have to be cached
	cacheBlock   = 128  // tokens by which OpenAI's caching counts
	cacheBack    = 20   // blocks before a breakpoint in which Anthropic's looks for an entry
	cacheTTL     = 5 * time.Minute
	cacheTTLLong = time.Hour
	cacheEntries = 1 << 17 // kept in each of two generations
)

// Break is a place in a prompt up to which Anthropic's clients want it cached:
// after a part of a message, or after the tools when Message is below zero.
type Break struct {
	Message, Part int
	Long          bool // for an hour
}

// Reading is what the prompt cache had of a prompt, and what is to be written to it.
type Reading struct {
	Cached, Write, WriteLong int
	fresh                    []entry
}

type entry struct {
	key uint64
	ttl time.Duration
}

// ReadCache looks a case up in the prompt cache, in the manner of style. What was
// not there can be read by others only after Keep.
func (b *Brain) ReadCache(c *Case, style quota.Style, breaks []Break, now time.Time) Reading {
	if c.Input < cacheMin || (style == quota.Anthropic && len(breaks) == 0) {
		return Reading{}
	}
	if style == quota.Anthropic {
		return b.cache.atBreaks(c.marks(0), breaks, now)
	}
	return b.cache.byBlocks(c.marks(cacheBlock), now)
}

// Keep writes what a Reading missed: to be called when its answer begins.
func (b *Brain) Keep(r Reading, now time.Time) {
	if len(r.fresh) > 0 {
		b.cache.put(r.fresh, now)
	}
}

// mark is a place in a prompt: how many tokens there are before it, and a digest of them.
type mark struct {
	tokens        int
	key           uint64
	message, part int
}

// marks walks the prompt and notes a mark at every so many tokens, or after the
// tools and after every part where every is 0.
func (c *Case) marks(every int) []mark {
	w := marker{every: every, h: c.top.mix(uint64(every)), tokens: c.preamble}
	w.note(-1, 0)
	for i := range c.Request.Messages {
		m := &c.Request.Messages[i]
		w.h = w.h.str(string(m.Role))
		w.tokens++
		for k, p := range m.Parts {
			if p.Image != nil {
				w.h = w.h.str(p.Image.URL).str(string(p.Image.Data))
				w.tokens += imageTokens
			}
			w.text(p.Text)
			w.note(i, k)
		}
		for _, t := range m.ToolCalls {
			w.text(t.Name)
			w.text(t.Arguments)
		}
		w.tokens++
	}
	return w.marks
}

type marker struct {
	every  int
	h      hash
	tokens int
	marks  []mark
}

// note marks the end of a part.
func (w *marker) note(message, part int) {
	if w.every == 0 {
		w.marks = append(w.marks, mark{w.tokens, w.h.end(), message, part})
	}
}

// text takes in s, and marks the places in it where a block is full.
func (w *marker) text(s string) {
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
			w.marks = append(w.marks, mark{tokens: w.tokens, key: w.h.end()})
		}
	}
	w.h = w.h.str(s[from:])
}

// promptCache remembers prefixes. Two generations keep it bounded: when the young
// one is full it becomes the old one, and the old one is forgotten.
type promptCache struct {
	mu         sync.Mutex
	young, old map[uint64]int64 // when they end, in Unix nanoseconds
}

func (p *promptCache) has(key uint64, now int64) bool {
	return p.young[key] > now || p.old[key] > now
}

func (p *promptCache) put(fresh []entry, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range fresh {
		if p.young == nil || len(p.young) >= cacheEntries {
			p.young, p.old = map[uint64]int64{}, p.young
		}
		p.young[e.key] = now.Add(e.ttl).UnixNano()
	}
}

// byBlocks is OpenAI's way: the longest prefix seen before, in whole blocks.
func (p *promptCache) byBlocks(marks []mark, now time.Time) Reading {
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
		r.fresh = append(r.fresh, entry{m.key, cacheTTL}) // a hit lives on
	}
	return r
}

// atBreaks is Anthropic's way: what is between the longest entry found at or
// shortly before a breakpoint and the last breakpoint is written.
func (p *promptCache) atBreaks(marks []mark, breaks []Break, now time.Time) Reading {
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
		for i := at; i >= 0 && i > at-cacheBack; i-- {
			if p.has(marks[i].key, now.UnixNano()) {
				r.Cached = max(r.Cached, marks[i].tokens)
				break
			}
		}
		ttl := cacheTTL
		if br.Long {
			ttl = cacheTTLLong
		}
		r.fresh = append(r.fresh, entry{marks[at].key, ttl})
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

// Usage adds up what an answer cost.
func (c *Case) Usage(a *Answer, r Reading) llm.Usage {
	return llm.Usage{
		Input: c.Input, Cached: r.Cached, CacheWrite: r.Write, CacheWriteLong: r.WriteLong,
		Output: a.Output, Reasoning: a.Reasoning,
	}
}
