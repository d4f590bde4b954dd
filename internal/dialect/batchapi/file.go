package batchapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"parley/internal/batch"
	"parley/internal/dialect/transport"
	"parley/internal/wire/batches"
	"parley/internal/wire/fault"
	"parley/llm"
)

// fileAPI is OpenAI's batch API.
type fileAPI struct {
	connection
	endpoint string
}

// metaKey is the name of our key in a batch's metadata.
const metaKey = "parley"

// Create implements batch.Writer.
func (d *fileAPI) Create(ctx context.Context, draft *batch.Draft, uploaded func(context.Context, string) error) (string, error) {
	file, err := d.upload(ctx, draft)
	if err != nil {
		return "", err
	}
	if err := uploaded(ctx, file); err != nil {
		return "", err
	}
	b, err := json.Marshal(batches.Creation{InputFileID: file, Endpoint: d.endpoint, CompletionWindow: "24h", Metadata: map[string]any{metaKey: draft.Key}})
	if err != nil {
		return "", err
	}
	var made batches.Batch
	if _, err := d.ask(ctx, transport.Request{Path: "/batches", Open: onceBytes(b), Size: int64(len(b))}, &made); err != nil {
		return "", unsure(err)
	}
	if made.ID == "" {
		return "", d.c.Fail(fault.Malformed("the answer to a creation names no batch", nil), "", nil)
	}
	return made.ID, nil
}

// upload sends the requests as a file. A file that is not used costs nothing.
func (d *fileAPI) upload(ctx context.Context, draft *batch.Draft) (string, error) {
	boundary := "parley-" + draft.Key
	part := func(rest string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; " + rest
	}
	s := d.stream(draft)
	s.head = part("name=\"purpose\"\r\n\r\nbatch\r\n") +
		part("name=\"file\"; filename=\"parley-"+draft.Key+".jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n")
	s.tail = "\r\n--" + boundary + "--\r\n"
	var made batches.File
	_, err := d.exchange(ctx, transport.Request{
		Path: "/files", Header: http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}},
		Open: func() (io.ReadCloser, error) { return s.reader(), nil }, Size: s.size(), Timeout: sendTime,
	}, &made)
	if err == nil && made.ID == "" {
		err = d.c.Fail(fault.Malformed("the answer to an upload names no file", nil), "", nil)
	}
	if err != nil {
		e := *llm.AsError(err)
		e.Uncertain = false
		return "", &e
	}
	return made.ID, nil
}

// stream writes the lines of a draft, without the form around them.
func (d *fileAPI) stream(draft *batch.Draft) *stream {
	open, middle := `{"custom_id":"`, `","method":"POST","url":"`+d.endpoint+`","body":`
	return &stream{
		key: draft.Key, lines: draft.Requests, extra: len(open) + len(middle) + len("}\n"),
		write: func(dst []byte, l *batch.Request) ([]byte, error) {
			dst = append(append(append(dst, open...), batch.CustomID(draft.Key, l.ID)...), middle...)
			dst, _, err := d.body(dst, l.Request)
			return append(dst, '}', '\n'), err
		},
	}
}

// Find implements batch.Writer: it looks for the batch with our key.
func (d *fileAPI) Find(ctx context.Context, o *batch.Open, _ func(string) bool) (batch.Found, error) {
	if o.File == "" {
		return batch.Found{Never: true}, nil // no batch is created before its file is recorded
	}
	after := ""
	for range maxPages {
		var page batches.List[batches.Batch]
		h, err := d.ask(ctx, transport.Request{Method: http.MethodGet, Path: "/batches?limit=100" + after}, &page)
		if err != nil {
			return batch.Found{}, err
		}
		first := since(o.Began, h)
		for _, b := range page.Data {
			if b.Metadata[metaKey] == o.Key {
				return batch.Found{ID: b.ID}, nil
			}
		}
		n := len(page.Data)
		if !page.HasMore || n == 0 || time.Unix(page.Data[n-1].CreatedAt, 0).Before(first) {
			break
		}
		after = "&after=" + url.QueryEscape(page.Data[n-1].ID)
	}
	return batch.Found{}, nil
}

