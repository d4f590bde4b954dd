package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// startSim serves the simulated provider, and returns its address.
func startSim(t *testing.T) string {
	t.Helper()
	cfg := simhttp.Config{Grace: 10 * time.Millisecond, Batch: simhttp.BatchConfig{Latency: sim.Fixed(time.Millisecond)}}
	s, err := simhttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return serveUntilEnd(t, s.Run)
}

// serveUntilEnd runs a server until the test ends, and returns its address.
func serveUntilEnd(t *testing.T, run func(context.Context, net.Listener) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// openaiClient returns a client of OpenAI's SDK that does not retry.
func openaiClient(url, key string) openai.Client {
	return openai.NewClient(openaiopt.WithBaseURL(url+"/v1"), openaiopt.WithAPIKey(key), openaiopt.WithMaxRetries(0))
}

// anthropicClient returns a client of Anthropic's SDK that does not retry.
func anthropicClient(url, key string) anthropic.Client {
	return anthropic.NewClient(anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey(key), anthropicopt.WithMaxRetries(0))
}

// TestSim checks that the SDKs and our dialects read the same from the simulated provider, streamed or not.
func TestSim(t *testing.T) {
	t.Parallel()
	url := startSim(t)
	for name, sdk := range map[string]func(*testing.T, string, bool) seen{"openai": chatSDK, "responses": responsesSDK, "anthropic": messagesSDK} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " stream ", stream), func(t *testing.T) {
				t.Parallel()
				theirs := sdk(t, url, stream)
				if theirs.Text == "" || theirs.Usage.Input == 0 || theirs.Usage.Output == 0 || theirs.Finish != "stop" {
					t.Errorf("the SDK read %+v", theirs)
				}
				req := hello()
				if name != "anthropic" { // the SDK's requests set no limit there
					req.MaxTokens = 0
				}
				req.Model = "lab/m"
				if ours := see(ask(t, name, url, stream, req)); ours.Text != theirs.Text || ours.Usage.Output != theirs.Usage.Output {
					t.Errorf("ours  %+v\ntheirs %+v", ours, theirs)
				}
			})
		}
	}
}

func TestSimTools(t *testing.T) {
	t.Parallel()
	url := startSim(t)
	cl := openaiClient(url, "k")
	r, err := cl.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "f", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "integer"}}, "required": []string{"x"}, "additionalProperties": false},
		})},
		ToolChoice: openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := seeChat(r); len(v.Calls) == 0 || v.Calls[0].Name != "f" || v.Finish != "tool_calls" || !json.Valid([]byte(v.Calls[0].Arguments)) {
		t.Errorf("got %+v", v)
	}
}

// TestSimErrors checks that the SDKs read the simulated provider's errors as their own.
func TestSimErrors(t *testing.T) {
	t.Parallel()
	url := startSim(t)
	cl := openaiClient(url, "k")
	_, err := cl.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "m"})
	var oe *openai.Error
	if !errors.As(err, &oe) || oe.StatusCode != 400 || oe.Message == "" {
		t.Errorf("openai: %v", err)
	}
	ac := anthropicClient(url, "k")
	_, err = ac.Messages.New(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 5})
	var ae *anthropic.Error
	if !errors.As(err, &ae) || ae.StatusCode != 400 {
		t.Errorf("anthropic: %v", err)
	}
}

// TestSimOpenAIBatch uploads a file, runs a batch of it, and reads the results.
func TestSimOpenAIBatch(t *testing.T) {
	t.Parallel()
	cl := openaiClient(startSim(t), "k")
	var lines strings.Builder
	for i := range 5 {
		fmt.Fprintf(&lines, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"question %d"}]}}`+"\n", i, i)
	}
	file, err := cl.Files.New(t.Context(), openai.FileNewParams{Purpose: openai.FilePurposeBatch, File: openai.File(strings.NewReader(lines.String()), "in.jsonl", "application/jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := cl.Batches.New(t.Context(), openai.BatchNewParams{InputFileID: file.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h})
	for err == nil && b.Status != openai.BatchStatusCompleted {
		if b.Status == openai.BatchStatusFailed || b.Status == openai.BatchStatusExpired {
			t.Fatalf("the batch ended as %s", b.Status)
		}
		b, err = cl.Batches.Get(t.Context(), b.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	res, err := cl.Files.Content(t.Context(), b.OutputFileID)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), `"custom_id"`); n != 5 || b.RequestCounts.Completed != 5 {
		t.Errorf("%d results, %d counted: %s", n, b.RequestCounts.Completed, out)
	}
}

// TestSimAnthropicBatch runs a batch of messages and reads its results.
func TestSimAnthropicBatch(t *testing.T) {
	t.Parallel()
	cl := anthropicClient(startSim(t), "k")
	var reqs []anthropic.MessageBatchNewParamsRequest
	for i := range 5 {
		reqs = append(reqs, anthropic.MessageBatchNewParamsRequest{CustomID: fmt.Sprint("r", i), Params: anthropic.MessageBatchNewParamsRequestParams{
			Model: "m", MaxTokens: 50, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(fmt.Sprint("question ", i)))},
		}})
	}
	b, err := cl.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: reqs})
	for err == nil && b.ProcessingStatus != anthropic.MessageBatchProcessingStatusEnded {
		b, err = cl.Messages.Batches.Get(t.Context(), b.ID, anthropic.MessageBatchGetParams{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s := cl.Messages.Batches.ResultsStreaming(t.Context(), b.ID, anthropic.MessageBatchResultsParams{})
	n := 0
	for s.Next() {
		r := s.Current()
		if m := r.Result.AsSucceeded().Message; r.Result.Type != "succeeded" || seeMessage(&m).Usage == (llm.Usage{}) {
			t.Errorf("%s: %+v", r.CustomID, r.Result)
		}
		n++
	}
	if s.Err() != nil || n != 5 {
		t.Errorf("%d results, %v", n, s.Err())
	}
}
