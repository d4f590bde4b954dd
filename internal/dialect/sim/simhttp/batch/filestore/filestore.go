// Package filestore keeps the files of the simulated batch APIs in memory, and reads their uploads.
//
// It promises that all files together stay within a limit. It does not read what is in them.
package filestore

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

// File is an uploaded file, or the output of a batch.
type File struct {
	batches.File
	Content []byte
}

// Gemini returns the file as Google shows it. Google keeps files for two days.
func (f *File) Gemini() batches.GeminiFile {
	made := time.Unix(f.CreatedAt, 0).UTC()
	return batches.GeminiFile{Name: "files/" + f.ID, MimeType: "application/jsonl", SizeBytes: int64(f.Bytes), State: "ACTIVE", CreateTime: made, ExpireTime: made.Add(48 * time.Hour)}
}

// Store keeps files in memory.
type Store struct {
	Limit int64 // of all files together

	mu     sync.Mutex
	stored int64
	order  []*File // by creation
}

// Add keeps f, unless the files exceed the limit.
func (s *Store) Add(f *File) bool {
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
func (s *Store) index(id string) int {
	return slices.IndexFunc(s.order, func(f *File) bool { return f.ID == id })
}

// Find returns a file, or nil.
func (s *Store) Find(id string) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(id); i >= 0 {
		return s.order[i]
	}
	return nil
}

// Remove removes a file, and reports whether there was one.
func (s *Store) Remove(id string) bool {
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

// New returns a file, which is not kept yet.
func New(id, name, purpose string, content []byte, now time.Time) *File {
	return &File{batches.File{
		ID: id, Object: "file", Bytes: len(content), CreatedAt: now.Unix(), ExpiresAt: now.Add(30 * 24 * time.Hour).Unix(),
		Filename: name, Purpose: purpose, Status: "processed",
	}, content}
}

// Newest returns all files, the newest first.
func (s *Store) Newest() []*File {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.order)
	slices.Reverse(all)
	return all
}

// Upload is the form of POST /v1/files.
type Upload struct {
	Purpose, Name string
	Content       []byte
	HasFile       bool
}

// Read reads the form part by part, so that the content is in memory once.
func Read(w http.ResponseWriter, r *http.Request, limit int64) (up Upload, _ *endpoint.Error) {
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
			up.Purpose = buf.String()
		case "file":
			up.Name, up.Content, up.HasFile = part.FileName(), buf.Bytes(), true
		case "expires_after[anchor]", "expires_after[seconds]", "file_name", "file_type":
		default:
			return up, endpoint.Invalid(part.FormName(), "Unknown parameter: '%s'.", part.FormName())
		}
	}
}