// Cancel implements batch.Writer.
func (d *fileAPI) Cancel(ctx context.Context, id string) error {
	_, err := d.ask(ctx, transport.Request{Path: "/batches/" + url.PathEscape(id) + "/cancel"}, &batches.Batch{})
	return err
}

// State implements batch.Reader.
func (d *fileAPI) State(ctx context.Context, id string) (batch.State, error) {
	b, err := d.show(ctx, id)
	if err != nil {
		return batch.State{}, err
	}
	n := b.RequestCounts
	st := batch.State{Phase: batch.Running, Total: n.Total, Answered: n.Completed, Failed: n.Failed}
	if b.ExpiresAt > 0 {
		st.Expires = time.Unix(b.ExpiresAt, 0)
	}
	switch b.Status {
	case batches.Completed, batches.Expired, batches.Cancelled:
		st.Phase = batch.Ended
	case batches.Failed:
		st.Phase = batch.Failed
		st.Faults = faultsOf(b.Errors)
	}
	return st, nil
}

func faultsOf(list *batches.Faults) (out []batch.Fault) {
	if list == nil {
		return nil
	}
	for _, e := range list.Data {
		f := batch.Fault{Code: fault.Clean(e.Code, 100), Message: fault.Clean(e.Message, fault.MaxMessage)}
		if e.Line != nil {
			f.Line = *e.Line
		}
		out = append(out, f)
	}
	return out
}

func (d *fileAPI) show(ctx context.Context, id string) (*batches.Batch, error) {
	var b batches.Batch
	if _, err := d.ask(ctx, transport.Request{Method: http.MethodGet, Path: "/batches/" + url.PathEscape(id)}, &b); err != nil {
		return nil, err
	}
	if b.ID == "" {
		return nil, d.gone(id, b.Error)
	}
	return &b, nil
}

// Results implements batch.Reader. Answers and failures are in two files, and either may be
// missing.
func (d *fileAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		b, err := d.show(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		for _, file := range []*string{b.OutputFileID, b.ErrorFileID} {
			if file == nil || *file == "" {
				continue
			}
			err := d.lines(ctx, "/files/"+url.PathEscape(*file)+"/content", nil, d.result, func(r batch.Result) bool { return yield(r, nil) })
			if err == errStop {
				return
			}
			if err != nil {
				yield(batch.Result{}, err)
				return
			}
		}
	}
}

// result reads a line of an output or error file.
func (d *fileAPI) result(line []byte) batch.Result {
	var l batches.Result
	if json.Unmarshal(line, &l) != nil {
		return batch.Result{}
	}
	failed := func(e *llm.Error) batch.Result { return batch.Result{CustomID: l.CustomID, Err: d.finish(e, "")} }
	switch {
	case l.Response != nil && l.Response.StatusCode >= 200 && l.Response.StatusCode < 300:
		return d.answered(l.CustomID, l.Response.Body, l.Response.RequestID)
	case l.Response != nil && l.Response.StatusCode > 0:
		return failed(fault.Classify(l.Response.StatusCode, nil, l.Response.Body))
	case l.Error == nil:
		return failed(fault.Malformed("the batch has neither an answer nor an error for this request", nil))
	}
	switch l.Error.Code {
	case batch.CodeExpired:
		return failed(batch.ExpiredError())
	case batch.CodeCancelled:
		return failed(batch.CancelledError())
	}
	e := &llm.Error{Kind: llm.KindServer, Code: l.Error.Code, Message: fmt.Sprintf("the batch could not answer this request: %s", l.Error.Message)}
	if l.Error.Code == "request_timeout" {
		e.Kind = llm.KindTimeout
	}
	return failed(e)
}

var _ batch.API = (*fileAPI)(nil)
