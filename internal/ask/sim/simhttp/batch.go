package simhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
)

// BatchConfig is the behavior of batches.
type BatchConfig struct {
	// Latency is how long a batch takes. Default: 2 s
	Latency sim.Delay
	// MaxRequests is the maximum number of requests in a batch. Default: 50,000, and 100,000 in
	// Anthropic's format
	MaxRequests int
	// RetryAfter is when a batch that is refused with 429 may be created again. Default: 1 min
	RetryAfter time.Duration
}

// maxBatch is the maximum size of a file, and of a batch whose requests are in it.
const maxBatch = 256 << 20

// BatchStats counts batches, and the requests in them.
type BatchStats struct {
	Created   int64 `json:"created"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Expired   int64 `json:"expired"`
	Cancelled int64 `json:"cancelled"`
	Requests  int64 `json:"requests"`
}

// batchStore simulates the vendors' batch APIs: OpenAI's files and batches, which are Azure's too, Anthropic's message
// batches, and Gemini's. It keeps files and batches in memory. Nothing runs in the background: a batch is worked out when a
// client looks at it.
type batchStore struct {
	cfg    BatchConfig
	server *Server

	mu    sync.Mutex
	files map[string]*storedFile
	order []*batch // by creation
}

// storedFile is an uploaded file, or the output of a batch.
type storedFile struct {
	batches.File
	content []byte
}

func newBatchStore(cfg BatchConfig, s *Server) *batchStore {
	orDefault(&cfg.RetryAfter, time.Minute)
	if cfg.Latency.IsZero() {
		cfg.Latency = sim.Fixed(2 * time.Second)
	}
	return &batchStore{cfg: cfg, server: s, files: map[string]*storedFile{}}
}

// Routes adds the endpoints of files and batches.
func (s *batchStore) Routes(handle func(pattern string, style sim.Style, e Func)) {
	for _, at := range []string{"/v1", "/openai/v1"} { // the second is Azure's
		handle("POST "+at+"/files", sim.OpenAI, s.uploadFile)
		handle("GET "+at+"/files/{id}", sim.OpenAI, s.showFile)
		handle("GET "+at+"/files/{id}/content", sim.OpenAI, s.showFile)
		handle("POST "+at+"/batches", sim.OpenAI, s.createBatch)
		handle("GET "+at+"/batches", sim.OpenAI, s.list(sim.OpenAI))
		handle("GET "+at+"/batches/{id}", sim.OpenAI, s.one(sim.OpenAI, nil))
		handle("POST "+at+"/batches/{id}/cancel", sim.OpenAI, s.one(sim.OpenAI, s.cancel))
	}
	handle("POST /v1/messages/batches", sim.Anthropic, s.createMessageBatch)
	handle("GET /v1/messages/batches", sim.Anthropic, s.list(sim.Anthropic))
	handle("GET /v1/messages/batches/{id}", sim.Anthropic, s.one(sim.Anthropic, nil))
	handle("POST /v1/messages/batches/{id}/cancel", sim.Anthropic, s.one(sim.Anthropic, s.cancel))
	handle("GET /v1/messages/batches/{id}/results", sim.Anthropic, s.messageBatchResults)
	handle("POST /upload/v1beta/files", sim.Google, s.uploadGemini)
	handle("GET /download/v1beta/files/{id}", sim.Google, s.geminiFile)
	handle("GET /v1beta/files/{id}", sim.Google, s.geminiFile) // Google's SDKs download here
	handle("DELETE /v1beta/files/{id}", sim.Google, s.deleteGemini)
	handle("GET /v1beta/batches", sim.Google, s.list(sim.Google))
	handle("GET /v1beta/batches/{id}", sim.Google, s.one(sim.Google, nil))
	handle("POST /v1beta/batches/{id}", sim.Google, s.one(sim.Google, s.cancel))
}

// batch is a batch of any vendor. Its age says which state it is in.
type batch struct {
	id       string
	style    sim.Style
	azure    bool
	name     string // given by the client
	endpoint string
	model    string
	fileID   string
	metadata map[string]any
	created  time.Time
	takes    time.Duration
	fault    sim.Fault

	mu        sync.Mutex
	lines     []batches.MessageLine
	faults    []batches.Fault // why it failed
	checked   bool            // its lines were checked
	cancelled time.Time       // when it was canceled
	done      *results        // once it has ended
}

// results are the results of a batch that has ended.
type results struct {
	state             string
	at                time.Time
	outputID, errorID string
	content           []byte // Anthropic's
	counts            batches.MessageCounts
}

// Shares of a batch's time after which its requests are checked, and which a cancellation takes.
const (
	validatedAt = 0.1
	cancelTakes = 0.05
)

func (b *batch) after(share float64) time.Time {
	return b.created.Add(time.Duration(share * float64(b.takes)))
}

// progress returns how many requests the batch has answered at a time.
func (b *batch) progress(now time.Time) int {
	from, to := b.after(validatedAt), b.after(1)
	if !now.After(from) {
		return 0
	}
	return min(len(b.lines), int(float64(len(b.lines))*float64(now.Sub(from))/float64(to.Sub(from))))
}

// state returns the state of the batch, and does the work that is due. The caller has locked b.
func (s *batchStore) state(b *batch, now time.Time) string {
	if b.done == nil && now.Before(b.after(validatedAt)) && b.cancelled.IsZero() {
		return batches.Validating
	}
	if !b.checked {
		b.checked = true
		s.checkLines(b)
	}
	end := b.cancelled.Add(time.Duration(cancelTakes * float64(b.takes)))
	switch {
	case b.done != nil:
	case len(b.faults) > 0:
		b.done = &results{state: batches.Failed, at: b.after(validatedAt)}
		s.count(func(n *BatchStats) { n.Failed++ })
	case !b.cancelled.IsZero() && now.Before(end):
		return batches.Cancelling
	case !b.cancelled.IsZero():
		s.finish(b, b.progress(b.cancelled), batches.Cancelled, end)
	case now.Before(b.after(1)):
		return batches.InProgress
	default:
		s.finish(b, len(b.lines), batches.Completed, b.after(1))
	}
	return b.done.state
}

// checkLines reads the requests of a batch that are in a file, and notes their faults.
func (s *batchStore) checkLines(b *batch) {
	if b.style == sim.Anthropic {
		return
	}
	f := s.file(b.fileID)
	if f == nil {
		b.fail("file_not_found", 0, "The input file was deleted.")
		return
	}
	seen, limit := map[string]bool{}, s.cfg.MaxRequests
	orDefault(&limit, 50_000)
	for raw := range bytes.Lines(f.content) {
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		if n := len(b.lines) + 1; n > limit || len(b.faults) >= 100 {
			b.fail("too_many_requests", n, "The batch has more than %d requests.", limit)
			return
		}
		s.checkLine(b, raw, seen)
	}
	switch {
	case len(b.lines) == 0:
		b.fail("empty_file", 0, "The input file has no requests.")
	case b.fault == sim.FaultBatchFails:
		b.fail("token_limit_exceeded", 0, "Enqueued token limit reached. Please try again once some batches have been completed.")
	}
}

func (b *batch) fail(code string, line int, format string, args ...any) {
	e := batches.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
	if line > 0 {
		e.Line = &line
	}
	b.faults = append(b.faults, e)
}

func (s *batchStore) checkLine(b *batch, raw []byte, seen map[string]bool) {
	var l struct {
		batches.Line
		batches.GeminiLine
	}
	ok := json.Unmarshal(raw, &l) == nil
	if b.style == sim.Google {
		l.Line = batches.Line{CustomID: l.Key, Body: l.Request, Method: http.MethodPost, URL: b.endpoint}
	}
	n := len(b.lines) + 1
	switch {
	case !ok:
		b.fail("invalid_json_line", n, "This line is not valid JSON.")
	case l.CustomID == "" || seen[l.CustomID]:
		b.fail("duplicate_custom_id", n, "The custom_id of this line is missing, or that of another line.")
	case l.Method != http.MethodPost || l.URL != b.endpoint:
		b.fail("mismatched_endpoint", n, "The method or URL of this line is not that of the batch.")
	}
	seen[l.CustomID] = true
	b.lines = append(b.lines, batches.MessageLine{CustomID: l.CustomID, Params: l.Body})
}

// finish answers some of the requests, in random order, and gives up the rest.
func (s *batchStore) finish(b *batch, answered int, state string, at time.Time) {
	res := &results{state: state, at: at}
	var out, bad []byte
	order := rand.New(rand.NewPCG(s.server.cfg.Sim.Seed, uint64(len(b.lines)))).Perm(len(b.lines))
	for rank, i := range order {
		l := &b.lines[i]
		if rank >= answered {
			res.counts.Canceled++
			bad = append(bad, s.lost(b, l, "canceled")...)
			continue
		}
		answer, fault, err := s.server.answerLine(b, l.Params)
		switch {
		case fault == sim.FaultLineExpired:
			res.counts.Expired++
			bad = append(bad, s.lost(b, l, "expired")...)
			continue
		case err != nil:
			res.counts.Errored++
			bad = append(bad, s.failed(b, l, err)...)
			continue
		}
		res.counts.Succeeded++
		line := s.succeeded(b, l, answer)
		if fault != sim.FaultLineMissing {
			out = append(out, line...)
		}
		if fault == sim.FaultLineDuplicate {
			out = append(out, line...)
		}
	}
	if res.counts.Expired > 0 && state == batches.Completed {
		res.state = batches.Expired
	}
	switch b.style {
	case sim.Anthropic:
		res.content = append(out, bad...)
	case sim.Google:
		res.outputID = s.keepOutput(append(out, bad...))
	default:
		res.outputID, res.errorID = s.keepOutput(out), s.keepOutput(bad)
	}
	b.done, b.lines = res, nil
	s.count(func(n *BatchStats) {
		n.Requests += int64(res.counts.Succeeded)
		switch res.state {
		case batches.Expired:
			n.Expired++
		case batches.Cancelled:
			n.Cancelled++
		default:
			n.Completed++
		}
	})
}

// answerLine answers a request in a batch as the live endpoint would, without limits.
func (s *Server) answerLine(b *batch, body []byte) ([]byte, sim.Fault, *Error) {
	f := &s.formats.chat
	switch {
	case b.style == sim.Anthropic:
		f = &s.formats.messages
	case b.style == sim.Google:
		f = &s.formats.gemini
	case strings.HasSuffix(b.endpoint, "/responses"):
		f = &s.formats.responses
	}
	ask, err := f.decode(body)
	if err == nil && ask.Stream {
		err = invalid("stream", "stream: a request in a batch cannot be streamed")
	}
	if err != nil {
		return nil, "", err
	}
	if b.style == sim.Google {
		ask.Request.Model = b.model
	}
	c, bad := s.brain.Open(&ask.Request)
	if bad != nil {
		return nil, "", invalid("", "Invalid schema: %s", bad)
	}
	fault := s.brain.LineFault(&c)
	s.stats.fault(fault)
	switch fault {
	case sim.FaultLineExpired:
		return nil, fault, nil
	case sim.FaultLineErrored:
		return nil, fault, serverError(f.style)
	}
	x := s.exchange(ask, &c, b.after(1))
	x.Batch = true
	x.Usage = c.Usage(x.Answer, sim.Reading{})
	s.stats.tokens(x.Usage)
	return f.whole(nil, x), fault, nil
}

func (s *batchStore) count(add func(*BatchStats)) {
	s.server.stats.count(func(n *Stats) { add(&n.Batches) })
}

// keep keeps a file and returns it.
func (s *batchStore) keep(name, purpose string, content []byte) *storedFile {
	f := &storedFile{batches.File{
		ID: s.server.NewID("file-"), Object: "file", Bytes: len(content), CreatedAt: time.Now().Unix(), Filename: name, Purpose: purpose, Status: "processed",
	}, content}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.ID] = f
	return f
}

// keepOutput keeps a file of results, and returns its ID.
func (s *batchStore) keepOutput(content []byte) string {
	if len(content) == 0 {
		return ""
	}
	return s.keep("output.jsonl", "batch_output", content).ID
}

// file returns a file, or nil.
func (s *batchStore) file(id string) *storedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[id]
}

// create keeps a new batch, and answers with its object.
func (s *batchStore) create(w http.ResponseWriter, r *http.Request, b *batch, content []byte) *Error {
	b.created, b.fault = time.Now(), s.server.brain.BatchFault(content)
	s.server.stats.fault(b.fault)
	if b.fault == sim.FaultBatch429 {
		return tooMany(b.style, &sim.Refusal{What: "requests", Asked: 1, After: s.cfg.RetryAfter})
	}
	s.count(func(n *BatchStats) {
		n.Created++
		b.takes = s.cfg.Latency.Draw(uint64(n.Created))
	})
	s.mu.Lock()
	s.order = append(s.order, b)
	s.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	writeJSON(w, s.object(b, r, b.created))
	return nil
}

// look finds a batch and locks it. It returns nil for a batch that vanished.
func (s *batchStore) look(style sim.Style, id string) *batch {
	for _, b := range s.newest(style) {
		if b.id == id && (b.fault != sim.FaultBatchVanishes || time.Now().Before(b.after(validatedAt))) {
			b.mu.Lock()
			return b
		}
	}
	return nil
}

// newest returns the batches of a format, the newest first.
func (s *batchStore) newest(style sim.Style) (out []*batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range slices.Backward(s.order) {
		if b.style == style {
			out = append(out, b)
		}
	}
	return out
}

// one is an endpoint that does something with one batch, which it has locked, and shows it.
func (s *batchStore) one(style sim.Style, do func(b *batch, now time.Time) *Error) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		id, _, _ := strings.Cut(r.PathValue("id"), ":") // Google writes ID:cancel
		b := s.look(style, id)
		if b == nil {
			return notFound(style, "", "No batch found with id '"+id+"'.")
		}
		defer b.mu.Unlock()
		now := time.Now()
		if do != nil {
			if err := do(b, now); err != nil {
				return err
			}
		}
		writeJSON(w, s.object(b, r, now))
		return nil
	}
}

// cancel cancels a batch that has not ended.
func (s *batchStore) cancel(b *batch, now time.Time) *Error {
	if s.state(b, now); b.done != nil {
		return invalid("", "Batch %s has ended and cannot be cancelled.", b.id)
	}
	if b.cancelled.IsZero() {
		b.cancelled = now
	}
	return nil
}

// object returns the object of a batch, which the caller has locked.
func (s *batchStore) object(b *batch, r *http.Request, now time.Time) any {
	switch b.style {
	case sim.Anthropic:
		return s.messageObject(b, r, now)
	case sim.Google:
		return s.geminiObject(b, now)
	}
	return s.openAIObject(b, now)
}

// list is an endpoint that answers with a page of batches, the newest first.
func (s *batchStore) list(style sim.Style) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		q, limit := r.URL.Query(), 100
		if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
			limit = min(n, limit)
		}
		all := s.newest(style)
		if after := q.Get("after") + q.Get("after_id") + q.Get("pageToken"); after != "" {
			i := slices.IndexFunc(all, func(b *batch) bool { return b.id == after })
			if i < 0 { // the first page again would be read for ever
				return invalid("after", "No batch found with id '%s'.", after)
			}
			all = all[i+1:]
		}
		page := all[:min(limit, len(all))]
		list, ids := make([]any, len(page)), make([]string, len(page)+1)
		for i, b := range page {
			b.mu.Lock()
			list[i], ids[i] = s.object(b, r, time.Now()), b.id
			b.mu.Unlock()
		}
		more, last := len(all) > len(page), ids[max(0, len(page)-1)]
		switch {
		case style != sim.Google:
			writeJSON(w, batches.List[any]{Object: "list", Data: list, FirstID: &ids[0], LastID: &last, HasMore: more})
		case more:
			writeJSON(w, map[string]any{"operations": list, "nextPageToken": last})
		default:
			writeJSON(w, map[string]any{"operations": list})
		}
		return nil
	}
}

// succeeded returns the line of a request that was answered.
func (s *batchStore) succeeded(b *batch, l *batches.MessageLine, answer []byte) []byte {
	switch b.style {
	case sim.Anthropic:
		return line(batches.MessageResult{CustomID: l.CustomID, Result: batches.MessageOutcome{Type: "succeeded", Message: answer}})
	case sim.Google:
		return line(batches.GeminiResult{Key: l.CustomID, Response: answer})
	}
	return s.result(l, &batches.Response{StatusCode: http.StatusOK, Body: answer}, nil)
}

// failed returns the line of a request that was answered with an error.
func (s *batchStore) failed(b *batch, l *batches.MessageLine, e *Error) []byte {
	said := e.Append(nil, b.style, s.server.NewID("req_"))
	switch b.style {
	case sim.Anthropic:
		return line(batches.MessageResult{CustomID: l.CustomID, Result: batches.MessageOutcome{Type: "errored", Error: said}})
	case sim.Google:
		code := 13 // INTERNAL
		if e.Status < http.StatusInternalServerError {
			code = 3 // INVALID_ARGUMENT
		}
		return line(batches.GeminiResult{Key: l.CustomID, Error: line(map[string]any{"code": code, "message": e.Message})})
	}
	return s.result(l, &batches.Response{StatusCode: e.Status, Body: said}, nil)
}

// lost returns the line of a request that was not reached: the batch expired or was canceled. Gemini leaves it out.
func (s *batchStore) lost(b *batch, l *batches.MessageLine, why string) []byte {
	switch {
	case b.style == sim.Anthropic:
		return line(batches.MessageResult{CustomID: l.CustomID, Result: batches.MessageOutcome{Type: why}})
	case b.style == sim.Google:
		return nil
	case why == "expired":
		return s.result(l, nil, &batches.ResultError{Code: "batch_expired", Message: "The completion window expired."})
	}
	return s.result(l, nil, &batches.ResultError{Code: "batch_cancelled", Message: "The batch was cancelled."})
}

// result returns a line of OpenAI's output or error file.
func (s *batchStore) result(l *batches.MessageLine, r *batches.Response, e *batches.ResultError) []byte {
	if r != nil {
		r.RequestID = s.server.NewID("req_")
	}
	return line(batches.Result{ID: s.server.NewID("batch_req_"), CustomID: l.CustomID, Response: r, Error: e})
}

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // an answer is always JSON
		return nil
	}
	return append(b, '\n')
}
