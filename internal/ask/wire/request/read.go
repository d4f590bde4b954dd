package request

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/internal/ask/wire/body"
	"parley/internal/kit/text"
	"parley/llm"
)

// Reader reads a request member by member into an llm.Request.
type Reader struct {
	// Request is what was read. Its Model is the name that the client sent.
	Request llm.Request
	Stream  bool
	// Usage means that the stream must end with the usage.
	Usage bool
	// Choices is the number of answers that the client wants. Drafts is the number of answers that
	// the server makes and picks them from.
	Choices, Drafts int
	// Strange names the parts of Request that llm.Request cannot represent. They are kept as text,
	// and cannot be written in another format.
	Strange []string
	// Forms says how the client wrote tools that Request has as functions, by their name there.
	Forms map[string]Form
	// Hosted names the tools that only the provider could run, where a client can do without them.
	Hosted []string
	// Prompt is the tokens of the prompt, if it was sent as token ids.
	Prompt []int
	// Unread is the number of bytes in members of messages that are not read. They may count as
	// tokens.
	Unread int
	// Audio means that the messages hold sound, whose tokens have other prices.
	Audio bool
	// Unlimited means that the request allows answers of any length.
	Unlimited bool
	// Err is the reason why the request cannot be served, or nil.
	Err error
}

// Form is how a client wrote a tool that is a function in llm.Request.
type Form struct {
	Custom bool // its input is a text, not an object
	// Group and Name are the namespace of the tool and its name there. Empty: it is in none.
	Group, Name string
}

// MaxCount is the maximum number of tokens or answers in a request.
const MaxCount = math.MaxInt32

// Note adds to Strange.
func (c *Reader) Note(what string) { c.Strange = append(c.Strange, what) }

// Common reads a member that all formats share.
func (c *Reader) Common(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "model":
		return c.ReadModel(v)
	case "stream":
		if !Flag(v, &c.Stream) {
			c.refuse("stream is %s: want true or false", text.Excerpt(v, 40))
		}
		return true
	case "temperature":
		return Number(v, &q.Temperature)
	case "top_p":
		return Number(v, &q.TopP)
	case "service_tier":
		return Text(v, &q.Tier)
	default:
		return false
	}
}

// ReadModel reads the name of the model.
func (c *Reader) ReadModel(v []byte) bool {
	if !Text(v, &c.Request.Model) {
		c.refuse("model is %s: want a string", text.Excerpt(v, 40))
	}
	return true
}

// List reads the list of messages in a member. A message that cannot be read is kept as text. It refuses anything but a list: want says what
// the member may be.
func (c *Reader) List(key string, v []byte, want string, read func(i int, m []byte) bool) bool {
	i := 0
	if !body.Elements(v, func(m []byte) bool {
		if !read(i, m) {
			c.keep(fmt.Sprintf("%s[%d]", key, i), llm.RoleUser, m)
		}
		i++
		return true
	}) {
		c.refuse("%s is %s: want %s", key, text.Excerpt(v, 40), want)
	}
	return true
}

// keep keeps a message that cannot be read.
func (c *Reader) keep(at string, role llm.Role, m []byte) {
	c.Note(at)
	c.Refer(m)
	c.Request.Messages = append(c.Request.Messages, llm.Text(role, string(m)))
}

// Refer checks whether a value that is not read refers to something that the provider stores or
// fetches, or holds sound.
func (c *Reader) Refer(b []byte) {
	c.Audio = c.Audio || bytes.Contains(b, []byte(`"input_audio"`))
	for _, sign := range []string{"_id\"", "\"id\"", "url\"", "reference\"", "container", "\"file\"", `\u`} {
		c.Request.Refers = c.Request.Refers || bytes.Contains(b, []byte(sign))
	}
}

// Role decodes the role of a message, in either vendor's terms.
func Role(s string, to *llm.Role) bool {
	switch s {
	case "developer":
		s = string(llm.RoleSystem)
	case "function":
		s = string(llm.RoleTool)
	}
	*to = llm.Role(s)
	return s == "system" || s == "user" || s == "assistant" || s == "tool"
}

// Parts decodes the content of a message: a string, or a list of parts of either vendor.
func (c *Reader) Parts(v []byte, at string) (out []llm.Part, ok bool) {
	var one string
	if Text(v, &one) {
		if one == "" {
			return nil, true
		}
		return []llm.Part{{Text: one}}, true
	}
	ok = body.Elements(v, func(p []byte) bool {
		part, known := Part(p)
		if !known {
			c.Note(at + " of type " + Str(p, "type"))
			c.Refer(p)
			part = llm.Part{Text: string(p)}
		}
		out = append(out, part)
		return true
	})
	return out, ok
}

