package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

func dialects() []string {
	return []string{"openai", "responses", "anthropic", "azure", "gemini"}
}

// at returns an account at a server with a batch API.
func at(name, url string) provider.Provider {
	p := provider.Provider{Name: "lab", Dialect: name, BaseURL: url + "/v1", Batch: &provider.Batch{}}
	switch name {
	case "gemini":
		p.BaseURL = url + "/v1beta"
	case "azure":
		p.Dialect, p.BaseURL, p.Batch.API = "openai", url+"/openai/v1", name
	}
	return p
}

func open(t testing.TB, dialect, url string) batch.API {
	t.Helper()
	d, err := OpenBatches(at(dialect, url), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.(io.Closer).Close() })
	return d
}

func simulated(t testing.TB, cfg simhttp.Config) (*simhttp.Server, string) {
	t.Helper()
	s, err := simhttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, front.URL
}

func question(text string, i int) *llm.Request {
	return &llm.Request{Model: "lab/any", MaxTokens: 30, Sample: i, Messages: []llm.Message{llm.System("Be brief."), llm.User(text)}}
}

// draft returns a draft of requests, as the batcher makes it.
func draft(t testing.TB, d batch.API, reqs ...*llm.Request) *batch.Draft {
	t.Helper()
	out := &batch.Draft{Key: batch.NewKey()}
	for _, r := range reqs {
		w, err := d.Weigh(r)
		if err != nil {
			t.Fatal(err)
		}
		out.Requests = append(out.Requests, batch.Request{ID: batch.NewID(batch.CallPart(r), 0), Request: r, Bytes: w.Bytes})
	}
	return out
}

func intent(d *batch.Draft, began time.Time) *batch.Open {
	o := &batch.Open{Key: d.Key, Began: began, File: "noted"}
	for _, l := range d.Requests {
		o.Lines = append(o.Lines, l.ID)
	}
	return o
}

// TestLife follows a batch from its creation to its results, over each API.
func TestLife(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := simulated(t, simhttp.Config{Batch: simhttp.BatchConfig{Latency: sim.Fixed(10 * time.Millisecond)}})
			d := open(t, name, url)
			odd := question("line\nbreak \" \\ \x00 \u2028 \xff 日本語", 1)
			odd.Schema = &llm.Schema{Name: "s", JSON: json.RawMessage("{\n  \"type\": \"object\",\r\n  \"properties\": {\"a\": {\"type\": \"string\"}}, \"required\": [\"a\"], \"additionalProperties\": false\n}")}
			dr := draft(t, d, question("one", 0), odd, question("three", 2))
			file := ""
			id, err := d.Create(t.Context(), dr, func(_ context.Context, f string) error { file = f; return nil })
			if err != nil || id == "" || (file == "") != (name == "anthropic") {
				t.Fatalf("%q %q %v", id, file, err)
			}
			var st batch.State
			for st.Phase != batch.Ended {
				if st, err = d.State(t.Context(), id); err != nil || st.Phase == batch.Failed || !st.Expires.IsZero() && time.Until(st.Expires) < 23*time.Hour {
					t.Fatalf("%+v %v", st, err)
				}
			}
			if st.Total != 3 || st.Answered != 3 || st.Failed != 0 {
				t.Errorf("%+v", st)
			}
			got := map[string]string{}
			for r, err := range d.Results(t.Context(), id) {
				if err != nil || r.Err != nil || r.Response.Usage.Output == 0 || r.Response.Tier != "batch" || r.Response.Provider != "lab" {
					t.Fatalf("%+v %v", r, err)
				}
				got[r.CustomID] = r.Response.Text
			}
			for i, l := range dr.Requests {
				text, ok := got[batch.CustomID(dr.Key, l.ID)]
				if !ok || (i == 1) != json.Valid([]byte(text)) {
					t.Errorf("line %d: %q", i, text)
				}
			}
			if err := d.Cancel(t.Context(), id); err == nil {
				t.Error("a batch that has ended was cancelled")
			}
			if name == "gemini" {
				discarded(t, url, file)
			}
		})
	}
}

