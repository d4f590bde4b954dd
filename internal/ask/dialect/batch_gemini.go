package dialect

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"parley/internal/ask/batch"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// geminiAPI is Gemini's batch API, with a file of requests. The display name of a batch has our key.
type geminiAPI struct {
	batchConn
	host string // of the provider, with its port
	path string // of the base URL, such as /v1beta
}

func newGeminiAPI(c batchConn) (*geminiAPI, error) {
	u, err := url.Parse(strings.TrimRight(c.p.BaseURL, "/"))
	if err != nil {
		return nil, err
	}
	return &geminiAPI{batchConn: c, host: u.Host, path: u.EscapedPath()}, nil
}

const geminiBatches = "/batches"

// Create implements batch.API.
func (d *geminiAPI) Create(ctx context.Context, draft *batch.Draft, uploaded func(context.Context, string) error) (string, error) {
	file, err := d.upload(ctx, draft)
	if err != nil {
		return "", markCertain(err)
	}
	if err := uploaded(ctx, file); err != nil {
		return "", err
	}
	var asked batches.GeminiCreation
	asked.Batch.DisplayName, asked.Batch.InputConfig.FileName = nameOf(draft.Key), file
	b, err := json.Marshal(asked)
	if err != nil {
		return "", err
	}
	_, model := llm.SplitModel(draft.Requests[0].Request.Model)
	var made batches.GeminiBatch
	at := "/models/" + url.PathEscape(model) + ":batchGenerateContent"
	_, err = d.askSmall(ctx, transport.Request{Path: at, Body: b}, &made)
	return d.created(made.Name, err)
}

// upload sends the requests as a file: it asks for an address, and sends the file there.
func (d *geminiAPI) upload(ctx context.Context, draft *batch.Draft) (string, error) {
	s := lineStream(&d.batchConn, draft, `{"key":"`, `","request":`)
	var made batches.GeminiUpload
	made.File.DisplayName = nameOf(draft.Key)
	b, err := json.Marshal(made)
	if err != nil {
		return "", err
	}
	size := strconv.FormatInt(s.size(), 10)
	a, err := d.c.Do(ctx, transport.Request{
		Path: "/upload" + d.path + "/files", Root: true, Body: b, Header: http.Header{
			"X-Goog-Upload-Protocol": {"resumable"}, "X-Goog-Upload-Command": {"start"},
			"X-Goog-Upload-Header-Content-Length": {size}, "X-Goog-Upload-Header-Content-Type": {"application/jsonl"},
		},
	})
	if err != nil {
		return "", d.c.Fail(err, "", nil)
	}
	target := a.Header.Get("X-Goog-Upload-Url")
	a.Close()
	path, err := d.local(target)
	if err != nil {
		return "", err
	}
	made = batches.GeminiUpload{}
	send := s.request(path, http.Header{"Content-Type": {"application/jsonl"}, "X-Goog-Upload-Offset": {"0"}, "X-Goog-Upload-Command": {"upload, finalize"}})
	send.Root = true
	_, err = d.exchange(ctx, send, &made)
	if err == nil && made.File.Name == "" {
		err = d.c.Fail(fault.Malformed("the answer to an upload names no file", nil), "", nil)
	}
	return made.File.Name, err
}

// local returns the path and query of an address that the server gave. The key is sent there, so it
// must be on the provider's own host.
func (d *geminiAPI) local(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Path == "" || u.Host != d.host {
		return "", d.c.Fail(fault.Malformed("the address for the upload is not on the provider's host, and the key is sent nowhere else: "+fault.Clean(address, 100), nil), "", nil)
	}
	path := u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path, nil
}

// Find implements batch.API: it looks for the batch with our key. The order of the list is not
// documented, so all pages are read.
func (d *geminiAPI) Find(ctx context.Context, o *batch.Open, _ func(string) bool) (batch.Found, error) {
	if o.File == "" {
		return batch.Found{Never: true}, nil
	}
	token := ""
	for range maxBatchPages {
		var page batches.GeminiList
		if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: geminiBatches + "?pageSize=100" + token}, &page); err != nil {
			return batch.Found{}, err
		}
		for i := range page.Operations {
			if keyIn(page.Operations[i].Metadata.DisplayName) == o.Key {
				return batch.Found{ID: page.Operations[i].Name}, nil
			}
		}
		if page.NextPageToken == "" {
			break
		}
		token = "&pageToken=" + url.QueryEscape(page.NextPageToken)
	}
	return batch.Found{}, nil
}

// at returns the address of a batch, whose name is batches/ID.
func (d *geminiAPI) at(id string) string {
	return geminiBatches + "/" + url.PathEscape(strings.TrimPrefix(id, "batches/"))
}

