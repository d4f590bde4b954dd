package batch

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/batch/filestore"
	"parley/internal/dialect/sim/simhttp/endpoint"
	"parley/internal/wire/batches"
	"parley/internal/wire/body"
)

const geminiMaxBytes = 2 << 30

// geminiRoutes adds Gemini's files and batches. A batch is created at the address of its model: see
// CreateGemini.
func (s *Store) geminiRoutes(handle func(pattern string, style quota.Style, e endpoint.Func)) {
	handle("POST /upload/v1beta/files", quota.Google, s.uploadGemini)
	handle("GET /download/v1beta/files/{id}", quota.Google, s.geminiFile)
	handle("GET /v1beta/files/{id}", quota.Google, s.geminiFile) // Google's SDKs download here
	handle("DELETE /v1beta/files/{id}", quota.Google, s.deleteGemini)
	handle("GET /v1beta/batches", quota.Google, s.listGemini)
	handle("GET /v1beta/batches/{id}", quota.Google, s.one(gemini, s.show))
	handle("POST /v1beta/batches/{id}", quota.Google, s.one(gemini, s.cancelGemini))
}

// uploadGemini answers both steps of an upload: the first gets an address, the second sends the file
// there.
func (s *Store) uploadGemini(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	if r.Header.Get("X-Goog-Upload-Command") == "start" {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		w.Header().Set("X-Goog-Upload-Url", scheme+r.Host+"/upload/v1beta/files?upload_id="+s.host.NewID("up")+"&upload_protocol=resumable")
		w.Header().Set("X-Goog-Upload-Status", "active")
		endpoint.WriteBody(w, http.StatusOK, "text/plain", nil)
		return nil
	}
	if r.URL.Query().Get("upload_id") == "" || r.Header.Get("X-Goog-Upload-Command") != "upload, finalize" {
		return endpoint.Invalid("", "The simulation supports resumable uploads in one piece: start, then 'upload, finalize'.")
	}
	var buf bytes.Buffer
	if err := endpoint.ReadBody(w, r, &buf, s.maxBytes(geminiMaxBytes), quota.Google); err != nil {
		return err
	}
	f := filestore.New(s.host.NewID("f"), "", "batch", buf.Bytes(), time.Now())
	if !s.files.Add(f) {
		return endpoint.Invalid("", "The project has reached its limit of stored files.")
	}
	w.Header().Set("X-Goog-Upload-Status", "final")
	endpoint.WriteJSON(w, batches.GeminiUpload{File: f.Gemini()})
	return nil
}

// geminiFile answers with a file, or with its object.
func (s *Store) geminiFile(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	id, method, _ := strings.Cut(r.PathValue("id"), ":")
	f := s.files.Find(id)
	switch {
	case f != nil && method == "download" && r.URL.Query().Get("alt") == "media":
		endpoint.WriteBody(w, http.StatusOK, "application/octet-stream", f.Content)
	case f != nil && method == "" && strings.HasPrefix(r.URL.Path, "/v1beta/"):
		endpoint.WriteJSON(w, f.Gemini())
	default:
		return noGemini()
	}
	return nil
}

func noGemini() *endpoint.Error {
	return endpoint.NotFound(quota.Google, "", "Requested entity was not found.")
}

func (s *Store) deleteGemini(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	if !s.files.Remove(r.PathValue("id")) {
		return noGemini()
	}
	endpoint.WriteJSON(w, struct{}{})
	return nil
}

// CreateGemini answers POST /v1beta/models/MODEL:batchGenerateContent. Like the vendor, it checks the
// lines of the file at once.
func (s *Store) CreateGemini(w http.ResponseWriter, r *http.Request, model string) *endpoint.Error {
	var buf bytes.Buffer
	if err := endpoint.ReadBody(w, r, &buf, 1<<20, quota.Google); err != nil {
		return err
	}
	var req batches.GeminiCreation
	if err := endpoint.Decode(buf.Bytes(), &req, s.lax); err != nil {
		return err
	}
	in := req.Batch.InputConfig
	if !body.IsNull(in.Requests) {
		return endpoint.Invalid("", "The simulation takes the requests of a batch in a file: inputConfig.fileName")
	}
	f := s.files.Find(strings.TrimPrefix(in.FileName, "files/"))
	switch {
	case f == nil:
		return endpoint.NotFound(quota.Google, "", "File "+in.FileName+" not found.")
	case req.Batch.DisplayName == "":
		return endpoint.Invalid("", "batch.displayName is required.")
	}
	fresh := func() *batch {
		return &batch{
			id: s.host.NewID("b"), vendor: gemini, name: req.Batch.DisplayName, model: model, fileID: f.ID,
			endpoint: "/v1beta/models/" + model + ":generateContent",
		}
	}
	checked := fresh()
	if s.checkLines(checked, time.Now()); len(checked.faults) > 0 {
		return endpoint.Invalid("", "Invalid batch: %s", checked.faults[0].Message)
	}
	made, err := s.create(fresh(), f.Content, r)
	return answer(w, made, err)
}

func (s *Store) cancelGemini(b *batch, r *http.Request, now time.Time) (any, *endpoint.Error) {
	if !strings.HasSuffix(r.PathValue("id"), ":cancel") {
		return nil, noGemini()
	}
	if _, err := s.cancelAny(b, r, now); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

func (s *Store) geminiObject(b *batch, now time.Time) batches.GeminiBatch {
	state := map[string]string{
		batches.Validating: batches.GeminiPending, batches.Cancelled: batches.GeminiCancelled, batches.Expired: batches.GeminiExpired,
		batches.Failed: batches.GeminiFailed, batches.Completed: batches.GeminiSucceeded,
	}[s.state(b, now)]
	if state == "" {
		state = batches.GeminiRunning
	}
	done := int64(b.progress(now))
	o := batches.GeminiBatch{Name: "batches/" + b.id, Done: b.done != nil, Metadata: batches.GeminiMetadata{
		Type: "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch", Model: "models/" + b.model, DisplayName: b.name,
		CreateTime: b.created.UTC(), UpdateTime: now.UTC(), State: "BATCH_STATE_" + state, InputConfig: &batches.GeminiInput{FileName: "files/" + b.fileID},
		Stats: batches.GeminiStats{Requests: int64(len(b.lines)), Successful: done, Pending: int64(len(b.lines)) - done},
	}}
	if len(b.faults) > 0 {
		o.Error = line(map[string]any{"code": 3, "message": b.faults[0].Message})
	}
	if res := b.done; res != nil {
		n, at := res.counts, res.at.UTC()
		o.Metadata.EndTime = &at
		o.Metadata.Stats = batches.GeminiStats{Requests: int64(n.Total()), Successful: int64(n.Succeeded), Failed: int64(n.Errored)}
		if res.outputID != "" {
			o.Metadata.Output = &batches.GeminiOutput{ResponsesFile: "files/" + res.outputID}
		}
	}
	return o
}

func (s *Store) listGemini(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	page, more := pageAfter(s.newest(gemini), r.URL.Query().Get("pageToken"), 100, batchID)
	list := batches.GeminiList{Operations: objects(page, func(b *batch) batches.GeminiBatch { return s.geminiObject(b, time.Now()) })}
	if more {
		list.NextPageToken = page[len(page)-1].id
	}
	endpoint.WriteJSON(w, list)
	return nil
}
