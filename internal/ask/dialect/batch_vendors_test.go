package dialect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/batch"
	"parley/llm"
)

// batchServer is a server that answers a batch's address with one object, and files with one line.
func batchServer(t *testing.T, object, line string) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "/files/") {
			_, _ = io.WriteString(w, line)
			return
		}
		_, _ = io.WriteString(w, object)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// TestStates reads what each vendor shows of a batch, and the result of lines that it leaves out.
func TestStates(t *testing.T) {
	t.Parallel()
	gemini := func(state, more string) string {
		answered := "1"
		if strings.HasSuffix(state, "FAILED") {
			answered = "0"
		}
		return `{"name":"batches/b","metadata":{"state":"` + state + `","batchStats":{"requestCount":"3","successfulRequestCount":"` + answered + `","failedRequestCount":"1"}` + more + `}}`
	}
	for _, c := range []struct {
		vendor, object string
		phase          batch.Phase
		line           int    // of the first fault
		rest           string // the code of lines without a result
	}{
		{"openai", `{"id":"b","status":"failed","errors":{"data":[{"code":"c","message":"m","line":2}]}}`, batch.Failed, 2, ""},
		{"openai", `{"id":"b","status":"failed","output_file_id":"x","errors":{"data":[{"code":"c","message":"m","line":2}]}}`, batch.Ended, 0, ""},
		{"openai", `{"id":"b","status":"failed","request_counts":{"total":3,"completed":1,"failed":0}}`, batch.Ended, 0, ""},
		{"azure", `{"id":"b","status":"Failed","output_file_id":"x"}`, batch.Ended, 0, ""},
		{"azure", `{"id":"b","status":"Validating","created_at":"2026-07-19T17:13:57.2491382+00:00","request_counts":{"total":null}}`, batch.Running, 0, ""},
		{"azure", `{"id":"b","status":"completed","created_at":1721408291,"output_file_id":"x"}`, batch.Ended, 0, ""},
		{"azure", `{"id":"b","status":"Failed","errors":{"data":[{"code":"c","message":"m","line":2}]}}`, batch.Failed, 2, ""},
		{"gemini", gemini("BATCH_STATE_PENDING", ""), batch.Running, 0, ""},
		{"gemini", gemini("JOB_STATE_RUNNING", ""), batch.Running, 0, ""},
		{"gemini", gemini("BATCH_STATE_SUCCEEDED", `,"output":{"responsesFile":"files/x"}`), batch.Ended, 0, ""},
		{"gemini", gemini("BATCH_STATE_FAILED", ""), batch.Failed, 0, ""},
		{"gemini", gemini("BATCH_STATE_FAILED", `,"output":{"responsesFile":"files/x"}`), batch.Ended, 0, ""},
		{"gemini", `{"name":"batches/b","metadata":{"state":"BATCH_STATE_FAILED","batchStats":{"successfulRequestCount":"1"}}}`, batch.Ended, 0, ""},
		{"gemini", gemini("BATCH_STATE_CANCELLED", ""), batch.Ended, 0, batch.CodeCancelled},
		{"gemini", gemini("BATCH_STATE_EXPIRED", ""), batch.Ended, 0, batch.CodeExpired},
		{"gemini", gemini("SOMETHING", ""), batch.Running, 0, ""},
	} {
		t.Run(c.vendor+c.object, func(t *testing.T) {
			t.Parallel()
			d := open(t, c.vendor, batchServer(t, c.object, "{}"))
			st, err := d.State(t.Context(), "b")
			line := 0
			if len(st.Faults) > 0 {
				line = st.Faults[0].Line
			}
			if err != nil || st.Phase != c.phase || line != c.line || (st.Phase == batch.Failed) != (len(st.Faults) > 0) || !st.Expires.IsZero() {
				t.Fatalf("%+v %v", st, err)
			}
			rest := ""
			for r, err := range d.Results(t.Context(), "b") {
				if err != nil {
					t.Fatal(err)
				}
				if r.Rest {
					rest = r.Err.Code
				}
			}
			if rest != c.rest {
				t.Errorf("the rest: %q", rest)
			}
		})
	}
}

