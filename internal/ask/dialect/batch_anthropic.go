package dialect

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"

	"parley/internal/ask/batch"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// messageAPI is Anthropic's batch API. Only the IDs of the requests identify our batches, and
// only the results show them.
type messageAPI struct{ batchConn }

const messageBatches = "/messages/batches"

// Create implements batch.API. It uploads no file, so it does not call uploaded.
func (d *messageAPI) Create(ctx context.Context, draft *batch.Draft, _ func(context.Context, string) error) (string, error) {
	s := lineStream(&d.batchConn, draft, `{"custom_id":"`, `","params":`)
	s.head, s.between, s.tail = `{"requests":[`, ",", "]}"
	var made batches.MessageBatch
	_, err := d.exchange(ctx, s.request(messageBatches, nil), &made)
	return d.created(made.ID, err)
}

// Find implements batch.API: it looks at the batches of the same size created since. The
// results of a batch that has ended show whether it is ours. A batch that has not ended may be.
func (d *messageAPI) Find(ctx context.Context, o *batch.Open, taken func(string) bool) (batch.Found, error) {
	var found batch.Found
	after := ""
	for range maxBatchPages {
		var page batches.List[batches.MessageBatch]
		h, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: messageBatches + "?limit=100" + after}, &page)
		if err != nil {
			return batch.Found{}, err
		}
		first := earliestCreation(o.Began, h)
		for i := range page.Data {
			b := &page.Data[i]
			if b.CreatedAt.Before(first) {
				return found, nil // the newest come first
			}
			if b.RequestCounts.Total() != len(o.Lines) || taken(b.ID) {
				continue
			}
			if b.ProcessingStatus != batches.MessagesEnded {
				found.Maybe = true
				continue
			}
			ours, err := d.isOurs(ctx, b.ID, o.Key)
			if err != nil {
				return batch.Found{}, err
			}
			if ours {
				return batch.Found{ID: b.ID}, nil
			}
		}
		n := len(page.Data)
		if !page.HasMore || n == 0 {
			break
		}
		after = "&after_id=" + url.QueryEscape(page.Data[n-1].ID)
	}
	return found, nil
}

// isOurs reports whether the first result of a batch is ours. A batch whose results are deleted is
// not.
func (d *messageAPI) isOurs(ctx context.Context, id, key string) (bool, error) {
	for r, err := range d.Results(ctx, id) {
		if err != nil {
			if e := llm.AsError(err); e.Kind == llm.KindBadRequest {
				return false, nil
			}
			return false, err
		}
		if r.CustomID != "" {
			_, ours := batch.SplitCustomID(key, r.CustomID)
			return ours, nil
		}
	}
	return false, nil
}

// Cancel implements batch.API.
func (d *messageAPI) Cancel(ctx context.Context, id string) error {
	_, err := d.askSmall(ctx, transport.Request{Path: messageBatches + "/" + url.PathEscape(id) + "/cancel"}, &batches.MessageBatch{})
	return err
}

// State implements batch.API.
func (d *messageAPI) State(ctx context.Context, id string) (batch.State, error) {
	var b batches.MessageBatch
	if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: messageBatches + "/" + url.PathEscape(id)}, &b); err != nil {
		return batch.State{}, err
	}
	if b.ID == "" {
		return batch.State{}, d.noBatch(id, b.Error)
	}
	n := b.RequestCounts
	st := batch.State{Phase: batch.Running, Total: n.Total(), Answered: n.Succeeded, Failed: n.Failed(), Expires: b.ExpiresAt}
	if b.ProcessingStatus == batches.MessagesEnded {
		st.Phase = batch.Ended
	}
	return st, nil
}

// Results implements batch.API.
func (d *messageAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		path := messageBatches + "/" + url.PathEscape(id) + "/results"
		d.yieldLines(ctx, transport.Request{Path: path, Header: http.Header{"Accept": {"application/x-jsonl"}}}, MessageResult, yield)
	}
}

// MessageResult reads a line of the results of one of Anthropic's batches. decode reads the answer in it.
func MessageResult(line []byte, decode func([]byte) (*llm.Response, error)) batch.Result {
	var l batches.MessageResult
	if json.Unmarshal(line, &l) != nil {
		return batch.Result{}
	}
	failed := func(e *llm.Error) batch.Result { return batch.Result{CustomID: l.CustomID, Err: e} }
	switch l.Result.Type {
	case "succeeded":
		return answerResult(l.CustomID, l.Result.Message, "", decode)
	case "errored":
		return failed(lineFault(l.Result.Error))
	case "canceled":
		return failed(batch.CancelledError())
	case "expired":
		return failed(batch.ExpiredError())
	}
	return failed(fault.Malformed("the batch has a result of an unknown type: "+fault.Clean(l.Result.Type, 40), nil))
}

var (
	_ batch.API = (*messageAPI)(nil)
	_ io.Closer = (*batchConn)(nil)
)
