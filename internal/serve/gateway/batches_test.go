package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/internal/ask/price"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/ask/wire/request"
	"parley/internal/kit/testkit"
	"parley/internal/run/runfile"
	"parley/llm"
)

// pricesOfBatches are prices of a model, whose batches cost half.
const pricesOfBatches = `{"models":{"openai/m":{"input":1,"output":2,"batch":0.5},"anthropic/m":{"input":1,"output":2,"batch":0.5}}}`

func batchPrices(t testing.TB) *price.Table {
	t.Helper()
	p, err := price.Read(strings.NewReader(pricesOfBatches), "test")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// batchSim serves the simulated provider, whose batches take a moment.
func batchSim(t testing.TB) string {
	t.Helper()
	s, err := simhttp.New(simhttp.Config{Batch: simhttp.BatchConfig{Latency: sim.Fixed(time.Millisecond)}})
	if err != nil {
		t.Fatal(err)
	}
	return serving(t, s)
}

// batchLab is a gateway with a budget over a provider of both formats.
func batchLab(t *testing.T, url, file string, budget float64, change ...func(*Config)) *lab {
	t.Helper()
	c := Config{Upstreams: []provider.Provider{upstream("openai", url), upstream("anthropic", url)}, Prices: batchPrices(t), Settings: limited(llm.Dollars(budget), 4)}
	for _, f := range change {
		f(&c)
	}
	return startAt(t, c, file)
}

// uploadOf is a form with a file of requests, and its type.
func uploadOf(purpose, content string, more ...string) (form, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	w.WriteField("purpose", purpose)
	for i := 0; i+1 < len(more); i += 2 {
		w.WriteField(more[i], more[i+1])
	}
	f, _ := w.CreateFormFile("file", "in.jsonl")
	io.WriteString(f, content)
	w.Close()
	return b.String(), w.FormDataContentType()
}

// lineOf is a line of a file.
func lineOf(id, body string) string {
	return `{"custom_id":"` + id + `","method":"POST","url":"/v1/chat/completions","body":` + body + "}\n"
}

func creationOf(file string) string {
	return `{"input_file_id":"` + file + `","endpoint":"/v1/chat/completions","completion_window":"24h"}`
}

// send uploads a file of requests and creates its batch.
func (l *lab) send(t *testing.T, at, lines string) (file, batch string) {
	t.Helper()
	form, kind := uploadOf("batch", lines)
	file = request.Str([]byte(l.post(at+"/files", form, "Content-Type", kind).want(t, 200, `"processed"`).body), "id")
	batch = request.Str([]byte(l.post(at+"/batches", creationOf(file)).want(t, 200, file).body), "id")
	return file, batch
}

// fetchOutput waits for a batch and reads its results.
func (l *lab) fetchOutput(t *testing.T, at, batch string) (output string, r reply) {
	t.Helper()
	for {
		b := []byte(l.post(at+"/batches/"+batch, "").want(t, 200).body)
		if output = request.Str(b, "output_file_id"); output != "" {
			return output, l.post(at+"/files/"+output+"/content", "").want(t, 200)
		}
		time.Sleep(time.Millisecond)
	}
}

// sums returns what is spent and set aside.
func (l *lab) sums() (spent, aside llm.Money) { return l.g.dispatch.Budget().Spent() }

// TestBatch sends a batch over OpenAI's API: what it may cost is set aside at half the price before it is sent, also in a later process, until
// its results are fetched. Then each of its requests is a call of the session, and what it cost is spent, once.
func TestBatch(t *testing.T) {
	t.Parallel()
	url, file := batchSim(t), filepath.Join(t.TempDir(), "run.parley")
	l := batchLab(t, url, file, 1)
	const at = "/v1/sessions/s"
	var lines string
	for i := range 3 {
		lines += lineOf(fmt.Sprint("one-", i), chatOf("m", fmt.Sprint("question ", i), `,"max_tokens":50`))
	}
	_, id := l.send(t, at, lines)
	spent, aside := l.sums()
	one, err := l.g.dispatch.Worst(&llm.Request{Model: "openai/m", Messages: []llm.Message{llm.User("question 0")}, MaxTokens: 50})
	if off := aside.Minus((3 * one) / 2); err != nil || spent != 0 || off < -3 || off > 3 {
		t.Errorf("spent %v, set aside %v, %v", spent, aside, err)
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	l = batchLab(t, url, file, 1)
	if _, again := l.sums(); again != aside {
		t.Errorf("%v is set aside after a restart, before it was %v", again, aside)
	}
	l.post(at+"/close", `{"completion_mode":"abort"}`).want(t, 409, "batch_open")
	output, got := l.fetchOutput(t, at, id)
	spent, left := l.sums()
	if strings.Count(got.body, "\n") != 3 || spent == 0 || spent >= aside || left != 0 {
		t.Errorf("%q, spent %v, set aside %v", got.body, spent, left)
	}
	again := l.post(at+"/files/"+output+"/content", "").want(t, 200)
	if now, _ := l.sums(); now != spent || again.body != got.body {
		t.Errorf("fetched again, %v is spent and not %v", now, spent)
	}
	for _, path := range []string{"/files/" + output + "/content", "/files/" + output, "/batches/" + id} {
		l.post("/v1/sessions/other"+path, "").want(t, 404, "batch_unknown")
	}
	l.post("/v1/sessions/other/batches/"+id+"/cancel", "{}").want(t, 404, "batch_unknown")
	var cost llm.Money
	asked := map[string]bool{}
	for _, c := range l.calls("s") {
		if c.Request != nil {
			cost = cost.Plus(c.Cost())
			asked[c.Request.Messages[0].Text()] = true
			whole := llm.Dollars((float64(c.Response.Usage.Input) + 2*float64(c.Response.Usage.Output)) / 1e6)
			if c.Response.Text == "" || c.Response.Tier != "batch" || c.Request.Model != "openai/m" || 2*c.Cost() < whole-2 || 2*c.Cost() > whole+2 {
				t.Errorf("%+v costs %v, live %v", c.Response, c.Cost(), whole)
			}
		}
	}
	if len(asked) != 3 || cost != spent {
		t.Errorf("%v, cost %v, spent %v", asked, cost, spent)
	}
	l = batchLab(t, url, file, 1)
	if now, left := l.sums(); now != spent || left != 0 {
		t.Errorf("after it was collected and a restart, spent %v and not %v, set aside %v", now, spent, left)
	}
	l.post(at+"/close", "{}").want(t, 200, `"status":"closed"`)
}

// TestOddBatch: members of another type than expected hide neither the state nor the results; counts that cannot be read free no money.
func TestOddBatch(t *testing.T) {
	t.Parallel()
	for object, counted := range map[string]bool{
		`{"status":"completed","output_file_id":"f","request_counts":{"total":1,"completed":1}}`:               true,
		`{"status":"completed","output_file_id":"f","request_counts":{"total":1,"completed":1e30}}`:            false,
		`{"status":"completed","endpoint":5,"metadata":"x","output_file_id":"f","request_counts":{"total":1}}`: false,
	} {
		b := &clientBatch{}
		if got := b.see([]byte(object)); len(got) != 1 || got[0] != "f" || !b.ended || b.counted != counted {
			t.Errorf("%s: %v, ended %v, counted %v", object, got, b.ended, b.counted)
		}
	}
}

// TestMessageBatch is TestBatch for Anthropic's API. The address of the results leads to the gateway.
func TestMessageBatch(t *testing.T) {
	t.Parallel()
	url, file := batchSim(t), filepath.Join(t.TempDir(), "run.parley")
	l := batchLab(t, url, file, 1)
	const at = "/v1/sessions/s/v1/messages/batches"
	one := `{"requests":[{"custom_id":"a","params":` + messageOf("m", "hello") + `},{"custom_id":"b","params":` + messageOf("m", "goodbye") + `}]}`
	id := request.Str([]byte(l.post(at, one).want(t, 200, "msgbatch_").body), "id")
	if _, aside := l.sums(); aside < llm.Dollars(400*2e-6/2) {
		t.Errorf("%v is set aside", aside)
	}
	results := ""
	for results == "" {
		results = request.Str([]byte(l.post(at+"/"+id, "").want(t, 200).body), "results_url")
	}
	if results != "/v1/messages/batches/"+id+"/results" {
		t.Error(results)
	}
	l.post("/v1/sessions/other"+results, "").want(t, 404, "batch_unknown")
	l.post("/v1/sessions/s"+results, "").want(t, 200, `"a"`, `"b"`, "succeeded")
	spent, aside := l.sums()
	if spent == 0 || aside != 0 {
		t.Errorf("spent %v, set aside %v", spent, aside)
	}
	texts := 0
	for _, c := range l.calls("s") {
		if c.Request != nil && c.Response != nil && c.Response.Text != "" && c.Request.Model == "anthropic/m" {
			texts++
		}
	}
	if texts != 2 {
		t.Errorf("%d answers", texts)
	}
}

// TestBatchTogether fetches the results of a batch, and asks about it, many times at once. What it cost is spent once. A session that waits for a batch
// is not closed because it is idle.
func TestBatchTogether(t *testing.T) {
	t.Parallel()
	l := batchLab(t, batchSim(t), filepath.Join(t.TempDir(), "run.parley"), 1)
	var lines string
	for i := range 50 {
		lines += lineOf(fmt.Sprint(i), chatOf("m", "hello", `,"max_tokens":50`))
	}
	_, id := l.send(t, "/v1/sessions/s", lines)
	if idle := l.g.sessions.idle(time.Now().Add(time.Hour)); len(idle) != 0 {
		t.Errorf("%d sessions are idle", len(idle))
	}
	output := ""
	for output == "" {
		output = request.Str([]byte(l.post("/v1/sessions/s/batches/"+id, "").want(t, 200).body), "output_file_id")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { l.try(t.Context(), "/v1/sessions/s/files/"+output+"/content", "") })
		wg.Go(func() { l.try(t.Context(), "/v1/sessions/s/batches/"+id, "") })
	}
	wg.Wait()
	for len(l.g.sessions.idle(time.Now().Add(time.Hour))) == 0 { // a call leaves its session after its answer
		time.Sleep(time.Millisecond)
	}
	spent, aside := l.sums()
	var cost llm.Money
	calls := 0
	for _, c := range l.calls("s") {
		if c.Request != nil {
			calls++
			cost = cost.Plus(c.Cost())
		}
	}
	if calls != 50 || cost != spent || aside != 0 {
		t.Errorf("%d calls, cost %v, spent %v, set aside %v", calls, cost, spent, aside)
	}
}

// batchServer answers as a provider of batches, as the test says, and keeps what it got.
type batchServer struct {
	mu     sync.Mutex
	files  []string // contents
	heads  []http.Header
	create func(w http.ResponseWriter) // default: a batch
	object string                      // of the batch
	output string                      // of the results
	asked  int
}

func (s *batchServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	s.heads = append(s.heads, r.Header.Clone())
	w.Header().Set("Content-Type", "application/json")
	switch at := r.Method + " " + r.URL.Path; {
	case at == "POST /v1/files":
		_, p, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		form, _ := multipart.NewReader(r.Body, p["boundary"]).ReadForm(1 << 20)
		f, _ := form.File["file"][0].Open()
		b, _ := io.ReadAll(f)
		s.files = append(s.files, string(b))
		fmt.Fprintf(w, `{"id":"file-%d","object":"file"}`, len(s.files))
	case at == "POST /v1/batches" && s.create != nil:
		s.create(w)
	case r.URL.Path == "/v1/files/out/content":
		io.WriteString(w, s.output)
	default:
		io.WriteString(w, s.object)
	}
}

func (s *batchServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// TestBatchOverBudget checks that a batch is refused that may cost more than is left, and that nothing of it is sent.
func TestBatchOverBudget(t *testing.T) {
	t.Parallel()
	s := &batchServer{object: `{"id":"b","status":"in_progress","request_counts":{"total":2}}`}
	l := batchLab(t, serving(t, s), filepath.Join(t.TempDir(), "run.parley"), 0.001)
	form, kind := uploadOf("batch", lineOf("a", chatOf("m", "hello", `,"max_tokens":100`))+lineOf("b", chatOf("m", "hello", `,"max_tokens":100`)))
	l.post("/v1/files", form, "Content-Type", kind).want(t, 200)
	l.post("/v1/batches", creationOf("file-1")).want(t, 200) // sets aside more than half of it
	_, aside := l.sums()
	sent := s.requests()
	l.post("/v1/batches", creationOf("file-1")).want(t, http.StatusPaymentRequired, "budget", "the batch sets aside", "left of $0.001")
	l.post(chatPath, chatOf("m", "hello", `,"max_tokens":100`)).want(t, http.StatusPaymentRequired, "budget") // at once, and not when the batch has ended
	if spent, now := l.sums(); s.requests() != sent || spent != 0 || now != aside || aside == 0 {
		t.Errorf("%d requests were sent, spent %v, set aside %v, before %v", s.requests()-sent, spent, now, aside)
	}
}

// TestBatchThatMayExist checks what stays set aside of a batch whose creation failed: nothing if the provider refused it, and all if it may exist.
func TestBatchThatMayExist(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		stays  bool
	}{"refused": {400, false}, "rate limited": {429, false}, "broken": {500, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &batchServer{object: `{"id":"file-1"}`, create: func(w http.ResponseWriter) {
				w.WriteHeader(c.status)
				io.WriteString(w, `{"error":{"message":"no","type":"x"}}`)
			}}
			file := filepath.Join(t.TempDir(), "run.parley")
			l := batchLab(t, serving(t, s), file, 1)
			form, kind := uploadOf("batch", lineOf("a", chatOf("m", "hello", `,"max_tokens":100`)))
			l.post("/v1/files", form, "Content-Type", kind).want(t, 200)
			l.post("/v1/batches", creationOf("file-1")).want(t, c.status, `"no"`)
			if _, aside := l.sums(); aside > 0 != c.stays {
				t.Errorf("%v is set aside", aside)
			}
			if err := l.stop(); err != nil {
				t.Fatal(err)
			}
			l = batchLab(t, serving(t, s), file, 1)
			if _, aside := l.sums(); aside > 0 != c.stays {
				t.Errorf("after a restart, %v is set aside", aside)
			}
		})
	}
}