// discarded checks that Gemini's server has no file any more.
func discarded(t *testing.T, url, file string) {
	t.Helper()
	res, err := http.Get(url + "/v1beta/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("%s is kept after its batch was read: %s", file, res.Status)
	}
}

// TestFind finds a batch among many others: by its key, or by its time, its size and, once it has
// ended, its results.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := simulated(t, simhttp.Config{Batch: simhttp.BatchConfig{Latency: sim.Fixed(time.Hour)}})
			d, began := open(t, name, url), time.Now()
			files := map[string]string{}
			create := func(n int) (*batch.Draft, string) {
				var reqs []*llm.Request
				for i := range n {
					reqs = append(reqs, question("q", i))
				}
				dr := draft(t, d, reqs...)
				id, err := d.Create(t.Context(), dr, func(_ context.Context, file string) error { files[dr.Key] = file; return nil })
				if err != nil {
					t.Fatal(err)
				}
				return dr, id
			}
			find := func(o *batch.Open, taken ...string) batch.Found {
				if file := files[o.Key]; file != "" {
					o.File = file
				}
				f, err := d.Find(t.Context(), o, func(id string) bool { return slices.Contains(taken, id) })
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			ours, id := create(3)
			for range 120 { // more than a page
				create(2)
			}
			other, otherID := create(3)
			o := intent(ours, began)
			if name == "anthropic" {
				// It still runs, so it cannot be distinguished from the other of its size.
				if f := find(o); f != (batch.Found{Maybe: true}) {
					t.Errorf("%+v", f)
				}
				if f := find(o, id, otherID); f != (batch.Found{}) {
					t.Errorf("of another size: %+v", f)
				}
				for _, b := range []string{id, otherID} {
					if err := d.Cancel(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
				return
			}
			if f := find(o); f.ID != id {
				t.Errorf("%+v, want %s", f, id)
			}
			if f := find(intent(other, began)); f.ID != otherID {
				t.Errorf("%+v, want %s", f, otherID)
			}
			never := intent(draft(t, d, question("never", 0)), began)
			if f := find(never); f != (batch.Found{}) {
				t.Errorf("%+v", f)
			}
			if never.File = ""; !find(never).Never {
				t.Error("without a file there cannot be a batch")
			}
		})
	}
}

