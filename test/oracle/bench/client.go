package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"parley/internal/ask/dialect"
	"parley/internal/ask/dispatch"
	"parley/internal/ask/provider"
	"parley/llm"
)

// client does what the plan in arg says and writes a result.
func client(arg string) error {
	var p plan
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	var r result
	ask, err := asker(p, &r)
	if err != nil {
		return err
	}
	start := cpuTime()
	for range max(1, p.Rounds) {
		began := time.Now()
		if err := ask(); err != nil {
			return err
		}
		r.Walls = append(r.Walls, time.Since(began).Seconds())
	}
	r.CPU = cpuTime() - start
	r.PeakMB = peak()
	return json.NewEncoder(os.Stdout).Encode(r)
}

// asker returns a function that makes all calls of a round.
func asker(p plan, r *result) (func() error, error) {
	prompt := strings.Repeat("word ", p.Bytes/5)
	switch p.Client {
	case "parley":
		return parleyClient(p, prompt, r)
	case "plain":
		return wide(p, r, plainClient(p, prompt)), nil
	case "openai-sdk":
		return wide(p, r, openAIClient(p, prompt)), nil
	case "anthropic-sdk":
		return wide(p, r, anthropicClient(p, prompt)), nil
	default:
		return nil, fmt.Errorf("no client %q", p.Client)
	}
}

// parleyClient asks through dispatch and a dialect, as parley ask does.
func parleyClient(p plan, prompt string, r *result) (func() error, error) {
	prov := provider.Provider{
		Name: "lab", Dialect: p.Dialect, BaseURL: p.URL, KeyEnv: "BENCH_KEY", HTTP2: p.HTTP2, Stream: "never",
		Limits: provider.Limits{RPM: p.RPM, TPM: p.TPM, ITPM: p.ITPM, OTPM: p.OTPM, Concurrency: p.Concurrency},
	}
	model, err := dialect.Open(prov, nil)
	if err != nil {
		return nil, err
	}
	d, err := dispatch.New(dispatch.Config{Lanes: []dispatch.Lane{{Provider: prov, Model: model}}})
	if err != nil {
		return nil, err
	}
	return func() error {
		start := time.Now()
		steady := steady{skip: p.Skip}
		n := 0
		reqs := func(yield func(*llm.Request) bool) {
			for ; n < p.Calls; n++ {
				req := &llm.Request{Model: "lab/any", Sample: n, MaxTokens: p.MaxTokens, Messages: []llm.Message{llm.User(prompt)}}
				if !yield(req) {
					return
				}
			}
		}
		d.Each(context.Background(), reqs, func(_ int, a llm.Result) {
			if a.Err != nil {
				r.fail(a.Err)
				return
			}
			r.OK++
			steady.add(time.Since(start), a.Response.Usage, p)
		})
		r.RateLimited = d.Stats().RateLimited
		r.Requests, r.Charged, r.Input, r.Output = steady.rates()
		return nil
	}, nil
}

func (r *result) fail(err error) {
	if r.Failed++; r.Error == "" {
		r.Error = err.Error()
	}
}

// steady keeps what was answered when, to take rates of the middle of a run.
type steady struct {
	skip time.Duration
	at   []time.Duration
	use  []llm.Usage
	max  int
}

func (s *steady) add(at time.Duration, u llm.Usage, p plan) {
	s.at = append(s.at, at)
	s.use = append(s.use, u)
	s.max = p.MaxTokens
}

// rates returns units a second between skip and the moment nine in ten were answered.
func (s *steady) rates() (requests, charged, input, output float64) {
	to := len(s.at) * 9 / 10
	var from time.Duration
	n := 0
	for i := range to {
		if s.at[i] < s.skip {
			continue
		}
		if n == 0 {
			from = s.at[i]
		}
		n++
		u := s.use[i]
		requests++
		charged += float64(max(u.Input, s.max))
		input += float64(u.Input - u.Cached)
		output += float64(u.Output)
	}
	if n < 2 {
		return 0, 0, 0, 0
	}
	d := (s.at[to-1] - from).Seconds()
	return requests / d, charged / d, input / d, output / d
}

