package simhttp

import (
	"bytes"
	"net/http"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/body"
)

// createMessageBatch answers POST /v1/messages/batches. Like the vendor, it does not check the
// params of the requests.
func (s *batchStore) createMessageBatch(w http.ResponseWriter, r *http.Request) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, maxBatch, sim.Anthropic); err != nil {
		return err
	}
	var req batches.MessageCreation
	if err := decodeBody(buf.Bytes(), &req); err != nil {
		return err
	}
	limit := s.cfg.MaxRequests
	orDefault(&limit, 100_000)
	switch n := len(req.Requests); {
	case n == 0:
		return invalid("", "requests: at least one is required")
	case n > limit:
		return tooLarge(sim.Anthropic, "requests: too many requests in the batch")
	}
	seen := make(map[string]bool, len(req.Requests))
	for i, q := range req.Requests {
		if q.CustomID == "" || len(q.CustomID) > 64 || seen[q.CustomID] || body.IsNull(q.Params) {
			return invalid("", "requests.%d: want a custom_id of at most 64 characters that no other request has, and params", i)
		}
		seen[q.CustomID] = true
	}
	return s.create(w, r, &batch{id: s.server.NewID("msgbatch_"), style: sim.Anthropic, lines: req.Requests}, buf.Bytes())
}

// messageObject returns the object of a batch. Like the vendor's, its counts change only when the whole batch has ended.
func (s *batchStore) messageObject(b *batch, r *http.Request, now time.Time) batches.MessageBatch {
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
		at, url := res.at.UTC(), origin(r)+"/v1/messages/batches/"+b.id+"/results"
		o.ProcessingStatus, o.RequestCounts, o.EndedAt, o.ResultsURL = batches.MessagesEnded, res.counts, &at, &url
	}
	return o
}

// origin returns the address at which a request found the server.
func origin(r *http.Request) string {
	return "http://" + r.Host
}

func (s *batchStore) messageBatchResults(w http.ResponseWriter, r *http.Request) *Error {
	b := s.look(sim.Anthropic, r.PathValue("id"))
	if b == nil {
		return notFound(sim.Anthropic, "", "Message batch not found.")
	}
	defer b.mu.Unlock()
	if s.state(b, time.Now()); b.done == nil {
		return invalid("", "Message batch results are not available until the batch has ended.")
	}
	writeBody(w, http.StatusOK, "application/x-jsonl", b.done.content)
	return nil
}
