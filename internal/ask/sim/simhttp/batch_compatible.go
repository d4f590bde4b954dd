package simhttp

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
)

// compatibleRoutes adds the batch APIs of Mistral, Together and xAI, each below its own name, since
// the last two use the same paths as OpenAI's.
func (s *batchStore) compatibleRoutes(handle func(pattern string, style sim.Style, e Func)) {
	for _, at := range []string{"/mistral/v1", "/xai/v1"} {
		handle("POST "+at+"/files", sim.OpenAI, s.uploadFile)
	}
	handle("POST /together/v1/files/upload", sim.OpenAI, s.uploadFile)
	for _, at := range []string{"/mistral/v1", "/together/v1"} {
		handle("GET "+at+"/files/{id}/content", sim.OpenAI, s.fileContent)
	}
	handle("POST /mistral/v1/batch/jobs", sim.OpenAI, s.createMistral)
	handle("GET /mistral/v1/batch/jobs", sim.OpenAI, s.listMistral)
	handle("GET /mistral/v1/batch/jobs/{id}", sim.OpenAI, s.one(mistral, s.show))
	handle("POST /mistral/v1/batch/jobs/{id}/cancel", sim.OpenAI, s.one(mistral, s.cancelAny))

	handle("POST /together/v1/batches", sim.OpenAI, s.createTogether)
	handle("GET /together/v1/batches", sim.OpenAI, s.listTogether)
	handle("GET /together/v1/batches/{id}", sim.OpenAI, s.one(together, s.show))
	handle("POST /together/v1/batches/{id}/cancel", sim.OpenAI, s.one(together, s.cancelAny))

	handle("POST /xai/v1/batches", sim.OpenAI, s.createXAI)
	handle("GET /xai/v1/batches", sim.OpenAI, s.listXAI)
	handle("GET /xai/v1/batches/{id}", sim.OpenAI, s.one(xai, s.show))
	handle("POST /xai/v1/batches/{id}", sim.OpenAI, s.one(xai, s.cancelAny))
	handle("GET /xai/v1/batches/{id}/results", sim.OpenAI, s.xaiResults)
}

// createOf reads a small request into v, finds the file that it names, and creates a batch.
func (s *batchStore) createOf(w http.ResponseWriter, r *http.Request, v any, made func() (b *batch, file string)) (any, *Error) {
	var buf bytes.Buffer
	if err := readBody(w, r, &buf, 1<<20, sim.OpenAI); err != nil {
		return nil, err
	}
	if err := decodeBody(buf.Bytes(), v, s.lax); err != nil {
		return nil, err
	}
	b, file := made()
	f := s.files.Find(file)
	switch {
	case f == nil:
		return nil, notFound(b.vendor.style(), "input_file_id", "No such File object: "+file)
	case b.vendor == together && f.Purpose != "batch-api":
		return nil, invalid("input_file_id", "Invalid file purpose '%s': expected 'batch-api'.", f.Purpose)
	case b.vendor != xai && b.endpoint != "/v1/chat/completions":
		return nil, invalid("endpoint", "Invalid value: '%s'. The simulation supports: '/v1/chat/completions'.", b.endpoint)
	}
	b.id, b.fileID = s.host.NewID("batch_"), f.ID
	return s.create(b, f.Content, r)
}

// answer writes the object of a creation.
func answer(w http.ResponseWriter, v any, err *Error) *Error {
	if err == nil {
		writeJSON(w, v)
	}
	return err
}

// cancelAny cancels a batch that has not ended.
func (s *batchStore) cancelAny(b *batch, r *http.Request, now time.Time) (any, *Error) {
	if s.state(b, now); b.done != nil {
		return nil, invalid("", "Batch %s has ended and cannot be cancelled.", b.id)
	}
	if b.cancelled.IsZero() {
		b.cancelled = now
	}
	return s.show(b, r, now)
}

func (s *batchStore) createMistral(w http.ResponseWriter, r *http.Request) *Error {
	var req batches.MistralCreation
	v, err := s.createOf(w, r, &req, func() (*batch, string) {
		file := ""
		if len(req.InputFiles) > 0 {
			file = req.InputFiles[0]
		}
		return &batch{vendor: mistral, endpoint: req.Endpoint, model: req.Model, metadata: req.Metadata}, file
	})
	return answer(w, v, err)
}

func (s *batchStore) mistralObject(b *batch, now time.Time) batches.MistralBatch {
	state := s.state(b, now)
	o := batches.MistralBatch{
		ID: b.id, Object: "batch", InputFiles: []string{b.fileID}, Metadata: b.metadata, Endpoint: b.endpoint, Model: b.model,
		Errors: []batches.MistralFault{}, CreatedAt: b.created.Unix(), Total: len(b.lines), Completed: b.progress(now), Succeeded: b.progress(now),
		Status: map[string]string{
			batches.Validating: batches.MistralQueued, batches.InProgress: batches.MistralRunning, batches.Finalizing: batches.MistralRunning,
			batches.Cancelling: batches.MistralCancelling, batches.Cancelled: batches.MistralCancelled, batches.Expired: batches.MistralTimeout,
			batches.Failed: batches.MistralFailed, batches.Completed: batches.MistralSuccess,
		}[state],
	}
	for _, f := range b.faults {
		o.Errors = append(o.Errors, batches.MistralFault{Message: f.Message, Count: 1})
	}
	if res := b.done; res != nil {
		n := res.counts
		o.CompletedAt, o.OutputFile, o.ErrorFile = unix(res.at), named(res.outputID), named(res.errorID)
		o.Total, o.Completed, o.Succeeded, o.Failed = n.Total(), n.Succeeded+n.Errored, n.Succeeded, n.Errored
	}
	return o
}