// TestFindAfterTheEnd distinguishes batches of one size by their results.
func TestFindAfterTheEnd(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, simhttp.Config{Batch: simhttp.BatchConfig{Latency: sim.Fixed(time.Millisecond)}})
	d, began := open(t, "anthropic", url), time.Now()
	var drafts []*batch.Draft
	var ids []string
	for range 4 {
		dr := draft(t, d, question("a", 0), question("b", 1))
		id, err := d.Create(t.Context(), dr, nil)
		if err != nil {
			t.Fatal(err)
		}
		drafts, ids = append(drafts, dr), append(ids, id)
		for st := (batch.State{}); st.Phase != batch.Ended; {
			if st, err = d.State(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := func(string) bool { return false }
	for i, dr := range drafts {
		if f, err := d.Find(t.Context(), intent(dr, began), none); err != nil || f.ID != ids[i] {
			t.Errorf("%+v %v, want %s", f, err, ids[i])
		}
		if f, err := d.Find(t.Context(), intent(dr, began), func(id string) bool { return id == ids[i] }); err != nil || f != (batch.Found{}) {
			t.Errorf("another's: %+v %v", f, err)
		}
		if f, err := d.Find(t.Context(), intent(dr, began.Add(time.Hour)), none); err != nil || f != (batch.Found{}) {
			t.Errorf("older than its intent: %+v %v", f, err)
		}
	}
}

// TestErrors checks the errors of a creation: the server refused it, or may have done it.
func TestErrors(t *testing.T) { // not parallel: it sets a key
	t.Setenv("LAB_KEY", "KEY-123")
	for _, name := range dialects() {
		for _, c := range []struct {
			status    int
			body      string
			kind      llm.Kind
			uncertain bool
		}{
			{400, `{"error":{"message":"no"}}`, llm.KindBadRequest, false},
			{401, `{"error":{"message":"no KEY-123"}}`, llm.KindAuth, false},
			{404, `{"error":{"message":"no"}}`, llm.KindBadRequest, false},
			{413, `{"error":{"type":"request_too_large","message":"no"}}`, llm.KindTooLong, false},
			{429, `{"error":{"message":"slow down"}}`, llm.KindRateLimited, false},
			{500, `{"error":{"message":"oops"}}`, llm.KindServer, true},
			{502, `<html>bad gateway</html>`, llm.KindServer, true},
			{200, `<html>`, llm.KindMalformed, true},
			{200, `{}`, llm.KindMalformed, true},
		} {
			t.Run(fmt.Sprint(name, c.status, c.body), func(t *testing.T) {
				front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Retry-After", "7")
					if uploads(w, r) {
						return
					}
					w.WriteHeader(c.status)
					_, _ = w.Write([]byte(c.body))
				}))
				defer front.Close()
				p := at(name, front.URL)
				p.KeyEnv = "LAB_KEY"
				d, err := OpenBatches(p, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer d.(io.Closer).Close()
				_, err = d.Create(t.Context(), draft(t, d, question("a", 0)), func(context.Context, string) error { return nil })
				e := llm.AsError(err)
				if e == nil || e.Kind != c.kind || e.Uncertain != c.uncertain || e.Provider != "lab" || strings.Contains(err.Error(), "KEY-123") {
					t.Errorf("%v, uncertain %v", err, e.Uncertain)
				}
				if c.status == 429 && e.RetryAfter != 7*time.Second {
					t.Errorf("after %v", e.RetryAfter)
				}
			})
		}
	}
}

// TestUploadMarks checks that a batch is created only after its file is recorded.
func TestUploadMarks(t *testing.T) {
	t.Parallel()
	s, url := simulated(t, simhttp.Config{})
	d, full := open(t, "openai", url), errors.New("disk full")
	if _, err := d.Create(t.Context(), draft(t, d, question("a", 0)), func(context.Context, string) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if n := s.Stats().Batches.Created; n != 0 {
		t.Errorf("%d created", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, p := range []provider.Provider{
		{Name: "sim", Dialect: "sim"}, {Name: "lab", Dialect: "openai", Batch: &provider.Batch{}},
		{Name: "lab", Dialect: "openai", BaseURL: "http://x/v1", KeyEnv: "PARLEY_NO_SUCH_KEY", Batch: &provider.Batch{}},
		{Name: "lab", Dialect: "openai", BaseURL: "http://x/v1"},
		{Name: "lab", Dialect: "anthropic", BaseURL: "http://x/v1", Batch: &provider.Batch{API: "azure"}},
	} {
		if d, err := OpenBatches(p, nil); err == nil || d != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	d := open(t, "openai", "http://127.0.0.1:1")
	for _, r := range []*llm.Request{{}, {Model: "lab/any"}, {Model: "lab/any", Messages: []llm.Message{llm.User("x")}, Schema: &llm.Schema{JSON: json.RawMessage("{")}}} {
		if _, err := d.Weigh(r); llm.KindOf(err) != llm.KindBadRequest {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// printsFile makes the test program print a file, as a program that prints a key.
const printsFile = "-prints-file"

// uploads answers the upload of a file, and reports whether r was one.
func uploads(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/files") {
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
				_, _ = fmt.Fprint(w, `{"id":"batch-1","name":"batches/1"}`)
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
					_, _ = w.Write([]byte(`{"id":"x","name":"batches/x"}`))
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