// TestBatchEnds checks that what is set aside is given back when nothing more can be billed, and not before.
func TestBatchEnds(t *testing.T) {
	t.Parallel()
	answer := func(id string) string {
		return `{"custom_id":"` + id + `","response":{"status_code":200,"body":{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}}}` + "\n"
	}
	for name, c := range map[string]struct {
		object, output string
		stays          bool
	}{
		"failed":               {`{"id":"b","status":"failed","request_counts":{"total":0,"completed":0}}`, "", false},
		"cancelled, unbilled":  {`{"id":"b","status":"cancelled","request_counts":{"total":2,"completed":0}}`, "", false},
		"one expired":          {`{"id":"b","status":"expired","output_file_id":"out","error_file_id":"bad","request_counts":{"total":2,"completed":1}}`, answer("a"), false},
		"a result is missing":  {`{"id":"b","status":"completed","output_file_id":"out","request_counts":{"total":2,"completed":2}}`, answer("a"), true},
		"no counts, one known": {`{"id":"b","status":"completed","output_file_id":"out"}`, answer("a"), true},
		"another's line":       {`{"id":"b","status":"completed","output_file_id":"out","request_counts":{"total":2,"completed":2}}`, answer("a") + answer("c") + answer("a"), true},
		"not fetched":          {`{"id":"b","status":"completed","output_file_id":"other","request_counts":{"total":2,"completed":2}}`, "", true},
		"in progress":          {`{"id":"b","status":"in_progress","request_counts":{"total":2,"completed":0}}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &batchServer{object: c.object, output: c.output}
			l := batchLab(t, serving(t, s), filepath.Join(t.TempDir(), "run.parley"), 1)
			form, kind := uploadOf("batch", lineOf("a", chatOf("m", "hello", `,"max_tokens":100`))+lineOf("b", chatOf("m", "hello", `,"max_tokens":100`)))
			l.post("/v1/files", form, "Content-Type", kind).want(t, 200)
			l.post("/v1/batches", creationOf("file-1")).want(t, 200)
			l.post("/v1/batches/b", "").want(t, 200)
			if c.output != "" {
				l.post("/v1/files/out/content", "").want(t, 200)
			}
			spent, aside := l.sums()
			if aside > 0 != c.stays || spent > 0 != (c.output != "") || spent > llm.Dollars(5e-6) {
				t.Errorf("spent %v, set aside %v", spent, aside)
			}
		})
	}
}

// TestBatchesRefused checks what cannot be passed on, and that nothing of it reaches the provider.
func TestBatchesRefused(t *testing.T) {
	t.Parallel()
	s := &batchServer{object: `{"id":"b"}`}
	l := batchLab(t, serving(t, s), filepath.Join(t.TempDir(), "run.parley"), 1, func(c *Config) { c.MaxBody = 8 << 10 })
	good := chatOf("m", "hello", `,"max_tokens":10`)
	for name, c := range map[string]struct {
		file   string
		status int
		words  string
	}{
		"not JSON":          {"{", 400, "request 1 of the file"},
		"nothing":           {"\n\n", 400, "it has no requests"},
		"no body":           {`{"custom_id":"a","method":"POST","url":"/v1/chat/completions"}`, 400, "not a JSON object"},
		"two bodies":        {`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + good + `,"body":` + good + `}`, 400, "request 1 of the file"},
		"a body in capital": {`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + good + `,"Body":` + good + `}`, 400, `unknown member \"Body\"`},
		"same id":           {lineOf("a", good) + lineOf("a", good), 400, "request 2 of the file: want a custom_id"},
		"long id":           {lineOf(strings.Repeat("a", 257), good), 400, "want a custom_id"},
		"other endpoint":    {`{"custom_id":"a","method":"POST","url":"/v1/completions","body":` + good + `}`, 400, "want the method POST, and the url"},
		"unpriced model":    {lineOf("a", chatOf("new", "hello")), 400, "no price is known for openai/new"},
		"unpriced member":   {lineOf("a", chatOf("m", "hello", `,"service_tier":"priority"`)), 400, "price_unknown"},
		"other provider":    {lineOf("a", good) + lineOf("b", chatOf("anthropic/m", "hello")), 400, "a batch has one"},
		"its format":        {lineOf("a", chatOf("anthropic/m", "hello")), 400, "no batches of chat"},
		"a stream":          {lineOf("a", chatOf("m", "hello", streamed)), 400, "not streamed"},
		"too large":         {lineOf("a", chatOf("m", strings.Repeat("x", 9<<10))), 413, "body_too_large"},
	} {
		form, kind := uploadOf("batch", c.file)
		if r := l.post("/v1/files", form, "Content-Type", kind); r.status != c.status || !strings.Contains(r.body, c.words) {
			t.Errorf("%s: %d %s, want %q", name, r.status, r.body, c.words)
		}
	}
	form, kind := uploadOf("assistants", lineOf("a", good))
	l.post("/v1/files", form, "Content-Type", kind).want(t, 400, "set it to batch")
	form, kind = uploadOf("batch", lineOf("a", good), "file", "x")
	l.post("/v1/files", form, "Content-Type", kind).want(t, 400, "twice")
	form, kind = uploadOf("batch", lineOf("a", good), "mode", "x")
	l.post("/v1/files", form, "Content-Type", kind).want(t, 400, `unknown field \"mode\"`)
	l.post("/v1/files", `{"purpose":"batch"}`).want(t, 400, "multipart/form-data")
	l.post("/v1/batches", creationOf("file-1")).want(t, 404, "file_unknown")
	l.post("/v1/batches", `{"input_file_id":"file-1","Input_file_id":"file-2"}`).want(t, 400, "unknown member")
	l.post("/v1/batches", "").want(t, 400, "not_listed")
	l.post("/v1/files/..%2fmodels", "").want(t, 404, "unknown_url")
	l.post("/v1/messages/batches", `{"requests":[{"custom_id":"a","params":`+messageOf("m", "x")+`}],"requests":[]}`).want(t, 400, "twice")
	l.post("/v1/messages/batches", `{"requests":[]}`).want(t, 400, "it has no requests")
	if n := s.requests(); n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
	if spent, aside := l.sums(); spent != 0 || aside != 0 {
		t.Errorf("spent %v, set aside %v", spent, aside)
	}
}

