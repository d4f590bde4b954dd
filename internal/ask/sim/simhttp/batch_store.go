package simhttp

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
)

// batchStore simulates the vendors' batch APIs: OpenAI's files and batches, what Mistral, Together
// and xAI made of them, Gemini's, and Anthropic's message batches. It keeps files and batches in
// memory. Nothing runs in the background: a batch is worked out when a client looks at it.
type batchStore struct {
	cfg   BatchConfig
	lax   bool
	seed  uint64
	host  Host
	files fileStore

	mu    sync.Mutex
	order []*batch // by creation
	stats BatchStats
}

// newBatchStore returns a batchStore. A lax one accepts unknown members of requests.
func newBatchStore(cfg BatchConfig, host Host, seed uint64, lax bool) *batchStore {
	if cfg.PerHour <= 0 {
		cfg.PerHour = 2000
	}
	if cfg.RetryAfter <= 0 {
		cfg.RetryAfter = time.Minute
	}
	if cfg.MaxStored <= 0 {
		cfg.MaxStored = 4 << 30
	}
	if cfg.Latency.IsZero() {
		cfg.Latency = sim.Fixed(2 * time.Second)
	}
	return &batchStore{cfg: cfg, host: host, seed: seed, lax: lax, files: fileStore{Limit: cfg.MaxStored}}
}

// maxRequests and maxBytes return a configured limit, or the vendor's.
func (s *batchStore) maxRequests(vendors int) int {
	if s.cfg.MaxRequests > 0 {
		return s.cfg.MaxRequests
	}
	return vendors
}

func (s *batchStore) maxBytes(vendors int64) int64 {
	if s.cfg.MaxBytes > 0 {
		return s.cfg.MaxBytes
	}
	return vendors
}

// Routes adds the endpoints of files and batches.
func (s *batchStore) Routes(handle func(pattern string, style sim.Style, e Func)) {
	s.OpenAIRoutes("/v1", handle)
	handle("POST /v1/messages/batches", sim.Anthropic, s.createMessageBatch)
	handle("GET /v1/messages/batches", sim.Anthropic, s.listMessageBatches)
	handle("GET /v1/messages/batches/{id}", sim.Anthropic, s.one(batchAnthropic, s.show))
	handle("DELETE /v1/messages/batches/{id}", sim.Anthropic, s.one(batchAnthropic, s.deleteMessageBatch))
	handle("POST /v1/messages/batches/{id}/cancel", sim.Anthropic, s.one(batchAnthropic, s.cancelMessageBatch))
	handle("GET /v1/messages/batches/{id}/results", sim.Anthropic, s.messageBatchResults)
	s.compatibleRoutes(handle)
	s.geminiRoutes(handle)
}

// OpenAIRoutes adds OpenAI's files and batches below a path.
func (s *batchStore) OpenAIRoutes(at string, handle func(pattern string, style sim.Style, e Func)) {
	handle("POST "+at+"/files", sim.OpenAI, s.uploadFile)
	handle("GET "+at+"/files", sim.OpenAI, s.listFiles)
	handle("GET "+at+"/files/{id}", sim.OpenAI, s.showFile)
	handle("DELETE "+at+"/files/{id}", sim.OpenAI, s.deleteFile)
	handle("GET "+at+"/files/{id}/content", sim.OpenAI, s.fileContent)
	handle("POST "+at+"/batches", sim.OpenAI, s.createBatch)
	handle("GET "+at+"/batches", sim.OpenAI, s.listBatches)
	handle("GET "+at+"/batches/{id}", sim.OpenAI, s.one(openAI, s.show))
	handle("POST "+at+"/batches/{id}/cancel", sim.OpenAI, s.one(openAI, s.cancelBatch))
}

// Stats returns the counts so far.
func (s *batchStore) Stats() BatchStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

