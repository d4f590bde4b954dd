package dialect

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// fileAPI is a batch API that takes a file of requests: OpenAI's, or Azure's. They differ in two ways: at Azure a file can be used only when it
// was processed, and the endpoint of a batch is not that of its lines.
type fileAPI struct {
	batchConn
	azure    bool
	endpoint string
}

// metaKey is the name of our key in a batch's metadata.
const metaKey = "parley"

// Create implements batch.API.
func (d *fileAPI) Create(ctx context.Context, draft *batch.Draft, uploaded func(context.Context, string) error) (string, error) {
	file, err := d.upload(ctx, draft)
	if err != nil {
		return "", err
	}
	if err := uploaded(ctx, file); err != nil {
		return "", err
	}
	asked := batches.Creation{InputFileID: file, Endpoint: d.endpoint, CompletionWindow: "24h", Metadata: map[string]any{metaKey: draft.Key}}
	if d.azure {
		asked.Endpoint = strings.TrimPrefix(d.endpoint, "/v1")
	}
	b, err := json.Marshal(asked)
	if err != nil {
		return "", err
	}
	var made batches.Batch
	_, err = d.askSmall(ctx, transport.Request{Path: "/batches", Body: b}, &made)
	return d.created(made.ID, err)
}

// upload sends the requests as a file. A file that is not used costs nothing.
func (d *fileAPI) upload(ctx context.Context, draft *batch.Draft) (string, error) {
	boundary, name := "parley-"+draft.Key, "parley-"+draft.Key+".jsonl"
	s := lineStream(&d.batchConn, draft, `{"custom_id":"`, `","method":"POST","url":"`+d.endpoint+`","body":`)
	s.head = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n" +
		"--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\nContent-Type: application/jsonl\r\n\r\n"
	s.tail = "\r\n--" + boundary + "--\r\n"
	var made batches.File
	_, err := d.exchange(ctx, s.request("/files", http.Header{"Content-Type": {"multipart/form-data; boundary=" + boundary}}), &made)
	if err == nil && made.ID == "" {
		err = d.c.Fail(fault.Malformed("the answer to an upload names no file", nil), "", nil)
	}
	if err == nil && d.azure {
		err = d.settle(ctx, made)
	}
	return made.ID, markCertain(err)
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
		if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: "/files/" + url.PathEscape(id)}, &f); err != nil {
			return err
		}
	}
}

// settlePause is the first pause before a file is looked at again, and settleTime how long it is waited for.
const settlePause, settleTime = time.Second, 10 * time.Minute

// markCertain marks the error of an upload: a file alone is no batch.
func markCertain(err error) error {
	if err == nil {
		return nil
	}
	e := *llm.AsError(err)
	e.Uncertain = false
	return &e
}

// lineStream writes a line for each request: open, its ID, middle, its body, and a brace.
func lineStream(c *batchConn, draft *batch.Draft, open, middle string) *draftStream {
	return &draftStream{
		key: draft.Key, lines: draft.Requests, extra: len(open) + len(middle) + len("}\n"),
		write: func(dst []byte, l *batch.Request) ([]byte, error) {
			dst = append(append(append(dst, open...), batch.CustomID(draft.Key, l.ID)...), middle...)
			dst, _, err := c.body(dst, l.Request)
			return append(dst, '}', '\n'), err
		},
	}
}

// Find implements batch.API: it looks for the batch with our key, or of our file, which no other
// batch has.
func (d *fileAPI) Find(ctx context.Context, o *batch.Open, _ func(string) bool) (batch.Found, error) {
	if o.File == "" {
		return batch.Found{Never: true}, nil // no batch is created before its file is recorded
	}
	query := "?limit=100"
	for range maxBatchPages {
		var page batches.List[batches.Batch]
		h, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: "/batches" + query}, &page)
		if err != nil {
			return batch.Found{}, err
		}
		old, last := false, ""
		for i := range page.Data {
			b := &page.Data[i]
			if stringOf(b.Metadata[metaKey]) == o.Key || b.InputFileID == o.File {
				return batch.Found{ID: b.ID}, nil
			}
			old, last = b.CreatedAt > 0 && b.CreatedAt.Time().Before(earliestCreation(o.Began, h)), b.ID
		}
		next := "?limit=100&after=" + url.QueryEscape(last)
		if old || last == "" || !page.HasMore && len(page.Data) < 100 || next == query { // some servers do not say whether there is more
			break
		}
		query = next
	}
	return batch.Found{}, nil
}

