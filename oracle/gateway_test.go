package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"parley/internal/provider"
	"parley/internal/serve/gateway"
	"parley/internal/serve/gateway/ledger"
	"parley/journal"
)

// startGateway serves a gateway before the simulated provider, in those of the vendors'
// formats that are named, and returns its address.
func startGateway(t *testing.T, sim string, j journal.Journal, change func(*gateway.Config), dialects ...string) string {
	t.Helper()
	c := gateway.Config{Journal: j, Begin: ledger.Begin{Run: "oracle", Tool: "test", Now: time.Now()}, Grace: 10 * time.Millisecond}
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- g.Run(ctx, ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// TestGateway has the SDKs ask through a gateway: what they read is what they read of the
// provider itself. Where it speaks the other vendor's format, it is what that says.
func TestGateway(t *testing.T) {
	t.Parallel()
	sim := startSim(t)
	j := &journal.Memory{}
	both := startGateway(t, sim, j, nil, "openai", "anthropic") + "/v1/sessions/go"
	crossed := map[string]string{
		"openai":    startGateway(t, sim, &journal.Memory{}, nil, "anthropic"),
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
	calls, err := ledger.Past(t.Context(), j, 0)
	if err != nil || len(calls) != 6 {
		t.Errorf("%d calls are recorded, %v", len(calls), err)
	}
}

// TestGatewayTools has the SDKs use tools through a gateway, on either vendor's format: the
// call comes back, its result goes out, and an answer follows.
func TestGatewayTools(t *testing.T) {
	t.Parallel()
	sim := startSim(t)
	schema := map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "integer"}}, "required": []string{"x"}, "additionalProperties": false}
	for _, dialect := range []string{"openai", "anthropic"} {
		url := startGateway(t, sim, &journal.Memory{}, nil, dialect)
		cl := openai.NewClient(openaiopt.WithBaseURL(url+"/v1"), openaiopt.WithAPIKey("k"), openaiopt.WithMaxRetries(0))
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
	cl := anthropic.NewClient(anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey("k"), anthropicopt.WithMaxRetries(0))
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

// TestGatewaySchema has the OpenAI SDK ask for an answer of a given form, on either format.
func TestGatewaySchema(t *testing.T) {
	t.Parallel()
	sim := startSim(t)
	for _, dialect := range []string{"openai", "anthropic"} {
		cl := openai.NewClient(openaiopt.WithBaseURL(startGateway(t, sim, &journal.Memory{}, nil, dialect)+"/v1"), openaiopt.WithAPIKey("k"), openaiopt.WithMaxRetries(0))
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

// TestGatewayErrors has the SDKs read the gateway's own errors as their own, and its stop as
// an answer.
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
	cl := openai.NewClient(openaiopt.WithBaseURL(url+"/v1"), openaiopt.WithAPIKey("wrong"), openaiopt.WithMaxRetries(0))
	_, err := cl.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "m"})
	var oe *openai.Error
	if !errors.As(err, &oe) || oe.StatusCode != 401 || oe.Code != "invalid_api_key" {
		t.Errorf("openai: %v", err)
	}
	ac := anthropic.NewClient(anthropicopt.WithBaseURL(url), anthropicopt.WithAPIKey("wrong"), anthropicopt.WithMaxRetries(0))
	_, err = ac.Messages.New(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 5})
	var ae *anthropic.Error
	if !errors.As(err, &ae) || ae.StatusCode != 401 {
		t.Errorf("anthropic: %v", err)
	}
}
