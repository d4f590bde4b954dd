package simhttp

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func exchangeAt(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestTokensOfStreams checks that a stream has all tokens of the whole answer, including the end token,
// each with its log probability.
func TestTokensOfStreams(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, Config{})
	const ask = `{"model":"m","return_token_ids":true,"logprobs":true,"messages":[{"role":"user","content":"hello"}]`
	type chunk struct {
		Choices []struct {
			TokenIDs []int `json:"token_ids"`
			Logprobs struct {
				Content []struct {
					Logprob float64 `json:"logprob"`
				} `json:"content"`
			} `json:"logprobs"`
		} `json:"choices"`
	}
	var ids [2][]int
	var logprobs [2][]float64
	_, whole := exchangeAt(t, "POST", url+"/v1/chat/completions", ask+`}`)
	_, stream := exchangeAt(t, "POST", url+"/v1/chat/completions", ask+`,"stream":true}`)
	for i, body := range []string{whole, stream} {
		for line := range strings.Lines(body) {
			var c chunk
			if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c) != nil || len(c.Choices) == 0 {
				continue
			}
			ids[i] = append(ids[i], c.Choices[0].TokenIDs...)
			for _, l := range c.Choices[0].Logprobs.Content {
				logprobs[i] = append(logprobs[i], l.Logprob)
			}
		}
	}
	if len(ids[0]) < 2 || !slices.Equal(ids[0], ids[1]) || !slices.Equal(logprobs[0], logprobs[1]) || len(ids[0]) != len(logprobs[0]) {
		t.Errorf("whole %v %v\nstream %v %v", ids[0], logprobs[0], ids[1], logprobs[1])
	}
}

// TestReasoningOfStreams checks that a stream has the same reasoning as the whole answer.
func TestReasoningOfStreams(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{})
	const ask = `"return_token_ids":true,"reasoning_effort":"low"`
	want := call(t, s, http.MethodPost, chatPath, with(chatBody, ask)).at(t, "choices.0.message.reasoning_content").(string)
	got := ""
	for _, e := range events(call(t, s, http.MethodPost, chatPath, with(chatBody, ask+`,"stream":true`)).body) {
		var c struct {
			Choices []struct {
				Delta struct {
					ReasoningContent string `json:"reasoning_content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if json.Unmarshal(e, &c) == nil && len(c.Choices) > 0 {
			got += c.Choices[0].Delta.ReasoningContent
		}
	}
	if got != want || want == "" {
		t.Errorf("%q, want %q", got, want)
	}
}
