package dialect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	"parley/internal/ask/answer"
	"parley/internal/ask/provider"
	"parley/internal/ask/sim"
	"parley/internal/ask/sim/simhttp"
	"parley/llm"
	"parley/llm/llmtest"
)

// startSim serves the simulated provider, and returns its URL.
func startSim(t *testing.T, cfg simhttp.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cfg.Grace = 10 * time.Millisecond
	s, err := simhttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// TestSimConformance runs the suite over every dialect against the simulated provider.
func TestSimConformance(t *testing.T) {
	t.Parallel()
	for _, f := range simFormats() {
		for _, way := range []struct {
			name   string
			change func(*provider.Provider)
		}{
			{"whole", func(p *provider.Provider) { p.Stream = "never" }},
			{"streamed", func(p *provider.Provider) { p.Stream = "always" }},
			{"http2", func(p *provider.Provider) { p.HTTP2 = true }},
		} {
			t.Run(f.name+" "+way.name, func(t *testing.T) {
				t.Parallel()
				h := llmtest.Harness{
					Model: f.dial(t, startSim(t, simhttp.Config{Sim: sim.Config{MinTokens: 40}}), way.change),
					Stall: f.dial(t, startSim(t, simhttp.Config{Sim: sim.Config{Latency: sim.Fixed(time.Hour)}}), way.change),
					Name:  "lab/any",
				}
				if f.name == "responses" { // it has no stop sequences, and a minimum of tokens
					h.NoStop, h.MinTokens = true, 16
				}
				h.NoLinks = f.name == "bedrock"
				h.NoDocumentLinks = f.name == "bedrock" || f.name == "openai"
				h.NoAudio = f.name == "responses" || f.name == "anthropic"
				llmtest.Exercise(t, h)
			})
		}
	}
}

// sameRequest is request i of TestSimSame: with tools, with schemas, and with messages that formats write differently.
func sameRequest(i int) *llm.Request {
	const form = `{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"string","enum":["a","b"]}},"required":["x","y"],"additionalProperties":false}`
	req := &llm.Request{Model: "lab/any", MaxTokens: 50, Messages: []llm.Message{llm.System("S"), llm.User(fmt.Sprint("question ", i))}}
	add := func(m ...llm.Message) { req.Messages = append(req.Messages, m...) }
	image := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{{Image: &llm.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}}
	switch i % 8 {
	case 0:
		req.Tools, req.ToolChoice = []llm.Tool{{Name: "f", Parameters: json.RawMessage(form)}}, "required"
	case 1:
		req.Schema = &llm.Schema{Name: "form", JSON: json.RawMessage(form)}
	case 2: // as dispatch writes it where schemas are not native
		add(llm.User(answer.Instruct(json.RawMessage(form))))
	case 3:
		add(llm.Assistant("A"), llm.System("T"), llm.User("more"), llm.User("and more"))
	case 4:
		req.Tools = []llm.Tool{{Name: "g"}}
		add(llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "g", Arguments: "{}"}}}, llm.ToolResult("a", "R"), llm.User("then"))
	case 5:
		add(image, llm.User("seen?"))
	}
	return req
}

// TestSimSame checks that the simulated provider gives equal answers in every dialect, streamed and
// not.
func TestSimSame(t *testing.T) {
	t.Parallel()
	url := startSim(t, simhttp.Config{})
	first := map[int]string{}
	for _, f := range simFormats() {
		for _, stream := range []string{"never", "always"} {
			m := f.dial(t, url, func(p *provider.Provider) { p.Stream = stream })
			for i := range 40 {
				r, err := m.Ask(t.Context(), sameRequest(i))
				if err != nil {
					t.Fatalf("%s, request %d: %v", f.name, i, err)
				}
				// These may differ: formats write prompts with more or fewer tokens.
				r.ID, r.RequestID, r.Metadata, r.Rate, r.Tier = "", "", llm.Metadata{}, nil, ""
				r.Usage = llm.Usage{Output: r.Usage.Output}
				for i := range r.ToolCalls {
					r.ToolCalls[i].ID = ""
				}
				got, _ := json.Marshal(r)
				if first[i] == "" {
					first[i] = string(got)
				}
				if string(got) != first[i] {
					t.Errorf("%s, stream %s, request %d:\n%s, want\n%s", f.name, stream, i, got, first[i])
				}
			}
		}
	}
}

// TestSimFaults injects each fault of the simulated provider into every call. Each must end as an error
// of the right kind, and never as an answer.
func TestSimFaults(t *testing.T) {
	t.Parallel()
	for fault, kinds := range map[sim.Fault][]llm.Kind{
		sim.FaultError500:   {llm.KindServer},
		sim.FaultOverloaded: {llm.KindOverloaded},
		sim.FaultQuota:      {llm.KindQuota},
		sim.FaultReset:      {llm.KindTransport},
		sim.FaultCut:        {llm.KindTransport},
		sim.FaultStall:      {llm.KindTimeout},
		sim.FaultTruncated:  {llm.KindMalformed},
		sim.FaultHTML:       {llm.KindMalformed},
		sim.FaultStreamErr:  {llm.KindServer, llm.KindOverloaded},
	} {
		url := startSim(t, simhttp.Config{Sim: sim.Config{Faults: sim.Faults{fault: 1}}})
		for _, f := range simFormats() {
			for _, stream := range []string{"never", "always"} {
				t.Run(string(fault)+" "+f.name+" "+stream, func(t *testing.T) {
					t.Parallel()
					m := f.dial(t, url, func(p *provider.Provider) {
						if p.Stream = stream; fault == sim.FaultStall {
							p.Timeout = 500 * time.Millisecond
						}
					})
					r, err := m.Ask(t.Context(), hello())
					if err == nil {
						t.Fatalf("an answer: %+v", r)
					}
					for _, k := range kinds {
						if llm.KindOf(err) == k {
							return
						}
					}
					t.Errorf("got %v, want %v", err, kinds)
				})
			}
		}
	}
}
