package format

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"

	"parley/internal/dialect/wire/body"
	"parley/llm"
)

// common reads a member that means the same in all formats.
func (c *Call) common(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "model":
		return c.model(v)
	case "stream":
		if !flag(v, &c.Stream) {
			c.refuse("stream is %s: want true or false", excerpt(v))
		}
		return true
	case "temperature":
		return number(v, &q.Temperature)
	case "top_p":
		return number(v, &q.TopP)
	case "service_tier":
		return text(v, &q.Tier)
	default:
		return false
	}
}

func (c *Call) model(v []byte) bool {
	if !text(v, &c.Request.Model) {
		c.refuse("model is %s: want a string", excerpt(v))
	}
	return true
}

// list reads a list of messages. One that cannot be read is kept as text, so that nothing
// is lost of what was asked.
func (c *Call) list(v []byte, read func(i int, m []byte) bool) bool {
	i := 0
	return body.Elements(v, func(m []byte) bool {
		if !read(i, m) {
			c.keep(i, llm.RoleUser, m)
		}
		i++
		return true
	})
}

// keep keeps a message there are no words for.
func (c *Call) keep(i int, role llm.Role, m []byte) {
	c.strange(fmt.Sprintf("messages[%d]", i))
	c.refer(m)
	c.Request.Messages = append(c.Request.Messages, llm.Text(role, string(m)))
}

// refer looks whether something that there are no words for refers to what the provider stores
// or fetches, or has sound in it.
func (c *Call) refer(b []byte) {
	c.Audio = c.Audio || bytes.Contains(b, []byte(`"input_audio"`))
	for _, sign := range []string{"_id\"", "\"id\"", "url\"", "reference\"", "container", "\"file\"", `\u`} {
		c.Request.Refers = c.Request.Refers || bytes.Contains(b, []byte(sign))
	}
}

func role(s string, to *llm.Role) bool {
	switch s {
	case "developer":
		s = string(llm.RoleSystem)
	case "function":
		s = string(llm.RoleTool)
	}
	*to = llm.Role(s)
	return s == "system" || s == "user" || s == "assistant" || s == "tool"
}

// parts reads a content: a text, or a list of parts of either vendor's kinds.
func (c *Call) parts(v []byte, at string) (out []llm.Part, ok bool) {
	var one string
	if text(v, &one) {
		if one == "" {
			return nil, true
		}
		return []llm.Part{{Text: one}}, true
	}
	ok = body.Elements(v, func(p []byte) bool {
		part, known := partOf(p)
		if !known {
			c.strange(at + " of type " + str(p, "type"))
			c.refer(p)
			part = llm.Part{Text: string(p)}
		}
		out = append(out, part)
		return true
	})
	return out, ok
}

func partOf(p []byte) (llm.Part, bool) {
	switch str(p, "type") {
	case "text", "input_text", "output_text":
		return llm.Part{Text: str(p, "text")}, true
	case "refusal":
		return llm.Part{Text: str(p, "refusal")}, true
	case "image_url":
		u := member(p, "image_url")
		return imageOf(str(u, "url"), str(u, "detail"))
	case "input_image":
		return imageOf(str(p, "image_url"), str(p, "detail"))
	case "image":
		return sourceOf(member(p, "source"))
	default:
		return llm.Part{}, false
	}
}

func imageOf(url, detail string) (llm.Part, bool) {
	im, err := llm.ImageFrom(url)
	if err != nil || url == "" {
		return llm.Part{}, false
	}
	im.Detail = detail
	return llm.Part{Image: im}, true
}

// sourceOf reads where an image comes from.
func sourceOf(s []byte) (llm.Part, bool) {
	switch str(s, "type") {
	case "url":
		return llm.Part{Image: &llm.Image{URL: str(s, "url")}}, true
	case "base64":
		data, err := base64.StdEncoding.DecodeString(str(s, "data"))
		return llm.Part{Image: &llm.Image{MediaType: str(s, "media_type"), Data: data}}, err == nil && len(data) > 0
	default:
		return llm.Part{}, false
	}
}

func (c *Call) schema(s []byte) bool {
	form := member(s, "schema")
	if form == nil {
		return false
	}
	c.Request.Schema = &llm.Schema{Name: str(s, "name"), Description: str(s, "description"), JSON: raw(form)}
	return true
}

// tools reads a list of tools, each with read. Where there are others than of these types,
// all of the list is kept as it stands.
func (c *Call) tools(v []byte, read func(tool []byte) (llm.Tool, bool), types ...string) bool {
	all := true
	ok := body.Elements(v, func(t []byte) bool {
		tool, known := read(t)
		if kind := str(t, "type"); !known || !slices.Contains(types, kind) {
			c.strange("tool of type " + kind)
			all = false
			return true
		}
		c.Request.Tools = append(c.Request.Tools, tool)
		return true
	})
	return ok && all
}
