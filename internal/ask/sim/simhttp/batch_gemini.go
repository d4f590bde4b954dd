package simhttp

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/body"
)

const geminiMaxBytes = 2 << 30

// geminiRoutes adds Gemini's files and batches. A batch is created at the address of its model: see
// CreateGemini.
func (s *batchStore) geminiRoutes(handle func(pattern string, style sim.Style, e Func)) {
	handle("POST /upload/v1beta/files", sim.Google, s.uploadGemini)
	handle("GET /download/v1beta/files/{id}", sim.Google, s.geminiFile)
	handle("GET /v1beta/files/{id}", sim.Google, s.geminiFile) // Google's SDKs download here
	handle("DELETE /v1beta/files/{id}", sim.Google, s.deleteGemini)
	handle("GET /v1beta/batches", sim.Google, s.listGemini)
	handle("GET /v1beta/batches/{id}", sim.Google, s.one(batchGemini, s.show))
	handle("POST /v1beta/batches/{id}", sim.Google, s.one(batchGemini, s.cancelGemini))
}

// uploadGemini answers both steps of an upload: the first gets an address, the second sends the file
// there.
func (s *batchStore) uploadGemini(w http.ResponseWriter, r *http.Request) *Error {
	if r.Header.Get("X-Goog-Upload-Command") == "start" {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		w.Header().Set("X-Goog-Upload-Url", scheme+r.Host+"/upload/v1beta/files?upload_id="+s.host.NewID("up")+"&upload_protocol=resumable")
		w.Header().Set("X-Goog-Upload-Status", "active")
		writeBody(w, http.StatusOK, "text/plain", nil)
		return nil
	}
	if r.URL.Query().Get("upload_id") == "" || r.Header.Get("X-Goog-Upload-Command") != "upload, finalize" {
		return invalid("", "The simulation supports resumable uploads in one piece: start, then 'upload, finalize'.")
	}
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, s.maxBytes(geminiMaxBytes), sim.Google); err != nil {
		return err
	}
	f := newFile(s.host.NewID("f"), "", "batch", buf.Bytes(), time.Now())
	if !s.files.Add(f) {
		return invalid("", "The project has reached its limit of stored files.")
	}
	w.Header().Set("X-Goog-Upload-Status", "final")
	writeJSON(w, batches.GeminiUpload{File: f.Gemini()})
	return nil
}

// geminiFile answers with a file, or with its object.
func (s *batchStore) geminiFile(w http.ResponseWriter, r *http.Request) *Error {
	id, method, _ := strings.Cut(r.PathValue("id"), ":")
	f := s.files.Find(id)
	switch {
	case f != nil && method == "download" && r.URL.Query().Get("alt") == "media":
		writeBody(w, http.StatusOK, "application/octet-stream", f.Content)
	case f != nil && method == "" && strings.HasPrefix(r.URL.Path, "/v1beta/"):
		writeJSON(w, f.Gemini())
	default:
		return noGemini()
	}
	return nil
}

func noGemini() *Error {
	return notFound(sim.Google, "", "Requested entity was not found.")
}

func (s *batchStore) deleteGemini(w http.ResponseWriter, r *http.Request) *Error {
	if !s.files.Remove(r.PathValue("id")) {
		return noGemini()
	}
	writeJSON(w, struct{}{})
	return nil
}

// CreateGemini answers POST /v1beta/models/MODEL:batchGenerateContent. Like the vendor, it checks the
// lines of the file at once.
func (s *batchStore) CreateGemini(w http.ResponseWriter, r *http.Request, model string) *Error {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, 1<<20, sim.Google); err != nil {
		return err
	}
	var req batches.GeminiCreation
	if err := decodeBody(buf.Bytes(), &req, s.lax); err != nil {
		return err
	}
	in := req.Batch.InputConfig
	if !body.IsNull(in.Requests) {
		return invalid("", "The simulation takes the requests of a batch in a file: inputConfig.fileName")
	}
	f := s.files.Find(strings.TrimPrefix(in.FileName, "files/"))
	switch {
	case f == nil:
		return notFound(sim.Google, "", "File "+in.FileName+" not found.")
	case req.Batch.DisplayName == "":
		return invalid("", "batch.displayName is required.")
	}
	fresh := func() *batch {
		return &batch{
			id: s.host.NewID("b"), vendor: batchGemini, name: req.Batch.DisplayName, model: model, fileID: f.ID,
			endpoint: "/v1beta/models/" + model + ":generateContent",
		}
	}
	checked := fresh()
	if s.checkLines(checked, time.Now()); len(checked.faults) > 0 {
		return invalid("", "Invalid batch: %s", checked.faults[0].Message)
	}
	made, err := s.create(fresh(), f.Content, r)
	return answer(w, made, err)
}

func (s *batchStore) cancelGemini(b *batch, r *http.Request, now time.Time) (any, *Error) {
	if !strings.HasSuffix(r.PathValue("id"), ":cancel") {
		return nil, noGemini()
	}
	if _, err := s.cancelAny(b, r, now); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

func (s *batchStore) geminiObject(b *batch, now time.Time) batches.GeminiBatch {
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

func (s *batchStore) listGemini(w http.ResponseWriter, r *http.Request) *Error {
	page, more := pageAfter(s.newest(batchGemini), r.URL.Query().Get("pageToken"), 100, batchID)
	list := batches.GeminiList{Operations: objects(page, func(b *batch) batches.GeminiBatch { return s.geminiObject(b, time.Now()) })}
	if more {
		list.NextPageToken = page[len(page)-1].id
	}
	writeJSON(w, list)
	return nil
}
