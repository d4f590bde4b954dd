package simhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/ask/sim"
)

// uploadLines uploads a file of lines and returns its ID.
func uploadLines(t *testing.T, s *Server, content string) string {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	_ = form.WriteField("purpose", "batch")
	part, err := form.CreateFormFile("file", "input.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte(content))
	_ = form.Close()
	a := call(t, s, http.MethodPost, "/v1/files", b.String(), "Content-Type", form.FormDataContentType())
	if a.status != 200 || a.at(t, "purpose") != "batch" || a.at(t, "bytes") != float64(len(content)) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return a.at(t, "id").(string)
}

func lines(n int, model string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":"%s","messages":[{"role":"user","content":"question %d"}]}}`+"\n", i, model, i)
	}
	return b.String()
}

func createBatch(t *testing.T, s *Server, file string) answered {
	t.Helper()
	return call(t, s, http.MethodPost, "/v1/batches", `{"input_file_id":"`+file+`","endpoint":"/v1/chat/completions","completion_window":"24h","metadata":{"key":"k1"}}`)
}

func show(t *testing.T, s *Server, id string) answered {
	t.Helper()
	return call(t, s, http.MethodGet, "/v1/batches/"+id, "")
}

// customIDs returns how often each custom_id is in a file of lines.
func customIDs(t *testing.T, content []byte) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for l := range bytes.SplitSeq(bytes.TrimSpace(content), []byte("\n")) {
		if len(l) > 0 {
			seen[dig(t, l, "custom_id").(string)]++
		}
	}
	return seen
}

func TestBatchLifecycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Batch: BatchConfig{Latency: sim.Fixed(100 * time.Second)}})
		created := createBatch(t, s, uploadLines(t, s, lines(50, "small")))
		if created.at(t, "status") != "validating" || created.at(t, "object") != "batch" || created.at(t, "metadata.key") != "k1" {
			t.Fatalf("%s", created.body)
		}
		id := created.at(t, "id").(string)
		for _, step := range []struct {
			after  time.Duration
			status string
			done   float64
		}{{9, "validating", 0}, {1, "in_progress", 0}, {45, "in_progress", 25}, {45, "completed", 50}} {
			time.Sleep(step.after * time.Second)
			a := show(t, s, id)
			if a.at(t, "status") != step.status || a.at(t, "request_counts.completed") != step.done {
				t.Errorf("want %+v: %s", step, a.body)
			}
		}
		a := show(t, s, id)
		if a.at(t, "error_file_id") != nil || a.at(t, "completed_at") == nil {
			t.Errorf("%s", a.body)
		}
		out := call(t, s, http.MethodGet, "/v1/files/"+a.at(t, "output_file_id").(string)+"/content", "")
		if ids := customIDs(t, out.body); len(ids) != 50 || ids["r7"] != 1 {
			t.Errorf("%v", ids)
		}
		first := bytes.SplitN(out.body, []byte("\n"), 2)[0]
		if dig(t, first, "response.status_code") != 200.0 || dig(t, first, "error") != nil || dig(t, first, "custom_id") == "r0" {
			t.Errorf("%s", first)
		}
		n := strings.TrimPrefix(dig(t, first, "custom_id").(string), "r")
		live := call(t, s, http.MethodPost, chatPath, `{"model":"small","messages":[{"role":"user","content":"question `+n+`"}]}`)
		if live.at(t, "choices.0.message.content") != dig(t, first, "response.body.choices.0.message.content") {
			t.Error("a batch and the live endpoint give different answers")
		}
		if st := s.Stats().Batches; st.Created != 1 || st.Completed != 1 || st.Requests != 50 {
			t.Errorf("%+v", st)
		}
	})
}

