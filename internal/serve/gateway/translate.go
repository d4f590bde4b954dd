package gateway

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"parley/internal/ask/dialect"
	"parley/internal/ask/wire/fault"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// translated writes the call in the provider's format. Members without a counterpart are dropped by name,
// unless they are a part of the messages: then the call cannot be made.
func (u *relayUpstream) translated(f *relayFlight, model string) (*outgoing, error) {
	c := f.Call
	switch {
	case c.API == format.Responses:
		return nil, fault.BadRequest("responses cannot be translated to the format of %s: use /v1/chat/completions or /v1/messages, or route the model to a provider that has responses", u.p.Name)
	case c.API == format.Embeddings || c.API == format.Count || c.API.Exact():
		return nil, fault.BadRequest("%s cannot be translated to the format of %s: route the model to a provider that has %[1]s", c.API, u.p.Name)
	case len(c.Strange) > 0:
		return nil, fault.BadRequest("this cannot be said in the format of %s: %s", u.p.Name, strings.Join(c.Strange, ", "))
	case c.Choices > 1:
		return nil, fault.BadRequest("n: %s gives one answer a call", u.p.Name)
	}
	req := c.Request
	req.Model = u.p.Name + "/" + model
	dropped := slices.Sorted(maps.Keys(req.Extra))
	req.Extra = nil
	out := &outgoing{client: c.API, codec: &u.codec, path: u.codec.Path}
	switch u.p.Dialect {
	case "anthropic":
		out.api = format.Messages
	case "openai", "responses":
		out.api, out.codec, out.path = format.Chat, u.codecs[format.Chat], format.Chat.Path()
	}
	req.Messages = unpacked(req.Messages, u.p.Dialect == "gemini")
	switch {
	case out.codec.PathOf != nil:
		out.path = out.codec.PathOf(model, c.Stream)
	case u.p.APIVersion != "":
		out.path = dialect.AzurePath(u.p.APIVersion, out.path, model)
	}
	var err error
	out.body, out.dropped, err = out.codec.Append(nil, &req, u.capability(model), c.Stream)
	if err != nil {
		return nil, fault.BadRequest("%v", err)
	}
	out.dropped = append(dropped, out.dropped...)
	if out.codec.Header != nil {
		out.header = out.codec.Header(&req)
	}
	return out, nil
}

// mark begins the signature of Gemini in the id of a tool call. Gemini wants it back with the call, and clients of other
// formats send back nothing else as it was.
const mark = "~thought~"

// packed returns the id of a tool call with its signature.
func packed(id, signature string) string {
	if signature == "" {
		return id
	}
	return id + mark + signature
}

// pack puts the signatures of an answer into the ids of its tool calls.
func pack(r *llm.Response) {
	for i := range r.ToolCalls {
		c := &r.ToolCalls[i]
		for _, t := range r.Thoughts {
			if t.ID == c.ID && c.ID != "" {
				c.ID = packed(c.ID, t.Signature)
				break
			}
		}
	}
}

// unpacked returns messages with the ids as the provider gave them, and leaves ms as it is. The signatures become thoughts again if thoughts is
// true: only Gemini wants them.
func unpacked(ms []llm.Message, thoughts bool) []llm.Message {
	if !slices.ContainsFunc(ms, isPacked) {
		return ms
	}
	out := slices.Clone(ms)
	for i := range out {
		m := &out[i]
		m.ToolCallID, _, _ = strings.Cut(m.ToolCallID, mark)
		m.ToolCalls, m.Thoughts = slices.Clone(m.ToolCalls), slices.Clone(m.Thoughts)
		for j := range m.ToolCalls {
			id, signature, ok := strings.Cut(m.ToolCalls[j].ID, mark)
			if m.ToolCalls[j].ID = id; ok && thoughts {
				m.Thoughts = append(m.Thoughts, llm.Thought{ID: id, Signature: signature})
			}
		}
	}
	return out
}

// isPacked reports whether an id in a message has a signature.
func isPacked(m llm.Message) bool {
	return strings.Contains(m.ToolCallID, mark) || slices.ContainsFunc(m.ToolCalls, func(c llm.ToolCall) bool { return strings.Contains(c.ID, mark) })
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
