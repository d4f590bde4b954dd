package world

import (
	"encoding/json"
	"testing"

	"parley/llm"
)

// TestAgentCachedContent: the request names the stored prompt, unless the world did, and the world's own map stays as it is.
func TestAgentCachedContent(t *testing.T) {
	t.Parallel()
	agent := Agent{Model: "gemini/m", CachedContent: "cachedContents/1"}
	own := map[string]json.RawMessage{"labels": json.RawMessage(`{}`)}
	got := agent.Request(llm.Request{Extra: own}).Extra
	if string(got[cachedContent]) != `"cachedContents/1"` || got["labels"] == nil || len(own) != 1 {
		t.Errorf("%s, and the world's %s", got, own)
	}
	own[cachedContent] = json.RawMessage(`"other"`)
	if got := agent.Request(llm.Request{Extra: own}).Extra; string(got[cachedContent]) != `"other"` {
		t.Errorf("%s", got)
	}
	if got := (Agent{Model: "gemini/m"}).Request(llm.Request{}).Extra; got != nil {
		t.Errorf("%s", got)
	}
}
