package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Clone returns a deep copy of r. It shares Begun, which nobody changes.
func (r *Request) Clone() *Request {
	c := *r
	c.Messages = cloneMessages(r.Messages)
	c.Tools = slices.Clone(r.Tools)
	for i := range c.Tools {
		c.Tools[i].Parameters = bytes.Clone(c.Tools[i].Parameters)
	}
	if c.Schema = clonePointer(r.Schema); c.Schema != nil {
		c.Schema.JSON = bytes.Clone(c.Schema.JSON)
	}
	c.Temperature, c.TopP, c.TopK = clonePointer(r.Temperature), clonePointer(r.TopP), clonePointer(r.TopK)
	c.FrequencyPenalty, c.PresencePenalty = clonePointer(r.FrequencyPenalty), clonePointer(r.PresencePenalty)
	c.Seed = clonePointer(r.Seed)
	c.Stop, c.Fallbacks = slices.Clone(r.Stop), slices.Clone(r.Fallbacks)
	c.Headers = maps.Clone(r.Headers)
	c.Extra = maps.Clone(r.Extra)
	for k, v := range c.Extra {
		c.Extra[k] = json.RawMessage(bytes.Clone(v))
	}
	return &c
}

// cloneMessages copies messages. All parts are in one allocation, since conversations are long.
func cloneMessages(ms []Message) []Message {
	n := 0
	for i := range ms {
		n += len(ms[i].Parts)
	}
	out, parts := slices.Clone(ms), make([]Part, 0, n)
	for i := range out {
		m := &out[i]
		if m.Parts != nil {
			at := len(parts)
			parts = append(parts, m.Parts...)
			m.Parts = parts[at:len(parts):len(parts)]
		}
		for j := range m.Parts {
			if im := clonePointer(m.Parts[j].Image); im != nil {
				im.Data = bytes.Clone(im.Data)
				m.Parts[j].Image = im
			}
			if f := clonePointer(m.Parts[j].File); f != nil {
				f.Data = bytes.Clone(f.Data)
				m.Parts[j].File = f
			}
		}
		m.Thoughts, m.ToolCalls = slices.Clone(m.Thoughts), slices.Clone(m.ToolCalls)
	}
	return out
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
