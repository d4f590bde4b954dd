package oracle

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"parley/internal/ask/dialect"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
)

// bedrockClient returns a client of the AWS SDK that does not retry.
func bedrockClient(url string) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(url), Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "session"), RetryMaxAttempts: 1,
	})
}

// bedrockAsk asks with our preset, whose credentials are the same.
func bedrockAsk(t *testing.T, url string, stream bool, req *llm.Request) (*llm.Response, error) {
	t.Helper()
	p, ok := provider.Lookup("bedrock")
	if !ok {
		t.Fatal("there is no preset")
	}
	p.Name, p.BaseURL, p.Stream = "lab", url, "never"
	p.Capabilities = []provider.Capability{{Match: "*", Efforts: []string{"high"}, Schema: true, CachePoint: true}}
	if stream {
		p.Stream = "always"
	}
	m, err := dialect.Open(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.(io.Closer).Close()
	return m.Ask(t.Context(), req)
}

// bedrockEnv gives our preset the credentials of bedrockClient, and nothing of this machine's.
func bedrockEnv(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session", "AWS_REGION": "eu-central-1",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

const bedrockModel = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"

// TestBedrockSigned checks that our requests go where the SDK's go, and that their signature is the one that the SDK's
// signer makes of what arrived.
func TestBedrockSigned(t *testing.T) {
	bedrockEnv(t)
	var paths []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		paths = append(paths, r.URL.EscapedPath())
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			t.Error(err)
		}
		sent := r.Header.Get("Authorization")
		again := r.Clone(r.Context())
		again.URL.Host, again.URL.Scheme = r.Host, "http"
		for _, name := range []string{"Accept-Encoding", "Authorization", "Amz-Sdk-Invocation-Id", "Amz-Sdk-Request"} {
			if again.Header.Del(name); name[0] == 'A' && len(paths) == 1 { // the SDK signs its own headers
				continue
			}
		}
		if len(paths) == 2 {
			c := aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: "session"}
			again.Header.Del("X-Amz-Security-Token")
			if err := v4.NewSigner().SignHTTP(r.Context(), c, again, sha(b), "bedrock", "eu-central-1", at); err != nil {
				t.Error(err)
			}
			if got := again.Header.Get("Authorization"); got != sent {
				t.Errorf("sent   %s\nsigned %s", sent, got)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":1,"totalTokens":4},"metrics":{"latencyMs":7}}`)
	}))
	t.Cleanup(srv.Close)
	if _, err := bedrockClient(srv.URL).Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String(bedrockModel), Messages: bedrockHello()}); err != nil {
		t.Fatal(err)
	}
	req := hello()
	req.Model = "lab/" + bedrockModel
	r, err := bedrockAsk(t, srv.URL, false, req)
	if err != nil || r.Text != "Hi" || r.Usage.Input != 3 {
		t.Fatal(r, err)
	}
	if len(paths) != 2 || paths[0] != paths[1] {
		t.Errorf("%q", paths)
	}
}

func bedrockHello() []types.Message {
	return []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "Hello."}}}}
}

// TestBedrockSim checks that the AWS SDK and our dialect read the same from the simulated provider, streamed or not.
func TestBedrockSim(t *testing.T) {
	bedrockEnv(t)
	url := startSim(t)
	cl := bedrockClient(url)
	var schema map[string]any
	if err := json.Unmarshal([]byte(place), &schema); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	tool := &types.ToolConfiguration{
		Tools:      []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{Name: aws.String("weather"), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(schema)}}}},
		ToolChoice: &types.ToolChoiceMemberAny{},
	}
	format := &types.OutputConfig{TextFormat: &types.OutputFormat{Type: types.OutputFormatTypeJsonSchema, Structure: &types.OutputFormatStructureMemberJsonSchema{Value: types.JsonSchemaDefinition{Name: aws.String("answer"), Schema: aws.String(string(sorted))}}}}
	for name, c := range map[string]struct {
		ours   func(*llm.Request)
		theirs bedrockruntime.ConverseInput
	}{
		"text":     {func(*llm.Request) {}, bedrockruntime.ConverseInput{}},
		"thoughts": {func(r *llm.Request) { r.Effort = llm.EffortHigh }, bedrockruntime.ConverseInput{OutputConfig: &types.OutputConfig{Effort: aws.String("high")}}},
		"schema":   {func(r *llm.Request) { r.Schema = &llm.Schema{Name: "answer", JSON: sorted} }, bedrockruntime.ConverseInput{OutputConfig: format}},
		"tool": {func(r *llm.Request) {
			r.Tools, r.ToolChoice = []llm.Tool{{Name: "weather", Parameters: sorted}}, "required"
		}, bedrockruntime.ConverseInput{ToolConfig: tool}},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " stream ", stream), func(t *testing.T) {
				in := c.theirs
				in.ModelId, in.Messages = aws.String("m"), bedrockHello()
				in.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "Be brief."}}
				in.InferenceConfig = &types.InferenceConfiguration{MaxTokens: aws.Int32(300)}
				theirs := seeBedrock(t, cl, stream, &in)
				req := &llm.Request{Model: "lab/m", MaxTokens: 300, Messages: []llm.Message{llm.System("Be brief."), llm.User("Hello.")}}
				c.ours(req)
				got, err := bedrockAsk(t, url, stream, req)
				if err != nil {
					t.Fatal(err)
				}
				ours := bedrockSeen{Text: got.Text, Input: got.Usage.Input, Output: got.Usage.Output, Finish: got.Finish}
				for _, th := range got.Thoughts {
					ours.Thought += th.Text
				}
				for _, call := range got.ToolCalls {
					ours.Calls = append(ours.Calls, call.Name+call.Arguments)
				}
				if !reflect.DeepEqual(ours, theirs) || ours.Output == 0 || ours.Text == "" && len(ours.Calls) == 0 || (name == "thoughts") != (ours.Thought != "") {
					t.Errorf("ours\n%+v, theirs\n%+v", ours, theirs)
				}
			})
		}
	}
}

