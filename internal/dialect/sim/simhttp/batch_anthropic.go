package simhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/body"
)

const (
	anthropicBatchRequests = 100_000
	anthropicBatchBytes    = 256 << 20
)

// createMessageBatch answers POST /v1/messages/batches. The params are checked when
// their turn comes, as the vendor does.
func (s *Server) createMessageBatch(w http.ResponseWriter, r *http.Request) *check.Error {
	limit := s.cfg.Batch.MaxBytes
	orDefault(&limit, anthropicBatchBytes)
	var buf bytes.Buffer
	if err := s.body(w, r, &buf, limit, quota.Anthropic); err != nil {
		return err
	}
	var req struct {
		Requests []struct {
			CustomID string          `json:"custom_id"`
			Params   json.RawMessage `json:"params"`
		} `json:"requests"`
	}
	if p := check.Decode(buf.Bytes(), &req, s.cfg.Lax); p != nil {
		return check.Invalid("", "requests: invalid input: %s%s%s", p.Syntax, p.Field, p.Unknown)
	}
	most := s.cfg.Batch.MaxRequests
	orDefault(&most, anthropicBatchRequests)
	switch n := len(req.Requests); {
	case n == 0:
		return check.Invalid("", "requests: List should have at least 1 item after validation")
	case n > most:
		return &check.Error{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "requests: too many requests in the batch"}
	}
	b := &batch{id: s.newID("msgbatch_"), style: quota.Anthropic}
	seen := make(map[string]bool, len(req.Requests))
	for i, q := range req.Requests {
		switch {
		case q.CustomID == "" || len(q.CustomID) > 64:
			return check.Invalid("", "requests.%d.custom_id: String should have at least 1 and at most 64 characters", i)
		case body.IsNull(q.Params):
			return check.Invalid("", "requests.%d.params: Field required", i)
		case seen[q.CustomID]:
			return check.Invalid("", "requests: custom_id must be unique within the batch: %s", q.CustomID)
		}
		seen[q.CustomID] = true
		b.lines = append(b.lines, line{customID: q.CustomID, body: q.Params})
	}
	if err := s.create(b, buf.Bytes()); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	writeJSON(w, s.messageBatch(b, b.created, r))
	return nil
}

// messageBatch is a batch as Anthropic shows it.
type messageBatch struct {
	ID                string        `json:"id"`
	Type              string        `json:"type"`
	ProcessingStatus  string        `json:"processing_status"`
	RequestCounts     messageCounts `json:"request_counts"`
	CreatedAt         string        `json:"created_at"`
	ExpiresAt         string        `json:"expires_at"`
	EndedAt           *string       `json:"ended_at"`
	CancelInitiatedAt *string       `json:"cancel_initiated_at"`
	ArchivedAt        *string       `json:"archived_at"`
	ResultsURL        *string       `json:"results_url"`
}

type messageCounts struct {
	Processing int `json:"processing"`
	Succeeded  int `json:"succeeded"`
	Errored    int `json:"errored"`
	Canceled   int `json:"canceled"`
	Expired    int `json:"expired"`
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// messageBatch shows b, which the caller has locked. Its counts move only when all
// of it has ended, as the vendor has it.
func (s *Server) messageBatch(b *batch, now time.Time, r *http.Request) messageBatch {
	o := messageBatch{
		ID: b.id, Type: "message_batch", ProcessingStatus: "in_progress",
		CreatedAt: rfc3339(b.created), ExpiresAt: rfc3339(b.created.Add(24 * time.Hour)),
	}
	if b.state(s, now) == stateCancelling {
		o.ProcessingStatus = "canceling"
	}
	if !b.cancelled.IsZero() {
		at := rfc3339(b.cancelled)
		o.CancelInitiatedAt = &at
	}
	o.RequestCounts.Processing = len(b.lines)
	if res := b.done; res != nil {
		o.ProcessingStatus = "ended"
		o.RequestCounts = messageCounts{Succeeded: res.succeeded, Errored: res.errored, Canceled: res.cancelled, Expired: res.expired}
		at, url := rfc3339(res.at), resultsURL(r, b.id)
		o.EndedAt, o.ResultsURL = &at, &url
	}
	return o
}

func resultsURL(r *http.Request, id string) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/v1/messages/batches/" + id + "/results"
}

func noMessageBatch() *check.Error {
	return &check.Error{Status: http.StatusNotFound, Type: "not_found_error", Message: "Message batch not found."}
}

func (s *Server) showMessageBatch(w http.ResponseWriter, r *http.Request) *check.Error {
	b := s.look(quota.Anthropic, r.PathValue("id"))
	if b == nil {
		return noMessageBatch()
	}
	defer b.mu.Unlock()
	s.stats.ok.Add(1)
	writeJSON(w, s.messageBatch(b, time.Now(), r))
	return nil
}

func (s *Server) listMessageBatches(w http.ResponseWriter, r *http.Request) *check.Error {
	q := r.URL.Query()
	limit, err := pageSize(q.Get("limit"), 20, 1000)
	if err != nil {
		return err
	}
	all := s.batches.newest(quota.Anthropic)
	id := func(b *batch) string { return b.id }
	var page []*batch
	var more bool
	if before := q.Get("before_id"); before != "" {
		slices.Reverse(all)
		page, more = pageAfter(all, before, limit, id)
		page = slices.Clone(page)
		slices.Reverse(page)
	} else {
		page, more = pageAfter(all, q.Get("after_id"), limit, id)
	}
	objects := make([]messageBatch, 0, len(page))
	for _, b := range page {
		b.mu.Lock()
		objects = append(objects, s.messageBatch(b, time.Now(), r))
		b.mu.Unlock()
	}
	l := listOf(objects, more, func(o messageBatch) string { return o.ID })
	l.Object = ""
	s.stats.ok.Add(1)
	writeJSON(w, l)
	return nil
}

func (s *Server) cancelMessageBatch(w http.ResponseWriter, r *http.Request) *check.Error {
	b := s.look(quota.Anthropic, r.PathValue("id"))
	if b == nil {
		return noMessageBatch()
	}
	defer b.mu.Unlock()
	now := time.Now()
	b.state(s, now)
	if b.done != nil {
		return check.Invalid("", "Message batch %s has ended and cannot be canceled.", b.id)
	}
	if b.cancelled.IsZero() {
		b.cancelled = now
	}
	s.stats.ok.Add(1)
	writeJSON(w, s.messageBatch(b, now, r))
	return nil
}

func (s *Server) deleteMessageBatch(w http.ResponseWriter, r *http.Request) *check.Error {
	b := s.look(quota.Anthropic, r.PathValue("id"))
	if b == nil {
		return noMessageBatch()
	}
	defer b.mu.Unlock()
	if b.state(s, time.Now()); b.done == nil {
		return check.Invalid("", "Message batch %s is still being processed: cancel it before deleting it.", b.id)
	}
	s.batches.remove(b)
	s.stats.ok.Add(1)
	writeJSON(w, map[string]string{"id": b.id, "type": "message_batch_deleted"})
	return nil
}

func (s *Server) messageBatchResults(w http.ResponseWriter, r *http.Request) *check.Error {
	b := s.look(quota.Anthropic, r.PathValue("id"))
	if b == nil {
		return noMessageBatch()
	}
	b.state(s, time.Now())
	res := b.done
	b.mu.Unlock()
	if res == nil {
		return check.Invalid("", "Message batch results are not available until the batch has ended.")
	}
	s.stats.ok.Add(1)
	writeBody(w, http.StatusOK, "application/x-jsonl", res.content)
	return nil
}
