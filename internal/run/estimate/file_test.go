package estimate

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/ask/dispatch/budget"
	"parley/internal/ask/price"
	"parley/internal/run/planfile"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/world"
)

// TestCheckRefusesFiles: a check refuses a plan whose messages hold files that a model does not take.
func TestCheckRefusesFiles(t *testing.T) {
	t.Parallel()
	files := map[string]*llm.File{
		"pdf": {Name: "paper.pdf", MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)},
		"wav": {MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)},
	}
	for _, c := range []struct{ agent, file, providers, want string }{
		{"deepseek/deepseek-chat", "pdf", "", "agents.a: messages[0].content[1], document paper.pdf"},
		{"anthropic/claude-opus-4-6", "pdf", "", ""},
		{"anthropic/claude-opus-4-6", "wav", "", "cannot be sent to anthropic/claude-opus-4-6: the model takes no audio"},
		{"gemini/gemini-2.5-flash", "wav", "", ""},
		{"vllm/any", "wav", `providers: {vllm: {capabilities: [{match: "vllm/*", no_audio: true}]}}`, "takes no audio"},
		{"sim/small", "wav", "", ""},
	} {
		asking := world.Define(simple(func(t *world.Table) world.Outcome {
			t.One(world.Call{Seat: "one", Ask: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{{Text: "?"}, {File: files[c.file]}}}}}})
			return world.Outcome{}
		}))
		plan, err := planfile.Parse("plan.yaml", fmt.Appendf(nil, "kind: test\nepisodes: 2\nagents: {a: %s}\n%s\n", c.agent, c.providers), []world.Kind{asking}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = (Config{Plan: plan}).Run(t.Context()); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v", c.agent, c.file, err)
		}
	}
}

// TestMaxCall: the most that a call can cost is what a run sets aside for it, also for files and stored prompts.
func TestMaxCall(t *testing.T) {
	t.Parallel()
	prices, err := price.Read(strings.NewReader(`{"models":{"gemini/m":{"input":1,"output":1,"audio":3,"context":100000}}}`), "test")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := prices.Find("gemini/m")
	for name, part := range map[string]llm.Part{
		"text":  {Text: "?"},
		"pdf":   {File: &llm.File{MediaType: llm.MediaPDF, Data: []byte(llmtest.PDF)}},
		"sound": {File: &llm.File{MediaType: llm.MediaWAV, Data: []byte(llmtest.WAV)}},
	} {
		for _, more := range []string{"", ", cached_content: cachedContents/1"} {
			asking := world.Define(simple(func(t *world.Table) world.Outcome {
				t.One(world.Call{Seat: "one", Ask: llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{part}}}}})
				return world.Outcome{}
			}))
			plan, err := planfile.Parse("plan.yaml", fmt.Appendf(nil, "kind: test\nepisodes: 2\nbudget: 9\nagents: {a: {model: gemini/m, max_tokens: 10%s}}\n", more), []world.Kind{asking}, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, err := (Config{Plan: plan, Prices: prices}).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			req := plan.Agents[0].Request(llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{part}}}})
			if want := budget.Worst(p, &req, false); e.Budget.Call != want {
				t.Errorf("%s%s: a call can cost %v, want %v", name, more, e.Budget.Call, want)
			}
			if least := p.Heard().Cost(llm.Usage{Input: 320}, false); name == "sound" && llm.Dollars(e.Cost.Episode.Mean) < least {
				t.Errorf("%s%s: an episode costs %v, want at least %v", name, more, e.Cost.Episode.Mean, least)
			}
		}
	}
}
