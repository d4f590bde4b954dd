package dialect

import (
	"bytes"
	"testing"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/bedrock"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/responses"
	"parley/llm"
)

// TestSchemaOrder: every wire format keeps the order of the properties of a schema. Models answer in that order, so a judge
// gives its reason before its verdict.
func TestSchemaOrder(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"reason":{"type":"string"},"zeta":{"type":"integer"},"alpha":{"type":"boolean"}},"required":["reason","zeta","alpha"],"additionalProperties":false}`
	for name, form := range map[string]func([]byte, *llm.Request, provider.Capability, bool) ([]byte, []string, error){
		"chat": openai.AppendRequest, "responses": responses.AppendRequest, "messages": anthropic.AppendRequest,
		"gemini": gemini.AppendRequest, "vertex": gemini.AppendVertexRequest, "bedrock": bedrock.AppendRequest,
	} {
		req := &llm.Request{Model: "m", MaxTokens: 10, Messages: []llm.Message{llm.User("?")}, Schema: &llm.Schema{Name: "judgement", JSON: []byte(schema)}}
		b, dropped, err := form(nil, req, provider.Capability{}, false)
		at := func(property string) int { return bytes.Index(b, []byte(property)) }
		if err != nil || len(dropped) > 0 || at("reason") < 0 || !(at("reason") < at("zeta") && at("zeta") < at("alpha")) {
			t.Errorf("%s: %s, dropped %v, %v", name, b, dropped, err)
		}
	}
}
