package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"parley/llm"
)

// The answers of vLLM and SGLang as their servers write them.
const (
	vllmAnswer = `{"request_id":"q1","choices":[{"index":0,"logprobs":{"content":[{"token":"token_id:7","logprob":-0.5,"bytes":null,"top_logprobs":[]},` +
		`{"token":"token_id:8","logprob":-0.25,"bytes":null,"top_logprobs":[]}]},"finish_reason":"stop","token_ids":[7,8]}],"prompt_logprobs":null,"kv_transfer_params":null}`
	sglangCut = `{"text":" a","output_ids":[7],"meta_info":{"id":"q2","finish_reason":{"type":"abort","message":"Abort in waiting queue"},"prompt_tokens":3,` +
		`"weight_version":"4","completion_tokens":1,"cached_tokens":0,"output_token_logprobs":[[-0.5,7,null]],"e2e_latency":0.1}}`
	sglangRest = `{"text":" b","output_ids":[8,9],"meta_info":{"id":"q3","finish_reason":{"type":"stop","matched":9},"prompt_tokens":4,` +
		`"weight_version":"5","completion_tokens":2,"cached_tokens":3,"output_token_logprobs":[[-0.25,8,null],[-0.125,9,null]],"e2e_latency":0.1}}`
)

// paths is a server that remembers which paths were asked.
type paths struct {
	http.Handler
	mu   sync.Mutex
	seen []string
}

func (p *paths) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.URL.Path)
	p.mu.Unlock()
	p.Handler.ServeHTTP(w, r)
}

// exact describes what was recorded of an answer: the tokens with their log probabilities, and which weights wrote them.
func exact(r *llm.Response) string {
	var odds []string
	for _, l := range r.Logprobs {
		odds = append(odds, fmt.Sprintf("%d:%v", l.ID, l.Logprob))
	}
	return fmt.Sprint(r.PromptTokenIDs, r.TokenIDs, odds, r.WeightVersion, " ", r.Finish, " ", r.Usage.Input, "+", r.Usage.Output)
}

// TestTokensPass: token ids go to the server and back unchanged, and are recorded in the session.
func TestTokensPass(t *testing.T) {
	t.Parallel()
	s := script(answering(200, vllmAnswer))
	at := &paths{Handler: s}
	l := to(t, at)
	body := `{"token_ids":[1,2,3],"sampling_params":{"max_tokens":5,"temperature":1.0,"logprobs":0},"priority":0}`
	if got := l.post("/v1/sessions/s/inference/v1/generate", body).want(t, 200); got.body != vllmAnswer {
		t.Errorf("the client got %s", got.body)
	}
	l.post("/inference/v1/generate", `{"model":"openai/m","token_ids":[1],"sampling_params":{}}`).want(t, 200)
	calls := l.calls("s")
	if len(calls) != 1 || s.seen[0] != body || strings.Join(at.seen, " ") != "/inference/v1/generate /inference/v1/generate" || !strings.Contains(s.seen[1], `"model":"m"`) {
		t.Fatalf("%d calls; sent %q to %v", len(calls), s.seen, at.seen)
	}
	q, want := calls[0].Request, "[1 2 3] [7 8] [7:-0.5 8:-0.25] stop 3+2"
	if got := exact(calls[0].Response); got != want || q.Model != "openai/served" || q.MaxTokens != 5 || *q.Temperature != 1 || !q.Logprobs {
		t.Errorf("recorded %s, %+v; want %s", got, q, want)
	}
}

// TestTokensContinue: a client that gets a part of an answer continues it by itself. Each part is recorded with its own
// weights and log probabilities, and none is asked for again.
func TestTokensContinue(t *testing.T) {
	t.Parallel()
	s := script(answering(200, sglangCut), answering(200, sglangRest))
	l := to(t, s)
	ask := `{"input_ids":[%s],"sampling_params":{"max_new_tokens":8},"return_logprob":true}`
	if got := l.post("/v1/sessions/s/generate", fmt.Sprintf(ask, "1,2,3")).want(t, 200); got.body != sglangCut {
		t.Errorf("the client got %s", got.body)
	}
	l.post("/v1/s/generate", fmt.Sprintf(ask, "1,2,3,7")).want(t, 200)
	var got []string
	for _, c := range l.calls("s") {
		got = append(got, exact(c.Response))
	}
	want := "[1 2 3] [7] [7:-0.5]4 aborted 3+1\n[1 2 3 7] [8 9] [8:-0.25 9:-0.125]5 stop 4+2"
	if strings.Join(got, "\n") != want || s.count() != 2 {
		t.Errorf("%d calls\n%s\nwant\n%s", s.count(), strings.Join(got, "\n"), want)
	}
}

// TestTokensRefused: what cannot be recorded exactly is not sent.
func TestTokensRefused(t *testing.T) {
	t.Parallel()
	s := script(answering(200, `{"request_id":"x","choices":[]}`))
	l := to(t, s)
	for _, c := range []struct{ path, body, want string }{
		{"/generate", `{"text":"hello"}`, "text is not supported: send the prompt as input_ids"},
		{"/generate", `{"input_ids":[[1],[2]]}`, "no batch of lists"},
		{"/generate", `{"input_ids":[1],"stream":true}`, "leave stream out"},
		{"/generate", `{"input_ids":[1],"sampling_params":{"n":2}}`, "sampling_params.n is 2"},
		{"/generate", `{"input_ids":[1],"sampling_params":[]}`, "want an object"},
		{"/generate", `{"input_ids":[1],"sampling_params":{"max_new_tokens":1,"Max_New_Tokens":9}}`, "use lower case"},
		{"/generate", `{"token_ids":[1]}`, "has no prompt"},
		{"/inference/v1/generate", `{"token_ids":[-1]}`, "want one list of token ids"},
		{"/inference/v1/generate", `{"token_ids":[1],"features":{"mm_hashes":{}}}`, "features is not supported"},
	} {
		l.post(c.path, c.body).want(t, 400, c.want)
	}
	if s.count() != 0 {
		t.Errorf("%d were sent", s.count())
	}
	l = to(t, s, func(c *Config) { c.Settings = limited(0, 0) })
	l.post("/inference/v1/generate", `{"token_ids":[1]}`).want(t, 502, "no token_ids")
}
