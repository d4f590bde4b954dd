package simhttp

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
)

// uploadGemini answers both steps of an upload: the first gets an address, the second sends the file
// there.
func (s *batchStore) uploadGemini(w http.ResponseWriter, r *http.Request) *Error {
	switch command := r.Header.Get("X-Goog-Upload-Command"); {
	case command == "start":
		w.Header().Set("X-Goog-Upload-Url", origin(r)+"/upload/v1beta/files?upload_id="+s.server.NewID("up")+"&upload_protocol=resumable")
		w.Header().Set("X-Goog-Upload-Status", "active")
		writeBody(w, http.StatusOK, "text/plain", nil)
		return nil
	case r.URL.Query().Get("upload_id") == "" || command != "upload, finalize":
		return invalid("", "The simulation supports resumable uploads in one piece: start, then 'upload, finalize'.")
	}
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, maxBatch, sim.Google); err != nil {
		return err
	}
	w.Header().Set("X-Goog-Upload-Status", "final")
	writeJSON(w, batches.GeminiUpload{File: s.keep("", "batch", buf.Bytes()).gemini()})
	return nil
}

// gemini returns the file as Google shows it. Google keeps files for two days.
func (f *storedFile) gemini() batches.GeminiFile {
	made := time.Unix(f.CreatedAt, 0).UTC()
	return batches.GeminiFile{Name: "files/" + f.ID, MimeType: "application/jsonl", SizeBytes: int64(f.Bytes), State: "ACTIVE", CreateTime: made, ExpireTime: made.Add(48 * time.Hour)}
}

// geminiFile answers with a file, or with its object.
func (s *batchStore) geminiFile(w http.ResponseWriter, r *http.Request) *Error {
	id, method, _ := strings.Cut(r.PathValue("id"), ":")
	f := s.file(id)
	switch {
	case f == nil:
		return noGemini()
	case method == "download":
		writeBody(w, http.StatusOK, "application/octet-stream", f.content)
	default:
		writeJSON(w, f.gemini())
	}
	return nil
}

func noGemini() *Error {
	return notFound(sim.Google, "", "Requested entity was not found.")
}

func (s *batchStore) deleteGemini(w http.ResponseWriter, r *http.Request) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[r.PathValue("id")] == nil {
		return noGemini()
	}
	delete(s.files, r.PathValue("id"))
	writeJSON(w, struct{}{})
	return nil
}

// createGemini answers POST /v1beta/models/MODEL:batchGenerateContent, with the requests in a file.
func (s *batchStore) createGemini(w http.ResponseWriter, r *http.Request, model string) *Error {
	var req batches.GeminiCreation
	if err := s.server.decodeSmall(w, r, &req); err != nil {
		return err
	}
	f := s.file(strings.TrimPrefix(req.Batch.InputConfig.FileName, "files/"))
	if f == nil {
		return noGemini()
	}
	return s.create(w, r, &batch{id: s.server.NewID("b"), style: sim.Google, name: req.Batch.DisplayName, model: model, fileID: f.ID}, f.content)
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
