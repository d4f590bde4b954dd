package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/genai"

	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/internal/ask/wire/gemini"
	"parley/llm"
)

// geminiBody is the body of a request in the types of Google's SDK.
type geminiBody struct {
	System *genai.Content          `json:"systemInstruction,omitempty"`
	Turns  []*genai.Content        `json:"contents"`
	Tools  []*genai.Tool           `json:"tools,omitempty"`
	Choice *genai.ToolConfig       `json:"toolConfig,omitempty"`
	Config *genai.GenerationConfig `json:"generationConfig,omitempty"`
	Tier   genai.ServiceTier       `json:"serviceTier,omitempty"`
}

// TestGeminiRequests decodes our requests with the types of Google's SDK and encodes them again. Nothing may be lost.
func TestGeminiRequests(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"gemini-2.5-flash", "gemini-3.6-flash", "any"} {
		c := provider.Provider{Name: "gemini"}.Capability(model)
		if model == "any" {
			c = provider.Capability{Efforts: []string{"low", "medium", "high"}}
		}
		for name, req := range requests() {
			if name == "extra" { // it has a member of another format
				continue
			}
			t.Run(model+"/"+name, func(t *testing.T) {
				t.Parallel()
				b, _, err := gemini.AppendRequest(nil, req, c, false)
				if err != nil {
					t.Fatal(err)
				}
				var body geminiBody
				dec := json.NewDecoder(bytes.NewReader(b))
				dec.DisallowUnknownFields()
				if err := dec.Decode(&body); err != nil {
					t.Fatalf("%s: %v", b, err)
				}
				again, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				b = bytes.ReplaceAll(b, []byte(`,"args":{}`), nil) // the SDK leaves out what is empty
				var got, want any
				if json.Unmarshal(again, &got) != nil || json.Unmarshal(b, &want) != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("the SDK makes of\n%s\nthis:\n%s", b, again)
				}
			})
		}
	}
}

func geminiClient(t *testing.T, url string) *genai.Client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGeminiSim checks that Google's SDK and our dialect read the same from the simulated provider, streamed or not: texts,
// thoughts, tool calls and structured answers.
func TestGeminiSim(t *testing.T) {
	t.Parallel()
	url := startSim(t)
	cl := geminiClient(t, url)
	var schema any
	if err := json.Unmarshal([]byte(place), &schema); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(schema) // as the SDK sends it: the simulated provider answers other bytes in another way
	if err != nil {
		t.Fatal(err)
	}
	weather := llm.Tool{Name: "weather", Parameters: sorted}
	for name, c := range map[string]struct {
		ours   func(*llm.Request)
		theirs genai.GenerateContentConfig
	}{
		"text": {func(*llm.Request) {}, genai.GenerateContentConfig{}},
		"thoughts": {func(r *llm.Request) { r.Effort = llm.EffortHigh },
			genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelHigh, IncludeThoughts: true}}},
		"schema": {func(r *llm.Request) { r.Schema = &llm.Schema{Name: "answer", JSON: sorted} },
			genai.GenerateContentConfig{ResponseMIMEType: "application/json", ResponseJsonSchema: schema}},
		"tool": {func(r *llm.Request) { r.Tools, r.ToolChoice = []llm.Tool{weather}, "required" }, genai.GenerateContentConfig{
			Tools:      []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "weather", ParametersJsonSchema: schema}}}},
			ToolConfig: &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAny}},
		}},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " stream ", stream), func(t *testing.T) {
				t.Parallel()
				c.theirs.MaxOutputTokens, c.theirs.SystemInstruction = 300, genai.NewContentFromText("Be brief.", genai.RoleUser)
				theirs := seeGemini(t, cl, stream, c.theirs)
				req := &llm.Request{Model: "lab/m", MaxTokens: 300, Messages: []llm.Message{llm.System("Be brief."), llm.User("Hello.")}}
				c.ours(req)
				got := ask(t, "gemini", url, stream, req)
				ours := geminiSeen{Text: got.Text, Output: got.Usage.Output, Input: got.Usage.Input}
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

// geminiSeen is what a client read.
type geminiSeen struct {
	Text, Thought string
	Calls         []string
	Input, Output int
}

// seeGemini asks with Google's SDK.
func seeGemini(t *testing.T, cl *genai.Client, stream bool, cfg genai.GenerateContentConfig) (s geminiSeen) {
	t.Helper()
	add := func(r *genai.GenerateContentResponse) {
		for _, p := range r.Candidates[0].Content.Parts {
			switch {
			case p.FunctionCall != nil:
				args, err := json.Marshal(p.FunctionCall.Args)
				if err != nil {
					t.Fatal(err)
				}
				s.Calls = append(s.Calls, p.FunctionCall.Name+string(args))
			case p.Thought:
				s.Thought += p.Text
			default:
				s.Text += p.Text
			}
		}
		u := r.UsageMetadata
		s.Input, s.Output = int(u.PromptTokenCount), int(u.CandidatesTokenCount+u.ThoughtsTokenCount)
	}
	if stream {
		for r, err := range cl.Models.GenerateContentStream(t.Context(), "m", genai.Text("Hello."), &cfg) {
			if err != nil {
				t.Fatal(err)
			}
			add(r)
		}
		return s
	}
	r, err := cl.Models.GenerateContent(t.Context(), "m", genai.Text("Hello."), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	add(r)
	return s
}

// TestGeminiErrors checks that Google's SDK reads the simulated provider's errors as its own.
func TestGeminiErrors(t *testing.T) {
	t.Parallel()
	s, err := simhttp.New(simhttp.Config{Grace: 10 * time.Millisecond, Sim: sim.Config{Limits: sim.Limits{RPM: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	cl := geminiClient(t, serveUntilEnd(t, s.Run))
	for _, want := range []struct {
		contents []*genai.Content
		code     int
		status   string
	}{
		{[]*genai.Content{}, 400, "INVALID_ARGUMENT"},
		{genai.Text("Hello."), 0, ""},
		{genai.Text("Hello."), 429, "RESOURCE_EXHAUSTED"},
	} {
		_, err := cl.Models.GenerateContent(t.Context(), "m", want.contents, nil)
		var e genai.APIError
		if errors.As(err, &e); e.Code != want.code || e.Status != want.status || (want.code == 429) != (len(e.Details) > 0) {
			t.Errorf("%+v, want %d %s", err, want.code, want.status)
		}
	}
}
