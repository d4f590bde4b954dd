package dialect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/llm"
)

// printsFile makes the test program print a file, as a program that prints a key.
const printsFile = "-prints-file"

// uploads answers the upload of a file, and reports whether r was one.
func uploads(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/files") && !strings.HasSuffix(r.URL.Path, "/files/upload") {
		return false
	}
	w.Header().Set("X-Goog-Upload-Url", "http://"+r.Host+"/upload/v1beta/files?upload_id=1")
	_, _ = w.Write([]byte(`{"id":"file-1","file":{"name":"files/1"}}`))
	return true
}

// TestKeyExpires: a key that a program printed expires after the upload. The creation is sent again with the next key, whole, and
// only one batch is created.
func TestKeyExpires(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "key")
			set := func(key string) {
				if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
					t.Error(err)
				}
			}
			set("first-key")
			var refused, created atomic.Int32
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				if uploads(w, r) {
					return
				}
				if r.Header.Get("Authorization") != "Bearer second-key" {
					refused.Add(1)
					set("second-key")
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				created.Add(1)
				if !strings.HasPrefix(string(body), "{") || int64(len(body)) != r.ContentLength {
					t.Errorf("%d bytes: %.100q", len(body), body)
				}
				_, _ = fmt.Fprint(w, `{"id":"batch-1","name":"batches/1","batch_id":"batch-1"}`)
			}))
			defer front.Close()
			p := at(name, front.URL)
			p.KeyCommand, p.KeyHeader = []string{self, printsFile, file}, "authorization"
			d, err := OpenBatches(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer d.(io.Closer).Close()
			id, err := d.Create(t.Context(), draft(t, d, question("a", 0)), func(context.Context, string) error { return nil })
			if err != nil || id == "" || refused.Load() != 1 || created.Load() != 1 {
				t.Errorf("%q %v, %d refused, %d created", id, err, refused.Load(), created.Load())
			}
		})
	}
}

// TestCreatedOnce: a connection that breaks during a creation, when it was idle before, does not repeat it. The batch may exist.
func TestCreatedOnce(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				switch {
				case uploads(w, r):
				case r.Method == http.MethodGet: // it keeps the connection open
					_, _ = w.Write([]byte(`{"id":"x","name":"batches/x","batch_id":"x"}`))
				default:
					asked.Add(1)
					panic(http.ErrAbortHandler)
				}
			}))
			defer front.Close()
			d := open(t, name, front.URL)
			if _, err := d.State(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			_, err := d.Create(t.Context(), draft(t, d, question("a", 0)), func(context.Context, string) error { return nil })
			if e := llm.AsError(err); e == nil || !e.Uncertain || asked.Load() != 1 {
				t.Errorf("%v, asked %d times", err, asked.Load())
			}
		})
	}
}