// bedrockSeen is what a client read.
type bedrockSeen struct {
	Text, Thought string
	Calls         []string
	Input, Output int
	Finish        llm.Finish
}

// seeBedrock asks with the AWS SDK.
func seeBedrock(t *testing.T, cl *bedrockruntime.Client, stream bool, in *bedrockruntime.ConverseInput) (s bedrockSeen) {
	t.Helper()
	stop := func(r types.StopReason) {
		s.Finish = map[types.StopReason]llm.Finish{types.StopReasonEndTurn: llm.FinishStop, types.StopReasonToolUse: llm.FinishTools, types.StopReasonMaxTokens: llm.FinishLength}[r]
	}
	if !stream {
		r, err := cl.Converse(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		m := r.Output.(*types.ConverseOutputMemberMessage).Value
		for _, b := range m.Content {
			switch b := b.(type) {
			case *types.ContentBlockMemberText:
				s.Text += b.Value
			case *types.ContentBlockMemberReasoningContent:
				s.Thought += *b.Value.(*types.ReasoningContentBlockMemberReasoningText).Value.Text
			case *types.ContentBlockMemberToolUse:
				args, err := b.Value.Input.MarshalSmithyDocument()
				if err != nil {
					t.Fatal(err)
				}
				s.Calls = append(s.Calls, *b.Value.Name+string(args))
			}
		}
		stop(r.StopReason)
		s.Input, s.Output = int(*r.Usage.InputTokens), int(*r.Usage.OutputTokens)
		return s
	}
	r, err := cl.ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{
		ModelId: in.ModelId, Messages: in.Messages, System: in.System, InferenceConfig: in.InferenceConfig, ToolConfig: in.ToolConfig, OutputConfig: in.OutputConfig,
	})
	if err != nil {
		t.Fatal(err)
	}
	st := r.GetStream()
	defer st.Close()
	for e := range st.Events() {
		switch e := e.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			s.Calls = append(s.Calls, *e.Value.Start.(*types.ContentBlockStartMemberToolUse).Value.Name)
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch d := e.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				s.Text += d.Value
			case *types.ContentBlockDeltaMemberToolUse:
				s.Calls[len(s.Calls)-1] += *d.Value.Input
			case *types.ContentBlockDeltaMemberReasoningContent:
				if text, ok := d.Value.(*types.ReasoningContentBlockDeltaMemberText); ok {
					s.Thought += text.Value
				}
			}
		case *types.ConverseStreamOutputMemberMessageStop:
			stop(e.Value.StopReason)
		case *types.ConverseStreamOutputMemberMetadata:
			s.Input, s.Output = int(*e.Value.Usage.InputTokens), int(*e.Value.Usage.OutputTokens)
		}
	}
	if st.Err() != nil {
		t.Fatal(st.Err())
	}
	return s
}

// TestBedrockErrors checks that the AWS SDK and our dialect read the simulated provider's errors as Bedrock's.
func TestBedrockErrors(t *testing.T) {
	bedrockEnv(t)
	s, err := simhttp.New(simhttp.Config{Grace: 10 * time.Millisecond, Sim: sim.Config{Limits: sim.Limits{RPM: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	url := serveUntilEnd(t, s.Run)
	cl := bedrockClient(url)
	_, err = cl.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String("m")})
	var invalid *types.ValidationException
	if !errors.As(err, &invalid) {
		t.Errorf("%v", err)
	}
	if _, err = cl.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String("m"), Messages: bedrockHello()}); err != nil {
		t.Error(err)
	}
	_, err = cl.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String("m"), Messages: bedrockHello()})
	var throttled *types.ThrottlingException
	if !errors.As(err, &throttled) {
		t.Errorf("%v", err)
	}
	_, err = bedrockAsk(t, url, true, hello())
	if e := llm.AsError(err); e.Kind != llm.KindRateLimited || e.Code != "ThrottlingException" || e.RequestID == "" {
		t.Errorf("%+v", e)
	}
}

