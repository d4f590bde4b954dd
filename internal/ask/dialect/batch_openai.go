package dialect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// fileAPI is a batch API that takes a file of requests: OpenAI's, and those made after it.
type fileAPI struct {
	batchConn
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

// Create implements batch.API.
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
	if _, err := d.askSmall(ctx, transport.Request{Path: d.batches, Body: b}, &body); err != nil {
		return "", markUncertain(err)
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
	s.head = formFields(boundary, d.fields, name) +
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
		if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: d.files + "/" + url.PathEscape(id)}, &f); err != nil {
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

// stream writes the lines of a draft, without the form around them.
func (d *fileAPI) stream(draft *batch.Draft) *draftStream {
	open, middle := `{"custom_id":"`, `","method":"POST","url":"`+d.endpoint+`","body":`
	if d.bare {
		middle = `","body":`
	}
	return lineStream(&d.batchConn, draft, open, middle)
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
	query := d.first
	for n := range maxBatchPages {
		var body json.RawMessage
		h, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: d.batches + query}, &body)
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
			old = !b.created.IsZero() && b.created.Before(earliestCreation(o.Began, h))
		}
		if old || next == "" || next == query {
			break
		}
		query = next
	}
	return batch.Found{}, nil
}

// Cancel implements batch.API.
func (d *fileAPI) Cancel(ctx context.Context, id string) error {
	_, err := d.askSmall(ctx, transport.Request{Path: d.batches + "/" + url.PathEscape(id) + d.cancel}, &json.RawMessage{})
	return err
}

// State implements batch.API.
func (d *fileAPI) State(ctx context.Context, id string) (batch.State, error) {
	b, err := d.fetch(ctx, id)
	return b.state, err
}

func (d *fileAPI) fetch(ctx context.Context, id string) (snapshot, error) {
	var body json.RawMessage
	if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: d.batches + "/" + url.PathEscape(id)}, &body); err != nil {
		return snapshot{}, err
	}
	b, err := d.read(body)
	switch {
	case err != nil:
		return snapshot{}, d.c.Fail(fault.Malformed("the answer is not a batch: "+fault.Clean(string(body[:min(len(body), 200)]), 200), nil), "", nil)
	case b.id == "":
		return snapshot{}, d.noBatch(id, b.refusal)
	}
	return b, nil
}

