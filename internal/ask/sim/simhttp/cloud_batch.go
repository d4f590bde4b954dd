package simhttp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// azureBatch makes an endpoint of OpenAI's batches one of Azure's: a batch is created for an endpoint without /v1, its times are texts, and
// its status begins with a capital letter. Files are as OpenAI's.
func azureBatch(inner Func) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/batches") {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err != nil {
				return invalid("", "The request cannot be read: %s", err)
			}
			r.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte(`"endpoint":"/`), []byte(`"endpoint":"/v1/`), 1)))
		}
		if !strings.Contains(r.URL.Path, "/batches") {
			return inner(w, r)
		}
		kept := &buffer{ResponseWriter: w}
		if err := inner(kept, r); err != nil {
			return err
		}
		var object map[string]any
		if json.Unmarshal(kept.Bytes(), &object) != nil {
			_, _ = w.Write(kept.Bytes())
			return nil
		}
		list, _ := object["data"].([]any)
		for _, one := range append(list, object) {
			if b, ok := one.(map[string]any); ok && b["object"] == "batch" {
				azureObject(b)
			}
		}
		writeJSON(w, object)
		return nil
	}
}

// azureObject changes an object of OpenAI's to Azure's.
func azureObject(b map[string]any) {
	for _, name := range []string{"created_at", "expires_at"} {
		if seconds, ok := b[name].(float64); ok {
			b[name] = time.Unix(int64(seconds), 0).UTC().Format("2006-01-02T15:04:05.0000000+00:00")
		}
	}
	if status, _ := b["status"].(string); status != "" {
		b["status"] = strings.ToUpper(status[:1]) + status[1:]
	}
}

// buffer keeps what is written.
type buffer struct {
	http.ResponseWriter
	bytes.Buffer
}

// Write keeps b.
func (k *buffer) Write(b []byte) (int, error) { return k.Buffer.Write(b) }

// WriteHeader does nothing: only successes are written here.
func (k *buffer) WriteHeader(int) {}
