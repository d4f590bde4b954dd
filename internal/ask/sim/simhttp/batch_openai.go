package simhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
	"parley/llm"
)

const openAIMaxRequests = 50_000

// createBatch answers POST /v1/batches.
func (s *batchStore) createBatch(w http.ResponseWriter, r *http.Request) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, 1<<20, sim.OpenAI); err != nil {
		return err
	}
	var req batches.Creation
	if err := decodeBody(buf.Bytes(), &req, s.lax); err != nil {
		return err
	}
	f := s.files.Find(req.InputFileID)
	switch {
	case req.InputFileID == "":
		return invalid("input_file_id", "Missing required parameter: 'input_file_id'.")
	case f == nil:
		return invalid("input_file_id", "No such File object: %s", req.InputFileID)
	case f.Purpose != "batch":
		return invalid("input_file_id", "Invalid file purpose '%s': expected 'batch'.", f.Purpose)
	case req.Endpoint != "/v1/chat/completions" && req.Endpoint != "/v1/responses":
		return invalid("endpoint", "Invalid value: '%s'. The simulation supports: '/v1/chat/completions' and '/v1/responses'.", req.Endpoint)
	case req.CompletionWindow != "24h":
		return invalid("completion_window", "Invalid value: '%s'. Supported values are: '24h'.", req.CompletionWindow)
	}
	if err := checkMetadata(req.Metadata); err != nil {
		return err
	}
	b := &batch{id: s.host.NewID("batch_"), vendor: openAI, endpoint: req.Endpoint, fileID: f.ID, metadata: req.Metadata}
	made, err := s.create(b, f.Content, r)
	if err == nil {
		writeJSON(w, made)
	}
	return err
}

func checkMetadata(m map[string]any) *Error {
	if len(m) > 16 {
		return invalid("metadata", "Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got %d.", len(m))
	}
	for k, v := range m {
		text, ok := v.(string)
		if !ok || len(k) > 64 || len(text) > 512 {
			return invalid("metadata", "Invalid 'metadata': keys have at most 64 characters, values are strings of at most 512.")
		}
	}
	return nil
}

// checkLines reads the requests and notes their faults.
func (s *batchStore) checkLines(b *batch, now time.Time) {
	content := b.inline
	if content == nil {
		f := s.files.Find(b.fileID)
		if f == nil {
			b.fail("file_not_found", 0, "The input file was deleted.")
			return
		}
		content = f.Content
	}
	seen, n, limit := map[string]bool{}, 0, s.maxRequests(openAIMaxRequests)
	for raw := range bytes.SplitSeq(content, []byte("\n")) {
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		if n++; n > limit {
			b.fail("too_many_requests", n, "The batch has more than %d requests.", limit)
			return
		}
		if len(b.faults) >= 100 {
			return
		}
		s.checkLine(b, raw, n, seen)
	}
	if n == 0 {
		b.fail("empty_file", 0, "The input file has no requests.")
	}
	if len(b.faults) == 0 {
		s.checkEnqueued(b, now)
	}
}

func (b *batch) fail(code string, line int, format string, args ...any) {
	e := batches.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
	if line > 0 {
		e.Line = &line
	}
	b.faults = append(b.faults, e)
}

func (s *batchStore) checkLine(b *batch, raw []byte, n int, seen map[string]bool) {
	l, ok := readLine(b, raw)
	var body struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(l.Body, &body) != nil {
		body.Model = ""
	}
	if b.vendor == batchGemini || b.vendor == mistral && body.Model == "" {
		body.Model = b.model // it is the batch's
	}
	switch {
	case !ok:
		b.fail("invalid_json_line", n, "This line is not parseable as valid JSON.")
	case l.CustomID == "":
		b.fail("missing_required_parameter", n, "Missing required parameter: 'custom_id'.")
	case seen[l.CustomID]:
		b.fail("duplicate_custom_id", n, "The custom_id '%s' for this request is a duplicate of another request. The custom_id parameter must be unique for each request in a batch.", l.CustomID)
	case l.Method != http.MethodPost:
		b.fail("invalid_method", n, "The method must be 'POST'.")
	case l.URL != b.endpoint:
		b.fail("mismatched_endpoint", n, "The URL provided for this request does not match the batch endpoint.")
	case body.Model == "":
		b.fail("missing_required_parameter", n, "Missing required parameter: 'body.model'.")
	case b.model != "" && b.model != body.Model:
		b.fail("mismatched_model", n, "The provided model '%s' differs from '%s': all requests of a batch must use the same model.", body.Model, b.model)
	}
	seen[l.CustomID] = true
	b.model = body.Model
	b.lines = append(b.lines, batches.MessageLine{CustomID: l.CustomID, Params: l.Body})
	if s.cfg.EnqueuedTokens > 0 {
		b.tokens += sim.CountTokens(string(l.Body))
	}
}