// Cancel implements batch.API.
func (d *fileAPI) Cancel(ctx context.Context, id string) error {
	_, err := d.askSmall(ctx, transport.Request{Path: "/batches/" + url.PathEscape(id) + "/cancel"}, &json.RawMessage{})
	return err
}

// State implements batch.API.
func (d *fileAPI) State(ctx context.Context, id string) (batch.State, error) {
	b, err := d.fetch(ctx, id)
	if err != nil {
		return batch.State{}, err
	}
	return stateOfFile(b), nil
}

func (d *fileAPI) fetch(ctx context.Context, id string) (*batches.Batch, error) {
	var b batches.Batch
	if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: "/batches/" + url.PathEscape(id)}, &b); err != nil {
		return nil, err
	}
	if b.ID == "" {
		return nil, d.noBatch(id, b.Error)
	}
	return &b, nil
}

// Results implements batch.API. Answers and failures are in two files, and either may be
// missing.
func (d *fileAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		b, err := d.fetch(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		for _, file := range namedFiles(b.OutputFileID, b.ErrorFileID) {
			if !d.yieldLines(ctx, transport.Request{Path: "/files/" + url.PathEscape(file) + "/content"}, FileResult, yield) {
				return
			}
		}
	}
}

// FileResult reads a line of an output or error file of OpenAI's batches. decode reads the answer in it.
func FileResult(line []byte, decode func([]byte) (*llm.Response, error)) batch.Result {
	var l batches.Result
	if json.Unmarshal(line, &l) != nil {
		return batch.Result{}
	}
	failed := func(e *llm.Error) batch.Result { return batch.Result{CustomID: l.CustomID, Err: e} }
	switch {
	case l.Response != nil && l.Response.StatusCode >= 200 && l.Response.StatusCode < 300:
		return answerResult(l.CustomID, l.Response.Body, l.Response.RequestID, decode)
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

// nameOf returns the name of a batch with our key, where a provider keeps a name but no metadata.
func nameOf(key string) string { return metaKey + "-" + key }

// keyIn returns our key in the name of a batch.
func keyIn(name string) string {
	key, _ := strings.CutPrefix(name, metaKey+"-")
	return key
}

func stringOf(v any) string {
	s, _ := v.(string)
	return s
}

// namedFiles lists the files that a provider names.
func namedFiles(files ...*string) (out []string) {
	for _, f := range files {
		if f != nil && *f != "" {
			out = append(out, *f)
		}
	}
	return out
}

// batchFault returns a reason for which a batch failed.
func batchFault(code, message string) batch.Fault {
	return batch.Fault{Code: fault.Clean(code, 100), Message: fault.Clean(message, fault.MaxMessage)}
}

// stateOfFile returns the state of a batch.
func stateOfFile(b *batches.Batch) batch.State {
	n := b.RequestCounts
	st := batch.State{Phase: batch.Running, Total: n.Total, Answered: n.Completed, Failed: n.Failed, Expires: b.ExpiresAt.Time()}
	switch strings.ToLower(b.Status) { // Azure's begins with a capital letter
	case batches.Completed, batches.Expired, batches.Cancelled:
		st.Phase = batch.Ended
	case batches.Failed:
		if n.Completed > 0 || len(namedFiles(b.OutputFileID)) > 0 { // it failed on the way, so some lines were answered
			st.Phase = batch.Ended
			break
		}
		st.Phase = batch.Failed
		if b.Errors == nil {
			break
		}
		for _, e := range b.Errors.Data {
			f := batchFault(e.Code, e.Message)
			if e.Line != nil {
				f.Line = *e.Line
			}
			st.Faults = append(st.Faults, f)
		}
	}
	return st
}
