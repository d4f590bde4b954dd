package batch

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/batch/filestore"
	"parley/internal/dialect/sim/simhttp/endpoint"
)

const (
	openAIMaxBytes = 200 << 20 // of an input file
	filePage       = 10_000
)

func (s *Store) uploadFile(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	up, err := filestore.Read(w, r, s.maxBytes(openAIMaxBytes))
	switch {
	case err != nil:
		return err
	case up.Purpose == "":
		return endpoint.Invalid("purpose", "Missing required parameter: 'purpose'.")
	case !up.HasFile:
		return endpoint.Invalid("file", "Missing required parameter: 'file'.")
	case !slices.Contains([]string{"assistants", "batch", "batch-api", "evals", "fine-tune", "user_data", "vision"}, up.Purpose):
		return endpoint.Invalid("purpose", "'%s' is not one of ['fine-tune', 'assistants', 'batch', 'user_data', 'vision', 'evals'] - 'purpose'", up.Purpose)
	case strings.HasPrefix(up.Purpose, "batch") && len(up.Content) == 0:
		return endpoint.Invalid("file", "The file is empty.")
	}
	f := filestore.New(s.host.NewID("file-"), up.Name, up.Purpose, up.Content, time.Now())
	if !s.files.Add(f) {
		return endpoint.Invalid("file", "The organization has reached its limit of stored files.")
	}
	endpoint.WriteJSON(w, f.File)
	return nil
}

func noFile(id string) *endpoint.Error {
	return endpoint.NotFound(quota.OpenAI, "id", "No such File object: "+id)
}

func (s *Store) showFile(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	f := s.files.Find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	endpoint.WriteJSON(w, f.File)
	return nil
}

func (s *Store) fileContent(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	f := s.files.Find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	endpoint.WriteBody(w, http.StatusOK, "application/octet-stream", f.Content)
	return nil
}

func (s *Store) deleteFile(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	id := r.PathValue("id")
	if !s.files.Remove(id) {
		return noFile(id)
	}
	endpoint.WriteJSON(w, map[string]any{"id": id, "object": "file", "deleted": true})
	return nil
}

func (s *Store) listFiles(w http.ResponseWriter, r *http.Request) *endpoint.Error {
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
		all = slices.DeleteFunc(all, func(f *filestore.File) bool { return f.Purpose != p })
	}
	page, more := pageAfter(all, q.Get("after"), limit, func(f *filestore.File) string { return f.ID })
	writeList(w, "list", page, more, func(f *filestore.File) string { return f.ID })
	return nil
}
