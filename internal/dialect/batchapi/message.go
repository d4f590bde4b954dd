package batchapi

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"parley/internal/batch"
	"parley/internal/dialect/transport"
	"parley/internal/wire/fault"
	"parley/llm"
)

// messageAPI is Anthropic's batch API. Its batches carry nothing of ours but the lines'
// ids, which show only in the results.
type messageAPI struct{ connection }

const messageBatches = "/messages/batches"

// messageBatch is a batch as Anthropic shows it.
type messageBatch struct {
	ID               string    `json:"id"`
	ProcessingStatus string    `json:"processing_status"`
	CreatedAt        time.Time `json:"created_at"`
	ExpiresAt        time.Time `json:"expires_at"`
	Counts           struct {
		Processing int `json:"processing"`
		Succeeded  int `json:"succeeded"`
		Errored    int `json:"errored"`
		Canceled   int `json:"canceled"`
		Expired    int `json:"expired"`
	} `json:"request_counts"`
	Error json.RawMessage `json:"error"`
}

func (b *messageBatch) total() int {
	return b.Counts.Processing + b.Counts.Succeeded + b.Counts.Errored + b.Counts.Canceled + b.Counts.Expired
}

func (b *messageBatch) ended() bool { return b.ProcessingStatus == "ended" }

// Create implements batch.Writer. There is no file: uploaded is not called.
func (d *messageAPI) Create(ctx context.Context, draft *batch.Draft, _ func(context.Context, string) error) (string, error) {
	open, middle := `{"custom_id":"`, `","params":`
	s := &stream{
		head: `{"requests":[`, between: ",", tail: "]}", key: draft.Key, lines: draft.Lines, extra: len(open) + len(middle) + len("}"),
		write: func(dst []byte, l *batch.Line) ([]byte, error) {
			dst = append(append(append(dst, open...), batch.CustomID(draft.Key, l.ID)...), middle...)
			dst, _, err := d.body(dst, l.Request)
			return append(dst, '}'), err
		},
	}
	var made messageBatch
	if _, err := d.exchange(ctx, transport.Call{Path: messageBatches, Open: once(s.reader()), Size: s.size(), Timeout: sendTime}, &made); err != nil {
		return "", unsure(err)
	}
	if made.ID == "" {
		return "", d.c.Fail(fault.Malformed("the answer to a creation names no batch", nil), "", nil)
	}
	return made.ID, nil
}

// Find implements batch.Writer: the batch is among those created since, of the same size.
// Of one that has ended the results tell; one that has not may be it.
func (d *messageAPI) Find(ctx context.Context, o *batch.Open, taken func(string) bool) (batch.Found, error) {
	var found batch.Found
	after := ""
	for range pageMost {
		var page struct {
			Data    []messageBatch `json:"data"`
			HasMore bool           `json:"has_more"`
		}
		h, err := d.ask(ctx, transport.Call{Method: http.MethodGet, Path: messageBatches + "?limit=100" + after}, &page)
		if err != nil {
			return batch.Found{}, err
		}
		first := since(o.Began, h)
		for i := range page.Data {
			b := &page.Data[i]
			if b.CreatedAt.Before(first) {
				return found, nil // the newest come first
			}
			if b.total() != len(o.Lines) || taken(b.ID) {
				continue
			}
			if !b.ended() {
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

// isOurs looks at the first result of a batch. One whose results are gone for good is as
// good as another's.
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

// Cancel implements batch.Writer.
func (d *messageAPI) Cancel(ctx context.Context, id string) error {
	_, err := d.ask(ctx, transport.Call{Path: messageBatches + "/" + url.PathEscape(id) + "/cancel"}, &messageBatch{})
	return err
}

// State implements batch.Reader.
func (d *messageAPI) State(ctx context.Context, id string) (batch.State, error) {
	var b messageBatch
	if _, err := d.ask(ctx, transport.Call{Method: http.MethodGet, Path: messageBatches + "/" + url.PathEscape(id)}, &b); err != nil {
		return batch.State{}, err
	}
	if b.ID == "" {
		return batch.State{}, d.gone(id, b.Error)
	}
	st := batch.State{
		Phase: batch.Running, Total: b.total(), Answered: b.Counts.Succeeded,
		Failed: b.Counts.Errored + b.Counts.Canceled + b.Counts.Expired, Expires: b.ExpiresAt,
	}
	if b.ended() {
		st.Phase = batch.Ended
	}
	return st, nil
}

// Results implements batch.Reader.
func (d *messageAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		path := messageBatches + "/" + url.PathEscape(id) + "/results"
		err := d.lines(ctx, path, http.Header{"Accept": {"application/x-jsonl"}}, d.result, func(r batch.Result) bool { return yield(r, nil) })
		if err != nil && err != errStop {
			yield(batch.Result{}, err)
		}
	}
}

// result reads a line of results.
func (d *messageAPI) result(line []byte) batch.Result {
	var l struct {
		CustomID string `json:"custom_id"`
		Result   struct {
			Type    string          `json:"type"`
			Message json.RawMessage `json:"message"`
			Error   json.RawMessage `json:"error"`
		} `json:"result"`
	}
	if json.Unmarshal(line, &l) != nil {
		return batch.Result{}
	}
	failed := func(e *llm.Error) batch.Result { return batch.Result{CustomID: l.CustomID, Err: d.finish(e, "")} }
	switch l.Result.Type {
	case "succeeded":
		return d.answered(l.CustomID, l.Result.Message, "")
	case "errored":
		return failed(fault.Classify(0, nil, l.Result.Error))
	case "canceled":
		return failed(batch.CancelledError())
	case "expired":
		return failed(batch.ExpiredError())
	}
	return failed(fault.Malformed("the batch gives a result of the unknown type "+fault.Clean(l.Result.Type, 40), nil))
}

var (
	_ batch.API = (*messageAPI)(nil)
	_ io.Closer = (*connection)(nil)
)