func named(file string) *string {
	if file == "" {
		return nil
	}
	return &file
}

func (s *batchStore) listMistral(w http.ResponseWriter, r *http.Request) *Error {
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("page_size"))
	page, _ := strconv.Atoi(q.Get("page"))
	if size < 1 || size > 1000 {
		size = 100
	}
	all := s.newest(mistral)
	list := batches.MistralList{Object: "list", Total: len(all)}
	from := min(max(0, page)*size, len(all))
	list.Data = objects(all[from:min(from+size, len(all))], func(b *batch) batches.MistralBatch { return s.mistralObject(b, time.Now()) })
	writeJSON(w, list)
	return nil
}

func (s *batchStore) createTogether(w http.ResponseWriter, r *http.Request) *Error {
	var req batches.TogetherCreation
	v, err := s.createOf(w, r, &req, func() (*batch, string) {
		return &batch{vendor: together, endpoint: req.Endpoint}, req.InputFileID
	})
	return answer(w, map[string]any{"job": v}, err)
}

func (s *batchStore) togetherObject(b *batch, now time.Time) batches.TogetherBatch {
	o := batches.TogetherBatch{
		ID: b.id, InputFileID: b.fileID, Endpoint: b.endpoint, ModelID: b.model, CreatedAt: b.created.UTC(), Deadline: b.created.Add(24 * time.Hour).UTC(),
		Status: map[string]string{
			batches.Validating: batches.TogetherValidating, batches.Cancelled: batches.TogetherCancelled, batches.Expired: batches.TogetherExpired,
			batches.Failed: batches.TogetherFailed, batches.Completed: batches.TogetherCompleted,
		}[s.state(b, now)],
	}
	if o.Status == "" {
		o.Status = batches.TogetherInProgress
	}
	if len(b.faults) > 0 {
		o.Error = b.faults[0].Message
	}
	if res := b.done; res != nil {
		at := res.at.UTC()
		o.CompletedAt, o.OutputFileID, o.ErrorFileID, o.Progress = &at, res.outputID, res.errorID, 100
	}
	return o
}

func (s *batchStore) listTogether(w http.ResponseWriter, _ *http.Request) *Error {
	writeJSON(w, objects(s.newest(together), func(b *batch) batches.TogetherBatch { return s.togetherObject(b, time.Now()) }))
	return nil
}

func (s *batchStore) createXAI(w http.ResponseWriter, r *http.Request) *Error {
	var req batches.XAICreation
	v, err := s.createOf(w, r, &req, func() (*batch, string) {
		return &batch{vendor: xai, name: req.Name}, req.InputFileID
	})
	return answer(w, v, err)
}

func (s *batchStore) xaiObject(b *batch, now time.Time) batches.XAIBatch {
	s.state(b, now)
	o := batches.XAIBatch{
		ID: b.id, Name: b.name, InputFileID: b.fileID, CreateTime: b.created.UTC().Format(time.DateOnly), ExpireTime: b.created.Add(30 * 24 * time.Hour).UTC().Format(time.DateOnly),
		State: batches.XAIState{Requests: len(b.lines), Pending: len(b.lines)},
	}
	if !b.cancelled.IsZero() {
		at := b.cancelled.UTC().Format(time.DateOnly)
		o.CancelTime = &at
	}
	if len(b.faults) > 0 {
		says, at := b.faults[0].Message, b.after(validatedAt).UTC().Format(time.DateOnly)
		if l := b.faults[0].Line; l != nil {
			says = "JSONL file validation failed: line " + strconv.Itoa(*l) + ": " + says
		}
		o.CancelTime, o.CancelledBy, o.State = &at, &says, batches.XAIState{}
		return o
	}
	if res := b.done; res != nil {
		n := res.counts
		o.State = batches.XAIState{Requests: n.Total(), Success: n.Succeeded, Error: n.Errored, Cancelled: n.Canceled + n.Expired}
	}
	return o
}

func (s *batchStore) listXAI(w http.ResponseWriter, r *http.Request) *Error {
	limit, err := pageSize(r, 100, 1000)
	if err != nil {
		return err
	}
	page, more := pageAfter(s.newest(xai), r.URL.Query().Get("pagination_token"), limit, batchID)
	list := batches.XAIList{Batches: objects(page, func(b *batch) batches.XAIBatch { return s.xaiObject(b, time.Now()) })}
	if more {
		list.Next = page[len(page)-1].id
	}
	writeJSON(w, list)
	return nil
}

// xaiResults answers with a page of results. Its token is the number of those before it.
func (s *batchStore) xaiResults(w http.ResponseWriter, r *http.Request) *Error {
	limit, err := pageSize(r, 100, 1000)
	if err != nil {
		return err
	}
	b := s.look(xai, r.PathValue("id"))
	if b == nil {
		return noBatch(xai, r.PathValue("id"))
	}
	s.state(b, time.Now())
	res := b.done
	b.mu.Unlock()
	page := batches.XAIResults{Results: []batches.XAIResult{}}
	if res == nil {
		writeJSON(w, page)
		return nil
	}
	all := slices.Collect(bytes.Lines(res.content))
	from, _ := strconv.Atoi(r.URL.Query().Get("pagination_token"))
	from = min(max(0, from), len(all))
	to := min(from+limit, len(all))
	for _, l := range all[from:to] {
		var one batches.XAIResult
		if err := decodeBody(l, &one, true); err != nil {
			return err
		}
		page.Results = append(page.Results, one)
	}
	if to < len(all) {
		page.Next = strconv.Itoa(to)
	}
	writeJSON(w, page)
	return nil
}
