package responses

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// Other formats have functions only. So a custom tool becomes a function with one text, and a tool in a namespace one with a longer
// name. The forms of the request lead back.

// tools reads the tools. It returns false if the provider runs one of them, so that the caller keeps the whole list.
func (c reader) tools(v []byte) bool {
	return body.Elements(v, func(t []byte) bool {
		c.tool(t, "")
		return true
	}) && len(c.Hosted) == 0
}

// tool reads a tool, which is in a namespace if group is not empty.
func (c reader) tool(b []byte, group string) {
	kind := request.Str(b, "type")
	t, known := request.Function(b, "parameters")
	form := request.Form{Custom: kind == "custom", Group: group}
	switch {
	case kind == "namespace" && group == "" && known && body.Elements(request.Member(b, "tools"), func(inner []byte) bool {
		c.tool(inner, t.Name)
		return true
	}):
		return
	case kind != "function" && kind != "custom" || !known:
		c.Hosted = append(c.Hosted, kind)
		return
	case form.Custom:
		t = customTool(t, request.Member(b, "format"))
	}
	if group != "" {
		form.Name = t.Name
		t.Name = flatName(group, t.Name)
	}
	if form != (request.Form{}) {
		if c.Forms == nil {
			c.Forms = map[string]request.Form{}
		}
		c.Forms[t.Name] = form
	}
	c.Request.Tools = append(c.Request.Tools, t)
}

// maxName is the length of a tool's name that all formats take.
const maxName = 64

// flatName returns the name of a tool in a namespace, or the name itself without one.
func flatName(group, name string) string {
	if group == "" {
		return name
	}
	flat := group + "__" + name
	if strings.HasSuffix(group, "__") { // it has the separator already
		flat = group + name
	}
	if len(flat) <= maxName {
		return flat
	}
	sum := sha256.Sum256([]byte(flat))
	return strings.ToValidUTF8(flat[:maxName-9], "") + "_" + hex.EncodeToString(sum[:4])
}

// customTool returns a custom tool as a function. The function cannot promise a grammar, so the model gets it to read.
func customTool(t llm.Tool, format []byte) llm.Tool {
	what := "The input of the tool, exactly as it takes it: plain text, not JSON."
	if grammar := request.Str(format, "definition"); grammar != "" {
		what += " It follows this grammar (" + request.Str(format, "syntax") + "):\n" + grammar
	}
	schema := append([]byte(`{"type":"object","properties":{"input":{"type":"string","description":`), body.String(nil, what)...)
	t.Parameters, t.Strict = append(schema, `}},"required":["input"],"additionalProperties":false}`...), false
	return t
}

// customArguments returns the input of a custom tool as the arguments of its function.
func customArguments(input string) string {
	return string(append(body.Str([]byte{'{'}, "input", input), '}'))
}

// customInput is the reverse of customArguments. A model may write something else: then that is the input.
func customInput(arguments string) string {
	raw := []byte(arguments)
	var input string
	if body.Valid(raw) && request.Text(request.Member(raw, "input"), &input) {
		return input
	}
	return arguments
}

// Clients send reasoning back as they got it. What others than OpenAI thought is written into encrypted_content, with the name of the provider
// that alone can read it again. It is not encrypted: the client sees the text anyway.

const sealMark = "parley:"

type sealed struct {
	Thinker  string        `json:"thinker"`
	Thoughts []llm.Thought `json:"thoughts"`
}

// seal returns thoughts of a provider as encrypted_content. Those of tool calls are in the ids of the calls.
func seal(thinker string, ts []llm.Thought) string {
	s := sealed{Thinker: thinker}
	for _, t := range ts {
		if t.ID == "" {
			s.Thoughts = append(s.Thoughts, t)
		}
	}
	b, err := json.Marshal(s)
	if err != nil || len(s.Thoughts) == 0 {
		return ""
	}
	return sealMark + string(b)
}

// Unseal returns the thoughts in messages of a client as the provider gave them, without those of other providers. It leaves ms as it is.
func Unseal(ms []llm.Message, thinker string) []llm.Message {
	out := slices.Clone(ms)
	for i := range out {
		var thoughts []llm.Thought
		for _, t := range out[i].Thoughts {
			var s sealed
			if inner, ok := strings.CutPrefix(t.Opaque, sealMark); ok && json.Unmarshal([]byte(inner), &s) == nil && s.Thinker == thinker {
				thoughts = append(thoughts, s.Thoughts...)
			}
		}
		out[i].Thoughts = thoughts
	}
	return out
}

// DropSealed returns the body b of a request without the reasoning that seal wrote, which OpenAI cannot read.
func DropSealed(b []byte) []byte {
	if !bytes.Contains(b, []byte(`"`+sealMark)) {
		return b
	}
	list := request.Member(b, "input")
	kept := []byte{'['}
	if !body.Elements(list, func(it []byte) bool {
		if request.Str(it, "type") != "reasoning" || !strings.HasPrefix(request.Str(it, "encrypted_content"), sealMark) {
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(kept, it...)
		}
		return true
	}) {
		return b
	}
	at := cap(b) - cap(list) // list is a slice of b
	return slices.Concat(b[:at], kept, []byte{']'}, b[at+len(list):])
}