// readLine reads a line of an input file, as the vendor of the batch writes it.
func readLine(b *batch, raw []byte) (l batches.Line, ok bool) {
	if b.vendor == batchGemini {
		var g batches.GeminiLine
		ok = json.Unmarshal(raw, &g) == nil
		return batches.Line{CustomID: g.Key, Body: g.Request, Method: http.MethodPost, URL: b.endpoint}, ok
	}
	ok = json.Unmarshal(raw, &l) == nil
	if b.vendor == mistral || b.vendor == together { // which have neither
		l.Method, l.URL = http.MethodPost, b.endpoint
	}
	if b.vendor == xai && b.endpoint == "" { // the first line says it
		b.endpoint = l.URL
	}
	return l, ok
}

// checkEnqueued fails a batch if too many prompt tokens wait already.
func (s *batchStore) checkEnqueued(b *batch, now time.Time) {
	limit, used := s.cfg.EnqueuedTokens, 0
	if limit > 0 {
		for _, other := range s.newest(b.vendor) {
			if other == b || !other.mu.TryLock() { // a client looks at it: do not wait
				continue
			}
			if other.done == nil && other.checked && other.model == b.model && now.Before(other.after(1)) {
				used += other.tokens
			}
			other.mu.Unlock()
		}
	}
	if b.fault == sim.FaultBatchFails || limit > 0 && used+b.tokens > limit {
		b.fail("token_limit_exceeded", 0, "Enqueued token limit reached for %s in organization sim. Limit: %d enqueued tokens. Please try again once some in_progress batches have been completed.", b.model, limit)
	}
}

func (s *batchStore) listBatches(w http.ResponseWriter, r *http.Request) *Error {
	limit, err := pageSize(r, 20, 100)
	if err != nil {
		return err
	}
	page, more := pageAfter(s.newest(openAI), r.URL.Query().Get("after"), limit, batchID)
	list := objects(page, func(b *batch) batches.Batch { return s.object(b, time.Now()) })
	writeList(w, "list", list, more, func(o batches.Batch) string { return o.ID })
	return nil
}

func (s *batchStore) cancelBatch(b *batch, _ *http.Request, now time.Time) (any, *Error) {
	state := s.state(b, now)
	if b.done != nil {
		return nil, &Error{Status: http.StatusConflict, Type: "invalid_request_error", Message: "Cannot cancel a batch with status '" + state + "'."}
	}
	if state != batches.Cancelling {
		b.cancelled = now
	}
	return s.object(b, now), nil
}

func unix(t time.Time) *int64 {
	n := t.Unix()
	return &n
}

// object returns the object of a batch, which the caller has locked.
func (s *batchStore) object(b *batch, now time.Time) batches.Batch {
	o := batches.Batch{
		ID: b.id, Object: "batch", Endpoint: b.endpoint, InputFileID: b.fileID, CompletionWindow: "24h",
		Status: s.state(b, now), CreatedAt: b.created.Unix(), ExpiresAt: b.created.Add(24 * time.Hour).Unix(), Metadata: b.metadata,
	}
	o.Model = b.model
	if len(b.faults) > 0 {
		o.Errors = &batches.Faults{Object: "list", Data: b.faults}
	}
	if o.Status != batches.Validating && o.Status != batches.Failed {
		o.InProgressAt = unix(b.after(validatedAt))
		o.RequestCounts = batches.Counts{Total: len(b.lines), Completed: b.progress(now)}
	}
	if o.Status == batches.Finalizing || o.Status == batches.Completed || o.Status == batches.Expired {
		o.FinalizingAt = unix(b.after(finalizedAt))
	}
	if !b.cancelled.IsZero() {
		o.CancellingAt = unix(b.cancelled)
		o.RequestCounts.Completed = b.progress(b.cancelled)
	}
	if b.done != nil {
		addResults(&o, b.done)
	}
	return o
}

// addResults adds the results of a batch that has ended.
func addResults(o *batches.Batch, res *results) {
	at := unix(res.at)
	switch res.state {
	case batches.Failed:
		o.FailedAt = at
		return
	case batches.Expired:
		o.ExpiredAt = at
	case batches.Cancelled:
		o.CancelledAt = at
	default:
		o.CompletedAt = at
	}
	if res.outputID != "" {
		o.OutputFileID = &res.outputID
	}
	if res.errorID != "" {
		o.ErrorFileID = &res.errorID
	}
	n := res.counts
	o.RequestCounts = batches.Counts{Total: n.Total(), Completed: n.Succeeded, Failed: n.Errored + n.Expired}
	o.Usage = usageOf(res.usage)
}

func usageOf(u llm.Usage) *batches.Usage {
	out := &batches.Usage{InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Input + u.Output}
	out.InputTokensDetails.CachedTokens = u.Cached
	out.OutputTokensDetails.ReasoningTokens = u.Reasoning
	return out
}
