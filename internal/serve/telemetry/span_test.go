package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/ask/provider"
	"parley/internal/serve/gateway/format"
	"parley/journal"
	"parley/llm"
	"parley/world"
)

// TestPlay checks that the spans of a run are one tree, run, episode, call, and have no text.
func TestPlay(t *testing.T) {
	t.Parallel()
	to := &collector{}
	tr := openTo(t, to, nil)
	p := tr.StartTrace("run", "study.parley")
	ask := &llm.Request{Model: "lab/small", Messages: []llm.Message{llm.User("a secret")}, MaxTokens: 9}
	at := journal.Turn{Episode: 3}
	p.Replied(&journal.Replied{Turn: at, Seat: "first", Agent: "bold", Label: "message", Request: ask, At: time.Now(), Response: &llm.Response{Text: "a secret", Metadata: llm.Metadata{Latency: time.Minute}}})
	p.Replied(&journal.Replied{Turn: at, Request: ask, At: time.Now(), Error: &llm.Error{Kind: llm.KindServer, Message: "a secret"}})
	p.Replied(&journal.Replied{Turn: at, Response: &llm.Response{Text: "of a bot"}})
	p.Ended(&journal.Ended{Episode: 3, At: time.Now(), Outcome: world.Outcome{Failed: "a secret", Scores: []world.Score{{Name: "both", Value: 1}}}})
	p.Asked(ask, llm.Result{Response: &llm.Response{}})
	p.End("stopped")
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(to.spans); strings.Contains(all, "secret") || len(to.spans) != 5 {
		t.Fatalf("%d spans: %s", len(to.spans), all)
	}
	call, failed, episode, question, run := to.spans[0], to.spans[1], to.spans[2], to.spans[3], to.spans[4]
	if call[4][0] != episode[2][0] || failed[4][0] != episode[2][0] || episode[4][0] != run[2][0] || question[4][0] != run[2][0] || run[4] != nil {
		t.Errorf("no tree: %v", to.spans)
	}
	for i, s := range to.spans {
		if s[1][0] != run[1][0] || s[5][0] != []string{"chat small", "chat small", "episode", "chat small", "run"}[i] || s[6][0] != []string{"3", "3", "1", "3", "1"}[i] {
			t.Errorf("span %d: %v", i, s)
		}
	}
	if episode[7][0] != call[7][0] || fields(failed[15][0])[3][0] != "2" || fields(episode[15][0])[3][0] != "2" {
		t.Error("the episode began after its first call, or failures are not seen")
	}
	var none *Exporter
	quiet := none.StartTrace("run", "")
	quiet.Replied(&journal.Replied{Request: ask})
	quiet.Ended(&journal.Ended{})
	quiet.Asked(ask, llm.Result{})
	quiet.End("")
}

// TestVendors: an account of a vendor has the conventions' name, whatever a plan calls it.
func TestVendors(t *testing.T) {
	t.Parallel()
	all := map[string]provider.Provider{
		"azure.ai.openai": {Name: "work", Dialect: "responses", BaseURL: "https://us.openai.azure.com/openai/v1"},
		"gcp.vertex_ai":   {Name: "europe", Dialect: "anthropic", BaseURLs: []string{"https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/anthropic", "https://x/v1"}},
		"aws.bedrock":     {Name: "aws", Dialect: "bedrock", BaseURL: "https://gateway.example.com"},
		"gcp.gemini":      {Name: "google", Dialect: "openai", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai"},
		"openai":          {Name: "second", Dialect: "openai", BaseURL: "https://api.openai.com/v1"},
		"anthropic":       {Name: "claude", Dialect: "anthropic", BaseURL: "https://api.anthropic.com/v1"},
		"lab":             {Name: "lab", Dialect: "openai", BaseURL: "https://openai.azure.com.example.com/v1"},
		"x_ai":            {Name: "xai", Dialect: "openai", BaseURL: "https://api.x.ai/v1"},
	}
	to := &collector{}
	x := openTo(t, to, nil)
	x.Know(slices.Collect(maps.Values(all)))
	run := x.StartTrace("run", "")
	for want, p := range all {
		call := callOf(t)
		call.Request.Model = want
		x.Start(nil, format.Chat, &p, "", call).End(&llm.Response{}, nil)
		run.Asked(&llm.Request{Model: p.Name + "/" + want}, llm.Result{Response: &llm.Response{}})
	}
	run.Asked(&llm.Request{Model: "azure/azure.ai.openai"}, llm.Result{Response: &llm.Response{}}) // a preset that the plan does not name
	if err := x.Close(t.Context()); err != nil || len(to.spans) != 2*len(all)+1 {
		t.Fatalf("%d spans: %v", len(to.spans), err)
	}
	for _, s := range to.spans {
		is := ""
		for _, a := range s[9] {
			if kv := fields(a); kv[1][0] == providerName {
				is = valueOf(kv[2][0])
			}
		}
		if want := strings.TrimPrefix(s[5][0], "chat "); is != want {
			t.Errorf("%s is %q", want, is)
		}
	}
	var none *Exporter
	none.Know(nil)
}
