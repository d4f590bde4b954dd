package runfile

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"parley/llm"
)

// textKey is a fingerprint of a text, a message or settings.
type textKey [16]byte

// textKeys maps stored content to its id. It forgets what was not used for long. Storing a text
// again only costs space, while remembering all of them, in memory or with an index, would
// slow down every call of a long run. textKeys may be used from several goroutines.
type textKeys struct {
	mu       sync.Mutex
	known    *recent[textKey, int64]
	recalled map[int]*episodeTexts // by episode
	kept     int                   // bytes of texts in all episodeTexts
}

// keysKept is how many keys textKeys remembers at least: those of 20,000 conversations at once.
// They take about 40 MB, and twice that at most.
const keysKept = 1 << 20

// newKeys returns empty textKeys.
func newKeys() *textKeys {
	k := &textKeys{recalled: map[int]*episodeTexts{}}
	k.Forget()
	return k
}

// Find returns the id of a key.
func (k *textKeys) Find(key textKey) (id int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known.Find(key)
}

// Add adds a key.
func (k *textKeys) Add(key textKey, id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known.Add(key, id)
}

// Forget removes all keys. Call it when what was added may not be stored.
func (k *textKeys) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = newRecent[textKey](keysKept, func(int64) int { return 1 })
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

// keyHasher computes keys. It writes values one after the other so that different values never
// give the same bytes, and keeps its buffer.
type keyHasher struct{ b []byte }

func (h *keyHasher) key() textKey { s := sha256.Sum256(h.b); return textKey(s[:16]) }
func (h *keyHasher) num(n int64)  { h.b = binary.AppendVarint(h.b, n) }

// Text returns the key of a text.
func (h *keyHasher) Text(text string) textKey {
	h.b = append(append(h.b[:0], 't'), text...)
	return h.key()
}

// Message returns the key of a message. A plain message has the key of its text, whatever
// its role.
func (h *keyHasher) Message(m *llm.Message) textKey {
	if isPlain(m) {
		return h.Text(m.Parts[0].Text)
	}
	return h.request('m', &llm.Request{Messages: []llm.Message{*m}})
}

// Settings returns the key of what encodeSettings keeps of a request.
func (h *keyHasher) Settings(r *llm.Request) textKey {
	q := *r
	q.Messages, q.Sample = nil, 0
	return h.request('s', &q)
}

// request returns the key of a request: of what its digest is of, and of what says how it is asked. One that has no digest cannot be stored.
func (h *keyHasher) request(of byte, r *llm.Request) textKey {
	h.b, _ = r.AppendDigested(append(h.b[:0], of))
	h.num(int64(r.Deadline))
	for _, model := range r.Fallbacks {
		h.num(int64(len(model)))
		h.b = append(h.b, model...)
	}
	return h.key()
}

// episodeTexts holds texts of an episode with their ids. A conversation repeats its history in every
// prompt, mostly as the same strings: comparing these takes far less time than computing a textKey. The zero
// value is empty.
type episodeTexts struct {
	texts []knownText
	next  int // the index after the last text that was found: prompts repeat texts in order
}

type knownText struct {
	text string
	id   int64
}

const (
	maxEpisodeTexts = 128      // of an episode, at most
	maxTextBytes    = 32 << 20 // of all episodes: a world may not need its texts any more
	textOverhead    = 24       // bytes of memory that an entry takes without its text
)

// Find returns the id of a text, or 0.
func (s *episodeTexts) Find(text string) int64 {
	for i := range s.texts {
		at := s.next + i
		if at >= len(s.texts) {
			at -= len(s.texts)
		}
		if t := &s.texts[at]; t.text == text {
			s.next = at + 1
			return t.id
		}
	}
	return 0
}

// Remember adds a text to those of an episode, unless there are too many.
func (k *textKeys) Remember(s *episodeTexts, text string, id int64) (added bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.remember(s, text, id)
}

func (k *textKeys) remember(s *episodeTexts, text string, id int64) (added bool) {
	size := len(text) + textOverhead
	if len(s.texts) >= maxEpisodeTexts || k.kept+size > maxTextBytes {
		return false
	}
	k.kept += size
	s.texts = append(s.texts, knownText{text, id})
	return true
}

// Drop forgets the texts of an episode.
func (k *textKeys) Drop(s *episodeTexts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range s.texts {
		k.kept -= len(t.text) + textOverhead
	}
	*s = episodeTexts{}
}

// Recall adds a text of an episode that will be resumed, unless there are too many.
func (k *textKeys) Recall(episode int, text string, id int64) (added bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.recalled[episode]
	if s == nil {
		s = &episodeTexts{}
		k.recalled[episode] = s
	}
	return k.remember(s, text, id)
}

// Recalled returns the texts that Recall added, once.
func (k *textKeys) Recalled(episode int) (s episodeTexts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.recalled[episode]; r != nil {
		s = *r
		delete(k.recalled, episode)
	}
	return s
}