// wide makes p.Calls calls with p.Concurrency goroutines: the loop people write.
func wide(p plan, r *result, ask func(ctx context.Context) error) func() error {
	return func() error {
		var wg sync.WaitGroup
		var next atomic.Int64
		var mu sync.Mutex
		for range p.Concurrency {
			wg.Go(func() {
				for next.Add(1) <= int64(p.Calls) {
					err := ask(context.Background())
					mu.Lock()
					if err != nil {
						r.fail(err)
					} else {
						r.OK++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return nil
	}
}

// plainClient is net/http and encoding/json and nothing else.
func plainClient(p plan, prompt string) func(context.Context) error {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, max(p.Concurrency, 2)
	if p.HTTP2 {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	c := &http.Client{Transport: t}
	return func(ctx context.Context) error {
		messages := []plainMessage{{"user", prompt}}
		for range max(1, p.Turns) {
			answer, err := plainCall(ctx, c, p, messages)
			for range p.Retries {
				no, ok := errors.AsType[*refused](err)
				if !ok || no.StatusCode != http.StatusTooManyRequests {
					break
				}
				time.Sleep(no.pause())
				answer, err = plainCall(ctx, c, p, messages)
			}
			if err != nil {
				return err
			}
			messages = append(messages, answer, plainMessage{"user", prompt})
		}
		return nil
	}
}

// plainCall makes one call.
func plainCall(ctx context.Context, c *http.Client, p plan, messages []plainMessage) (answer plainMessage, err error) {
	b, err := json.Marshal(struct {
		Model     string         `json:"model"`
		MaxTokens int            `json:"max_completion_tokens,omitempty"`
		Messages  []plainMessage `json:"messages"`
	}{"any", p.MaxTokens, messages})
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/chat/completions", strings.NewReader(string(b)))
	if err != nil {
		return answer, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer bench")
	resp, err := c.Do(req)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer, err
	}
	var out struct {
		Choices []struct{ Message plainMessage }
		Usage   struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return answer, err
	}
	if len(out.Choices) == 0 {
		return answer, &refused{resp}
	}
	return out.Choices[0].Message, nil
}

// refused is an answer that is an error.
type refused struct{ *http.Response }

func (r *refused) Error() string { return r.Status }

// pause is how long the server asks to wait.
func (r *refused) pause() time.Duration {
	seconds, err := strconv.ParseFloat(r.Header.Get("Retry-After"), 64)
	if err != nil {
		seconds = 1
	}
	return time.Duration(seconds * float64(time.Second))
}

func sdkHTTP(p plan) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, max(p.Concurrency, 2)
	return &http.Client{Transport: t}
}

func openAIClient(p plan, prompt string) func(context.Context) error {
	c := openai.NewClient(openaioption.WithBaseURL(p.URL), openaioption.WithAPIKey("bench"), openaioption.WithHTTPClient(sdkHTTP(p)))
	return func(ctx context.Context) error {
		_, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
			Model: "any", MaxCompletionTokens: openai.Int(int64(p.MaxTokens)),
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		})
		return err
	}
}

func anthropicClient(p plan, prompt string) func(context.Context) error {
	c := anthropic.NewClient(anthropicoption.WithBaseURL(strings.TrimSuffix(p.URL, "/v1")), anthropicoption.WithAPIKey("bench"), anthropicoption.WithHTTPClient(sdkHTTP(p)))
	return func(ctx context.Context) error {
		_, err := c.Messages.New(ctx, anthropic.MessageNewParams{
			Model: "any", MaxTokens: int64(p.MaxTokens),
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
		})
		return err
	}
}

func cpuTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// peak is the most memory this process ever had resident, in MB.
func peak() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024
}
