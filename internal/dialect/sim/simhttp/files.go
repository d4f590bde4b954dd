package simhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/internal/dialect/sim/simhttp/check"
)

const (
	batchFileBytes = 200 << 20 // the largest file for a batch
	filePage       = 10_000
)

// file is an uploaded file, or the output of a batch.
type file struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int    `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt int64  `json:"expires_at,omitempty"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"`

	content []byte
}

// fileStore keeps files in memory.
type fileStore struct {
	limit int64

	mu     sync.Mutex
	stored int64
	byID   map[string]*file
	order  []*file
}

// add keeps f, unless there is no room for it.
func (s *fileStore) add(f *file) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored+int64(f.Bytes) > s.limit {
		return false
	}
	if s.byID == nil {
		s.byID = map[string]*file{}
	}
	s.stored += int64(f.Bytes)
	s.byID[f.ID] = f
	s.order = append(s.order, f)
	return true
}

func (s *fileStore) find(id string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

func (s *fileStore) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byID[id]
	if f == nil {
		return false
	}
	delete(s.byID, id)
	s.order = slices.DeleteFunc(s.order, func(g *file) bool { return g == f })
	s.stored -= int64(f.Bytes)
	return true
}

func newFile(id, name, purpose string, content []byte, now time.Time) *file {
	return &file{
		ID: id, Object: "file", Bytes: len(content), CreatedAt: now.Unix(), ExpiresAt: now.Add(30 * 24 * time.Hour).Unix(),
		Filename: name, Purpose: purpose, Status: "processed", content: content,
	}
}

// upload is the form of POST /v1/files.
type upload struct {
	purpose, name string
	content       []byte
	hasFile       bool
}

func (s *Server) uploadFile(w http.ResponseWriter, r *http.Request) *check.Error {
	up, err := s.readUpload(w, r)
	switch {
	case err != nil:
		return err
	case up.purpose == "":
		return check.Invalid("purpose", "Missing required parameter: 'purpose'.")
	case !up.hasFile:
		return check.Invalid("file", "Missing required parameter: 'file'.")
	case !slices.Contains([]string{"assistants", "batch", "evals", "fine-tune", "user_data", "vision"}, up.purpose):
		return check.Invalid("purpose", "'%s' is not one of ['fine-tune', 'assistants', 'batch', 'user_data', 'vision', 'evals'] - 'purpose'", up.purpose)
	case up.purpose == "batch" && len(up.content) == 0:
		return check.Invalid("file", "The file is empty.")
	}
	f := newFile(s.newID("file-"), up.name, up.purpose, up.content, time.Now())
	if !s.files.add(f) {
		return check.Invalid("file", "The organization has reached its limit of stored files.")
	}
	s.stats.ok.Add(1)
	writeJSON(w, f)
	return nil
}

// readUpload reads the form part by part, so that the content is in memory once.
func (s *Server) readUpload(w http.ResponseWriter, r *http.Request) (upload, *check.Error) {
	var up upload
	limit := s.cfg.Batch.MaxBytes
	if limit <= 0 {
		limit = batchFileBytes
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit+1<<20)
	form, err := r.MultipartReader()
	if err != nil {
		return up, check.Invalid("", "Invalid request: expected a multipart/form-data body with a file.")
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return up, nil
		}
		if err != nil {
			return up, check.Invalid("", "Invalid request: the multipart body could not be read.")
		}
		most := int64(4096)
		if part.FormName() == "file" {
			most = limit
		}
		var buf bytes.Buffer
		if n := r.ContentLength; part.FormName() == "file" && n > 0 && n <= limit {
			buf.Grow(int(n))
		}
		if _, err := buf.ReadFrom(io.LimitReader(part, most+1)); err != nil {
			return up, check.Invalid("file", "Invalid request: the file could not be read.")
		}
		if int64(buf.Len()) > most {
			return up, &check.Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: "File is too large: the limit is " + strconv.FormatInt(most, 10) + " bytes."}
		}
		switch part.FormName() {
		case "purpose":
			up.purpose = buf.String()
		case "file":
			up.name, up.content, up.hasFile = part.FileName(), buf.Bytes(), true
		case "expires_after[anchor]", "expires_after[seconds]":
		default:
			return up, check.Invalid(part.FormName(), "Unknown parameter: '%s'.", part.FormName())
		}
	}
}

func noFile(id string) *check.Error {
	return &check.Error{Status: http.StatusNotFound, Type: "invalid_request_error", Param: "id", Message: "No such File object: " + id}
}

func (s *Server) showFile(w http.ResponseWriter, r *http.Request) *check.Error {
	f := s.files.find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	s.stats.ok.Add(1)
	writeJSON(w, f)
	return nil
}

func (s *Server) fileContent(w http.ResponseWriter, r *http.Request) *check.Error {
	f := s.files.find(r.PathValue("id"))
	if f == nil {
		return noFile(r.PathValue("id"))
	}
	s.stats.ok.Add(1)
	writeBody(w, http.StatusOK, "application/octet-stream", f.content)
	return nil
}

func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request) *check.Error {
	id := r.PathValue("id")
	if !s.files.remove(id) {
		return noFile(id)
	}
	s.stats.ok.Add(1)
	writeJSON(w, map[string]any{"id": id, "object": "file", "deleted": true})
	return nil
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) *check.Error {
	q := r.URL.Query()
	limit, err := pageSize(q.Get("limit"), filePage, filePage)
	if err != nil {
		return err
	}
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
	s.stats.ok.Add(1)
	writeJSON(w, listOf(page, more, func(f *file) string { return f.ID }))
	return nil
}

// list is how both vendors return many of a thing.
type list[T any] struct {
	Object  string  `json:"object,omitempty"`
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

func listOf[T any](page []T, more bool, id func(T) string) list[T] {
	l := list[T]{Object: "list", Data: page, HasMore: more}
	if len(page) == 0 {
		l.Data = []T{}
		return l
	}
	first, last := id(page[0]), id(page[len(page)-1])
	l.FirstID, l.LastID = &first, &last
	return l
}

// pageAfter returns at most limit of all that come after the one with an id.
func pageAfter[T any](all []T, after string, limit int, id func(T) string) ([]T, bool) {
	if after != "" {
		i := slices.IndexFunc(all, func(v T) bool { return id(v) == after })
		all = all[i+1:] // one that is not there is before all
	}
	if len(all) > limit {
		return all[:limit], true
	}
	return all, false
}

func pageSize(s string, otherwise, most int) (int, *check.Error) {
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, check.Invalid("limit", "Invalid 'limit': expected an integer between 1 and %d.", most)
	}
	return n, nil
}
