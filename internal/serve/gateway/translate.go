package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/ask/dialect"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/ask/wire/request"
	"parley/internal/ask/wire/responses"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// Every call is an llm.Request and every answer an llm.Response, so each format is written and read once. What one side lacks is here.

// translated writes the call in the provider's format. Members without a counterpart are dropped by name,
// unless they are a part of the messages: then the call cannot be made.
func (u *relay) translated(f *flight, model string) (*outgoing, error) {
	c := f.Call
	if err := u.translatable(c); err != nil {
		return nil, err
	}
	out := &outgoing{client: c.API, codec: &u.codec, path: u.codec.Path}
	switch u.provider.Dialect {
	case "anthropic":
		out.api = format.Messages
	case "openai", "responses":
		out.api, out.codec, out.path = format.Chat, u.codecs[format.Chat], format.Chat.Path()
	}
	var req llm.Request
	req, out.meta = u.neutral(f, out.api == format.Chat)
	req.Model, req.Extra = u.provider.Name+"/"+model, nil
	switch {
	case out.codec.PathOf != nil:
		out.path = out.codec.PathOf(model, c.Stream)
	case u.provider.APIVersion != "":
		out.path = dialect.AzurePath(u.provider.APIVersion, out.path, model)
	}
	var err error
	out.body, out.dropped, err = out.codec.Append(nil, &req, u.provider.Capability(model), c.Stream)
	if err != nil {
		return nil, fault.BadRequest("%v", err)
	}
	out.dropped = append(droppedMembers(c), out.dropped...)
	if out.codec.Header != nil {
		out.header = out.codec.Header(&req)
	}
	return out, nil
}

// neutral returns the request of a call without what only its own format has, and what its answer needs of the request. chat means that it
// is asked as a chat completion.
func (u *relay) neutral(f *flight, chat bool) (llm.Request, openai.Meta) {
	c := f.Call
	req := c.Request
	switch {
	case c.API.Google():
		req.Messages = withoutThoughts(req.Messages)
	case c.API == format.Responses:
		req.Messages = joinItems(responses.Unseal(req.Messages, u.provider.Name))
		if len(req.Tools) == 0 {
			req.ToolChoice, req.OneTool = "", false
		}
	}
	req.Messages = unpackIDs(req.Messages, u.provider.Dialect == "gemini")
	if chat {
		req.Messages = forTemplates(req.Messages)
	}
	return req, openai.Meta{
		Model: c.Request.Model, Created: f.Created, Usage: c.Usage, Request: &c.Request, Forms: c.Forms, Thinker: u.provider.Name,
	}
}

// translatable returns why a call cannot be made in the provider's format.
func (u *relay) translatable(c *format.Call) error {
	switch {
	case c.API == format.Embeddings || c.API.Counts() || c.API.Exact():
		return fault.BadRequest("%s cannot be translated to the format of %s: route the model to a provider that has %[1]s", c.API, u.provider.Name)
	case len(c.Strange) > 0:
		return fault.BadRequest("this cannot be said in the format of %s: %s", u.provider.Name, strings.Join(c.Strange, ", "))
	case c.Choices > 1:
		return fault.BadRequest("n: %s gives one answer a call", u.provider.Name)
	case c.API != format.Responses:
		return nil
	}
	for _, name := range []string{"previous_response_id", "conversation", "prompt"} {
		if _, has := c.Request.Extra[name]; has {
			return fault.BadRequest("%s: %s does not keep what was said: send the whole input", name, u.provider.Name)
		}
	}
	for _, name := range []string{"background", "tool_choice"} {
		if v, has := c.Request.Extra[name]; has && string(v) != "false" {
			return fault.BadRequest("%s cannot be said in the format of %s: leave it out", name, u.provider.Name)
		}
	}
	return nil
}

// droppedMembers names the members of a call that another format does not have. Those of responses that ask for what every answer has are
// not named.
func droppedMembers(c *format.Call) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Request.Extra)) {
		v := c.Request.Extra[name]
		switch {
		case c.API != format.Responses:
		case name == "include" && string(v) == `["reasoning.encrypted_content"]`, name == "store" && string(v) == "false", name == "background",
			name == "reasoning" && (c.Request.Effort != "" || request.Member(v, "effort") == nil),
			name == "text" && (c.Request.Schema != nil || request.Member(v, "format") == nil) && request.Member(v, "verbosity") == nil:
			continue
		case name == "tools":
			for _, kind := range slices.Compact(slices.Sorted(slices.Values(c.Hosted))) {
				names = append(names, "tools."+kind)
			}
			continue
		}
		names = append(names, name)
	}
	return names
}

