package dialect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// fileAPI is a batch API that takes a file of requests: OpenAI's, and those made after it.
type fileAPI struct {
	connection
	form
	endpoint string
}

// form is what distinguishes the APIs that take a file.
type form struct {
	files   string // where files are uploaded
	fields  string // of an upload, beside the file; NAME stands for the file's name
	batches string // where batches are
	first   string // the query of the first page of them
	cancel  string // what follows the address of a batch that is cancelled
	bare    bool   // lines have neither a method nor an address
	settles bool   // a file can be used only when it was processed

	// creation returns the request that creates a batch.
	creation func(d *batch.Draft, file, endpoint string) any
	// read reads a batch.
	read func(body []byte) (snapshot, error)
	// page reads a page of batches, and returns the query of the next one, or "". n is its number,
	// from 0.
	page func(body []byte, n int) (all []snapshot, next string, err error)
	// results reads the results; nil: they are in files.
	results func(ctx context.Context, d *fileAPI, id string) iter.Seq2[batch.Result, error]
}

// snapshot is a batch as its provider shows it.
type snapshot struct {
	id, file string
	key      string    // ours, if the provider keeps it
	created  time.Time // zero: unknown
	state    batch.State
	outputs  []string        // files
	rest     *llm.Error      // of the lines without a result
	refusal  json.RawMessage // an error instead of a batch
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
	b, err := json.Marshal(d.creation(draft, file, d.endpoint))
	if err != nil {
		return "", err
	}
	var body json.RawMessage
	if _, err := d.ask(ctx, transport.Request{Path: d.batches, Body: b, Once: true}, &body); err != nil {
		return "", unsure(err)
	}
	made, err := d.read(body)
	if err != nil || made.id == "" {
		return "", d.c.Fail(fault.Malformed("the answer to a creation names no batch", nil), "", nil)
	}
	return made.id, nil
}

// upload sends the requests as a file. A file that is not used costs nothing.
func (d *fileAPI) upload(ctx context.Context, draft *batch.Draft) (string, error) {
	boundary, name := "parley-"+draft.Key, "parley-"+draft.Key+".jsonl"
	s := d.stream(draft)
	s.head = parts(boundary, d.fields, name) +
		"--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\nContent-Type: application/jsonl\r\n\r\n"
	s.tail = "\r\n--" + boundary + "--\r\n"
	var made batches.File
	_, err := d.exchange(ctx, transport.Request{
		Path: d.files, Header: http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}},
		Open: func() (io.ReadCloser, error) { return s.reader(), nil }, Size: s.size(), Timeout: sendTime,
	}, &made)
	if err == nil && made.ID == "" {
		err = d.c.Fail(fault.Malformed("the answer to an upload names no file", nil), "", nil)
	}
	if err == nil && d.settles {
		err = d.settle(ctx, made)
	}
	return made.ID, certain(err)
}

// settle waits until the provider has processed a file.
func (d *fileAPI) settle(ctx context.Context, f batches.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, &llm.Error{Kind: llm.KindTimeout, Message: "the provider has not processed the file of requests"})
	defer cancel()
	id := f.ID
	for pause := settlePause; ; pause = min(2*pause, 60*settlePause) {
		switch f.Status {
		case "pending", "running", "uploaded", "not_running", "notRunning":
		case "error", "deleting", "deleted":
			return d.c.Fail(fault.BadRequest("the provider could not process the file of requests: its status is %s", f.Status), "", nil)
		default: // processed, or a server that says nothing about it
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return d.c.Fail(context.Cause(ctx), "", nil)
		}
		if _, err := d.ask(ctx, transport.Request{Method: http.MethodGet, Path: d.files + "/" + url.PathEscape(id)}, &f); err != nil {
			return err
		}
	}
}

// settlePause is the first pause before a file is looked at again, and settleTime how long it is waited for.
const settlePause, settleTime = time.Second, 10 * time.Minute

// certain marks the error of an upload: a file alone is no batch.
func certain(err error) error {
	if err == nil {
		return nil
	}
	e := *llm.AsError(err)
	e.Uncertain = false
	return &e
}

