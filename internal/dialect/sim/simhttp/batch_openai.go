package simhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
)

const (
	openaiBatchRequests = 50_000

	chatURL      = "/v1/chat/completions"
	responsesURL = "/v1/responses"
)

type batchRequest struct {
	InputFileID        string            `json:"input_file_id"`
	Endpoint           string            `json:"endpoint"`
	CompletionWindow   string            `json:"completion_window"`
	Metadata           map[string]string `json:"metadata"`
	OutputExpiresAfter json.RawMessage   `json:"output_expires_after"`
}

// createBatch answers POST /v1/batches.
func (s *Server) createBatch(w http.ResponseWriter, r *http.Request) *check.Error {
	var buf bytes.Buffer
	if err := s.body(w, r, &buf, 1<<20, quota.OpenAI); err != nil {
		return err
	}
	var req batchRequest
	if p := check.Decode(buf.Bytes(), &req, s.cfg.Lax); p != nil {
		return check.Invalid(p.Field+p.Unknown, "Invalid request: %s%s%s", p.Syntax, p.Field, p.Unknown)
	}
	f := s.files.find(req.InputFileID)
	switch {
	case req.InputFileID == "":
		return check.Invalid("input_file_id", "Missing required parameter: 'input_file_id'.")
	case f == nil:
		return check.Invalid("input_file_id", "No such File object: %s", req.InputFileID)
	case f.Purpose != "batch":
		return check.Invalid("input_file_id", "Invalid file purpose '%s': expected 'batch'.", f.Purpose)
	case req.Endpoint != chatURL && req.Endpoint != responsesURL:
		return check.Invalid("endpoint", "Invalid value: '%s'. The simulation supports: '/v1/chat/completions' and '/v1/responses'.", req.Endpoint)
	case req.CompletionWindow != "24h":
		return check.Invalid("completion_window", "Invalid value: '%s'. Supported values are: '24h'.", req.CompletionWindow)
	}
	if err := checkMetadata(req.Metadata); err != nil {
		return err
	}
	b := &batch{id: s.newID("batch_"), style: quota.OpenAI, endpoint: req.Endpoint, fileID: f.ID, metadata: req.Metadata}
	if err := s.create(b, f.content); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	writeJSON(w, s.batchObject(b, b.created))
	return nil
}

func checkMetadata(m map[string]string) *check.Error {
	if len(m) > 16 {
		return check.Invalid("metadata", "Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got %d.", len(m))
	}
	for k, v := range m {
		if len(k) > 64 || len(v) > 512 {
			return check.Invalid("metadata", "Invalid 'metadata': keys have at most 64 characters, values at most 512.")
		}
	}
	return nil
}

// checkLines reads the input file and notes what is wrong with it.
func (s *Server) checkLines(b *batch, now time.Time) {
	f := s.files.find(b.fileID)
	if f == nil {
		b.fail("file_not_found", 0, "The input file was deleted.")
		return
	}
	seen := map[string]bool{}
	most := s.cfg.Batch.MaxRequests
	orDefault(&most, openaiBatchRequests)
	n := 0
	for raw := range bytes.SplitSeq(f.content, []byte("\n")) {
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		n++
		if n > most {
			b.fail("too_many_requests", n, fmt.Sprintf("The batch has more than %d requests.", most))
			return
		}
		if len(b.errors) >= 100 {
			return
		}
		s.checkLine(b, raw, n, seen)
	}
	if n == 0 {
		b.fail("empty_file", 0, "The input file has no requests.")
	}
	if len(b.errors) == 0 {
		s.checkEnqueued(b, now)
	}
}

func (b *batch) fail(code string, lineNumber int, message string) {
	e := batchError{Code: code, Message: message}
	if lineNumber > 0 {
		e.Line = &lineNumber
	}
	b.errors = append(b.errors, e)
}