// TestBedrockException checks that an exception in the middle of a stream is read alike.
func TestBedrockException(t *testing.T) {
	bedrockEnv(t)
	s, err := simhttp.New(simhttp.Config{Grace: 10 * time.Millisecond, Sim: sim.Config{Faults: map[sim.Fault]float64{sim.FaultStreamErr: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	url := serveUntilEnd(t, s.Run)
	r, err := bedrockClient(url).ConverseStream(t.Context(), &bedrockruntime.ConverseStreamInput{ModelId: aws.String("m"), Messages: bedrockHello()})
	if err != nil {
		t.Fatal(err)
	}
	for range r.GetStream().Events() {
	}
	var down *types.ServiceUnavailableException
	if err := r.GetStream().Err(); !errors.As(err, &down) {
		t.Errorf("%v", err)
	}
	_, err = bedrockAsk(t, url, true, hello())
	if e := llm.AsError(err); e.Kind != llm.KindOverloaded || !e.Uncertain {
		t.Errorf("%+v", e)
	}
}

// TestBedrockRequests checks that the SDK's requests and ours say the same.
func TestBedrockRequests(t *testing.T) {
	bedrockEnv(t)
	var bodies [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, b)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(srv.Close)
	png := []byte("\x89PNG")
	half := 0.5
	req := &llm.Request{
		Model: "lab/m", MaxTokens: 50, Temperature: &half, Stop: []string{"END"}, Tier: "flex", ToolChoice: "weather", Prefix: 1,
		Tools: []llm.Tool{{Name: "weather", Description: "Tells.", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{
			llm.System("Be brief."), {Role: llm.RoleUser, Parts: []llm.Part{{Text: "Look."}, {Image: &llm.Image{MediaType: "image/png", Data: png}}}},
			{Role: llm.RoleAssistant, Thoughts: []llm.Thought{{Text: "Hm.", Signature: "sig"}}, ToolCalls: []llm.ToolCall{{ID: "t1", Name: "weather", Arguments: `{"a":1}`}}},
			llm.ToolResult("t1", "Rain."),
		},
	}
	_, _ = bedrockAsk(t, srv.URL, false, req)
	_, _ = bedrockClient(srv.URL).Converse(t.Context(), &bedrockruntime.ConverseInput{
		ModelId: aws.String("m"), System: []types.SystemContentBlock{
			&types.SystemContentBlockMemberText{Value: "Be brief."}, &types.SystemContentBlockMemberCachePoint{Value: types.CachePointBlock{Type: types.CachePointTypeDefault}},
		},
		InferenceConfig: &types.InferenceConfiguration{MaxTokens: aws.Int32(50), Temperature: aws.Float32(0.5), StopSequences: []string{"END"}},
		ServiceTier:     &types.ServiceTier{Type: types.ServiceTierTypeFlex},
		ToolConfig: &types.ToolConfiguration{
			Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
				Name: aws.String("weather"), Description: aws.String("Tells."), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(map[string]any{"type": "object"})},
			}}},
			ToolChoice: &types.ToolChoiceMemberTool{Value: types.SpecificToolChoice{Name: aws.String("weather")}},
		},
		Messages: []types.Message{
			{Role: types.ConversationRoleUser, Content: []types.ContentBlock{
				&types.ContentBlockMemberText{Value: "Look."}, &types.ContentBlockMemberImage{Value: types.ImageBlock{Format: types.ImageFormatPng, Source: &types.ImageSourceMemberBytes{Value: png}}},
			}},
			{Role: types.ConversationRoleAssistant, Content: []types.ContentBlock{
				&types.ContentBlockMemberReasoningContent{Value: &types.ReasoningContentBlockMemberReasoningText{Value: types.ReasoningTextBlock{Text: aws.String("Hm."), Signature: aws.String("sig")}}},
				&types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{ToolUseId: aws.String("t1"), Name: aws.String("weather"), Input: document.NewLazyDocument(map[string]any{"a": 1})}},
			}},
			{Role: types.ConversationRoleUser, Content: []types.ContentBlock{
				&types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{ToolUseId: aws.String("t1"), Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: "Rain."}}}},
			}},
		},
	})
	if len(bodies) != 2 {
		t.Fatalf("%d requests", len(bodies))
	}
	var ours, theirs any
	if json.Unmarshal(bodies[0], &ours) != nil || json.Unmarshal(bytes.TrimSpace(bodies[1]), &theirs) != nil || !reflect.DeepEqual(ours, theirs) {
		t.Errorf("ours\n%s\ntheirs\n%s", bodies[0], bodies[1])
	}
}

// sha returns the digest of a body as the signer wants it.
func sha(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