// TestVendorLines reads the kinds of lines that the vendors write.
func TestVendorLines(t *testing.T) {
	t.Parallel()
	const answer = `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}`
	for _, c := range []struct {
		vendor, line string
		kind         llm.Kind // "": an answer
		code         string
	}{
		{"gemini", `{"key":"a","response":` + answer + `}`, "", ""},
		{"gemini", `{"key":"a","error":{"code":3,"message":"no"}}`, llm.KindBadRequest, ""},
		{"gemini", `{"key":"a","error":{"code":8,"message":"no"}}`, llm.KindRateLimited, ""},
		{"gemini", `{"key":"a","error":{"code":13,"message":"no"}}`, llm.KindServer, ""},
		{"gemini", `{"key":"a","error":{"code":4,"message":"late"}}`, llm.KindTimeout, batch.CodeExpired},
		{"gemini", `{"key":"a"}`, llm.KindMalformed, ""},
	} {
		object := map[string]string{
			"gemini": `{"name":"batches/b","metadata":{"state":"BATCH_STATE_SUCCEEDED","output":{"responsesFile":"files/x"}}}`,
		}[c.vendor]
		n := 0
		for r, err := range open(t, c.vendor, batchServer(t, object, c.line)).Results(t.Context(), "b") {
			if n++; err != nil || r.CustomID != "a" || (r.Err == nil) != (c.kind == "") || r.Err != nil && (r.Err.Kind != c.kind || c.code != "" && r.Err.Code != c.code) {
				t.Errorf("%s: %+v %v %v", c.line, r, r.Err, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d results", c.line, n)
		}
	}
}

// TestUploadAddress: the file and the key go only to the provider's own host.
func TestUploadAddress(t *testing.T) {
	t.Parallel()
	stolen := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen = true }))
	defer other.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Goog-Upload-Url", other.URL+"/upload/v1beta/files?upload_id=1")
	}))
	defer front.Close()
	d := open(t, "gemini", front.URL)
	_, err := d.Create(t.Context(), draft(t, d, question("a", 0)), nil)
	if e := llm.AsError(err); e == nil || e.Kind != llm.KindMalformed || e.Uncertain || stolen || !strings.Contains(e.Message, "host") {
		t.Errorf("%v, sent elsewhere: %v", err, stolen)
	}
}

// TestSettles: at Azure, a batch is created only when its file was processed, and not at all if it cannot be.
func TestSettles(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"processed", "error"} {
		looked, created := 0, 0
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodGet:
				status := "pending"
				if looked++; looked > 1 {
					status = end
				}
				_, _ = io.WriteString(w, `{"id":"f","status":"`+status+`"}`)
			case strings.HasSuffix(r.URL.Path, "/files"):
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, `{"id":"f","status":"pending"}`)
			default:
				created++
				if body, _ := io.ReadAll(r.Body); looked < 2 || !strings.Contains(string(body), `"endpoint":"/chat/completions"`) {
					t.Errorf("created after %d looks: %s", looked, body)
				}
				_, _ = io.WriteString(w, `{"id":"b","status":"Validating"}`)
			}
		}))
		t.Cleanup(front.Close)
		d := open(t, "azure", front.URL)
		id, err := d.Create(t.Context(), draft(t, d, question("Who?", 0)), func(context.Context, string) error { return nil })
		if ok := end == "processed"; (id == "b") != ok || (err == nil) != ok || (created == 1) != ok {
			t.Errorf("%s: %q, %v, %d created", end, id, err, created)
		}
	}
}

// TestNoTierInBatches: a batch is a tier of its own, which some vendors insist on.
func TestNoTierInBatches(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		d := open(t, name, "http://127.0.0.1:1")
		plain := question("a", 0)
		tiered := question("a", 0)
		tiered.Tier = "flex"
		w, err := d.Weigh(plain)
		if err != nil {
			t.Fatal(err)
		}
		v, err := d.Weigh(tiered)
		if err != nil || v.Bytes != w.Bytes || !slices.Contains(v.Dropped, "tier") || tiered.Tier != "flex" {
			t.Errorf("%s: %+v, %+v without a tier, %v", name, v, w, err)
		}
	}
}

const goodChat = `{"id":"c","model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`

const goodMessage = `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}`

