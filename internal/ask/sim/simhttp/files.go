package simhttp

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/ask/sim"
)

const (
	openAIMaxBytes = 200 << 20 // of an input file
	filePage       = 10_000
)

func (s *batchStore) uploadFile(w http.ResponseWriter, r *http.Request) *Error {
	up, err := readFilestore(w, r, s.maxBytes(openAIMaxBytes))
	switch {
	case err != nil:
		return err
	case up.Purpose == "":
		return invalid("purpose", "Missing required parameter: 'purpose'.")
	case !up.HasFile:
		return invalid("file", "Missing required parameter: 'file'.")
	case !slices.Contains([]string{"assistants", "batch", "batch-api", "evals", "fine-tune", "user_data", "vision"}, up.Purpose):
		return invalid("purpose", "'%s' is not one of ['fine-tune', 'assistants', 'batch', 'user_data', 'vision', 'evals'] - 'purpose'", up.Purpose)
	case strings.HasPrefix(up.Purpose, "batch") && len(up.Content) == 0:
		return invalid("file", "The file is empty.")
	}
	f := newFileStore(s.host.NewID("file-"), up.Name, up.Purpose, up.Content, time.Now())
	if !s.files.Add(f) {
		return invalid("file", "The organization has reached its limit of stored files.")
	}
	writeJSON(w, f.File)
	return nil
}

func noFile(id string) *Error {
	return endpointNotFound(sim.OpenAI, "id", "No such File object: "+id)
}

func (s *batchStore) showFile(w http.ResponseWriter, r *http.Request) *Error {
	f := s.files.Find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	writeJSON(w, f.File)
	return nil
}

func (s *batchStore) fileContent(w http.ResponseWriter, r *http.Request) *Error {
	f := s.files.Find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	writeBody(w, http.StatusOK, "application/octet-stream", f.Content)
	return nil
}

func (s *batchStore) deleteFile(w http.ResponseWriter, r *http.Request) *Error {
	id := r.PathValue("id")
	if !s.files.Remove(id) {
		return noFile(id)
	}
	writeJSON(w, map[string]any{"id": id, "object": "file", "deleted": true})
	return nil
}

func (s *batchStore) listFiles(w http.ResponseWriter, r *http.Request) *Error {
	limit, err := pageSize(r, filePage, filePage)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	all := s.files.Newest()
	if q.Get("order") == "asc" {
		slices.Reverse(all)
	}
	if p := q.Get("purpose"); p != "" {
		all = slices.DeleteFunc(all, func(f *storedFile) bool { return f.Purpose != p })
	}
	page, more := pageAfter(all, q.Get("after"), limit, func(f *storedFile) string { return f.ID })
	writeList(w, "list", page, more, func(f *storedFile) string { return f.ID })
	return nil
}