// Part decodes a part of a message of either vendor.
func Part(p []byte) (llm.Part, bool) {
	switch Str(p, "type") {
	case "text", "input_text", "output_text":
		return llm.Part{Text: Str(p, "text")}, true
	case "refusal":
		return llm.Part{Text: Str(p, "refusal")}, true
	case "image_url":
		u := Member(p, "image_url")
		return imageOf(Str(u, "url"), Str(u, "detail"))
	case "input_image":
		return imageOf(Str(p, "image_url"), Str(p, "detail"))
	case "image":
		return sourceOf(Member(p, "source"))
	case "file":
		f := Member(p, "file")
		return document(Str(f, "filename"), Str(f, "file_data"))
	case "input_file":
		return document(Str(p, "filename"), cmp.Or(Str(p, "file_data"), Str(p, "file_url")))
	case "document":
		s := Member(p, "source")
		f, ok := FileOf(cmp.Or(Str(s, "media_type"), llm.MediaPDF), Str(s, "url"), Str(s, "data"))
		if kind := Str(s, "type"); !ok || f.IsAudio() || kind != "base64" && kind != "url" || Member(p, "citations") != nil || Member(p, "context") != nil {
			return llm.Part{}, false
		}
		f.Name = Str(p, "title")
		return llm.Part{File: f}, true
	case "input_audio":
		return audioOf(Member(p, "input_audio"))
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

// sourceOf decodes the source of an image.
func sourceOf(s []byte) (llm.Part, bool) {
	switch Str(s, "type") {
	case "url":
		return llm.Part{Image: &llm.Image{URL: Str(s, "url")}}, true
	case "base64":
		data, err := base64.StdEncoding.DecodeString(Str(s, "data"))
		return llm.Part{Image: &llm.Image{MediaType: Str(s, "media_type"), Data: data}}, err == nil && len(data) > 0
	default:
		return llm.Part{}, false
	}
}

// ReadSchema reads the schema of the answer.
func (c *Reader) ReadSchema(s []byte) bool {
	form := Member(s, "schema")
	if form == nil {
		return false
	}
	c.Request.Schema = &llm.Schema{Name: Str(s, "name"), Description: Str(s, "description"), JSON: Raw(form)}
	return true
}

// ReadTools reads a list of tools, each with read. It returns false if a tool has none of these
// types, so that the caller keeps the whole list.
func (c *Reader) ReadTools(v []byte, read func(tool []byte) (llm.Tool, bool), types ...string) bool {
	all := true
	ok := body.Elements(v, func(t []byte) bool {
		tool, known := read(t)
		if kind := Str(t, "type"); !known || !slices.Contains(types, kind) {
			c.Note("tool of type " + kind)
			all = false
			return true
		}
		c.Request.Tools = append(c.Request.Tools, tool)
		return true
	})
	return ok && all
}

// OpenAI reads a member that OpenAI's two formats share.
func (c *Reader) OpenAI(key string, v []byte) bool {
	q := &c.Request
	switch key {
	case "top_logprobs":
		return Whole(v, &q.TopLogprobs)
	case "parallel_tool_calls":
		var many bool
		ok := Flag(v, &many)
		q.OneTool = ok && !many
		return ok
	default:
		return c.Common(key, v)
	}
}

// ReadToolChoice reads which tool the model must call. name returns the name in an object.
func (c *Reader) ReadToolChoice(v []byte, name func([]byte) string) bool {
	if Text(v, &c.Request.ToolChoice) {
		return true
	}
	c.Request.ToolChoice = name(v)
	return c.Request.ToolChoice != ""
}

// count reads a number of tokens or answers. Some programs write it as a float. A number that
// servers would round differently is refused.
func (c *Reader) count(key string, v []byte) (n int, ok bool) {
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case v[0] == '"' || err != nil || f != math.Trunc(f):
		c.refuse("%s is %s: want a whole number", key, text.Excerpt(v, 40))
	case math.Abs(f) > MaxCount:
		c.refuse("%s is %s: want at most %d", key, text.Excerpt(v, 40), MaxCount)
	default:
		return int(f), true
	}
	return 0, false
}

// Tokens reads a limit on the length of an answer. The largest of several limits counts, since
// servers differ in which one they follow. For some servers a limit below 1 means no limit.
func (c *Reader) Tokens(key string, v []byte) bool {
	n, ok := c.count(key, v)
	if ok && n < 1 {
		c.Unlimited = true
		return false // the provider decides
	}
	c.Request.MaxTokens = max(c.Request.MaxTokens, n)
	return true
}

// Answers reads a number of answers.
func (c *Reader) Answers(key string, v []byte, to *int) bool {
	n, ok := c.count(key, v)
	if ok && n < 1 {
		return false
	}
	*to = max(*to, n)
	return true
}

// refuse sets Err, unless it is set already.
func (c *Reader) refuse(format string, args ...any) {
	if c.Err == nil {
		c.Err = fmt.Errorf(format, args...)
	}
}
