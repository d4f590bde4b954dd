package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/ask/wire/anthropic"
	"parley/internal/ask/wire/gemini"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/responses"
	"parley/internal/kit/sse"
	"parley/llm"
)

func answers() map[string]*llm.Response {
	usage := llm.Usage{Input: 20, Cached: 5, Output: 9, Reasoning: 3}
	return map[string]*llm.Response{
		"words":    {Text: "Well \"é\"\n\u2028", Finish: llm.FinishStop, Usage: usage},
		"nothing":  {Finish: llm.FinishLength, Usage: usage},
		"thoughts": {Text: "Yes.", Thoughts: []llm.Thought{{Text: "Hm.", Signature: "sig"}}, Finish: llm.FinishStop, Usage: usage},
		"refusal":  {Refusal: "No.", Finish: llm.FinishRefused, Usage: usage},
		"tools": {Text: "Let me see.", ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: `{}`}},
			Finish: llm.FinishTools, Usage: usage},
	}
}

// TestAnswers writes answers in each format, whole and as a stream, and reads them with the dialects: nothing
// may be lost.
func TestAnswers(t *testing.T) {
	t.Parallel()
	m := openai.Meta{ID: "id-1", Model: "m", Created: 1_800_000_000, Usage: true}
	for api, decode := range map[API]func([]byte) (*llm.Response, error){
		Chat: openai.DecodeResponse, Messages: anthropic.DecodeResponse, Responses: responses.DecodeResponse, Gemini: gemini.DecodeResponse,
	} {
		for name, want := range answers() {
			whole := api.AppendResponse(nil, m, want)
			r, err := decode(whole)
			if err != nil || !json.Valid(whole) {
				t.Fatalf("%s %s: %v: %s", api, name, err, whole)
			}
			same(t, api, name, r, want)
			stream := openai.AppendStream(nil, api.NewWriter(m), want)
			for raw := range sse.Split(stream) {
				if e := sse.Parse(raw); !json.Valid(e.Data) && !e.Done() {
					t.Errorf("%s %s: %s", api, name, raw)
				}
			}
			same(t, api, name, gather(t, api, stream, nil), want)
		}
	}
}

// gather reads a stream and passes each step to each.
func gather(t *testing.T, api API, stream []byte, each func(openai.Delta)) *llm.Response {
	t.Helper()
	var a interface {
		Event(sse.Event) (bool, error)
		Response() (*llm.Response, error)
	}
	switch api {
	case Messages:
		m := anthropic.NewAssembler()
		m.Each(each)
		a = m
	case Responses:
		a = responses.NewAssembler()
	case Gemini:
		g := gemini.NewAssembler()
		g.Each(each)
		a = g
	default:
		c := openai.NewAssembler()
		c.Each(each)
		a = c
	}
	for raw := range sse.Split(stream) {
		if _, err := a.Event(sse.Parse(raw)); err != nil {
			t.Fatalf("%s: %v: %s", api, err, stream)
		}
	}
	r, err := a.Response()
	if err != nil {
		t.Fatalf("%s: %v: %s", api, err, stream)
	}
	return r
}

// said returns the text, or the refusal. Gemini's has a reason before it.
func said(r *llm.Response) string {
	return cmp.Or(r.Text, strings.TrimPrefix(r.Refusal, "the answer was blocked: SAFETY "))
}

func same(t *testing.T, api API, name string, got, want *llm.Response) {
	t.Helper()
	u, v := got.Usage, want.Usage
	if api == Messages {
		v.Reasoning = u.Reasoning // it has no word for that
	}
	if got.ID != "id-1" || got.Model != "m" || said(got) != said(want) || got.Finish != want.Finish || u != v || len(got.ToolCalls) != len(want.ToolCalls) || len(got.Thoughts) != len(want.Thoughts) {
		t.Errorf("%s %s: %+v\nwant %+v", api, name, got, want)
		return
	}
	for i := range want.ToolCalls {
		if got.ToolCalls[i] != want.ToolCalls[i] {
			t.Errorf("%s %s: %+v", api, name, got.ToolCalls[i])
		}
	}
	for i := range want.Thoughts {
		if api != Responses && got.Thoughts[i].Text != want.Thoughts[i].Text || api == Messages && got.Thoughts[i].Signature != want.Thoughts[i].Signature {
			t.Errorf("%s %s: %+v", api, name, got.Thoughts[i])
		}
	}
}

// TestReaders splits a stream into steps and writes it in the other format: the answer is the same.
func TestReaders(t *testing.T) {
	t.Parallel()
	m := openai.Meta{ID: "id-1", Model: "m", Usage: true}
	for name, want := range answers() {
		for _, pair := range [][2]API{{Chat, Messages}, {Messages, Chat}, {Messages, Gemini}} {
			from, to := pair[0], pair[1]
			w := to.NewWriter(m)
			out := w.Begin(nil)
			gather(t, from, openai.AppendStream(nil, from.NewWriter(m), want), func(d openai.Delta) { out = w.Add(out, d) })
			got := gather(t, to, w.End(out, want), nil)
			if said(got) != said(want) || got.Finish != want.Finish || len(got.ToolCalls) != len(want.ToolCalls) {
				t.Errorf("%s %s to %s: %+v\nwant %+v", name, from, to, got, want)
			}
			for i := range want.ToolCalls {
				if got.ToolCalls[i] != want.ToolCalls[i] {
					t.Errorf("%s %s to %s: %+v", name, from, to, got.ToolCalls[i])
				}
			}
		}
	}
}

// TestStepsApart reads a chunk with a thought and text: neither is lost in another format.
func TestStepsApart(t *testing.T) {
	t.Parallel()
	const stream = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm.\",\"content\":\"Yes.\"}}]}\n\ndata: [DONE]\n\n"
	w := Messages.NewWriter(openai.Meta{})
	out := w.Begin(nil)
	r := gather(t, Chat, []byte(stream), func(d openai.Delta) { out = w.Add(out, d) })
	got := gather(t, Messages, w.End(out, r), nil)
	if got.Text != "Yes." || len(got.Thoughts) != 1 || got.Thoughts[0].Text != "Hm." {
		t.Errorf("%+v", got)
	}
}

// TestHostile writes arguments that are not an object, and an event that is not JSON.
func TestHostile(t *testing.T) {
	t.Parallel()
	r := &llm.Response{ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":`}, {ID: "b", Name: "g"}}, Finish: llm.FinishTools}
	b := Messages.AppendResponse(nil, openai.Meta{}, r)
	if !json.Valid(b) || !bytes.Contains(b, []byte(`"input":{"malformed":"{\"x\":"}`)) {
		t.Errorf("%s", b)
	}
	c, m := openai.NewAssembler(), anthropic.NewAssembler()
	c.Each(func(d openai.Delta) { t.Errorf("chat: %+v", d) })
	m.Each(func(d openai.Delta) { t.Errorf("messages: %+v", d) })
	for _, data := range []string{"", "{", "[]", `{"choices":[{"index":3}]}`, `{"choices":[{"delta":{"tool_calls":[{}]}}]}`, `{"type":"content_block_delta","index":-1}`} {
		_, _ = c.Event(sse.Event{Data: []byte(data)}) // what it cannot read it may refuse
		_, _ = m.Event(sse.Event{Data: []byte(data)})
	}
}
