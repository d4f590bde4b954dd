package simhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/batches"
)

// storedFile is an uploaded file, or the output of a batch.
type storedFile struct {
	batches.File
	Content []byte
}

// Gemini returns the file as Google shows it. Google keeps files for two days.
func (f *storedFile) Gemini() batches.GeminiFile {
	made := time.Unix(f.CreatedAt, 0).UTC()
	return batches.GeminiFile{Name: "files/" + f.ID, MimeType: "application/jsonl", SizeBytes: int64(f.Bytes), State: "ACTIVE", CreateTime: made, ExpireTime: made.Add(48 * time.Hour)}
}

// fileStore keeps the files of the batch APIs in memory, all together within a limit.
type fileStore struct {
	Limit int64 // of all files together

	mu     sync.Mutex
	stored int64
	order  []*storedFile // by creation
}

// Add keeps f, unless the files exceed the limit.
func (s *fileStore) Add(f *storedFile) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored+int64(f.Bytes) > s.Limit {
		return false
	}
	s.stored += int64(f.Bytes)
	s.order = append(s.order, f)
	return true
}

// index returns the position of a file, or -1. The caller has locked s.
func (s *fileStore) index(id string) int {
	return slices.IndexFunc(s.order, func(f *storedFile) bool { return f.ID == id })
}

// Find returns a file, or nil.
func (s *fileStore) Find(id string) *storedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(id); i >= 0 {
		return s.order[i]
	}
	return nil
}

// Remove removes a file, and reports whether there was one.
func (s *fileStore) Remove(id string) bool {
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

// newFile returns a file, which is not kept yet.
func newFile(id, name, purpose string, content []byte, now time.Time) *storedFile {
	return &storedFile{batches.File{
		ID: id, Object: "file", Bytes: len(content), CreatedAt: now.Unix(), ExpiresAt: now.Add(30 * 24 * time.Hour).Unix(),
		Filename: name, Purpose: purpose, Status: "processed",
	}, content}
}

// Newest returns all files, the newest first.
func (s *fileStore) Newest() []*storedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.order)
	slices.Reverse(all)
	return all
}

// upload is the form of POST /v1/files.
type upload struct {
	Purpose, Name string
	Content       []byte
	HasFile       bool
}

// readUpload reads the form part by part, so that the content is in memory once.
func readUpload(w http.ResponseWriter, r *http.Request, limit int64) (up upload, _ *Error) {
	r.Body = http.MaxBytesReader(w, r.Body, limit+1<<20)
	form, err := r.MultipartReader()
	if err != nil {
		return up, invalid("", "Invalid request: expected a multipart/form-data body with a file.")
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return up, nil
		}
		if err != nil {
			return up, invalid("", "Invalid request: the multipart body could not be read.")
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
			return up, invalid("file", "Invalid request: the file could not be read.")
		}
		if int64(buf.Len()) > size {
			return up, tooLarge(sim.OpenAI, fmt.Sprintf("File is too large: the limit is %d bytes.", size))
		}
		switch part.FormName() {
		case "purpose":
			up.Purpose = buf.String()
		case "file":
			up.Name, up.Content, up.HasFile = part.FileName(), buf.Bytes(), true
		case "expires_after[anchor]", "expires_after[seconds]", "file_name", "file_type":
		default:
			return up, invalid(part.FormName(), "Unknown parameter: '%s'.", part.FormName())
		}
	}
}

const (
	openAIMaxBytes = 200 << 20 // of an input file
	filePage       = 10_000
)

func (s *batchStore) uploadFile(w http.ResponseWriter, r *http.Request) *Error {
	up, err := readUpload(w, r, s.maxBytes(openAIMaxBytes))
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
	f := newFile(s.host.NewID("file-"), up.Name, up.Purpose, up.Content, time.Now())
	if !s.files.Add(f) {
		return invalid("file", "The organization has reached its limit of stored files.")
	}
	writeJSON(w, f.File)
	return nil
}

func noFile(id string) *Error {
	return notFound(sim.OpenAI, "id", "No such File object: "+id)
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
