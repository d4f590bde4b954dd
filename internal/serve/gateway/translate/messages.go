package translate

import (
	"encoding/json"

	"parley/internal/dialect/wire/body"
	"parley/internal/wire/sse"
	"parley/llm"
)

// messagesReader reads the events of a message. Its blocks are numbered together, tool
// calls among them from 0.
type messagesReader struct {
	calls map[int]int // number of a tool call by number of its block
}

type messagesEvent struct {
	Type         string `json:"type"`
	Index        int    `json:"index"`
	ContentBlock struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		ID       string `json:"id"`
		Name     string `json:"name"`
	} `json:"content_block"`
	Delta struct {
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
	} `json:"delta"`
}

// Read reads an event. What is none says nothing.
func (r *messagesReader) Read(e sse.Event) []Delta {
	var m messagesEvent
	if json.Unmarshal(e.Data, &m) != nil {
		return nil
	}
	var d Delta
	switch m.Type {
	case "content_block_start":
		b := &m.ContentBlock
		if b.Type == "tool_use" {
			if r.calls == nil {
				r.calls = map[int]int{}
			}
			r.calls[m.Index] = len(r.calls)
			d = Delta{Call: r.calls[m.Index], ID: b.ID, Name: b.Name}
		} else {
			d = Delta{Text: b.Text, Thought: b.Thinking}
		}
	case "content_block_delta":
		d = Delta{Text: m.Delta.Text, Thought: m.Delta.Thinking, Signature: m.Delta.Signature, Arguments: m.Delta.PartialJSON, Call: r.calls[m.Index]}
	}
	if d.Text+d.Thought+d.Signature == "" && !d.isCall() {
		return nil
	}
	return []Delta{d}
}

// messagesWriter writes events. A block lasts until a step of another kind comes.
type messagesWriter struct {
	meta  Meta
	block int    // its number; -1: none was begun
	kind  string // of the open block; "": none is open
	call  int    // of the open block, if it is a tool's
}

func event(b []byte, name string) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: {"...)
	return body.Str(b, "type", name)
}

// Begin writes an empty message.
func (w *messagesWriter) Begin(b []byte) []byte {
	b = append(event(b, "message_start"), `,"message":{`...)
	b = body.Str(body.Str(b, "id", w.meta.ID), "type", "message")
	b = body.Str(body.Str(b, "role", "assistant"), "model", w.meta.Model)
	b = append(b, `,"content":[],"stop_reason":null,"stop_sequence":null`...)
	b = append(b, `,"usage":{"input_tokens":0,"output_tokens":0}`...)
	return append(b, "}}\n\n"...)
}

// Add writes a piece of a block, and the block's beginning if it is another's.
func (w *messagesWriter) Add(b []byte, d Delta) []byte {
	switch {
	case d.isCall():
		b = w.open(b, "tool_use", d)
		if d.Arguments == "" {
			return b
		}
		return w.delta(b, "input_json_delta", "partial_json", d.Arguments)
	case d.Thought != "":
		return w.signed(w.delta(w.open(b, "thinking", d), "thinking_delta", "thinking", d.Thought), d)
	case d.Signature != "":
		return w.signed(w.open(b, "thinking", d), d)
	default:
		return w.delta(w.open(b, "text", d), "text_delta", "text", d.Text+d.Refusal)
	}
}

func (w *messagesWriter) signed(b []byte, d Delta) []byte {
	if d.Signature == "" {
		return b
	}
	return w.delta(b, "signature_delta", "signature", d.Signature)
}

func (w *messagesWriter) open(b []byte, kind string, d Delta) []byte {
	if w.kind == kind && (kind != "tool_use" || w.call == d.Call) {
		return b
	}
	b = w.close(b)
	w.block++
	w.kind, w.call = kind, d.Call
	b = body.Int(event(b, "content_block_start"), "index", int64(w.block))
	b = body.Str(append(body.Key(b, "content_block"), '{'), "type", kind)
	switch kind {
	case "tool_use":
		b = append(body.Str(body.Str(b, "id", d.ID), "name", d.Name), `,"input":{}`...)
	case "thinking":
		b = append(b, `,"thinking":"","signature":""`...)
	default:
		b = append(b, `,"text":""`...)
	}
	return append(b, "}}\n\n"...)
}

