package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"parley/internal/ask/provider"
	"parley/internal/serve/gateway"
	"parley/journal"
)

// startGateway serves a gateway in front of the simulated provider, which it calls in these dialects, and
// returns its address.
func startGateway(t *testing.T, sim string, j journal.Journal, change func(*gateway.Config), dialects ...string) string {
	t.Helper()
	c := gateway.Config{Journal: j, Begin: gateway.Begin{Run: "oracle", Tool: "test", Now: time.Now()}, Grace: 10 * time.Millisecond}
	for _, d := range dialects {
		c.Upstreams = append(c.Upstreams, provider.Provider{Name: d, Dialect: d, BaseURL: sim + "/v1"})
	}
	if change != nil {
		change(&c)
	}
	g, err := gateway.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return serveUntilEnd(t, func(ctx context.Context, l net.Listener) error { return g.Run(ctx, ctx, l) })
}

// TestGateway checks that the SDKs read the same through a gateway as from the provider, also where the gateway
// calls the provider in the other vendor's format.
func TestGateway(t *testing.T) {
	t.Parallel()
	sim := startSim(t)
	j := &journal.Memory{}
	both := startGateway(t, sim, j, nil, "openai", "anthropic") + "/v1/sessions/go"
	crossed := map[string]string{
		"openai":    startGateway(t, sim, &journal.Memory{}, nil, "anthropic"),
		"responses": startGateway(t, sim, &journal.Memory{}, nil, "anthropic"),
		"anthropic": startGateway(t, sim, &journal.Memory{}, nil, "openai"),
	}
	for name, sdk := range map[string]func(*testing.T, string, bool) seen{"openai": chatSDK, "responses": responsesSDK, "anthropic": messagesSDK} {
		for _, stream := range []bool{false, true} {
			direct, via := sdk(t, sim, stream), sdk(t, both, stream)
			if via.ID == direct.ID {
				t.Errorf("%s: two answers are one", name)
			}
			via.ID, direct.ID = "", ""
			if name == "responses" { // its thoughts have ids too
				via.Thoughts, direct.Thoughts = nil, nil
			}
			if fmt.Sprint(via) != fmt.Sprint(direct) {
				t.Errorf("%s, stream %v:\nvia    %+v\ndirect %+v", name, stream, via, direct)
			}
			if url := crossed[name]; url != "" {
				if got := sdk(t, url, stream); got.Text != direct.Text || got.Finish != "stop" || got.Usage.Input == 0 || got.Usage.Output != direct.Usage.Output {
					t.Errorf("%s on the other format, stream %v:\n%+v\nwant %+v", name, stream, got, direct)
				}
			}
		}
	}
	calls, err := gateway.ReadCalls(t.Context(), j, 0)
	if err != nil || len(calls) != 6 {
		t.Errorf("%d calls are recorded, %v", len(calls), err)
	}
}

// TestGatewayTools uses tools with the SDKs through a gateway, in either vendor's format: a tool call, its
// result, and an answer.
func TestGatewayTools(t *testing.T) {
	t.Parallel()
	sim := startSim(t)
	schema := map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "integer"}}, "required": []string{"x"}, "additionalProperties": false}
	for _, dialect := range []string{"openai", "anthropic"} {
		url := startGateway(t, sim, &journal.Memory{}, nil, dialect)
		cl := openaiClient(url, "k")
		params := openai.ChatCompletionNewParams{
			Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
			Tools:      []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "f", Parameters: schema})},
			ToolChoice: openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")},
		}
		r, err := cl.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		v := seeChat(r)
		if len(v.Calls) == 0 || v.Calls[0].Name != "f" || v.Finish != "tool_calls" || !json.Valid([]byte(v.Calls[0].Arguments)) {
			t.Fatalf("openai on %s: %+v", dialect, v)
		}
		params.Messages = append(params.Messages, r.Choices[0].Message.ToParam())
		for _, c := range v.Calls {
			params.Messages = append(params.Messages, openai.ToolMessage("42", c.ID))
		}
		params.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("none")}
		if r, err = cl.Chat.Completions.New(t.Context(), params); err != nil || seeChat(r).Text == "" {
			t.Errorf("openai on %s, after the tool: %v", dialect, err)
		}
		anthropicTools(t, dialect, url, schema)
	}
}

func anthropicTools(t *testing.T, dialect, url string, schema map[string]any) {
	t.Helper()
	cl := anthropicClient(url, "k")
	params := anthropic.MessageNewParams{
		Model: "m", MaxTokens: 200, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
		Tools:      []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: schema["properties"], Required: []string{"x"}}, "f")},
		ToolChoice: anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}},
	}
	var m anthropic.Message
	s := cl.Messages.NewStreaming(t.Context(), params)
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Err() != nil {
		t.Fatalf("anthropic on %s: %v", dialect, s.Err())
	}
	v := seeMessage(&m)
	if len(v.Calls) == 0 || v.Calls[0].Name != "f" || v.Finish != "tool_calls" || !json.Valid([]byte(v.Calls[0].Arguments)) {
		t.Fatalf("anthropic on %s: %+v", dialect, v)
	}
	var results []anthropic.ContentBlockParamUnion
	for _, c := range v.Calls {
		results = append(results, anthropic.NewToolResultBlock(c.ID, "42", false))
	}
	params.Messages = append(params.Messages, m.ToParam(), anthropic.NewUserMessage(results...))
	params.ToolChoice = anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	r, err := cl.Messages.New(t.Context(), params)
	if err != nil || seeMessage(r).Text == "" {
		t.Errorf("anthropic on %s, after the tool: %v", dialect, err)
	}
}

