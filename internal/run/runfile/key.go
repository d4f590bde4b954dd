package runfile

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"sync"

	"parley/llm"
)

// contentKey is a fingerprint of a text, a message or settings.
type contentKey [16]byte

// contentKeys maps stored content to its id. It forgets what was not used for long. Storing a text
// again only costs space, while remembering all of them, in memory or with an index, would
// slow down every call of a long run. contentKeys may be used from several goroutines.
type contentKeys struct {
	mu       sync.Mutex
	known    *recent[contentKey, int64]
	recalled map[int]*contentSaid // by episode
	said     int                  // bytes of texts in all Said
	parts    int                  // keysKept and saidBytes are for so many Keys together
}

// keysKept is how many keys Keys remembers at least: those of 20,000 conversations at once.
// They take about 40 MB, and twice that at most.
const keysKept = 1 << 20

// newKeys returns empty Keys. They remember one of so many parts of what single ones do.
func newKeys(parts int) *contentKeys {
	k := &contentKeys{recalled: map[int]*contentSaid{}, parts: parts}
	k.Forget()
	return k
}

// Find returns the id of a key.
func (k *contentKeys) Find(key contentKey) (id int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known.Find(key)
}

// Add adds a key.
func (k *contentKeys) Add(key contentKey, id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known.Add(key, id)
}

// Forget removes all keys. Call it when what was added may not be stored.
func (k *contentKeys) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = newRecent[contentKey](keysKept/k.parts, func(int64) int { return 1 })
}

// recent is a map that keeps what was used lately: by weight at least capacity, and at most
// twice that.
type recent[K comparable, V any] struct {
	capacity, weight int
	weigh            func(V) int
	fresh, stale     map[K]V
}

// newRecent returns an empty map.
func newRecent[K comparable, V any](capacity int, weigh func(V) int) *recent[K, V] {
	return &recent[K, V]{capacity: capacity, weigh: weigh, fresh: map[K]V{}}
}

// Find returns the value of a key.
func (r *recent[K, V]) Find(k K) (V, bool) {
	v, ok := r.fresh[k]
	if ok {
		return v, true
	}
	if v, ok = r.stale[k]; ok {
		r.Add(k, v)
	}
	return v, ok
}

// Add adds a key with its value.
func (r *recent[K, V]) Add(k K, v V) {
	if r.weight >= r.capacity {
		r.fresh, r.stale, r.weight = map[K]V{}, r.fresh, 0
	}
	r.fresh[k] = v
	r.weight += r.weigh(v)
}

// contentHasher computes keys. It writes values one after the other so that different values never
// give the same bytes, and keeps its buffer.
type contentHasher struct{ b []byte }

func (h *contentHasher) key() contentKey { s := sha256.Sum256(h.b); return contentKey(s[:16]) }
func (h *contentHasher) num(n int64)     { h.b = binary.AppendVarint(h.b, n) }
func (h *contentHasher) str(s string)    { h.num(int64(len(s))); h.b = append(h.b, s...) }

func (h *contentHasher) flag(v bool) {
	if v {
		h.b = append(h.b, 1)
		return
	}
	h.b = append(h.b, 0)
}

// Text returns the key of a text.
func (h *contentHasher) Text(text string) contentKey {
	h.b = append(append(h.b[:0], 't'), text...)
	return h.key()
}

// Message returns the key of a message. A plain message has the key of its text, whatever
// its role.
func (h *contentHasher) Message(m *llm.Message) contentKey {
	if contentPlain(m) {
		return h.Text(m.Parts[0].Text)
	}
	if contentLetter(m.Role) == otherRole {
		h.b = append(h.b[:0], otherRole)
		h.str(string(m.Role))
	} else {
		h.b = append(h.b[:0], 'm')
	}
	h.num(int64(len(m.Parts)))
	for _, t := range m.Parts {
		h.str(t.Text)
		if f := t.File; f != nil {
			h.b = append(h.b, 2) // which is no flag
			h.strs(f.Name, f.URL, f.MediaType, string(f.Data))
		}
		h.flag(t.Image != nil)
		if i := t.Image; i != nil {
			h.str(i.URL)
			h.str(i.MediaType)
			h.str(string(i.Data))
			h.str(i.Detail)
		}
	}
	h.num(int64(len(m.Thoughts)))
	for _, t := range m.Thoughts {
		h.strs(t.Text, t.ID, t.Signature, t.Opaque)
	}
	h.num(int64(len(m.ToolCalls)))
	for _, c := range m.ToolCalls {
		h.strs(c.ID, c.Name, c.Arguments)
	}
	h.str(m.ToolCallID)
	h.flag(m.ToolFailed)
	return h.key()
}

func (h *contentHasher) strs(all ...string) {
	h.num(int64(len(all)))
	for _, s := range all {
		h.str(s)
	}
}

func (h *contentHasher) float(f *float64) {
	h.flag(f != nil)
	if f != nil {
		h.b = binary.BigEndian.AppendUint64(h.b, math.Float64bits(*f))
	}
}

// Settings returns the key of what EncodeSettings keeps of a request.
func (h *contentHasher) Settings(r *llm.Request) contentKey {
	h.b = append(h.b[:0], 's')
	h.strs(r.Model, r.ToolChoice, string(r.Effort), r.Tier)
	h.num(int64(len(r.Tools)))
	for _, t := range r.Tools {
		h.strs(t.Name, t.Description, string(t.Parameters))
		h.flag(t.Strict)
	}
	h.flag(r.OneTool)
	h.flag(r.Schema != nil)
	if s := r.Schema; s != nil {
		h.strs(s.Name, s.Description, string(s.JSON))
	}
	h.num(int64(r.MaxTokens))
	for _, f := range []*float64{r.Temperature, r.TopP, r.FrequencyPenalty, r.PresencePenalty} {
		h.float(f)
	}
	h.flag(r.TopK != nil)
	if r.TopK != nil {
		h.num(int64(*r.TopK))
	}
	h.flag(r.Seed != nil)
	if r.Seed != nil {
		h.num(*r.Seed)
	}
	h.strs(r.Stop...)
	h.flag(r.Logprobs)
	h.num(int64(r.TopLogprobs))
	h.flag(r.TokenIDs)
	h.num(int64(r.Deadline))
	h.strs(r.Fallbacks...)
	if len(r.Extra) > 0 { // rarely, and sorting allocates
		for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
			h.strs(name, string(r.Extra[name]))
		}
	}
	return h.key()
}