func (w *messagesWriter) close(b []byte) []byte {
	if w.kind == "" {
		return b
	}
	w.kind = ""
	return append(body.Int(event(b, "content_block_stop"), "index", int64(w.block)), "}\n\n"...)
}

func (w *messagesWriter) delta(b []byte, kind, key, s string) []byte {
	b = body.Int(event(b, "content_block_delta"), "index", int64(w.block))
	b = body.Str(append(body.Key(b, "delta"), '{'), "type", kind)
	return append(body.Str(b, key, s), "}}\n\n"...)
}

// End ends the open block and the message, with what it used.
func (w *messagesWriter) End(b []byte, r *llm.Response) []byte {
	b = event(w.close(b), "message_delta")
	b = body.Str(append(body.Key(b, "delta"), '{'), "stop_reason", messagesFinish(r))
	b = append(b, `,"stop_sequence":null}`...)
	b = append(messagesUsage(b, r.Usage), "}\n\n"...)
	return append(event(b, "message_stop"), "}\n\n"...)
}

func appendMessage(b []byte, m Meta, r *llm.Response) []byte {
	b = body.Str(body.Str(append(b, '{'), "id", m.ID), "type", "message")
	b = body.Str(body.Str(b, "role", "assistant"), "model", m.Model)
	b = body.Open(body.Key(b, "content"), '[')
	for _, t := range r.Thoughts {
		b = body.Str(body.Str(body.Open(b, '{'), "type", "thinking"), "thinking", t.Text)
		b = append(body.Str(b, "signature", t.Signature), '}')
	}
	if words := r.Text; words != "" || r.Refusal != "" {
		if words == "" {
			words = r.Refusal
		}
		b = append(body.Str(body.Str(body.Open(b, '{'), "type", "text"), "text", words), '}')
	}
	for _, c := range r.ToolCalls {
		b = body.Str(body.Str(body.Open(b, '{'), "type", "tool_use"), "id", c.ID)
		b = append(input(body.Key(body.Str(b, "name", c.Name), "input"), c.Arguments), '}')
	}
	b = append(b, ']')
	b = body.Str(b, "stop_reason", messagesFinish(r))
	b = append(b, `,"stop_sequence":null`...)
	return append(messagesUsage(b, r.Usage), '}')
}

// input appends the arguments of a tool call, which must be an object here.
func input(b []byte, arguments string) []byte {
	raw := []byte(arguments)
	if body.Valid(raw) && body.Members(raw, func(_, _ []byte) bool { return true }) {
		return append(b, raw...)
	}
	b = append(b, '{')
	if arguments != "" {
		b = body.Str(b, "malformed", arguments)
	}
	return append(b, '}')
}

func messagesFinish(r *llm.Response) string {
	switch r.Finish {
	case llm.FinishLength:
		return "max_tokens"
	case llm.FinishTools:
		return "tool_use"
	case llm.FinishRefused:
		return "refusal"
	default:
		return "end_turn"
	}
}

// messagesUsage counts as the format does: what the cache has to do with is apart.
func messagesUsage(b []byte, u llm.Usage) []byte {
	created := u.CacheWrite + u.CacheWriteLong
	b = body.Int(append(body.Key(b, "usage"), '{'), "input_tokens", int64(max(0, u.Input-u.Cached-created)))
	b = body.Int(b, "cache_creation_input_tokens", int64(created))
	b = body.Int(b, "cache_read_input_tokens", int64(u.Cached))
	return append(body.Int(b, "output_tokens", int64(u.Output)), '}')
}
