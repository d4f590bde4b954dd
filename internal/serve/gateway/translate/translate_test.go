package translate

import (
	"bytes"
	"encoding/json"
	"testing"

	"parley/internal/dialect/wire"
	"parley/internal/serve/gateway/format"
	"parley/internal/wire/chat"
	"parley/internal/wire/messages"
	"parley/internal/wire/responses"
	"parley/internal/wire/sse"
	"parley/llm"
)

func answers() map[string]*llm.Response {
	usage := llm.Usage{Input: 20, Cached: 5, Output: 9, Reasoning: 3}
	return map[string]*llm.Response{
		"words":    {Text: "Well \"é\"\n\u2028", Finish: llm.FinishStop, Usage: usage},
		"nothing":  {Finish: llm.FinishLength, Usage: usage},
		"thoughts": {Text: "Yes.", Thoughts: []llm.Thought{{Text: "Hm.", Signature: "sig"}}, Finish: llm.FinishStop, Usage: usage},
		"tools": {Text: "Let me see.", ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: `{}`}},
			Finish: llm.FinishTools, Usage: usage},
	}
}

// TestAnswers writes answers in each format, whole and as a stream, and has the dialects
// read them: nothing that the format has a word for may be lost.
func TestAnswers(t *testing.T) {
	t.Parallel()
	m := Meta{ID: "id-1", Model: "m", Created: 1_800_000_000, Usage: true}
	type dialect struct {
		decode   func([]byte) (*llm.Response, error)
		assemble func() wire.Assembler
	}
	for api, d := range map[format.API]dialect{
		format.Chat:      {chat.DecodeResponse, func() wire.Assembler { return chat.NewAssembler() }},
		format.Messages:  {messages.DecodeResponse, func() wire.Assembler { return messages.NewAssembler() }},
		format.Responses: {responses.DecodeResponse, func() wire.Assembler { return responses.NewAssembler() }},
	} {
		for name, want := range answers() {
			if api == format.Responses && name != "words" {
				continue // it is for words only
			}
			whole := AppendWhole(nil, api, m, want)
			r, err := d.decode(whole)
			if err != nil || !json.Valid(whole) {
				t.Fatalf("%s %s: %v: %s", api, name, err, whole)
			}
			same(t, api, name, r, want)
			a := d.assemble()
			var s sse.Splitter
			s.Feed(AppendStream(nil, api, m, want))
			for raw, ok := s.Next(); ok; raw, ok = s.Next() {
				e := sse.Parse(raw)
				if !json.Valid(e.Data) && !bytes.Equal(e.Data, []byte("[DONE]")) {
					t.Errorf("%s %s: %s", api, name, raw)
				}
				if _, err := a.Event(e); err != nil {
					t.Fatalf("%s %s: %v: %s", api, name, err, raw)
				}
			}
			if r, err = a.Response(); err != nil {
				t.Fatalf("%s %s: %v", api, name, err)
			}
			same(t, api, name, r, want)
		}
	}
}

func same(t *testing.T, api format.API, name string, got, want *llm.Response) {
	t.Helper()
	u, v := got.Usage, want.Usage
	if api == format.Messages {
		v.Reasoning = u.Reasoning // it has no word for that
	}
	if got.ID != "id-1" || got.Model != "m" || got.Text != want.Text || got.Finish != want.Finish || u != v || len(got.ToolCalls) != len(want.ToolCalls) || len(got.Thoughts) != len(want.Thoughts) {
		t.Errorf("%s %s: %+v\nwant %+v", api, name, got, want)
		return
	}
	for i := range want.ToolCalls {
		if got.ToolCalls[i] != want.ToolCalls[i] {
			t.Errorf("%s %s: %+v", api, name, got.ToolCalls[i])
		}
	}
	for i := range want.Thoughts {
		if got.Thoughts[i].Text != want.Thoughts[i].Text || api == format.Messages && got.Thoughts[i].Signature != want.Thoughts[i].Signature {
			t.Errorf("%s %s: %+v", api, name, got.Thoughts[i])
		}
	}
}

// TestReaders takes a stream apart into steps and writes it in the other format: the answer
// is the same.
func TestReaders(t *testing.T) {
	t.Parallel()
	m := Meta{ID: "id-1", Model: "m", Usage: true}
	for name, want := range answers() {
		for from, to := range map[format.API]format.API{format.Chat: format.Messages, format.Messages: format.Chat} {
			var s sse.Splitter
			s.Feed(AppendStream(nil, from, m, want))
			r, w := NewReader(from), NewWriter(to, m)
			out := w.Begin(nil)
			for raw, ok := s.Next(); ok; raw, ok = s.Next() {
				for _, d := range r.Read(sse.Parse(raw)) {
					out = w.Add(out, d)
				}
			}
			out = w.End(out, want)
			var a wire.Assembler = chat.NewAssembler()
			if to == format.Messages {
				a = messages.NewAssembler()
			}
			s.Feed(out)
			for raw, ok := s.Next(); ok; raw, ok = s.Next() {
				if _, err := a.Event(sse.Parse(raw)); err != nil {
					t.Fatalf("%s to %s: %v: %s", from, to, err, out)
				}
			}
			got, err := a.Response()
			if err != nil {
				t.Fatalf("%s to %s: %v: %s", from, to, err, out)
			}
			if got.Text != want.Text || got.Finish != want.Finish || len(got.ToolCalls) != len(want.ToolCalls) {
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

// TestHostile writes arguments that are no object, and an event that is none.
func TestHostile(t *testing.T) {
	t.Parallel()
	r := &llm.Response{ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":`}, {ID: "b", Name: "g"}}, Finish: llm.FinishTools}
	b := AppendWhole(nil, format.Messages, Meta{}, r)
	if !json.Valid(b) || !bytes.Contains(b, []byte(`"input":{"malformed":"{\"x\":"}`)) {
		t.Errorf("%s", b)
	}
	for _, api := range []format.API{format.Chat, format.Messages} {
		for _, data := range []string{"", "{", "[]", `{"choices":[{"index":3}]}`, `{"type":"content_block_delta","index":-1}`} {
			if d := NewReader(api).Read(sse.Event{Data: []byte(data)}); d != nil {
				t.Errorf("%s %q: %+v", api, data, d)
			}
		}
	}
}
