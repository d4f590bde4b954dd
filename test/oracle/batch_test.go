package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"parley/internal/ask/batch"
	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// batchSim is the simulated provider, which notes what it is asked.
type batchSim struct {
	url string
	mu  sync.Mutex
	got []asked
}

// asked is a request: its method and address, with the names of objects replaced, and its body if that is JSON.
type asked struct {
	At   string
	Body any
}

// ids matches the names that the server gives to objects, and our keys.
var ids = regexp.MustCompile(`(batches?[_/]|files?[-/]|parley-|upload_id=)[A-Za-z0-9_-]+`)

func serveBatches(t *testing.T, latency time.Duration) *batchSim {
	t.Helper()
	s, err := simhttp.New(simhttp.Config{Batch: simhttp.BatchConfig{Latency: sim.Fixed(latency)}})
	if err != nil {
		t.Fatal(err)
	}
	b := &batchSim{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		one := asked{At: ids.ReplaceAllString(r.Method+" "+r.URL.String(), "${1}ID")}
		if json.Unmarshal(ids.ReplaceAll(body, []byte("${1}ID")), &one.Body) != nil {
			one.Body = nil
		}
		b.mu.Lock()
		b.got = append(b.got, one)
		b.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b.url = front.URL
	return b
}

// take returns what was asked since the last take, each once.
func (b *batchSim) take() (out []asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.got {
		if !slices.ContainsFunc(out, func(o asked) bool { return reflect.DeepEqual(o, one) }) {
			out = append(out, one)
		}
	}
	b.got = nil
	return out
}

// find returns what was asked with a method at an address that begins so.
func find(t *testing.T, all []asked, at string) asked {
	t.Helper()
	for _, one := range all {
		if strings.HasPrefix(one.At, at) {
			return one
		}
	}
	t.Fatalf("nobody asked %s, but %+v", at, all)
	return asked{}
}

// account returns our batch API at an address.
func account(t *testing.T, p provider.Provider) batch.API {
	t.Helper()
	p.Name = "lab"
	api, err := dialect.OpenBatches(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { api.(io.Closer).Close() })
	return api
}

// questions are the requests of a batch.
func questions(t *testing.T, api batch.API) *batch.Draft {
	t.Helper()
	d := &batch.Draft{Key: batch.NewKey()}
	for i := range 3 {
		r := &llm.Request{Model: "lab/m", MaxTokens: 30, Messages: []llm.Message{llm.System("Be brief."), llm.User(fmt.Sprint("Hello ", i))}}
		w, err := api.Weigh(r)
		if err != nil {
			t.Fatal(err)
		}
		d.Requests = append(d.Requests, batch.Request{ID: batch.NewID(batch.CallPart(r), 0), Request: r, Bytes: w.Bytes})
	}
	return d
}

// run creates a batch with our client, follows it to its end, and returns the texts of its answers and the names of its lines and file.
func run(t *testing.T, api batch.API) (texts, lines []string, file string) {
	t.Helper()
	d := questions(t, api)
	id, err := api.Create(t.Context(), d, func(_ context.Context, f string) error { file = f; return nil })
	if err != nil {
		t.Fatal(err)
	}
	for st := (batch.State{}); st.Phase != batch.Ended; {
		if st, err = api.State(t.Context(), id); err != nil || st.Phase == batch.Failed {
			t.Fatalf("%+v %v", st, err)
		}
	}
	for r, err := range api.Results(t.Context(), id) {
		if err != nil || r.Err != nil {
			t.Fatalf("%+v %v", r, err)
		}
		texts, lines = append(texts, r.Response.Text), append(lines, r.CustomID)
	}
	if f, err := api.Find(t.Context(), &batch.Open{Key: d.Key, Began: time.Now(), File: file}, func(string) bool { return false }); err != nil || f.ID != id {
		t.Errorf("found %+v %v, want %s", f, err, id)
	}
	slices.Sort(texts)
	return texts, lines, file
}

// stop creates a batch with our client, and cancels it.
func stop(t *testing.T, api batch.API) {
	t.Helper()
	id, err := api.Create(t.Context(), questions(t, api), func(context.Context, string) error { return nil })
	if err == nil {
		err = api.Cancel(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestGeminiBatch plays a batch with Google's SDK and with our client. Both send the same requests to the same addresses, and read the
// same answers. The SDK reads our file, and our client the SDK's batch.
func TestGeminiBatch(t *testing.T) {
	t.Parallel()
	s := serveBatches(t, time.Millisecond)
	cl, api := geminiClient(t, s.url), account(t, provider.Provider{Dialect: "gemini", BaseURL: s.url + "/v1beta", Batch: &provider.Batch{}})
	ours, names, _ := run(t, api)
	by := s.take()
	var lines bytes.Buffer
	for i, name := range names {
		fmt.Fprintf(&lines, `{"key":%q,"request":{"contents":[{"role":"user","parts":[{"text":"Hello %d"}]}],"systemInstruction":{"parts":[{"text":"Be brief."}]},"generationConfig":{"maxOutputTokens":30}}}`+"\n", name, i)
	}
	file, err := cl.Files.Upload(t.Context(), bytes.NewReader(lines.Bytes()), &genai.UploadFileConfig{MIMEType: "application/jsonl", DisplayName: "parley-x"})
	if err != nil {
		t.Fatal(err)
	}
	if file.State != genai.FileStateActive || *file.SizeBytes != int64(lines.Len()) || file.ExpirationTime.Sub(file.CreateTime) != 48*time.Hour {
		t.Errorf("%+v", file)
	}
	job, err := cl.Batches.Create(t.Context(), "m", &genai.BatchJobSource{FileName: file.Name}, &genai.CreateBatchJobConfig{DisplayName: "parley-x"})
	for err == nil && job.State != genai.JobStateSucceeded {
		if job.State != genai.JobStatePending && job.State != genai.JobStateRunning {
			t.Fatalf("%+v", job)
		}
		job, err = cl.Batches.Get(t.Context(), job.Name, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	var theirs []string
	for _, r := range downloaded(t, cl, job.Dest.FileName) {
		theirs = append(theirs, r.Response.Text())
	}
	spare, err := cl.Files.Upload(t.Context(), strings.NewReader("{}"), &genai.UploadFileConfig{MIMEType: "application/jsonl"})
	if err == nil {
		_, err = cl.Files.Delete(t.Context(), spare.Name, nil)
	}
	if err != nil {
		t.Error(err)
	}
	sdk := s.take()
	slices.Sort(theirs)
	if !slices.Equal(ours, theirs) || len(ours) != 3 {
		t.Errorf("ours %q, theirs %q", ours, theirs)
	}
	for r, err := range api.Results(t.Context(), job.Name) { // the SDK's batch, with our client
		if err != nil || r.Err != nil || !slices.Contains(theirs, r.Response.Text) {
			t.Errorf("%+v %v", r, err)
		}
	}
	if _, err := cl.Files.Get(t.Context(), file.Name, nil); err == nil {
		t.Error("the requests of a batch that was read are kept")
	}
	var found []string
	for b, err := range cl.Batches.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, b.DisplayName+" "+string(b.State))
	}
	if len(found) != 2 || found[0] != "parley-x JOB_STATE_SUCCEEDED" || !strings.HasPrefix(found[1], "parley-") {
		t.Errorf("%q", found)
	}
	for _, at := range []string{"POST /upload/v1beta/files?upload_id", "POST /v1beta/models/m:batchGenerateContent", "GET /v1beta/batches/ID", "DELETE /v1beta/files/ID"} {
		if a, b := find(t, by, at), find(t, sdk, at); !reflect.DeepEqual(a, b) {
			t.Errorf("ours   %+v\ntheirs %+v", a, b)
		}
	}
}

// downloaded reads a file of results with the types of Google's SDK.
func downloaded(t *testing.T, cl *genai.Client, name string) (out []genai.InlinedResponse) {
	t.Helper()
	content, err := cl.Files.Download(t.Context(), genai.NewDownloadURIFromFile(&genai.File{Name: name, DownloadURI: name}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(content) {
		var r genai.InlinedResponse
		if err := json.Unmarshal(line, &r); err != nil || r.Response == nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, r)
	}
	return out
}

// TestGeminiBatchEnds: Google's SDK and our client cancel a batch in the same way, and read why one fails.
func TestGeminiBatchEnds(t *testing.T) {
	t.Parallel()
	s := serveBatches(t, time.Hour)
	cl, api := geminiClient(t, s.url), account(t, provider.Provider{Dialect: "gemini", BaseURL: s.url + "/v1beta", Batch: &provider.Batch{}})
	stop(t, api)
	by := s.take()
	for b, err := range cl.Batches.All(t.Context()) {
		if err != nil || b.State != genai.JobStatePending && b.State != genai.JobStateRunning {
			t.Fatalf("%+v %v", b, err)
		}
		if err := cl.Batches.Cancel(t.Context(), b.Name, nil); err != nil {
			t.Error(err)
		}
	}
	if a, b := find(t, by, "POST /v1beta/batches/ID:cancel"), find(t, s.take(), "POST /v1beta/batches/ID:cancel"); a.At != b.At {
		t.Errorf("ours %+v, theirs %+v", a, b)
	}
	_, err := cl.Batches.Create(t.Context(), "m", &genai.BatchJobSource{FileName: "files/none"}, &genai.CreateBatchJobConfig{DisplayName: "x"})
	var e genai.APIError
	if !errors.As(err, &e) || e.Code != http.StatusNotFound || e.Status != "NOT_FOUND" {
		t.Errorf("%v", err)
	}
}
