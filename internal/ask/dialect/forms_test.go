package dialect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/internal/ask/batch"
	"parley/llm"
)

// said is a server that answers a batch's address with one object, and files with one line.
func said(t *testing.T, object, line string) string {
	t.Helper()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "/files/") || strings.HasSuffix(r.URL.Path, "/results") {
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
		{"mistral", `{"id":"b","status":"QUEUED"}`, batch.Running, 0, ""},
		{"mistral", `{"id":"b","status":"CANCELLATION_REQUESTED"}`, batch.Running, 0, ""},
		{"mistral", `{"id":"b","status":"SUCCESS","output_file":"x"}`, batch.Ended, 0, ""},
		{"mistral", `{"id":"b","status":"CANCELLED"}`, batch.Ended, 0, batch.CodeCancelled},
		{"mistral", `{"id":"b","status":"TIMEOUT_EXCEEDED"}`, batch.Ended, 0, batch.CodeExpired},
		{"mistral", `{"id":"b","status":"FAILED","errors":[{"message":"no","count":3}]}`, batch.Failed, 0, ""},
		{"mistral", `{"id":"b","status":"FAILED","output_file":"x"}`, batch.Ended, 0, ""},
		{"together", `{"id":"b","status":"VALIDATING","job_deadline":"2020-01-01T00:00:00Z"}`, batch.Running, 0, ""},
		{"together", `{"job":{"id":"b","status":"COMPLETED","output_file_id":"x"}}`, batch.Ended, 0, ""},
		{"together", `{"id":"b","status":"EXPIRED"}`, batch.Ended, 0, batch.CodeExpired},
		{"together", `{"id":"b","status":"FAILED","error":"no"}`, batch.Failed, 0, ""},
		{"together", `{"id":"b","status":"FAILED","error":"no","output_file_id":"x"}`, batch.Ended, 0, ""},
		{"xai", `{"batch_id":"b","state":{}}`, batch.Running, 0, ""},
		{"xai", `{"batch_id":"b","state":{"num_requests":3,"num_pending":1,"num_success":2}}`, batch.Running, 0, ""},
		{"xai", `{"batch_id":"b","state":{"num_requests":3,"num_success":2,"num_error":1}}`, batch.Ended, 0, ""},
		{"xai", `{"batch_id":"b","cancel_time":"2026-01-01","cancel_by_xai_message":"JSONL file validation failed: line 2: no","state":{}}`, batch.Failed, 2, ""},
		{"xai", `{"batch_id":"b","cancel_time":"2026-01-01","state":{}}`, batch.Ended, 0, batch.CodeCancelled},
	} {
		t.Run(c.vendor+c.object, func(t *testing.T) {
			t.Parallel()
			d := open(t, c.vendor, said(t, c.object, "{}"))
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

// TestCancelledMayRevert: xAI counts requests in flight as cancelled, and seconds later as answered.
// Lines that are asked again too early would be paid for twice.
func TestCancelledMayRevert(t *testing.T) {
	t.Parallel()
	n, counts := 0, `"num_requests":5,"num_cancelled":5`
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"batch_id":"b","cancel_time":"2026-01-01","state":{%s}}`, counts)
	}))
	defer front.Close()
	d := open(t, "xai", front.URL)
	look := func() batch.Phase {
		st, err := d.State(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		return st.Phase
	}
	for range stableLooks - 1 {
		if p := look(); p != batch.Running {
			t.Fatalf("look %d: %s", n, p)
		}
	}
	counts = `"num_requests":5,"num_success":3,"num_cancelled":2`
	for range stableLooks - 1 {
		if p := look(); p != batch.Running {
			t.Fatalf("look %d: %s", n, p)
		}
	}
	if p := look(); p != batch.Ended {
		t.Errorf("look %d: %s", n, p)
	}
}

// TestVendorLines reads the kinds of lines that the vendors write.
func TestVendorLines(t *testing.T) {
	t.Parallel()
	const answer = `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1}}`
	row := func(result string) string {
		return `{"results":[{"batch_request_id":"a","batch_result":` + result + `}]}`
	}
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
		{"mistral", `{"custom_id":"a","response":{"status_code":200,"body":` + goodChat + `},"error":null}`, "", ""},
		{"mistral", `{"custom_id":"a","response":{"status_code":400,"body":"{\"object\":\"error\",\"message\":\"the file is gone\",\"type\":\"invalid_request_file\",\"code\":\"3310\"}"},"error":null}`, llm.KindBadRequest, ""},
		{"together", `{"custom_id":"a","response":{"status_code":200,"body":` + goodChat + `}}`, "", ""},
		{"xai", row(`{"response":{"chat_get_completion":` + goodChat + `}}`), "", ""},
		{"xai", row(`{"error":"Batch cancelled"}`), llm.KindTimeout, batch.CodeCancelled},
		{"xai", row(`{"error":"max_tokens must be positive"}`), llm.KindServer, ""},
		{"xai", row(`{"error":{"code":3,"message":"max_tokens must be positive"}}`), llm.KindServer, ""},
		{"xai", row(`{"error":{"code":1,"message":"Batch cancelled"}}`), llm.KindTimeout, batch.CodeCancelled},
		{"xai", row(`{"error":["odd"]}`), llm.KindServer, ""},
		{"xai", row(`{}`), llm.KindMalformed, ""},
	} {
		object := map[string]string{
			"gemini":   `{"name":"batches/b","metadata":{"state":"BATCH_STATE_SUCCEEDED","output":{"responsesFile":"files/x"}}}`,
			"mistral":  `{"id":"b","status":"SUCCESS","output_file":"x"}`,
			"together": `{"id":"b","status":"COMPLETED","output_file_id":"x"}`,
			"xai":      `{"batch_id":"b","state":{"num_requests":1,"num_success":1}}`,
		}[c.vendor]
		n := 0
		for r, err := range open(t, c.vendor, said(t, object, c.line)).Results(t.Context(), "b") {
			if n++; err != nil || r.CustomID != "a" || (r.Err == nil) != (c.kind == "") || r.Err != nil && (r.Err.Kind != c.kind || c.code != "" && r.Err.Code != c.code) {
				t.Errorf("%s: %+v %v %v", c.line, r, r.Err, err)
			}
			if strings.Contains(c.line, "the file is gone") && !strings.Contains(r.Err.Message, "the file is gone") {
				t.Errorf("%s: %v", c.line, r.Err)
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
