package responses

import (
	"strings"
	"testing"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// TestFlatName: names of tools in namespaces stay apart, and are names that all formats take.
func TestFlatName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 60)
	for _, c := range [][3]string{
		{"", "f", "f"}, {"g", "f", "g__f"}, {"mcp__g__", "f", "mcp__g__f"}, {"g", "", "g__"},
	} {
		if got := flatName(c[0], c[1]); got != c[2] {
			t.Errorf("%q %q: %q", c[0], c[1], got)
		}
	}
	seen := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		flat := flatName(long, "very_long_"+name)
		if len(flat) != maxName || seen[flat] || body.SchemaName(flat) != flat {
			t.Errorf("%q", flat)
		}
		seen[flat] = true
	}
}

// FuzzRead reads any input and tools. Every tool has a name that other formats take or the client chose, arguments are kept, and what is written for the
// client is JSON.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"type":"custom_tool_call","call_id":"c","name":"p","input":"x"},{"type":"function_call","namespace":"g","name":"f","arguments":"{"}]`), []byte(`[{"type":"namespace","name":"g","tools":[{"type":"custom","name":"p","format":{"syntax":"lark"}},{"type":"namespace","name":"h","tools":[]}]}]`))
	f.Add([]byte(`[{"type":"reasoning","encrypted_content":"parley:{\"thinker\":\"lab\",\"thoughts\":[{\"text\":\"t\",\"signature\":\"s\"}]}"}]`), []byte(`[{"type":"web_search"},7,null,{"type":"custom"}]`))
	f.Add([]byte(strings.Repeat(`[{"type":"message","content":`, 400)), []byte(`[{"type":"namespace","name":"g","tools":{}}]`))
	f.Fuzz(func(t *testing.T, input, tools []byte) {
		if !body.Valid(input) || !body.Valid(tools) {
			return
		}
		var r request.Reader
		ReadMember(&r, "input", input)
		ReadMember(&r, "tools", tools)
		Unseal(r.Request.Messages, "lab")
		whole := append(append([]byte(`{"input":`), input...), '}')
		if b := DropSealed(whole); !body.Valid(b) {
			t.Fatalf("%s became %s", whole, b)
		}
		answer := &llm.Response{Text: "t", Thoughts: []llm.Thought{{Text: string(input), Signature: "s"}}}
		for _, tool := range r.Request.Tools {
			answer.ToolCalls = append(answer.ToolCalls, llm.ToolCall{ID: "i", Name: tool.Name, Arguments: string(input)})
			if !body.Valid(tool.Parameters) && tool.Parameters != nil {
				t.Fatalf("%s: %s", tool.Name, tool.Parameters)
			}
		}
		m := openai.Meta{ID: "x", Forms: r.Forms, Thinker: "lab"}
		b := AppendResponse(nil, m, answer)
		if !body.Valid(b) {
			t.Fatalf("%s", b)
		}
		if got := Unseal([]llm.Message{{Thoughts: []llm.Thought{{Opaque: seal("lab", answer.Thoughts)}}}}, "lab"); strings.ToValidUTF8(string(input), "") == string(input) && got[0].Thoughts[0] != answer.Thoughts[0] {
			t.Fatalf("%+v", got)
		}
		openai.AppendStream(nil, NewWriter(m), answer)
	})
}