func (s *batchStore) count(add func(*BatchStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add(&s.stats)
}

// create keeps a new batch, unless too many were created within the hour. It returns the batch's
// object.
func (s *batchStore) create(b *batch, content []byte, r *http.Request) (any, *Error) {
	b.created, b.fault = time.Now(), s.host.Fault(content)
	if err := s.add(b); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.show(b, r, b.created)
}

func (s *batchStore) add(b *batch) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	recent := 0
	for _, other := range slices.Backward(s.order) {
		if b.created.Sub(other.created) > time.Hour {
			break
		}
		recent++
	}
	if recent >= s.cfg.PerHour || b.fault == sim.FaultBatch429 {
		e := tooMany(b.vendor.style(), &sim.Refusal{What: "requests", Limit: float64(s.cfg.PerHour), Used: float64(recent), Asked: 1, After: s.cfg.RetryAfter})
		e.Message = "Too many batches were created within an hour. Please try again later."
		return e
	}
	s.stats.Created++
	b.takes = s.cfg.Latency.Draw(uint64(s.stats.Created))
	s.order = append(s.order, b)
	return nil
}

// look finds a batch and locks it. It returns nil for a batch that vanished.
func (s *batchStore) look(v vendor, id string) *batch {
	for _, b := range s.newest(v) {
		if b.id == id && (b.fault != sim.FaultBatchVanishes || time.Now().Before(b.after(validatedAt))) {
			b.mu.Lock()
			return b
		}
	}
	return nil
}

// newest returns the batches of a vendor, the newest first.
func (s *batchStore) newest(v vendor) (out []*batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range slices.Backward(s.order) {
		if b.vendor == v {
			out = append(out, b)
		}
	}
	return out
}

// one is an endpoint that does something with one batch, which it has locked.
func (s *batchStore) one(v vendor, do func(b *batch, r *http.Request, now time.Time) (any, *Error)) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		id, _, _ := strings.Cut(r.PathValue("id"), ":") // Google and xAI write ID:cancel
		b := s.look(v, id)
		if b == nil {
			return noBatch(v, id)
		}
		defer b.mu.Unlock()
		v, err := do(b, r, time.Now())
		if err == nil {
			writeJSON(w, v)
		}
		return err
	}
}

func noBatch(v vendor, id string) *Error {
	if v == batchAnthropic {
		return notFound(v.style(), "", "Message batch not found.")
	}
	return notFound(v.style(), "", "No batch found with id '"+id+"'.")
}

// show returns the object of a batch.
func (s *batchStore) show(b *batch, r *http.Request, now time.Time) (any, *Error) {
	switch b.vendor {
	case batchAnthropic:
		return s.messageObject(b, now, r), nil
	case batchGemini:
		return s.geminiObject(b, now), nil
	case mistral:
		return s.mistralObject(b, now), nil
	case together:
		return s.togetherObject(b, now), nil
	case xai:
		return s.xaiObject(b, now), nil
	}
	return s.object(b, now), nil
}

// writeList answers with a page of objects.
func writeList[T any](w http.ResponseWriter, object string, page []T, more bool, id func(T) string) {
	l := batches.List[T]{Object: object, Data: page, HasMore: more}
	if n := len(page); n == 0 {
		l.Data = []T{}
	} else {
		first, last := id(page[0]), id(page[n-1])
		l.FirstID, l.LastID = &first, &last
	}
	writeJSON(w, l)
}

// pageAfter returns the first of all that come after the one with an ID, up to limit. An unknown
// ID comes before all.
func pageAfter[T any](all []T, after string, limit int, id func(T) string) (page []T, more bool) {
	if after != "" {
		all = all[slices.IndexFunc(all, func(v T) bool { return id(v) == after })+1:]
	}
	if len(all) > limit {
		return all[:limit], true
	}
	return all, false
}

func pageSize(r *http.Request, otherwise, limit int) (int, *Error) {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > limit {
		return 0, invalid("limit", "Invalid 'limit': expected an integer between 1 and %d.", limit)
	}
	return n, nil
}

func batchID(b *batch) string { return b.id }

// objects returns the objects of batches.
func objects[T any](page []*batch, object func(*batch) T) []T {
	out := make([]T, len(page))
	for i, b := range page {
		b.mu.Lock()
		out[i] = object(b)
		b.mu.Unlock()
	}
	return out
}
