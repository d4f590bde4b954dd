package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
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
		m := new(anthropic.Assembler)
		m.Each(each)
		a = m
	case Responses:
		a = new(responses.Assembler)
	case Gemini:
		g := new(gemini.Assembler)
		g.Each(each)
		a = g
	default:
		c := new(openai.Assembler)
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
	c, m := new(openai.Assembler), new(anthropic.Assembler)
	c.Each(func(d openai.Delta) { t.Errorf("chat: %+v", d) })
	m.Each(func(d openai.Delta) { t.Errorf("messages: %+v", d) })
	for _, data := range []string{"", "{", "[]", `{"choices":[{"index":3}]}`, `{"choices":[{"delta":{"tool_calls":[{}]}}]}`, `{"type":"content_block_delta","index":-1}`} {
		_, _ = c.Event(sse.Event{Data: []byte(data)}) // what it cannot read it may refuse
		_, _ = m.Event(sse.Event{Data: []byte(data)})
	}
}

// TestCallsInTurns reads a stream whose tool calls arrive in turns: each is one call with all its arguments in formats that write one after the
// other, and a call that begins after the one before it is whole is not held back.
func TestCallsInTurns(t *testing.T) {
	t.Parallel()
	piece := func(call int, head, arguments string) string {
		return fmt.Sprintf(`data: {"choices":[{"delta":{"tool_calls":[{"index":%d,%s"function":{%s"arguments":%q}}]}}]}`+"\n\n", call, strings.Split(head, "|")[0], strings.Split(head, "|")[1], arguments)
	}
	first, second, third := `"id":"a",|"name":"look",`, `"id":"b",|"name":"go",`, `"id":"c",|"name":"stop",`
	const text = "data: {\"choices\":[{\"delta\":{\"content\":\"Well.\"}}]}\n\n"
	for name, c := range map[string]struct {
		stream string
		early  string // is written before the end
		want   []string
	}{
		"in turns":       {piece(0, first, `{"a`) + piece(1, second, `{"b`) + piece(0, "|", `":"}`) + piece(1, "|", `":2`) + piece(0, "|", `"}`) + piece(1, "|", `}`), `"go"`, []string{`{"a":"}"}`, `{"b":2}`}},
		"heads first":    {piece(0, first, "") + piece(1, second, "") + piece(0, "|", `{}`) + piece(1, "|", `{"b":[{}]}`), `"go"`, []string{`{}`, `{"b":[{}]}`}},
		"one by one":     {piece(0, first, `{"a":`) + piece(0, "|", `1}`) + piece(1, second, ""), `"go"`, []string{`{"a":1}`, ``}},
		"text between":   {piece(0, first, `{"a":`) + text + piece(0, "|", `1}`), "Well.", []string{`{"a":1}`}},
		"without an end": {piece(0, first, `{"a"`) + piece(1, second, `{`) + piece(2, third, `{}`) + piece(1, "|", `}`), `"look"`, []string{`{"a"`, `{}`, `{}`}},
	} {
		for _, api := range []API{Messages, Responses} {
			w := api.NewWriter(openai.Meta{ID: "x"})
			out := w.Begin(nil)
			r := gather(t, Chat, []byte(c.stream+"data: [DONE]\n\n"), func(d openai.Delta) { out = w.Add(out, d) })
			if !strings.Contains(string(out), c.early) {
				t.Errorf("%s, %s: %s comes only at the end", name, api, c.early)
			}
			if out = w.End(out, r); strings.Count(string(out), `"content_block_start"`)+strings.Count(string(out), `"response.output_item.added"`) != len(c.want)+strings.Count(c.stream, "Well.") {
				t.Errorf("%s, %s: %s", name, api, out)
			}
			got := gather(t, api, out, nil)
			if len(got.ToolCalls) != len(c.want) {
				t.Errorf("%s, %s: %+v", name, api, got.ToolCalls)
				continue
			}
			for i, call := range got.ToolCalls {
				if want := c.want[i]; call.Arguments != want && (want != "" || call.Arguments != "{}") {
					t.Errorf("%s, %s: call %d has %s, want %s", name, api, i, call.Arguments, want)
				}
			}
		}
	}
}

// TestFiltered writes an answer that a filter has cut, as each vendor says it: whole and as a stream.
func TestFiltered(t *testing.T) {
	t.Parallel()
	r := gather(t, Chat, []byte("data: {\"choices\":[{\"delta\":{\"content\":\"We\"},\"finish_reason\":\"content_filter\"}]}\n\ndata: [DONE]\n\n"), nil)
	for api, want := range map[API]string{
		Responses: `"status":"incomplete","background":false,"error":null,"incomplete_details":{"reason":"content_filter"}`,
		Messages:  `"stop_reason":"refusal"`,
		Chat:      `"finish_reason":"content_filter"`,
	} {
		whole, stream := string(api.AppendResponse(nil, openai.Meta{}, r)), string(openai.AppendStream(nil, api.NewWriter(openai.Meta{}), r))
		if !strings.Contains(whole, want) || !strings.Contains(stream, want) {
			t.Errorf("%s: want %s in\n%s\n%s", api, want, whole, stream)
		}
		if api == Responses && !strings.Contains(stream, "event: response.incomplete\n") {
			t.Errorf("%s", stream)
		}
	}
	said := string(Responses.AppendResponse(nil, openai.Meta{}, &llm.Response{Refusal: "No.", Finish: llm.FinishRefused}))
	if !strings.Contains(said, `"status":"completed"`) || !strings.Contains(said, `"refusal":"No."`) {
		t.Errorf("a refusal in words: %s", said)
	}
}