func (s *Server) checkLine(b *batch, raw []byte, n int, seen map[string]bool) {
	var l struct {
		CustomID string          `json:"custom_id"`
		Method   string          `json:"method"`
		URL      string          `json:"url"`
		Body     json.RawMessage `json:"body"`
	}
	var body struct {
		Model string `json:"model"`
	}
	switch {
	case json.Unmarshal(raw, &l) != nil:
		b.fail("invalid_json_line", n, "This line is not parseable as valid JSON.")
	case l.CustomID == "":
		b.fail("missing_required_parameter", n, "Missing required parameter: 'custom_id'.")
	case seen[l.CustomID]:
		b.fail("duplicate_custom_id", n, "The custom_id '"+l.CustomID+"' for this request is a duplicate of another request. The custom_id parameter must be unique for each request in a batch.")
	case l.Method != http.MethodPost:
		b.fail("invalid_method", n, "The method must be 'POST'.")
	case l.URL != b.endpoint:
		b.fail("mismatched_endpoint", n, "The URL provided for this request does not match the batch endpoint.")
	case json.Unmarshal(l.Body, &body) != nil || body.Model == "":
		b.fail("missing_required_parameter", n, "Missing required parameter: 'body.model'.")
	case b.model != "" && b.model != body.Model:
		b.fail("mismatched_model", n, "The provided model '"+body.Model+"' differs from '"+b.model+"': all requests of a batch must use the same model.")
	}
	seen[l.CustomID] = true
	b.model = body.Model
	b.lines = append(b.lines, line{customID: l.CustomID, body: l.Body})
	if s.cfg.Batch.EnqueuedTokens > 0 {
		b.tokens += sim.CountTokens(string(l.Body))
	}
}

// checkEnqueued fails a batch for which too many prompt tokens wait already.
func (s *Server) checkEnqueued(b *batch, now time.Time) {
	limit, used := s.cfg.Batch.EnqueuedTokens, 0
	if limit > 0 {
		for _, other := range s.batches.newest(quota.OpenAI) {
			if other == b || !other.mu.TryLock() { // one that is being looked at is not waited for
				continue
			}
			if other.done == nil && other.checked && other.model == b.model && now.Before(other.after(1)) {
				used += other.tokens
			}
			other.mu.Unlock()
		}
	}
	if b.fault == sim.FaultBatchFails || limit > 0 && used+b.tokens > limit {
		b.fail("token_limit_exceeded", 0, fmt.Sprintf("Enqueued token limit reached for %s in organization sim. Limit: %d enqueued tokens. Please try again once some in_progress batches have been completed.", b.model, limit))
	}
}

// lineFormat is the format of a batch's requests.
func (s *Server) lineFormat(b *batch) *format {
	switch {
	case b.style == quota.Anthropic:
		return &s.formats.batched
	case b.endpoint == responsesURL:
		return &s.formats.responses
	default:
		return &s.formats.chat
	}
}

func (s *Server) listBatches(w http.ResponseWriter, r *http.Request) *check.Error {
	limit, err := pageSize(r.URL.Query().Get("limit"), 20, 100)
	if err != nil {
		return err
	}
	page, more := pageAfter(s.batches.newest(quota.OpenAI), r.URL.Query().Get("after"), limit, func(b *batch) string { return b.id })
	objects := make([]batchObject, 0, len(page))
	for _, b := range page {
		b.mu.Lock()
		objects = append(objects, s.batchObject(b, time.Now()))
		b.mu.Unlock()
	}
	s.stats.ok.Add(1)
	writeJSON(w, listOf(objects, more, func(o batchObject) string { return o.ID }))
	return nil
}

func (s *Server) showBatch(w http.ResponseWriter, r *http.Request) *check.Error {
	b := s.look(quota.OpenAI, r.PathValue("id"))
	if b == nil {
		return noBatch(r.PathValue("id"))
	}
	defer b.mu.Unlock()
	s.stats.ok.Add(1)
	writeJSON(w, s.batchObject(b, time.Now()))
	return nil
}

func noBatch(id string) *check.Error {
	return &check.Error{Status: http.StatusNotFound, Type: "invalid_request_error", Message: "No batch found with id '" + id + "'."}
}

func (s *Server) cancelBatch(w http.ResponseWriter, r *http.Request) *check.Error {
	b := s.look(quota.OpenAI, r.PathValue("id"))
	if b == nil {
		return noBatch(r.PathValue("id"))
	}
	defer b.mu.Unlock()
	now := time.Now()
	switch state := b.state(s, now); state {
	case stateCompleted, stateFailed, stateExpired, stateCancelled:
		return &check.Error{Status: http.StatusConflict, Type: "invalid_request_error", Message: "Cannot cancel a batch with status '" + state + "'."}
	case stateCancelling:
	default:
		b.cancelled = now
	}
	s.stats.ok.Add(1)
	writeJSON(w, s.batchObject(b, now))
	return nil
}