// TestBatchOfAnAlias checks that the provider gets its own name of a model, a lower limit on answers, and the key of the gateway, and that a key in
// results is hidden.
func TestBatchOfAnAlias(t *testing.T) {
	const key = "sk-0123456789abcdef"
	t.Setenv("LAB_BATCH_KEY", key)
	s := &batchServer{object: `{"id":"b","status":"completed","output_file_id":"out","request_counts":{"total":1,"completed":1}}`,
		output: `{"custom_id":"a","response":{"status_code":200,"body":{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"the key is ` + key + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}}}`}
	url := serving(t, s)
	l := batchLab(t, url, filepath.Join(t.TempDir(), "run.parley"), 1, func(c *Config) {
		c.Upstreams[0].KeyEnv = "LAB_BATCH_KEY"
		c.Aliases, c.MaxOutput = map[string]string{"mine": "openai/m"}, 20
	})
	form, kind := uploadOf("batch", lineOf("a", chatOf("mine", "hello", `,"max_tokens":100`)))
	l.post("/v1/files", form, "Content-Type", kind, "Authorization", "Bearer client-key-12345").want(t, 200)
	l.post("/v1/batches", creationOf("file-1"), "Authorization", "Bearer client-key-12345").want(t, 200)
	if want := lineOf("a", chatOf("m", "hello", `,"max_tokens":20`)); s.files[0] != want {
		t.Errorf("%s\nwant %s", s.files[0], want)
	}
	for _, h := range s.heads {
		if got := h.Get("Authorization"); got != "Bearer "+key {
			t.Errorf("sent with %q", got)
		}
	}
	if got := l.post("/v1/files/out/content", "", "Authorization", "Bearer client-key-12345").want(t, 200, "[key]"); strings.Contains(got.body, key) {
		t.Error(got.body)
	}
	for _, c := range l.calls(defaultSession) {
		b, _ := json.Marshal(c)
		if bytes.Contains(b, []byte(key)) || bytes.Contains(c.Wire.Body, []byte(key)) {
			t.Errorf("the record has the key: %s", b)
		}
	}
}

// TestBatchReplay checks that a recorded conversation about a batch is served again without the provider, whatever the boundary of the form.
func TestBatchReplay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.parley")
	lines := lineOf("a", chatOf("m", "hello", `,"max_tokens":50`))
	l := batchLab(t, batchSim(t), file, 1)
	_, id := l.send(t, "/v1/sessions/s", lines)
	_, was := l.fetchOutput(t, "/v1/sessions/s", id)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	l = startAt(t, Config{Replay: true}, file)
	_, again := l.send(t, "/v1/sessions/s", lines)
	if _, is := l.fetchOutput(t, "/v1/sessions/s", again); is.body != was.body || again != id {
		t.Errorf("%s\nwas %s", is.body, was.body)
	}
}

// TestKilledBatch kills gateways with kill -9 at any moment from the upload of a file to its results. The budget is never exceeded, and every batch that
// a client knows is collected, and paid for once.
func TestKilledBatch(t *testing.T) {
	t.Parallel()
	url, file := batchSim(t), filepath.Join(t.TempDir(), "run.parley")
	kills := 6
	if testing.Short() {
		kills = 2
	}
	known := map[string]string{} // batches by session
	for kill := range kills {
		server := testkit.Start(t, file+" "+url+" batches")
		l := &lab{t: t, url: server.Line(t), client: http.DefaultClient}
		time.AfterFunc(time.Duration(kill+1)*4*time.Millisecond, server.Kill)
		for i := range 100 {
			at := fmt.Sprintf("/v1/sessions/k%d-%d", kill, i)
			form, kind := uploadOf("batch", lineOf("a", chatOf("m", "hello", `,"max_tokens":50`)))
			r, err := l.try(t.Context(), at+"/files", form, "Content-Type", kind)
			if err == nil && r.status == 200 {
				r, err = l.try(t.Context(), at+"/batches", creationOf(request.Str([]byte(r.body), "id")))
			}
			if err != nil {
				break
			}
			known[at] = request.Str([]byte(r.want(t, 200).body), "id")
		}
		server.Kill()
		server.Wait()
	}
	c := Config{Upstreams: []provider.Provider{upstream("openai", url)}, Prices: batchPrices(t), Settings: limited(llm.Dollars(1), 4)}
	l := startAt(t, c, file)
	_, before := l.sums()
	for at, id := range known {
		l.fetchOutput(t, at, id)
	}
	spent, aside := l.sums()
	l.stop()
	var cost llm.Money
	calls := 0
	for at := range known {
		for _, c := range recorded(t, file, strings.TrimPrefix(at, "/v1/sessions/")) {
			if c.Request != nil {
				calls++
				cost = cost.Plus(c.Cost())
			}
		}
	}
	t.Logf("%d kills, %d batches, %v set aside before they were fetched and %v after", kills, len(known), before, aside)
	if calls != len(known) || cost != spent || spent.Plus(aside) > before {
		t.Errorf("%d calls, cost %v, spent %v, set aside %v, before %v", calls, cost, spent, aside, before)
	}
	s, err := runfile.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	head, err := s.Head(t.Context())
	if err != nil || len(head.Batches) > kills || len(head.Batches) == 0 && aside > 0 {
		t.Errorf("%d batches are open, set aside %v, %v", len(head.Batches), aside, err)
	}
}
