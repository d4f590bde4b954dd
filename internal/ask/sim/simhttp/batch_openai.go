package simhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
)

// uploadFile answers POST /v1/files.
func (s *batchStore) uploadFile(w http.ResponseWriter, r *http.Request) *Error {
	r.Body = http.MaxBytesReader(w, r.Body, maxBatch)
	form, err := r.MultipartReader()
	if err != nil {
		return invalid("", "Invalid request: expected a multipart/form-data body with a file.")
	}
	fields, name := map[string][]byte{}, ""
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return invalid("", "Invalid request: the multipart body could not be read.")
		}
		var buf bytes.Buffer
		if _, err := buf.ReadFrom(part); err != nil {
			return invalid("file", "Invalid request: the file could not be read.")
		}
		fields[part.FormName()] = buf.Bytes()
		if part.FormName() == "file" {
			name = part.FileName()
		}
	}
	if string(fields["purpose"]) != "batch" || len(fields["file"]) == 0 {
		return invalid("purpose", "Invalid request: want a file with the purpose 'batch'.")
	}
	writeJSON(w, s.keep(name, "batch", fields["file"]).File)
	return nil
}

// showFile answers with the object of a file, or with its content.
func (s *batchStore) showFile(w http.ResponseWriter, r *http.Request) *Error {
	f := s.file(r.PathValue("id"))
	switch {
	case f == nil:
		return notFound(sim.OpenAI, "id", "No such File object: "+r.PathValue("id"))
	case strings.HasSuffix(r.URL.Path, "/content"):
		writeBody(w, http.StatusOK, "application/octet-stream", f.content)
	default:
		writeJSON(w, f.File)
	}
	return nil
}

// createBatch answers POST /v1/batches. At Azure, the endpoint of a batch has no version.
func (s *batchStore) createBatch(w http.ResponseWriter, r *http.Request) *Error {
	var req batches.Creation
	if err := s.server.decodeSmall(w, r, &req); err != nil {
		return err
	}
	endpoint := req.Endpoint
	if isAzure(r) {
		endpoint = "/v1" + endpoint
	}
	f := s.file(req.InputFileID)
	switch {
	case f == nil || f.Purpose != "batch":
		return invalid("input_file_id", "No such File object: %s", req.InputFileID)
	case !slices.Contains([]string{"/v1/chat/completions", "/v1/responses"}, endpoint):
		return invalid("endpoint", "Invalid value: '%s'.", req.Endpoint)
	case req.CompletionWindow != "24h":
		return invalid("completion_window", "Invalid value: '%s'.", req.CompletionWindow)
	}
	b := &batch{id: s.server.NewID("batch_"), style: sim.OpenAI, azure: isAzure(r), endpoint: endpoint, fileID: f.ID, metadata: req.Metadata}
	return s.create(w, r, b, f.content)
}

// openAIObject returns the object of a batch. The status of Azure's begins with a capital letter.
func (s *batchStore) openAIObject(b *batch, now time.Time) batches.Batch {
	status := s.state(b, now)
	o := batches.Batch{
		ID: b.id, Object: "batch", Endpoint: b.endpoint, InputFileID: b.fileID, CompletionWindow: "24h", Status: status,
		CreatedAt: moment(b.created), ExpiresAt: moment(b.created.Add(24 * time.Hour)), Metadata: b.metadata,
	}
	if b.azure {
		o.Status = strings.ToUpper(status[:1]) + status[1:]
	}
	if len(b.faults) > 0 {
		o.Errors = &batches.Faults{Object: "list", Data: b.faults}
	}
	if status != batches.Validating && status != batches.Failed {
		o.RequestCounts = batches.Counts{Total: len(b.lines), Completed: b.progress(now)}
	}
	res := b.done
	if res == nil {
		return o
	}
	at := moment(res.at)
	for state, field := range map[string]**batches.Moment{
		batches.Failed: &o.FailedAt, batches.Expired: &o.ExpiredAt, batches.Cancelled: &o.CancelledAt, batches.Completed: &o.CompletedAt,
	} {
		if res.state == state {
			*field = &at
		}
	}
	if res.outputID != "" {
		o.OutputFileID = &res.outputID
	}
	if res.errorID != "" {
		o.ErrorFileID = &res.errorID
	}
	n := res.counts
	o.RequestCounts = batches.Counts{Total: n.Total(), Completed: n.Succeeded, Failed: n.Errored + n.Expired}
	return o
}

func moment(t time.Time) batches.Moment { return batches.Moment(t.Unix()) }