// stream writes the lines of a draft, without the form around them.
func (d *fileAPI) stream(draft *batch.Draft) *stream {
	open, middle := `{"custom_id":"`, `","method":"POST","url":"`+d.endpoint+`","body":`
	if d.bare {
		middle = `","body":`
	}
	return lineStream(&d.connection, draft, open, middle)
}

// lineStream writes a line for each request: open, its ID, middle, its body, and a brace.
func lineStream(c *connection, draft *batch.Draft, open, middle string) *stream {
	return &stream{
		key: draft.Key, lines: draft.Requests, extra: len(open) + len(middle) + len("}\n"),
		write: func(dst []byte, l *batch.Request) ([]byte, error) {
			dst = append(append(append(dst, open...), batch.CustomID(draft.Key, l.ID)...), middle...)
			dst, _, err := c.body(dst, l.Request)
			return append(dst, '}', '\n'), err
		},
	}
}

// Find implements batch.Writer: it looks for the batch with our key, or of our file, which no other
// batch has.
func (d *fileAPI) Find(ctx context.Context, o *batch.Open, _ func(string) bool) (batch.Found, error) {
	if o.File == "" {
		return batch.Found{Never: true}, nil // no batch is created before its file is recorded
	}
	query := d.first
	for n := range maxPages {
		var body json.RawMessage
		h, err := d.ask(ctx, transport.Request{Method: http.MethodGet, Path: d.batches + query}, &body)
		if err != nil {
			return batch.Found{}, err
		}
		all, next, err := d.page(body, n)
		if err != nil {
			return batch.Found{}, d.c.Fail(fault.Malformed("the answer is not a list of batches", nil), "", nil)
		}
		old := false
		for _, b := range all {
			if b.key == o.Key || b.file == o.File {
				return batch.Found{ID: b.id}, nil
			}
			old = !b.created.IsZero() && b.created.Before(since(o.Began, h))
		}
		if old || next == "" || next == query {
			break
		}
		query = next
	}
	return batch.Found{}, nil
}

// Cancel implements batch.Writer.
func (d *fileAPI) Cancel(ctx context.Context, id string) error {
	_, err := d.ask(ctx, transport.Request{Path: d.batches + "/" + url.PathEscape(id) + d.cancel}, &json.RawMessage{})
	return err
}

// State implements batch.Reader.
func (d *fileAPI) State(ctx context.Context, id string) (batch.State, error) {
	b, err := d.show(ctx, id)
	return b.state, err
}

func (d *fileAPI) show(ctx context.Context, id string) (snapshot, error) {
	var body json.RawMessage
	if _, err := d.ask(ctx, transport.Request{Method: http.MethodGet, Path: d.batches + "/" + url.PathEscape(id)}, &body); err != nil {
		return snapshot{}, err
	}
	b, err := d.read(body)
	switch {
	case err != nil:
		return snapshot{}, d.c.Fail(fault.Malformed("the answer is not a batch: "+fault.Clean(string(body[:min(len(body), 200)]), 200), nil), "", nil)
	case b.id == "":
		return snapshot{}, d.gone(id, b.refusal)
	}
	return b, nil
}

// Results implements batch.Reader. Answers and failures are in two files, and either may be
// missing.
func (d *fileAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	if d.results != nil {
		return d.results(ctx, d, id)
	}
	return func(yield func(batch.Result, error) bool) {
		b, err := d.show(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		for _, file := range b.outputs {
			err := d.lines(ctx, transport.Request{Path: "/files/" + url.PathEscape(file) + "/content"}, d.result, func(r batch.Result) bool { return yield(r, nil) })
			if err == errStop {
				return
			}
			if err != nil {
				yield(batch.Result{}, err)
				return
			}
		}
		if b.rest != nil {
			yield(batch.Result{Rest: true, Err: d.finish(b.rest, "")}, nil)
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
		return failed(fault.Classify(l.Response.StatusCode, nil, unquoted(l.Response.Body)))
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

// unquoted returns the object in a body that is a string, as Mistral's errors are.
func unquoted(body json.RawMessage) []byte {
	var inner string
	if len(body) > 0 && body[0] == '"' && json.Unmarshal(body, &inner) == nil {
		return []byte(inner)
	}
	return body
}

var _ batch.API = (*fileAPI)(nil)