func TestBatchRefusals(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, content, code string }{
		{"no JSON", lines(2, "m") + "{\n", "invalid_json_line"},
		{"duplicate", lines(1, "m") + lines(1, "m"), "duplicate_custom_id"},
		{"endpoint", strings.Replace(lines(1, "m"), "chat/completions", "responses", 1), "mismatched_endpoint"},
		{"too many", lines(21, "m"), "too_many_requests"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, Config{Batch: BatchConfig{MaxRequests: 20}})
				a := createBatch(t, s, uploadLines(t, s, c.content))
				if a.status != 200 || a.at(t, "status") != "validating" {
					t.Fatalf("%s", a.body) // it is created, and fails later
				}
				time.Sleep(time.Second)
				a = show(t, s, a.at(t, "id").(string))
				if a.at(t, "status") != "failed" || a.at(t, "errors.data.0.code") != c.code || a.at(t, "failed_at") == nil {
					t.Errorf("%s", a.body)
				}
			})
		})
	}
	s := newServer(t, Config{})
	if a := createBatch(t, s, "file-nothing"); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := show(t, s, "batch_nothing"); a.status != 404 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestBatchFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Sim: sim.Config{Faults: sim.Faults{
			sim.FaultLineExpired: 0.1, sim.FaultLineErrored: 0.1, sim.FaultLineMissing: 0.1, sim.FaultLineDuplicate: 0.1,
		}}})
		a := createBatch(t, s, uploadLines(t, s, lines(300, "m")))
		time.Sleep(3 * time.Second)
		a = show(t, s, a.at(t, "id").(string))
		if a.at(t, "status") != "expired" || a.at(t, "expired_at") == nil {
			t.Fatalf("%s", a.body)
		}
		out := customIDs(t, call(t, s, http.MethodGet, "/v1/files/"+a.at(t, "output_file_id").(string)+"/content", "").body)
		bad := call(t, s, http.MethodGet, "/v1/files/"+a.at(t, "error_file_id").(string)+"/content", "").body
		twice := 0
		for _, n := range out {
			if n == 2 {
				twice++
			}
		}
		failed := len(customIDs(t, bad))
		missing := 300 - len(out) - failed
		if twice < 10 || failed < 30 || missing < 10 || !bytes.Contains(bad, []byte("batch_expired")) || !bytes.Contains(bad, []byte(`"status_code":500`)) {
			t.Errorf("%d twice, %d failed, %d missing", twice, failed, missing)
		}
	})
	for f, want := range map[sim.Fault]string{sim.FaultBatch429: "429", sim.FaultBatchFails: "failed", sim.FaultBatchVanishes: "404"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, Config{Sim: sim.Config{Faults: sim.Faults{f: 1}}})
			a := createBatch(t, s, uploadLines(t, s, lines(3, "m")))
			got := fmt.Sprint(a.status)
			if a.status == 200 {
				time.Sleep(3 * time.Second)
				a = show(t, s, a.at(t, "id").(string))
				if got = fmt.Sprint(a.status); a.status == 200 {
					got = a.at(t, "status").(string)
				}
			}
			if got != want {
				t.Errorf("%s: %s, want %s: %s", f, got, want, a.body)
			}
		})
	}
}

func TestBatchCancelAndList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Batch: BatchConfig{Latency: sim.Fixed(100 * time.Second)}})
		file := uploadLines(t, s, lines(100, "m"))
		var ids []string
		for range 3 {
			ids = append(ids, createBatch(t, s, file).at(t, "id").(string))
		}
		time.Sleep(50 * time.Second)
		a := call(t, s, http.MethodPost, "/v1/batches/"+ids[0]+"/cancel", "")
		if a.at(t, "status") != "cancelling" {
			t.Fatalf("%s", a.body)
		}
		time.Sleep(6 * time.Second)
		a = show(t, s, ids[0])
		if a.at(t, "status") != "cancelled" || a.at(t, "request_counts.completed") != 44.0 || a.at(t, "cancelled_at") == nil {
			t.Errorf("%s", a.body)
		}
		bad := call(t, s, http.MethodGet, "/v1/files/"+a.at(t, "error_file_id").(string)+"/content", "")
		if n := len(customIDs(t, bad.body)); n != 56 || !bytes.Contains(bad.body, []byte("batch_cancelled")) {
			t.Errorf("%d lines: %.300s", n, bad.body)
		}
		time.Sleep(time.Minute)
		if a := call(t, s, http.MethodPost, "/v1/batches/"+ids[1]+"/cancel", ""); a.status != 400 {
			t.Errorf("%d %s", a.status, a.body)
		}
		page := call(t, s, http.MethodGet, "/v1/batches?limit=2", "")
		if page.at(t, "data.0.id") != ids[2] || page.at(t, "has_more") != true || page.at(t, "last_id") != ids[1] {
			t.Errorf("%s", page.body)
		}
		rest := call(t, s, http.MethodGet, "/v1/batches?limit=2&after="+ids[1], "")
		if rest.at(t, "data.0.id") != ids[0] || rest.at(t, "has_more") != false {
			t.Errorf("%s", rest.body)
		}
	})
}