// TestFileLines reads all kinds of lines in an output or error file.
func TestFileLines(t *testing.T) {
	t.Parallel()
	d := open(t, "openai", "http://127.0.0.1:1").(*fileAPI)
	for _, c := range []struct {
		line string
		id   string
		kind llm.Kind // "": an answer
		code string
	}{
		{`{"custom_id":"a","response":{"status_code":200,"request_id":"r","body":` + goodChat + `},"error":null}`, "a", "", ""},
		{`{"custom_id":"a","response":{"status_code":200,"body":{"choices":[]}},"error":null}`, "a", llm.KindMalformed, ""},
		{`{"custom_id":"a","response":{"status_code":500,"body":{"error":{"message":"oops"}}},"error":null}`, "a", llm.KindServer, ""},
		{`{"custom_id":"a","response":{"status_code":429,"body":{"error":{"message":"no","code":"insufficient_quota"}}}}`, "a", llm.KindQuota, "insufficient_quota"},
		{`{"custom_id":"a","response":{"status_code":400,"body":null}}`, "a", llm.KindBadRequest, ""},
		{`{"custom_id":"a","response":null,"error":{"code":"batch_expired","message":"late"}}`, "a", llm.KindTimeout, batch.CodeExpired},
		{`{"custom_id":"a","response":null,"error":{"code":"batch_cancelled","message":"off"}}`, "a", llm.KindTimeout, batch.CodeCancelled},
		{`{"custom_id":"a","response":null,"error":{"code":"request_timeout","message":"slow"}}`, "a", llm.KindTimeout, "request_timeout"},
		{`{"custom_id":"a","response":null,"error":{"code":"odd","message":"odd"}}`, "a", llm.KindServer, "odd"},
		{`{"custom_id":"a","response":null,"error":null}`, "a", llm.KindMalformed, ""},
		{`{"custom_id":"a"`, "", "", ""},
		{`[]`, "", "", ""},
		{`nonsense`, "", "", ""},
	} {
		r := d.result([]byte(c.line), FileResult)
		if r.CustomID != c.id || (r.Err == nil) != (c.kind == "") || r.Err != nil && (r.Err.Kind != c.kind || c.code != "" && r.Err.Code != c.code) {
			t.Errorf("%s: %+v %v", c.line, r, r.Err)
		}
		if c.id != "" && c.kind == "" && (r.Response == nil || r.Response.Text != "hi") {
			t.Errorf("%s: %+v", c.line, r.Response)
		}
	}
}

// TestMessageLines does the same for Anthropic's results.
func TestMessageLines(t *testing.T) {
	t.Parallel()
	d := open(t, "anthropic", "http://127.0.0.1:1").(*messageAPI)
	for _, c := range []struct {
		line, id string
		kind     llm.Kind
	}{
		{`{"custom_id":"a","result":{"type":"succeeded","message":` + goodMessage + `}}`, "a", ""},
		{`{"custom_id":"a","result":{"type":"succeeded"}}`, "a", llm.KindMalformed},
		{`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"no"}}}}`, "a", llm.KindBadRequest},
		{`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"not_found_error","message":"no"}}}}`, "a", llm.KindBadRequest},
		{`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"overloaded_error","message":"no"}}}}`, "a", llm.KindOverloaded},
		{`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"api_error","message":"no"}}}}`, "a", llm.KindServer},
		{`{"custom_id":"a","result":{"type":"errored"}}`, "a", llm.KindServer},
		{`{"custom_id":"a","result":{"type":"canceled"}}`, "a", llm.KindTimeout},
		{`{"custom_id":"a","result":{"type":"expired"}}`, "a", llm.KindTimeout},
		{`{"custom_id":"a","result":{"type":"odd\u001b[31m"}}`, "a", llm.KindMalformed},
		{`{`, "", ""},
	} {
		r := d.result([]byte(c.line), MessageResult)
		if r.CustomID != c.id || (r.Err == nil) != (c.kind == "") || r.Err != nil && (r.Err.Kind != c.kind || strings.Contains(r.Err.Error(), "\x1b")) {
			t.Errorf("%s: %+v %v", c.line, r, r.Err)
		}
		status := 400 // without one, the engine takes it for a mistake of ours, and the run fails
		if strings.Contains(c.line, "not_found") {
			status = 404
		}
		if c.kind == llm.KindBadRequest && r.Err.Status != status {
			t.Errorf("%s: %+v", c.line, r.Err)
		}
	}
}