// joinItems makes messages of the items of a call: what the model said and called before the next result is one message, and the instructions
// at the beginning are another.
func joinItems(ms []llm.Message) []llm.Message {
	var out []llm.Message
	for _, m := range ms {
		last := len(out) - 1
		switch {
		case last < 0 || m.Role != out[last].Role:
		case m.Role == llm.RoleAssistant:
			out[last].Parts = slices.Concat(out[last].Parts, m.Parts)
			out[last].Thoughts = slices.Concat(out[last].Thoughts, m.Thoughts)
			out[last].ToolCalls = slices.Concat(out[last].ToolCalls, m.ToolCalls)
			continue
		case m.Role == llm.RoleSystem && last == 0:
			out[0] = llm.System(out[0].Text() + "\n\n" + m.Text())
			continue
		}
		out = append(out, m)
	}
	return slices.DeleteFunc(out, func(m llm.Message) bool { // of reasoning that only OpenAI can read
		return m.Role == llm.RoleAssistant && len(m.Parts)+len(m.Thoughts)+len(m.ToolCalls) == 0
	})
}

// forTemplates returns messages as chat templates of models take them, and leaves ms as it is: words of the system only at the beginning, and
// files only from the user. Those of tools follow their results.
func forTemplates(ms []llm.Message) []llm.Message {
	var out []llm.Message
	var files []llm.Part
	flush := func() {
		if len(files) > 0 {
			out, files = append(out, llm.Message{Role: llm.RoleUser, Parts: files}), nil
		}
	}
	head := true
	for _, m := range ms {
		if head = head && m.Role == llm.RoleSystem; m.Role == llm.RoleSystem && !head {
			m.Role = llm.RoleUser
		}
		switch {
		case m.Role != llm.RoleTool:
			flush()
		case slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return !p.IsText() }):
			var words strings.Builder
			for _, p := range m.Parts {
				if words.WriteString(p.Text); !p.IsText() {
					fmt.Fprintf(&words, "[file %d of the next message]", len(files)/2+1)
					files = append(files, llm.Part{Text: fmt.Sprintf("File %d, a result of the tool call %s:", len(files)/2+1, m.ToolCallID)}, p)
				}
			}
			m.Parts = []llm.Part{{Text: words.String()}}
		}
		out = append(out, m)
	}
	flush()
	return out
}

// withoutThoughts returns messages without their thoughts, and leaves ms as it is. What a client of Gemini sends back is Gemini's, or
// lacks what another provider wants with it.
func withoutThoughts(ms []llm.Message) []llm.Message {
	out := slices.Clone(ms)
	for i := range out {
		out[i].Thoughts = nil
	}
	return out
}

// signatureMark begins the signature of Gemini in the id of a tool call. Gemini wants it back with the call, and clients of other
// formats send back nothing else as it was.
const signatureMark = "~thought~"

// packID returns the id of a tool call with its signature.
func packID(id, signature string) string {
	if signature == "" {
		return id
	}
	return id + signatureMark + signature
}

// packIDs puts the signatures of an answer into the ids of its tool calls.
func packIDs(r *llm.Response) {
	for i := range r.ToolCalls {
		c := &r.ToolCalls[i]
		for _, t := range r.Thoughts {
			if t.ID == c.ID && c.ID != "" {
				c.ID = packID(c.ID, t.Signature)
				break
			}
		}
	}
}

// unpackIDs returns messages with the ids as the provider gave them, and leaves ms as it is. The signatures become thoughts again if thoughts is
// true: only Gemini wants them.
func unpackIDs(ms []llm.Message, thoughts bool) []llm.Message {
	if !slices.ContainsFunc(ms, isPacked) {
		return ms
	}
	out := slices.Clone(ms)
	for i := range out {
		m := &out[i]
		m.ToolCallID, _, _ = strings.Cut(m.ToolCallID, signatureMark)
		m.ToolCalls, m.Thoughts = slices.Clone(m.ToolCalls), slices.Clone(m.Thoughts)
		for j := range m.ToolCalls {
			id, signature, ok := strings.Cut(m.ToolCalls[j].ID, signatureMark)
			if m.ToolCalls[j].ID = id; ok && thoughts {
				m.Thoughts = append(m.Thoughts, llm.Thought{ID: id, Signature: signature})
			}
		}
	}
	return out
}

// isPacked reports whether an id in a message has a signature.
func isPacked(m llm.Message) bool {
	return strings.Contains(m.ToolCallID, signatureMark) || slices.ContainsFunc(m.ToolCalls, func(c llm.ToolCall) bool { return strings.Contains(c.ID, signatureMark) })
}
