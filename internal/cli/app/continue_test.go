package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"parley/journal"
	"parley/llm"
	"parley/worlds"
)

const continuedPlan = `kind: rollout
seed: 3
episodes: 6
providers:
  vllm: {base_url: %s/v1, limits: {concurrency: 6}}
agents:
  policy: {model: vllm/m, max_tokens: 16, trainable: true}
lineup: {agent: policy}
params: {env: maze, group: 2, max_steps: 2, tokens: true}
`

// weightServer is a model server that holds the first calls until it gets new weights, and then cuts them off.
type weightServer struct {
	mu        sync.Mutex
	held      int
	arrived   chan struct{} // closed when six are held
	updated   chan struct{} // closed by the update
	continued int
}

func (s *weightServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	choice := `"finish_reason":"stop","token_ids":[8,9],"logprobs":{"content":[{"token":"8","logprob":-8},{"token":"9","logprob":-9}]},"message":{"role":"assistant","content":"go north"}`
	version := "2"
	select {
	case <-s.updated:
	default:
		s.mu.Lock()
		if s.held++; s.held == 6 {
			close(s.arrived)
		}
		s.mu.Unlock()
		<-s.updated
		version = "1"
		choice = `"finish_reason":"abort","token_ids":[7],"logprobs":{"content":[{"token":"7","logprob":-7}]},"message":{"role":"assistant","content":"go"}`
	}
	if r.URL.Path == "/v1/completions" {
		var q struct{ Prompt []int }
		if err := json.Unmarshal(body, &q); err != nil || fmt.Sprint(q.Prompt) != "[1 2 7]" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.continued++
		s.mu.Unlock()
		choice = `"finish_reason":"stop","token_ids":[8],"logprobs":{"tokens":["8"],"token_logprobs":[-8]},"text":" north"`
	}
	fmt.Fprintf(w, `{"model":"m","weight_version":%q,"prompt_token_ids":[1,2],"choices":[{"index":0,%s}],"usage":{"prompt_tokens":2,"completion_tokens":2}}`, version, choice)
}

// answers returns the recorded answers of models.
func answers(t *testing.T, j *journal.Memory) (all []*llm.Response) {
	t.Helper()
	err := j.Read(t.Context(), journal.Span{}, func(e journal.Entry) error {
		if r, ok := e.(*journal.Replied); ok && r.Act == nil && r.Response != nil {
			all = append(all, r.Response)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// TestAnswersContinue: answers that a server cuts off for new weights are continued after the pause, and their parts are
// recorded with the weights that wrote them.
func TestAnswersContinue(t *testing.T) {
	t.Parallel()
	server := &weightServer{arrived: make(chan struct{}), updated: make(chan struct{})}
	srv := httptest.NewServer(server)
	defer srv.Close()
	j, opened := &journal.Memory{}, make(chan *Opened, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		o := <-opened
		<-server.arrived
		if _, err := o.Steering.Do(journal.SteerPause, "a test", nil); err != nil {
			t.Error(err)
		}
		close(server.updated)
		if err := o.Steering.Quiet(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(answers(t, j)); n > 0 {
			t.Errorf("%d answers are recorded that were cut off", n)
		}
		if _, err := o.Steering.Do(journal.SteerResume, "a test", nil); err != nil {
			t.Error(err)
		}
	})
	sum := played(t, Play{Kinds: worlds.Standard(), Plan: parsed(t, fmt.Sprintf(continuedPlan, srv.URL)), Journal: j, Events: whenOpened(func(o *Opened) { opened <- o })})
	wg.Wait()
	parts := 0
	for _, r := range answers(t, j) {
		if len(r.Spans) > 0 {
			parts++
			got := fmt.Sprint(r.Text, r.TokenIDs, r.Spans, len(r.Logprobs))
			if got != "go north[7 8] [{1 1} {1 2}] 2" {
				t.Errorf("recorded %s", got)
			}
		}
	}
	if parts != 6 || server.continued != 6 || sum.Calls.Failed > 0 {
		t.Errorf("%d answers of several parts, %d continued, %+v", parts, server.continued, sum.Calls)
	}
}