// Cancel implements batch.API.
func (d *geminiAPI) Cancel(ctx context.Context, id string) error {
	_, err := d.askSmall(ctx, transport.Request{Path: d.at(id) + ":cancel", Body: []byte("{}")}, &struct{}{})
	return err
}

// State implements batch.API.
func (d *geminiAPI) State(ctx context.Context, id string) (batch.State, error) {
	b, err := d.fetch(ctx, id)
	if err != nil {
		return batch.State{}, err
	}
	n := b.Metadata.Stats
	st := batch.State{Phase: batch.Running, Total: int(n.Requests), Answered: int(n.Successful), Failed: int(n.Failed)}
	switch stateOf(b) {
	case batches.GeminiSucceeded, batches.GeminiCancelled, batches.GeminiExpired:
		st.Phase = batch.Ended
	case batches.GeminiFailed:
		if out := b.Metadata.Output; n.Successful > 0 || out != nil && out.ResponsesFile != "" { // it failed on the way
			st.Phase = batch.Ended
			break
		}
		e := fault.Classify(0, nil, b.Error)
		st.Phase, st.Faults = batch.Failed, []batch.Fault{batchFault("failed", e.Message)}
	}
	return st, nil
}

// stateOf returns the state of a batch without its prefix.
func stateOf(b *batches.GeminiBatch) string {
	_, state, _ := strings.Cut(b.Metadata.State, "_STATE_")
	return state
}

func (d *geminiAPI) fetch(ctx context.Context, id string) (*batches.GeminiBatch, error) {
	var b batches.GeminiBatch
	if _, err := d.askSmall(ctx, transport.Request{Method: http.MethodGet, Path: d.at(id)}, &b); err != nil {
		return nil, err
	}
	if b.Name == "" {
		return nil, d.noBatch(id, b.Error)
	}
	return &b, nil
}

// Results implements batch.API. A batch that was cancelled or expired may have no file.
func (d *geminiAPI) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		b, err := d.fetch(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		if out := b.Metadata.Output; out != nil && out.ResponsesFile != "" {
			name := strings.TrimPrefix(out.ResponsesFile, "files/")
			call := transport.Request{Path: "/download" + d.path + "/files/" + url.PathEscape(name) + ":download?alt=media", Root: true}
			if !d.yieldLines(ctx, call, geminiResult, yield) {
				return
			}
		}
		var rest *llm.Error
		switch stateOf(b) {
		case batches.GeminiSucceeded:
		case batches.GeminiCancelled:
			rest = batch.CancelledError()
		case batches.GeminiExpired:
			rest = batch.ExpiredError()
		default:
			return // it has not ended
		}
		if rest == nil || yield(batch.Result{Rest: true, Err: llm.AsError(d.c.Fail(rest, "", nil))}, nil) {
			d.discard(ctx, b)
		}
	}
}

// discard deletes the requests of a batch whose results were read. Google deletes them after two days, but all files of a project
// have a limit. If it fails or takes long, that is what happens.
func (d *geminiAPI) discard(ctx context.Context, b *batches.GeminiBatch) {
	if in := b.Metadata.InputConfig; in != nil && strings.HasPrefix(in.FileName, "files/") {
		ctx, cancel := context.WithTimeout(ctx, discardTime)
		defer cancel()
		_, _ = d.askSmall(ctx, transport.Request{Method: http.MethodDelete, Path: "/files/" + url.PathEscape(strings.TrimPrefix(in.FileName, "files/"))}, &struct{}{})
	}
}

// geminiResult reads a line of an output file.
func geminiResult(line []byte, decode func([]byte) (*llm.Response, error)) batch.Result {
	var l batches.GeminiResult
	if json.Unmarshal(line, &l) != nil {
		return batch.Result{}
	}
	switch {
	case len(l.Response) > 0:
		return answerResult(l.Key, l.Response, "", decode)
	case len(l.Error) > 0:
		return batch.Result{CustomID: l.Key, Err: geminiFault(l.Error)}
	}
	return batch.Result{CustomID: l.Key, Err: fault.Malformed("the batch has neither an answer nor an error for this request", nil)}
}

// geminiFault reads the error of a line. Its code is of gRPC, not of HTTP.
func geminiFault(body json.RawMessage) *llm.Error {
	var of struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &of) != nil || of.Code < 1 || of.Code > 16 {
		return lineFault(body)
	}
	status := map[int]int{3: 400, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 14: 503, 16: 401}[of.Code]
	switch of.Code {
	case 1:
		return batch.CancelledError()
	case 4:
		return batch.ExpiredError()
	}
	if status == 0 {
		status = http.StatusInternalServerError
	}
	converted, err := json.Marshal(map[string]any{"error": map[string]any{"code": status, "message": of.Message}})
	if err != nil {
		converted = nil
	}
	return fault.Classify(status, nil, converted)
}

var _ batch.API = (*geminiAPI)(nil)