// Results implements batch.API. Answers and failures are in two files, and either may be
// missing.
func (d *fileAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	if d.results != nil {
		return d.results(ctx, d, id)
	}
	return func(yield func(batch.Result, error) bool) {
		b, err := d.fetch(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		for _, file := range b.outputs {
			err := d.readLines(ctx, transport.Request{Path: "/files/" + url.PathEscape(file) + "/content"}, d.result, func(r batch.Result) bool { return yield(r, nil) })
			if err == errStop {
				return
			}
			if err != nil {
				yield(batch.Result{}, err)
				return
			}
		}
		if b.rest != nil {
			yield(batch.Result{Rest: true, Err: d.failure(b.rest, "")}, nil)
		}
	}
}

// result reads a line of an output or error file.
func (d *fileAPI) result(line []byte) batch.Result {
	var l batches.Result
	if json.Unmarshal(line, &l) != nil {
		return batch.Result{}
	}
	failed := func(e *llm.Error) batch.Result { return batch.Result{CustomID: l.CustomID, Err: d.failure(e, "")} }
	switch {
	case l.Response != nil && l.Response.StatusCode >= 200 && l.Response.StatusCode < 300:
		return d.answerResult(l.CustomID, l.Response.Body, l.Response.RequestID)
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

// formFields returns the fields of a form, each written name=value.
func formFields(boundary, fields, file string) string {
	var b strings.Builder
	for field := range strings.SplitSeq(fields, "&") {
		if name, value, ok := strings.Cut(field, "="); ok {
			b.WriteString("--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + strings.Replace(value, "NAME", file, 1) + "\r\n")
		}
	}
	return b.String()
}

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

// openAIForm is OpenAI's, and Groq's.
func openAIForm() form {
	return form{
		files: "/files", fields: "purpose=batch", batches: "/batches", first: "?limit=100", cancel: "/cancel",
		creation: func(d *batch.Draft, file, endpoint string) any {
			return batches.Creation{InputFileID: file, Endpoint: endpoint, CompletionWindow: "24h", Metadata: map[string]any{metaKey: d.Key}}
		},
		read: func(body []byte) (snapshot, error) {
			var b batches.Batch
			err := json.Unmarshal(body, &b)
			return openAIBatch(&b), err
		},
		page: func(body []byte, _ int) (all []snapshot, next string, err error) {
			var page batches.List[batches.Batch]
			err = json.Unmarshal(body, &page)
			for i := range page.Data {
				all = append(all, openAIBatch(&page.Data[i]))
			}
			// Groq does not say whether there is more.
			if n := len(all); n > 0 && (page.HasMore || n >= 100) {
				next = "?limit=100&after=" + url.QueryEscape(all[n-1].id)
			}
			return all, next, err
		},
	}
}

// azureForm is Azure's: OpenAI's, except that a file may have to be waited for, and that the endpoint of a batch is not that
// of its lines.
func azureForm() form {
	f := openAIForm()
	f.settles = true
	f.creation = func(d *batch.Draft, file, endpoint string) any {
		return batches.Creation{InputFileID: file, Endpoint: strings.TrimPrefix(endpoint, "/v1"), CompletionWindow: "24h", Metadata: map[string]any{metaKey: d.Key}}
	}
	f.read = func(body []byte) (snapshot, error) {
		var b batches.AzureBatch
		err := json.Unmarshal(body, &b)
		return openAIBatch(b.OpenAI()), err
	}
	f.page = func(body []byte, _ int) (all []snapshot, next string, err error) {
		var page batches.List[batches.AzureBatch]
		err = json.Unmarshal(body, &page)
		for i := range page.Data {
			all = append(all, openAIBatch(page.Data[i].OpenAI()))
		}
		if n := len(all); n > 0 && page.HasMore {
			next = "?limit=100&after=" + url.QueryEscape(all[n-1].id)
		}
		return all, next, err
	}
	return f
}

func openAIBatch(b *batches.Batch) snapshot {
	n := b.RequestCounts
	out := snapshot{
		id: b.ID, file: b.InputFileID, key: stringOf(b.Metadata[metaKey]), created: unixTime(b.CreatedAt), refusal: b.Error,
		state:   batch.State{Phase: batch.Running, Total: n.Total, Answered: n.Completed, Failed: n.Failed, Expires: unixTime(b.ExpiresAt)},
		outputs: namedFiles(b.OutputFileID, b.ErrorFileID),
	}
	switch b.Status {
	case batches.Completed, batches.Expired, batches.Cancelled:
		out.state.Phase = batch.Ended
	case batches.Failed:
		if n.Completed > 0 || len(namedFiles(b.OutputFileID)) > 0 { // it failed on the way, so some lines were answered
			out.state.Phase = batch.Ended
			break
		}
		out.state.Phase = batch.Failed
		if b.Errors == nil {
			break
		}
		for _, e := range b.Errors.Data {
			f := batchFault(e.Code, e.Message)
			if e.Line != nil {
				f.Line = *e.Line
			}
			out.state.Faults = append(out.state.Faults, f)
		}
	}
	return out
}

func unixTime(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// mistralForm is Mistral's.
func mistralForm() form {
	return form{
		files: "/files", fields: "purpose=batch", batches: "/batch/jobs", first: "?page_size=100&page=0", cancel: "/cancel", bare: true,
		creation: func(d *batch.Draft, file, endpoint string) any {
			_, model := llm.SplitModel(d.Requests[0].Request.Model)
			return batches.MistralCreation{InputFiles: []string{file}, Model: model, Endpoint: endpoint, Metadata: map[string]any{metaKey: d.Key}, TimeoutHours: 24}
		},
		read: func(body []byte) (snapshot, error) {
			var b batches.MistralBatch
			err := json.Unmarshal(body, &b)
			out := mistralBatch(&b)
			out.refusal = body // if it is not a batch
			return out, err
		},
		page: func(body []byte, n int) (all []snapshot, next string, err error) {
			var page batches.MistralList
			err = json.Unmarshal(body, &page)
			for i := range page.Data {
				all = append(all, mistralBatch(&page.Data[i]))
			}
			if len(all) > 0 && (n+1)*100 < page.Total {
				next = "?page_size=100&page=" + strconv.Itoa(n+1)
			}
			return all, next, err
		},
	}
}

func mistralBatch(b *batches.MistralBatch) snapshot {
	out := snapshot{
		id: b.ID, key: stringOf(b.Metadata[metaKey]), created: unixTime(b.CreatedAt),
		state:   batch.State{Phase: batch.Running, Total: b.Total, Answered: b.Succeeded, Failed: b.Failed},
		outputs: namedFiles(b.OutputFile, b.ErrorFile),
	}
	if len(b.InputFiles) > 0 {
		out.file = b.InputFiles[0]
	}
	switch b.Status {
	case batches.MistralSuccess:
		out.state.Phase = batch.Ended
	case batches.MistralTimeout:
		out.state.Phase, out.rest = batch.Ended, batch.ExpiredError()
	case batches.MistralCancelled:
		out.state.Phase, out.rest = batch.Ended, batch.CancelledError()
	case batches.MistralFailed:
		out.state.Phase = batch.Failed
		for _, e := range b.Errors {
			out.state.Faults = append(out.state.Faults, batchFault("failed", e.Message))
		}
		if len(out.outputs) > 0 { // it failed on the way, so some lines were answered
			out.state.Phase = batch.Ended
		}
	}
	return out
}

// togetherForm is Together's. It keeps no name of ours: only the file identifies a batch. Its deadline
// is only a goal, so that a batch is not lost when it has passed.
func togetherForm() form {
	return form{
		files: "/files/upload", fields: "purpose=batch-api&file_name=NAME&file_type=jsonl", batches: "/batches", cancel: "/cancel", bare: true,
		creation: func(_ *batch.Draft, file, endpoint string) any {
			return batches.TogetherCreation{InputFileID: file, Endpoint: endpoint, CompletionWindow: "24h"}
		},
		read: func(body []byte) (snapshot, error) {
			var made batches.TogetherCreated
			if json.Unmarshal(body, &made) == nil && made.Batch != nil {
				return togetherBatch(made.Batch), nil
			}
			var b batches.TogetherBatch
			if json.Unmarshal(body, &b) != nil || b.ID == "" {
				return snapshot{refusal: body}, nil
			}
			return togetherBatch(&b), nil
		},
		page: func(body []byte, _ int) (all []snapshot, next string, err error) {
			var list []batches.TogetherBatch
			if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '{' {
				var page batches.List[batches.TogetherBatch]
				err = json.Unmarshal(body, &page)
				list = page.Data
			} else {
				err = json.Unmarshal(body, &list)
			}
			for i := range list {
				b := togetherBatch(&list[i])
				b.created = time.Time{} // the list has no order that is documented
				all = append(all, b)
			}
			return all, "", err
		},
	}
}

func togetherBatch(b *batches.TogetherBatch) snapshot {
	out := snapshot{
		id: b.ID, file: b.InputFileID, created: b.CreatedAt, outputs: namedFiles(&b.OutputFileID, &b.ErrorFileID),
		state: batch.State{Phase: batch.Running},
	}
	switch b.Status {
	case batches.TogetherCompleted:
		out.state.Phase = batch.Ended
	case batches.TogetherExpired:
		out.state.Phase, out.rest = batch.Ended, batch.ExpiredError()
	case batches.TogetherCancelled:
		out.state.Phase, out.rest = batch.Ended, batch.CancelledError()
	case batches.TogetherFailed:
		out.state.Phase, out.state.Faults = batch.Failed, []batch.Fault{batchFault("failed", b.Error)}
		if len(out.outputs) > 0 {
			out.state.Phase, out.state.Faults = batch.Ended, nil
		}
	}
	return out
}

// lineRE matches the line in "line 2: invalid JSON".
var lineRE = regexp.MustCompile(`\bline ([0-9]{1,7}):`)

// lineIn returns the line of a file that a message names, or 0.
func lineIn(message string) int {
	m := lineRE.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// stableLooks is how often the counts of a cancelled batch must be the same before they are believed:
// requests in flight may still be answered, and then count as such again.
const stableLooks = 4

// xaiForm is xAI's. Its batches have counts instead of a state, and their results come in pages.
func xaiForm() form {
	cancelled := looks{seen: map[string]look{}}
	return form{
		files: "/files", fields: "purpose=batch", batches: "/batches", first: "?limit=100", cancel: ":cancel",
		creation: func(d *batch.Draft, file, _ string) any {
			return batches.XAICreation{Name: nameOf(d.Key), InputFileID: file}
		},
		read: func(body []byte) (snapshot, error) {
			var b batches.XAIBatch
			err := json.Unmarshal(body, &b)
			out := xaiBatch(&b)
			if b.CancelTime != nil && b.State.Cancelled > 0 && out.state.Phase == batch.Ended && cancelled.add(b.ID, b.State) < stableLooks {
				out.state.Phase = batch.Running
			}
			return out, err
		},
		page: func(body []byte, _ int) (all []snapshot, next string, err error) {
			var page batches.XAIList
			err = json.Unmarshal(body, &page)
			for i := range page.Batches {
				all = append(all, xaiBatch(&page.Batches[i]))
			}
			if page.Next != "" {
				next = "?limit=100&pagination_token=" + url.QueryEscape(page.Next)
			}
			return all, next, err
		},
		results: xaiResults,
	}
}

// looks counts how often batches were seen with the same counts.
type looks struct {
	mu   sync.Mutex
	seen map[string]look
}

type look struct {
	state batches.XAIState
	n     int
}

func (l *looks) add(id string, s batches.XAIState) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.seen[id]
	if at.state != s {
		at = look{state: s}
	}
	at.n++
	l.seen[id] = at
	return at.n
}

func xaiBatch(b *batches.XAIBatch) snapshot {
	n := b.State
	out := snapshot{
		id: b.ID, file: b.InputFileID, key: keyIn(b.Name), refusal: b.Error,
		state: batch.State{Phase: batch.Running, Total: n.Requests, Answered: n.Success, Failed: n.Error + n.Cancelled},
	}
	switch {
	case b.CancelledBy != nil && n.Success+n.Error == 0: // the file is wrong
		f := batchFault("failed", *b.CancelledBy)
		f.Line = lineIn(f.Message)
		out.state.Phase, out.state.Faults = batch.Failed, []batch.Fault{f}
	case n.Pending > 0, n.Requests == 0 && b.CancelTime == nil:
	default:
		out.state.Phase = batch.Ended
		if b.CancelTime != nil {
			out.rest = batch.CancelledError()
		}
	}
	return out
}

// xaiResults reads the results page by page.
func xaiResults(ctx context.Context, d *fileAPI, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		b, err := d.fetch(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		at := d.batches + "/" + url.PathEscape(id) + "/results?limit=250"
		for next := at; next != ""; {
			var page batches.XAIResults
			if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: next}, &page); err != nil {
				yield(batch.Result{}, err)
				return
			}
			for i := range page.Results {
				if !yield(d.xaiResult(&page.Results[i]), nil) {
					return
				}
			}
			last := next
			if next = ""; page.Next != "" {
				next = at + "&pagination_token=" + url.QueryEscape(page.Next)
			}
			if next != "" && (next == last || len(page.Results) == 0) {
				yield(batch.Result{}, d.c.Fail(fault.Malformed("the pages of results do not end", nil), "", nil))
				return
			}
		}
		if b.rest != nil {
			yield(batch.Result{Rest: true, Err: d.failure(b.rest, "")}, nil)
		}
	}
}

func (d *fileAPI) xaiResult(r *batches.XAIResult) batch.Result {
	failed := func(e *llm.Error) batch.Result { return batch.Result{CustomID: r.ID, Err: d.failure(e, "")} }
	switch says := r.Result.Error; {
	case r.Result.Response != nil:
		return d.answerResult(r.ID, r.Result.Response.Chat, "")
	case says == batches.XAICancelled:
		return failed(batch.CancelledError())
	case says != "":
		return failed(&llm.Error{Kind: llm.KindServer, Message: "the batch could not answer this request: " + fault.Clean(string(says), fault.MaxMessage)})
	}
	return failed(fault.Malformed("the batch has neither an answer nor an error for this request", nil))
}
