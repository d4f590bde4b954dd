package sqlite

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"parley/llm"
)

// key is a fingerprint of a text.
type key [16]byte

// keys knows which texts are stored already, and where. It forgets those not used for
// long: storing one again costs space and nothing else, while knowing all, in memory or by
// an index over the file, would cost every call of a long run.
type keys struct {
	mu    sync.Mutex
	known *recent[key, int64]
}

// keysKept is how many texts are remembered at least: those of 20,000 conversations at
// once. It takes some 40 MB, and twice that at most.
const keysKept = 1 << 20

func newKeys() *keys {
	k := &keys{}
	k.forget()
	return k
}

func (k *keys) find(of key) (id int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known.find(of)
}

func (k *keys) add(of key, id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known.add(of, id)
}

// forget drops everything, when what was added may not have been stored after all.
func (k *keys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = newRecent[key](keysKept, func(int64) int { return 1 })
}

// recent is a map that keeps what was used lately: at least the last most of it, by
// weight, and at most twice that.
type recent[K comparable, V any] struct {
	most, weight int
	weigh        func(V) int
	fresh, stale map[K]V
}

func newRecent[K comparable, V any](most int, weigh func(V) int) *recent[K, V] {
	return &recent[K, V]{most: most, weigh: weigh, fresh: map[K]V{}}
}

func (r *recent[K, V]) find(k K) (V, bool) {
	v, ok := r.fresh[k]
	if ok {
		return v, true
	}
	if v, ok = r.stale[k]; ok {
		r.add(k, v)
	}
	return v, ok
}

func (r *recent[K, V]) add(k K, v V) {
	if r.weight >= r.most {
		r.fresh, r.stale, r.weight = map[K]V{}, r.fresh, 0
	}
	r.fresh[k] = v
	r.weight += r.weigh(v)
}

// printer writes values one after another so that no two sequences look alike, for a key.
type printer struct{ b []byte }

func (p *printer) key() key     { s := sha256.Sum256(p.b); return key(s[:16]) }
func (p *printer) num(n int64)  { p.b = binary.AppendVarint(p.b, n) }
func (p *printer) str(s string) { p.num(int64(len(s))); p.b = append(p.b, s...) }
func (p *printer) flag(v bool)  { p.b = append(p.b, map[bool]byte{true: 1}[v]) }

func (p *printer) text(text string) key {
	p.b = append(append(p.b[:0], 't'), text...)
	return p.key()
}

// message makes the key of m. That of a message of one text is that of the text, whoever
// says it.
func (p *printer) message(m *llm.Message) key {
	if plain(m) {
		return p.text(m.Parts[0].Text)
	}
	if letter(m.Role) == 'x' {
		p.b = append(p.b[:0], 'x')
		p.str(string(m.Role))
	} else {
		p.b = append(p.b[:0], 'm')
	}
	p.num(int64(len(m.Parts)))
	for _, t := range m.Parts {
		p.str(t.Text)
		p.flag(t.Image != nil)
		if i := t.Image; i != nil {
			p.str(i.URL)
			p.str(i.MediaType)
			p.str(string(i.Data))
			p.str(i.Detail)
		}
	}
	p.num(int64(len(m.Thoughts)))
	for _, t := range m.Thoughts {
		p.strs(t.Text, t.ID, t.Signature, t.Opaque)
	}
	p.num(int64(len(m.ToolCalls)))
	for _, c := range m.ToolCalls {
		p.strs(c.ID, c.Name, c.Arguments)
	}
	p.str(m.ToolCallID)
	p.flag(m.ToolFailed)
	return p.key()
}

func (p *printer) strs(all ...string) {
	p.num(int64(len(all)))
	for _, s := range all {
		p.str(s)
	}
}

func (p *printer) float(f *float64) {
	p.flag(f != nil)
	if f != nil {
		p.b = binary.BigEndian.AppendUint64(p.b, math.Float64bits(*f))
	}
}

// settings makes the key of what newSettings keeps of a request.
func (p *printer) settings(r *llm.Request) key {
	p.b = append(p.b[:0], 's')
	p.strs(r.Model, r.ToolChoice, string(r.Effort), r.Tier)
	p.num(int64(len(r.Tools)))
	for _, t := range r.Tools {
		p.strs(t.Name, t.Description, string(t.Parameters))
		p.flag(t.Strict)
	}
	p.flag(r.OneTool)
	p.flag(r.Schema != nil)
	if s := r.Schema; s != nil {
		p.strs(s.Name, s.Description, string(s.JSON))
	}
	p.num(int64(r.MaxTokens))
	p.float(r.Temperature)
	p.float(r.TopP)
	p.float(r.FrequencyPenalty)
	p.float(r.PresencePenalty)
	p.flag(r.TopK != nil)
	if r.TopK != nil {
		p.num(int64(*r.TopK))
	}
	p.flag(r.Seed != nil)
	if r.Seed != nil {
		p.num(*r.Seed)
	}
	p.strs(r.Stop...)
	p.flag(r.Logprobs)
	p.num(int64(r.TopLogprobs))
	p.flag(r.TokenIDs)
	p.num(int64(r.Deadline))
	p.strs(r.Fallbacks...)
	names := make([]string, 0, len(r.Extra))
	for name := range r.Extra {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p.strs(name, string(r.Extra[name]))
	}
	return p.key()
}