// TestGatewaySchema requests structured output with the OpenAI SDK, in either format.
func TestGatewaySchema(t *testing.T) {
	t.Parallel()
	sim := startSim(t)
	for _, dialect := range []string{"openai", "anthropic"} {
		cl := openaiClient(startGateway(t, sim, &journal.Memory{}, nil, dialect), "k")
		r, err := cl.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Where?")},
			ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "place", Schema: json.RawMessage(place), Strict: openai.Bool(true)},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			City   *string
			People *int
		}
		if err := json.Unmarshal([]byte(r.Choices[0].Message.Content), &v); err != nil || v.City == nil || v.People == nil {
			t.Errorf("%s: %v: %s", dialect, err, r.Choices[0].Message.Content)
		}
	}
}

// TestGatewayErrors checks that the SDKs read the gateway's errors as their own, and its step limit as an
// answer.
func TestGatewayErrors(t *testing.T) {
	t.Parallel()
	url := startGateway(t, startSim(t), &journal.Memory{}, func(c *gateway.Config) { c.Keys, c.MaxSteps = []string{"k"}, 1 }, "openai", "anthropic")
	for _, stream := range []bool{false, true} {
		for name, sdk := range map[string]func(*testing.T, string, bool) seen{"openai": chatSDK, "responses": responsesSDK, "anthropic": messagesSDK} {
			at := fmt.Sprintf("%s/v1/sessions/%s-%v", url, name, stream)
			sdk(t, at, stream)
			if v := sdk(t, at, stream); len(v.Text) < 15 || v.Text[:15] != "The step limit " || v.Finish != "stop" {
				t.Errorf("%s, stream %v: %+v", name, stream, v)
			}
		}
	}
	cl := openaiClient(url, "wrong")
	_, err := cl.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "m"})
	var oe *openai.Error
	if !errors.As(err, &oe) || oe.StatusCode != 401 || oe.Code != "invalid_api_key" {
		t.Errorf("openai: %v", err)
	}
	ac := anthropicClient(url, "wrong")
	_, err = ac.Messages.New(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 5})
	var ae *anthropic.Error
	if !errors.As(err, &ae) || ae.StatusCode != 401 {
		t.Errorf("anthropic: %v", err)
	}
}

// TestGatewayBatches sends batches with the SDKs through a gateway: from a file to its results, each recorded with its answer.
func TestGatewayBatches(t *testing.T) {
	t.Parallel()
	j := &journal.Memory{}
	url := startGateway(t, startSim(t), j, nil, "openai", "anthropic") + "/v1/sessions/go"
	cl := openaiClient(url, "k")
	var lines bytes.Buffer
	for _, id := range []string{"a", "b"} {
		fmt.Fprintf(&lines, `{"custom_id":"%s","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"%[1]s"}]}}`+"\n", id)
	}
	file, err := cl.Files.New(t.Context(), openai.FileNewParams{Purpose: openai.FilePurposeBatch, File: openai.File(&lines, "in.jsonl", "application/jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	b, err := cl.Batches.New(t.Context(), openai.BatchNewParams{
		InputFileID: file.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h,
	})
	for err == nil && b.Status != openai.BatchStatusCompleted {
		b, err = cl.Batches.Get(t.Context(), b.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	texts := answers(t, content(t, cl, b.OutputFileID))

	other := anthropicClient(url, "k")
	m, err := other.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: []anthropic.MessageBatchNewParamsRequest{{
		CustomID: "c", Params: anthropic.MessageBatchNewParamsRequestParams{Model: "m", MaxTokens: 50, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("c"))}},
	}}})
	for err == nil && m.ProcessingStatus != anthropic.MessageBatchProcessingStatusEnded {
		m, err = other.Messages.Batches.Get(t.Context(), m.ID, anthropic.MessageBatchGetParams{})
	}
	if err != nil {
		t.Fatal(err)
	}
	results := other.Messages.Batches.ResultsStreaming(t.Context(), m.ID, anthropic.MessageBatchResultsParams{})
	for results.Next() {
		r := results.Current().Result.AsSucceeded()
		texts = append(texts, r.Message.Content[0].Text)
	}
	if results.Err() != nil {
		t.Fatal(results.Err())
	}
	calls, err := gateway.ReadCalls(t.Context(), j, 0)
	if err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for _, c := range calls {
		if c.Request != nil {
			recorded = append(recorded, c.Response.Text)
		}
	}
	if fmt.Sprint(recorded) != fmt.Sprint(texts) || len(texts) != 3 {
		t.Errorf("recorded %q, the SDKs got %q", recorded, texts)
	}
}
