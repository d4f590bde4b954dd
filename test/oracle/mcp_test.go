package oracle

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/llm"
	"parley/worlds/rollout/envhttp"
)

// sum are the arguments of a tool.
type sum struct {
	A int `json:"a" jsonschema:"the first number"`
	B int `json:"b" jsonschema:"the second number"`
}

// TestMCP has our client list and call the tools of a server that is made with MCP's own SDK, in each of its forms.
func TestMCP(t *testing.T) {
	t.Parallel()
	server := sdk.NewServer(&sdk.Implementation{Name: "sums", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "add", Description: "Adds two numbers."}, func(_ context.Context, _ *sdk.CallToolRequest, in sum) (*sdk.CallToolResult, any, error) {
		if in.A < 0 {
			return nil, nil, errors.New("no negative numbers")
		}
		return nil, map[string]int{"sum": in.A + in.B}, nil
	})
	for name, options := range map[string]*sdk.StreamableHTTPOptions{"events": {}, "json": {JSONResponse: true}, "stateless": {Stateless: true}} {
		s := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, options))
		defer s.Close()
		client := envhttp.NewMCP(s.URL)
		defer client.Close()
		session, err := client.Open(t.Context())
		if err != nil {
			t.Fatal(name, err)
		}
		tools, err := session.Tools(t.Context())
		if err != nil || len(tools) != 1 || tools[0].Name != "add" || tools[0].Description == "" || len(tools[0].Parameters) < 50 {
			t.Fatal(name, tools, err)
		}
		for arguments, want := range map[string]string{`{"a":2,"b":3}`: `{"sum":5}`, `{"a":-1,"b":3}`: "failed no negative numbers"} {
			m, err := session.Call(t.Context(), llm.ToolCall{ID: "1", Name: "add", Arguments: arguments})
			got := m.Text()
			if m.ToolFailed {
				got = "failed " + got
			}
			if err != nil || got != want {
				t.Errorf("%s: %s: %q, %v, want %q", name, arguments, got, err, want)
			}
		}
		for _, c := range []llm.ToolCall{{Name: "add", Arguments: `{"a":"x"}`}, {Name: "subtract", Arguments: `{}`}} {
			if m, err := session.Call(t.Context(), c); err != nil || !m.ToolFailed {
				t.Errorf("%s: %+v: %+v, %v", name, c, m, err)
			}
		}
		session.End(t.Context())
		if _, err := session.Tools(t.Context()); name != "stateless" && (err == nil || llm.AsError(err).Kind != llm.KindServer) {
			t.Errorf("%s: after its end: %v", name, err)
		}
	}
}
