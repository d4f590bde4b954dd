package simhttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
	"parley/internal/ask/wire/body"
)

const (
	geminiMaxBytes  = 2 << 30  // of a file
	geminiMaxInline = 20 << 20 // of a batch with its requests
)

// geminiRoutes adds Gemini's files and batches. A batch is created at the address of its model: see
// CreateGemini.
func (s *batchStore) geminiRoutes(handle func(pattern string, style sim.Style, e Func)) {
	handle("POST /upload/v1beta/files", sim.Google, s.uploadGemini)
	handle("GET /download/v1beta/files/{id}", sim.Google, s.geminiFile)
	handle("GET /v1beta/files", sim.Google, s.listGeminiFiles)
	handle("GET /v1beta/files/{id}", sim.Google, s.geminiFile) // Google's SDKs download here
	handle("DELETE /v1beta/files/{id}", sim.Google, s.deleteGemini)
	handle("GET /v1beta/batches", sim.Google, s.listGemini)
	handle("GET /v1beta/batches/{id}", sim.Google, s.one(batchGemini, s.show))
	handle("POST /v1beta/batches/{id}", sim.Google, s.one(batchGemini, s.cancelGemini))
	handle("DELETE /v1beta/batches/{id}", sim.Google, s.one(batchGemini, s.deleteGeminiBatch))
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

func (s *batchStore) listGeminiFiles(w http.ResponseWriter, r *http.Request) *Error {
	page, more := pageAfter(s.files.Newest(), r.URL.Query().Get("pageToken"), 100, func(f *storedFile) string { return f.ID })
	list := make([]batches.GeminiFile, len(page))
	for i, f := range page {
		list[i] = f.Gemini()
	}
	next := ""
	if more {
		next = page[len(page)-1].ID
	}
	writeJSON(w, map[string]any{"files": list, "nextPageToken": next})
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
	if err := readBody(w, r, &buf, s.maxBytes(geminiMaxInline), sim.Google); err != nil {
		return err
	}
	var req batches.GeminiCreation
	if err := decodeBody(buf.Bytes(), &req, s.lax); err != nil {
		return err
	}
	if req.Batch.DisplayName == "" {
		return invalid("", "batch.displayName is required.")
	}
	first := batch{vendor: batchGemini, name: req.Batch.DisplayName, model: model, endpoint: "/v1beta/models/" + model + ":generateContent"}
	content, err := s.geminiInput(&first, req.Batch.InputConfig)
	if err != nil {
		return err
	}
	fresh := func() *batch {
		return &batch{
			id: s.host.NewID("b"), vendor: batchGemini, name: first.name, model: model, endpoint: first.endpoint,
			fileID: first.fileID, inline: first.inline, metadatas: first.metadatas,
		}
	}
	checked := fresh()
	if s.checkLines(checked, time.Now()); len(checked.faults) > 0 {
		return invalid("", "Invalid batch: %s", checked.faults[0].Message)
	}
	made, err := s.create(fresh(), content, r)
	return answer(w, made, err)
}

// geminiInput returns the lines of a new batch, which are in a file or came with it.
func (s *batchStore) geminiInput(b *batch, in batches.GeminiInput) ([]byte, *Error) {
	if body.IsNull(in.Requests) {
		f := s.files.Find(strings.TrimPrefix(in.FileName, "files/"))
		if f == nil {
			return nil, notFound(sim.Google, "", "File "+in.FileName+" not found.")
		}
		b.fileID = f.ID
		return f.Content, nil
	}
	var list struct {
		Requests []struct {
			Request  json.RawMessage `json:"request"`
			Metadata json.RawMessage `json:"metadata"`
		} `json:"requests"`
	}
	if err := decodeBody(in.Requests, &list, s.lax); err != nil {
		return nil, err
	}
	b.inline = []byte{} // not nil: an empty list is no file
	for i, one := range list.Requests {
		b.inline = append(b.inline, line(batches.GeminiLine{Key: strconv.Itoa(i), Request: one.Request})...)
		b.metadatas = append(b.metadatas, one.Metadata)
	}
	return b.inline, nil
}

// geminiInlined returns the answers of a batch whose requests came with it, in their order.
func geminiInlined(b *batch) json.RawMessage {
	type inlined struct {
		Response json.RawMessage `json:"response,omitempty"`
		Error    json.RawMessage `json:"error,omitempty"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}
	all := make([]inlined, len(b.metadatas))
	for i := range all {
		all[i].Error = json.RawMessage(`{"code":4,"message":"The request was not executed."}`)
		all[i].Metadata = b.metadatas[i]
	}
	for raw := range bytes.Lines(b.done.content) {
		var got batches.GeminiResult
		if json.Unmarshal(raw, &got) != nil {
			continue // not reached: they are ours
		}
		if i, err := strconv.Atoi(got.Key); err == nil && i < len(all) {
			all[i].Response, all[i].Error = got.Response, got.Error
		}
	}
	return line(map[string]any{"inlinedResponses": all})
}

// deleteGeminiBatch forgets a batch.
func (s *batchStore) deleteGeminiBatch(b *batch, _ *http.Request, _ time.Time) (any, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = slices.DeleteFunc(s.order, func(other *batch) bool { return other == b })
	return struct{}{}, nil
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
		CreateTime: b.created.UTC(), UpdateTime: now.UTC(), State: "BATCH_STATE_" + state,
		Stats: batches.GeminiStats{Requests: int64(len(b.lines)), Successful: done, Pending: int64(len(b.lines)) - done},
	}}
	if b.inline == nil {
		o.Metadata.InputConfig = &batches.GeminiInput{FileName: "files/" + b.fileID}
	}
	if len(b.faults) > 0 {
		o.Error = line(map[string]any{"code": 3, "message": b.faults[0].Message})
	}
	if res := b.done; res != nil {
		n, at := res.counts, res.at.UTC()
		o.Metadata.EndTime = &at
		o.Metadata.Stats = batches.GeminiStats{Requests: int64(n.Total()), Successful: int64(n.Succeeded), Failed: int64(n.Errored)}
		switch {
		case b.inline != nil:
			o.Metadata.Output = &batches.GeminiOutput{Inlined: geminiInlined(b)}
		case res.outputID != "":
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
