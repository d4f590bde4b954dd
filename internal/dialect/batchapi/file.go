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
	"parley/internal/wire/body"
	"parley/internal/wire/fault"
	"parley/llm"
)

// fileAPI is OpenAI's batch API.
type fileAPI struct {
	connection
	endpoint string
}

// metaKey is where our key stands in a batch's metadata.
const metaKey = "parley"

// fileBatch is a batch as OpenAI shows it.
type fileBatch struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	CreatedAt     int64  `json:"created_at"`
	ExpiresAt     int64  `json:"expires_at"`
	OutputFileID  string `json:"output_file_id"`
	ErrorFileID   string `json:"error_file_id"`
	RequestCounts struct {
		Total     int `json:"total"`
		Completed int `json:"completed"`
		Failed    int `json:"failed"`
	} `json:"request_counts"`
	Errors struct {
		Data []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Line    int    `json:"line"`
		} `json:"data"`
	} `json:"errors"`
	Metadata map[string]any  `json:"metadata"`
	Error    json.RawMessage `json:"error"` // in the place of a batch that is gone
}

// Create implements batch.Writer.
func (d *fileAPI) Create(ctx context.Context, draft *batch.Draft, uploaded func(context.Context, string) error) (string, error) {
	file, err := d.upload(ctx, draft)
	if err != nil {
		return "", err
	}
	if err := uploaded(ctx, file); err != nil {
		return "", err
	}
	b := body.Str([]byte{'{'}, "input_file_id", file)
	b = body.Str(b, "endpoint", d.endpoint)
	b = body.Str(b, "completion_window", "24h")
	b = body.Str(body.Open(body.Key(b, "metadata"), '{'), metaKey, draft.Key)
	b = append(b, '}', '}')
	var made fileBatch
	if _, err := d.ask(ctx, transport.Call{Path: "/batches", Open: onceBytes(b), Size: int64(len(b))}, &made); err != nil {
		return "", unsure(err)
	}
	if made.ID == "" {
		return "", d.c.Fail(fault.Malformed("the answer to a creation names no batch", nil), "", nil)
	}
	return made.ID, nil
}

// upload sends the lines as a file. A file that is sent and not used costs nothing.
func (d *fileAPI) upload(ctx context.Context, draft *batch.Draft) (string, error) {
	boundary := "parley-" + draft.Key
	part := func(rest string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; " + rest
	}
	s := d.stream(draft)
	s.head = part("name=\"purpose\"\r\n\r\nbatch\r\n") +
		part("name=\"file\"; filename=\"parley-"+draft.Key+".jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n")
	s.tail = "\r\n--" + boundary + "--\r\n"
	var made struct {
		ID string `json:"id"`
	}
	_, err := d.exchange(ctx, transport.Call{
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

// stream writes the lines of a draft, without what stands around them.
func (d *fileAPI) stream(draft *batch.Draft) *stream {
	open, middle := `{"custom_id":"`, `","method":"POST","url":"`+d.endpoint+`","body":`
	return &stream{
		key: draft.Key, lines: draft.Lines, extra: len(open) + len(middle) + len("}\n"),
		write: func(dst []byte, l *batch.Line) ([]byte, error) {
			dst = append(append(append(dst, open...), batch.CustomID(draft.Key, l.ID)...), middle...)
			dst, _, err := d.body(dst, l.Request)
			return append(dst, '}', '\n'), err
		},
	}
}

// Find implements batch.Writer: the batch is the one with our key.
func (d *fileAPI) Find(ctx context.Context, o *batch.Open, _ func(string) bool) (batch.Found, error) {
	if o.File == "" {
		return batch.Found{Never: true}, nil // a batch is made of a file that was noted before
	}
	after := ""
	for range pageMost {
		var page struct {
			Data    []fileBatch `json:"data"`
			HasMore bool        `json:"has_more"`
		}
		h, err := d.ask(ctx, transport.Call{Method: http.MethodGet, Path: "/batches?limit=100" + after}, &page)
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
	_, err := d.ask(ctx, transport.Call{Path: "/batches/" + url.PathEscape(id) + "/cancel"}, &fileBatch{})
	return err
}

// State implements batch.Reader.
func (d *fileAPI) State(ctx context.Context, id string) (batch.State, error) {
	b, err := d.show(ctx, id)
	if err != nil {
		return batch.State{}, err
	}
	st := batch.State{Phase: batch.Running, Total: b.RequestCounts.Total, Answered: b.RequestCounts.Completed, Failed: b.RequestCounts.Failed}
	if b.ExpiresAt > 0 {
		st.Expires = time.Unix(b.ExpiresAt, 0)
	}
	switch b.Status {
	case "completed", "expired", "cancelled":
		st.Phase = batch.Ended
	case "failed":
		st.Phase = batch.Failed
		for _, e := range b.Errors.Data {
			st.Faults = append(st.Faults, batch.Fault{Code: fault.Clean(e.Code, 100), Message: fault.Clean(e.Message, fault.MaxMessage), Line: e.Line})
		}
	}
	return st, nil
}

func (d *fileAPI) show(ctx context.Context, id string) (*fileBatch, error) {
	var b fileBatch
	if _, err := d.ask(ctx, transport.Call{Method: http.MethodGet, Path: "/batches/" + url.PathEscape(id)}, &b); err != nil {
		return nil, err
	}
	if b.ID == "" {
		return nil, d.gone(id, b.Error)
	}
	return &b, nil
}

// Results implements batch.Reader: answers and failures are in a file each, and either may
// be missing.
func (d *fileAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		b, err := d.show(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		for _, file := range []string{b.OutputFileID, b.ErrorFileID} {
			if file == "" {
				continue
			}
			err := d.lines(ctx, "/files/"+url.PathEscape(file)+"/content", nil, d.result, func(r batch.Result) bool { return yield(r, nil) })
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
	var l struct {
		CustomID string `json:"custom_id"`
		Response *struct {
			StatusCode int             `json:"status_code"`
			RequestID  string          `json:"request_id"`
			Body       json.RawMessage `json:"body"`
		} `json:"response"`
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
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
		return failed(fault.Malformed("the batch gives neither an answer nor an error", nil))
	}
	switch l.Error.Code {
	case batch.CodeExpired:
		return failed(batch.ExpiredError())
	case batch.CodeCancelled:
		return failed(batch.CancelledError())
	}
	e := &llm.Error{Kind: llm.KindServer, Code: l.Error.Code, Message: fmt.Sprintf("the batch could not answer this: %s", l.Error.Message)}
	if l.Error.Code == "request_timeout" {
		e.Kind = llm.KindTimeout
	}
	return failed(e)
}

var _ batch.API = (*fileAPI)(nil)