func FuzzResults(f *testing.F) {
	f.Add(`{"custom_id":"a","response":{"status_code":200,"body":` + goodChat + `}}`)
	f.Add(`{"custom_id":"a","result":{"type":"succeeded","message":` + goodMessage + `}}`)
	f.Add(`{"custom_id":"a","result":{"type":"errored","error":[]}}`)
	f.Add(`{"key":"a","error":{"code":3,"message":"no"}}`)
	f.Add(`{"custom_id":"a","response":{"status_code":400,"body":"{}"}}`)
	file, message := open(f, "openai", "http://127.0.0.1:1").(*fileAPI), open(f, "anthropic", "http://127.0.0.1:1").(*messageAPI)
	gemini := open(f, "gemini", "http://127.0.0.1:1").(*geminiAPI)
	f.Fuzz(func(t *testing.T, line string) {
		for _, r := range []batch.Result{file.result([]byte(line), FileResult), message.result([]byte(line), MessageResult), gemini.result([]byte(line), geminiResult)} {
			if r.CustomID != "" && (r.Response == nil) == (r.Err == nil) {
				t.Errorf("%q: %+v", line, r)
			}
		}
	})
}

// TestGone reads the answer for a batch that no longer exists: not found, or an error with a status
// of success.
func TestGone(t *testing.T) {
	t.Parallel()
	for _, name := range dialects() {
		for _, status := range []int{200, 404} {
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(`{"error":{"message":"it is gone"}}`))
			}))
			d := open(t, name, front.URL)
			_, err := d.State(t.Context(), "b")
			if e := llm.AsError(err); e == nil || e.Status != 404 || !strings.Contains(e.Message, "it is gone") {
				t.Errorf("%s %d: %v", name, status, err)
			}
			front.Close()
		}
	}
}

// TestFlatMemory sends and reads ten thousand lines, more than 15 MB each way. Only a part of them is
// in memory at a time.
func TestFlatMemory(t *testing.T) { // not parallel: it measures the whole process
	const lines, size = 10_000, 1500
	text := strings.Repeat("word ", size/5)
	for _, name := range []string{"openai", "anthropic"} {
		sent := int64(0)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodPost {
				n, _ := io.Copy(io.Discard, r.Body)
				sent = max(sent, n)
				_, _ = w.Write([]byte(`{"id":"x"}`))
				return
			}
			if strings.HasSuffix(r.URL.Path, "/batches/x") {
				_, _ = w.Write([]byte(`{"id":"x","status":"completed","output_file_id":"o"}`))
				return
			}
			line := `{"custom_id":"a","response":{"status_code":200,"body":` + strings.Replace(goodChat, "hi", text, 1) + "}}\n"
			if name == "anthropic" {
				line = `{"custom_id":"a","result":{"type":"succeeded","message":` + strings.Replace(goodMessage, "hi", text, 1) + "}}\n"
			}
			for range lines {
				_, _ = io.WriteString(w, line)
			}
		}))
		d := open(t, name, front.URL)
		req := question(text, 0)
		w, err := d.Weigh(req)
		if err != nil {
			t.Fatal(err)
		}
		dr := &batch.Draft{Key: batch.NewKey()}
		for i := range lines {
			dr.Requests = append(dr.Requests, batch.Request{ID: batch.ID(fmt.Sprint(i)), Request: req, Bytes: w.Bytes})
		}
		var m runtime.MemStats
		held := func() uint64 { runtime.ReadMemStats(&m); return m.HeapAlloc }
		runtime.GC()
		before, peak := held(), uint64(0)
		if _, err := d.Create(t.Context(), dr, func(context.Context, string) error { peak = max(peak, held()); return nil }); err != nil {
			t.Fatal(err)
		}
		peak = max(peak, held())
		n := 0
		for r, err := range d.Results(t.Context(), "x") {
			if err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			if n++; n%500 == 0 {
				peak = max(peak, held())
			}
		}
		if n != lines || sent < lines*size || peak > before+9<<20 {
			t.Errorf("%s: %d MB sent, %d results, %d MB more in use", name, sent>>20, n, (peak-before)>>20)
		}
		front.Close()
	}
}
