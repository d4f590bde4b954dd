package simhttp

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/body"
)

const (
	anthropicMaxRequests = 100_000
	anthropicMaxBytes    = 256 << 20
)

// createMessageBatch answers POST /v1/messages/batches. Like the vendor, it does not check the
// params of the requests.
func (s *batchStore) createMessageBatch(w http.ResponseWriter, r *http.Request) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, s.maxBytes(anthropicMaxBytes), sim.Anthropic); err != nil {
		return err
	}
	var req batches.MessageCreation
	if err := decodeBody(buf.Bytes(), &req, s.lax); err != nil {
		return err
	}
	switch n := len(req.Requests); {
	case n == 0:
		return invalid("", "requests: List should have at least 1 item after validation")
	case n > s.maxRequests(anthropicMaxRequests):
		return tooLarge(sim.Anthropic, "requests: too many requests in the batch")
	}
	seen := make(map[string]bool, len(req.Requests))
	for i, q := range req.Requests {
		switch {
		case q.CustomID == "" || len(q.CustomID) > 64:
			return invalid("", "requests.%d.custom_id: String should have at least 1 and at most 64 characters", i)
		case body.IsNull(q.Params):
			return invalid("", "requests.%d.params: Field required", i)
		case seen[q.CustomID]:
			return invalid("", "requests: custom_id must be unique within the batch: %s", q.CustomID)
		}
		seen[q.CustomID] = true
	}
	b := &batch{id: s.host.NewID("msgbatch_"), vendor: batchAnthropic, endpoint: "/v1/messages", lines: req.Requests}
	made, err := s.create(b, buf.Bytes(), r)
	if err == nil {
		writeJSON(w, made)
	}
	return err
}

// messageObject returns the object of a batch, which the caller has locked. Like the vendor's, its
// counts change only when the whole batch has ended.
func (s *batchStore) messageObject(b *batch, now time.Time, r *http.Request) batches.MessageBatch {
	o := batches.MessageBatch{
		ID: b.id, Type: "message_batch", ProcessingStatus: batches.MessagesInProgress,
		CreatedAt: b.created.UTC(), ExpiresAt: b.created.Add(24 * time.Hour).UTC(),
	}
	if s.state(b, now) == batches.Cancelling {
		o.ProcessingStatus = batches.MessagesCanceling
	}
	if !b.cancelled.IsZero() {
		at := b.cancelled.UTC()
		o.CancelInitiatedAt = &at
	}
	o.RequestCounts.Processing = len(b.lines)
	if res := b.done; res != nil {
		at, url := res.at.UTC(), "http://"+r.Host+"/v1/messages/batches/"+b.id+"/results"
		if r.TLS != nil {
			url = "https" + url[len("http"):]
		}
		o.ProcessingStatus, o.RequestCounts, o.EndedAt, o.ResultsURL = batches.MessagesEnded, res.counts, &at, &url
	}
	return o
}

func (s *batchStore) listMessageBatches(w http.ResponseWriter, r *http.Request) *Error {
	limit, err := pageSize(r, 20, 1000)
	if err != nil {
		return err
	}
	all, q := s.newest(batchAnthropic), r.URL.Query()
	page, more := pageAfter(all, q.Get("after_id"), limit, batchID)
	if before := q.Get("before_id"); before != "" {
		slices.Reverse(all)
		page, more = pageAfter(all, before, limit, batchID)
		slices.Reverse(page)
	}
	list := objects(page, func(b *batch) batches.MessageBatch { return s.messageObject(b, time.Now(), r) })
	writeList(w, "", list, more, func(o batches.MessageBatch) string { return o.ID })
	return nil
}

func (s *batchStore) cancelMessageBatch(b *batch, r *http.Request, now time.Time) (any, *Error) {
	if s.state(b, now); b.done != nil {
		return nil, invalid("", "Message batch %s has ended and cannot be canceled.", b.id)
	}
	if b.cancelled.IsZero() {
		b.cancelled = now
	}
	return s.messageObject(b, now, r), nil
}

func (s *batchStore) deleteMessageBatch(b *batch, _ *http.Request, now time.Time) (any, *Error) {
	if s.state(b, now); b.done == nil {
		return nil, invalid("", "Message batch %s is still being processed: cancel it before deleting it.", b.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = slices.DeleteFunc(s.order, func(c *batch) bool { return c == b })
	return map[string]string{"id": b.id, "type": "message_batch_deleted"}, nil
}

func (s *batchStore) messageBatchResults(w http.ResponseWriter, r *http.Request) *Error {
	b := s.look(batchAnthropic, r.PathValue("id"))
	if b == nil {
		return noBatch(batchAnthropic, "")
	}
	s.state(b, time.Now())
	res := b.done
	b.mu.Unlock()
	if res == nil {
		return invalid("", "Message batch results are not available until the batch has ended.")
	}
	writeBody(w, http.StatusOK, "application/x-jsonl", res.content)
	return nil
}
