package dialect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"parley/internal/ask/batch"
	"parley/llm"
)

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
		r := d.result([]byte(c.line))
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
		r := d.result([]byte(c.line))
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
		for _, r := range []batch.Result{file.result([]byte(line)), message.result([]byte(line)), gemini.result([]byte(line))} {
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