func messageBatchBody(n int) string {
	type request struct {
		CustomID string          `json:"custom_id"`
		Params   json.RawMessage `json:"params"`
	}
	var list []request
	for i := range n {
		list = append(list, request{fmt.Sprint("m", i), json.RawMessage(strings.Replace(messagesBody, "river", fmt.Sprint(i), 1))})
	}
	b, _ := json.Marshal(map[string]any{"requests": list})
	return string(b)
}

func TestMessageBatches(t *testing.T) {
	t.Parallel()
	const path = "/v1/messages/batches"
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Batch: BatchConfig{Latency: sim.Fixed(100 * time.Second)}})
		body := strings.Replace(messageBatchBody(20), `"role":"user"`, `"role":"king"`, 1) // one that will fail
		a := call(t, s, http.MethodPost, path, body)
		if a.at(t, "processing_status") != "in_progress" || a.at(t, "type") != "message_batch" || a.at(t, "request_counts.processing") != 20.0 {
			t.Fatalf("%s", a.body)
		}
		id := a.at(t, "id").(string)
		time.Sleep(60 * time.Second)
		if a := call(t, s, http.MethodGet, path+"/"+id, ""); a.at(t, "request_counts.processing") != 20.0 || a.at(t, "results_url") != nil {
			t.Errorf("counts move only when all has ended: %s", a.body)
		}
		if a := call(t, s, http.MethodGet, path+"/"+id+"/results", ""); a.status != 400 {
			t.Errorf("%d %s", a.status, a.body)
		}
		time.Sleep(41 * time.Second)
		a = call(t, s, http.MethodGet, path+"/"+id, "")
		if a.at(t, "processing_status") != "ended" || a.at(t, "request_counts.succeeded") != 19.0 || a.at(t, "request_counts.errored") != 1.0 || a.at(t, "ended_at") == nil {
			t.Fatalf("%s", a.body)
		}
		if url := a.at(t, "results_url").(string); !strings.HasSuffix(url, path+"/"+id+"/results") {
			t.Error(url)
		}
		res := call(t, s, http.MethodGet, path+"/"+id+"/results", "").body
		if ids := customIDs(t, res); len(ids) != 20 || !bytes.Contains(res, []byte(`"type":"errored","error":{"type":"error"`)) || !bytes.Contains(res, []byte(`"service_tier":"batch"`)) {
			t.Errorf("%v %.300s", ids, res)
		}
		list := call(t, s, http.MethodGet, path+"?limit=1", "")
		if list.at(t, "data.0.id") != id || list.at(t, "has_more") != false {
			t.Errorf("%s", list.body)
		}
		for query, left := range map[string]int{"?after_id=" + id: 0, "?after_id=nothing": -1} {
			a := call(t, s, http.MethodGet, path+query, "")
			if data, _ := a.at(t, "data").([]any); (a.status == 400) != (left < 0) || left >= 0 && len(data) != left {
				t.Errorf("%s: %d %s", query, a.status, a.body)
			}
		}
		if a := call(t, s, http.MethodGet, path+"/nothing", ""); a.status != 404 || a.at(t, "error.type") != "not_found_error" {
			t.Errorf("%s", a.body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Batch: BatchConfig{Latency: sim.Fixed(100 * time.Second), MaxRequests: 30}})
		id := call(t, s, http.MethodPost, path, messageBatchBody(30)).at(t, "id").(string)
		time.Sleep(50 * time.Second)
		if a := call(t, s, http.MethodPost, path+"/"+id+"/cancel", ""); a.at(t, "processing_status") != "canceling" || a.at(t, "cancel_initiated_at") == nil {
			t.Errorf("%s", a.body)
		}
		time.Sleep(10 * time.Second)
		if a := call(t, s, http.MethodGet, path+"/"+id, ""); a.at(t, "request_counts.canceled") != 17.0 || a.at(t, "request_counts.succeeded") != 13.0 {
			t.Errorf("%s", a.body)
		}
		for body, status := range map[string]int{
			messageBatchBody(31): 413, `{"requests":[]}`: 400, `{"requests":[{"custom_id":"a"}]}`: 400, `{}`: 400,
			`{"requests":[{"custom_id":"a","params":{}},{"custom_id":"a","params":{}}]}`: 400,
		} {
			if a := call(t, s, http.MethodPost, path, body); a.status != status {
				t.Errorf("%.60s: %d %s", body, a.status, a.body)
			}
		}
	})
}
