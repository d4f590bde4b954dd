package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/endpoint"
	"parley/internal/wire/batches"
)

const (
	openAIMaxBytes = 200 << 20 // of an input file
	filePage       = 10_000
)

// file is an uploaded file, or the output of a batch.
type file struct {
	batches.File
	content []byte
}

// fileStore keeps files in memory.
type fileStore struct {
	limit int64

	mu     sync.Mutex
	stored int64
	order  []*file // by creation
}

// add keeps f, unless the files exceed the limit.
func (s *fileStore) add(f *file) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored+int64(f.Bytes) > s.limit {
		return false
	}
	s.stored += int64(f.Bytes)
	s.order = append(s.order, f)
	return true
}

// index returns the position of a file, or -1. The caller has locked s.
func (s *fileStore) index(id string) int {
	return slices.IndexFunc(s.order, func(f *file) bool { return f.ID == id })
}

func (s *fileStore) find(id string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(id); i >= 0 {
		return s.order[i]
	}
	return nil
}

func (s *fileStore) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(id)
	if i < 0 {
		return false
	}
	s.stored -= int64(s.order[i].Bytes)
	s.order = slices.Delete(s.order, i, i+1)
	return true
}

func newFile(id, name, purpose string, content []byte, now time.Time) *file {
	return &file{batches.File{
		ID: id, Object: "file", Bytes: len(content), CreatedAt: now.Unix(), ExpiresAt: now.Add(30 * 24 * time.Hour).Unix(),
		Filename: name, Purpose: purpose, Status: "processed",
	}, content}
}

// upload is the form of POST /v1/files.
type upload struct {
	purpose, name string
	content       []byte
	hasFile       bool
}

func (s *Store) uploadFile(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	up, err := s.readUpload(w, r)
	switch {
	case err != nil:
		return err
	case up.purpose == "":
		return endpoint.Invalid("purpose", "Missing required parameter: 'purpose'.")
	case !up.hasFile:
		return endpoint.Invalid("file", "Missing required parameter: 'file'.")
	case !slices.Contains([]string{"assistants", "batch", "evals", "fine-tune", "user_data", "vision"}, up.purpose):
		return endpoint.Invalid("purpose", "'%s' is not one of ['fine-tune', 'assistants', 'batch', 'user_data', 'vision', 'evals'] - 'purpose'", up.purpose)
	case up.purpose == "batch" && len(up.content) == 0:
		return endpoint.Invalid("file", "The file is empty.")
	}
	f := newFile(s.host.NewID("file-"), up.name, up.purpose, up.content, time.Now())
	if !s.files.add(f) {
		return endpoint.Invalid("file", "The organization has reached its limit of stored files.")
	}
	endpoint.WriteJSON(w, f.File)
	return nil
}

// readUpload reads the form part by part, so that the content is in memory once.
func (s *Store) readUpload(w http.ResponseWriter, r *http.Request) (up upload, _ *endpoint.Error) {
	limit := s.maxBytes(openAIMaxBytes)
	r.Body = http.MaxBytesReader(w, r.Body, limit+1<<20)
	form, err := r.MultipartReader()
	if err != nil {
		return up, endpoint.Invalid("", "Invalid request: expected a multipart/form-data body with a file.")
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return up, nil
		}
		if err != nil {
			return up, endpoint.Invalid("", "Invalid request: the multipart body could not be read.")
		}
		size, isFile := int64(4096), part.FormName() == "file"
		var buf bytes.Buffer
		if isFile {
			size = limit
			if n := r.ContentLength; n > 0 && n <= limit {
				buf.Grow(int(n))
			}
		}
		if _, err := buf.ReadFrom(io.LimitReader(part, size+1)); err != nil {
			return up, endpoint.Invalid("file", "Invalid request: the file could not be read.")
		}
		if int64(buf.Len()) > size {
			return up, endpoint.TooLarge(quota.OpenAI, fmt.Sprintf("File is too large: the limit is %d bytes.", size))
		}
		switch part.FormName() {
		case "purpose":
			up.purpose = buf.String()
		case "file":
			up.name, up.content, up.hasFile = part.FileName(), buf.Bytes(), true
		case "expires_after[anchor]", "expires_after[seconds]":
		default:
			return up, endpoint.Invalid(part.FormName(), "Unknown parameter: '%s'.", part.FormName())
		}
	}
}

func noFile(id string) *endpoint.Error {
	return endpoint.NotFound(quota.OpenAI, "id", "No such File object: "+id)
}

func (s *Store) showFile(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	f := s.files.find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	endpoint.WriteJSON(w, f.File)
	return nil
}

func (s *Store) fileContent(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	f := s.files.find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	endpoint.WriteBody(w, http.StatusOK, "application/octet-stream", f.content)
	return nil
}

func (s *Store) deleteFile(w http.ResponseWriter, r *http.Request) *endpoint.Error {
	id := r.PathValue("id")
	if !s.files.remove(id) {
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
	s.files.mu.Lock()
	all := slices.Clone(s.files.order)
	s.files.mu.Unlock()
	if q.Get("order") != "asc" {
		slices.Reverse(all)
	}
	if p := q.Get("purpose"); p != "" {
		all = slices.DeleteFunc(all, func(f *file) bool { return f.Purpose != p })
	}
	page, more := pageAfter(all, q.Get("after"), limit, func(f *file) string { return f.ID })
	writeList(w, "list", page, more, func(f *file) string { return f.ID })
	return nil
}
