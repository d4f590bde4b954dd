// Package request is the part of writing and reading requests that the formats share.
//
// It promises that a Writer reports what it leaves out because the model refuses it, and that a
// Reader loses nothing: it keeps what it cannot represent. Each format has its own package for
// whole requests. It decodes without encoding/json, which would take a tenth to a half more of the CPU of a call
// (docs/decisions/dependencies.md).
package request

import (
	"cmp"
	"encoding/base64"
	"errors"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/ask/wire/body"
	"parley/llm"
)

// Writer appends a request part by part, from Begin to End. The caller sets Req and Can.
type Writer struct {
	B       []byte
	Req     *llm.Request
	Can     provider.Capability
	Dropped []string // parameters that are not sent
	Err     error

	effort string // the effort that is sent
}

// Begin begins the request after dst, with the name of its model.
func (w *Writer) Begin(dst []byte) {
	_, model := llm.SplitModel(w.Req.Model)
	w.B = body.Str(append(dst, '{'), "model", model)
}

// End returns the request. It is an error if Extra has one of the format's own members. On an error
// it returns dst unchanged.
func (w *Writer) End(dst []byte, own ...string) ([]byte, []string, error) {
	if w.Err != nil {
		return dst, nil, w.Err
	}
	b, err := body.Extra(w.B, w.Req, own...)
	if err != nil {
		return dst, nil, err
	}
	return append(b, '}'), w.Dropped, nil
}

// Drop adds a parameter to Dropped if it was requested.
func (w *Writer) Drop(asked bool, name string) {
	if asked {
		w.Dropped = append(w.Dropped, name)
	}
}

// Messages returns the conversation, without a prefilled answer if the model refuses one.
func (w *Writer) Messages() []llm.Message {
	ms := w.Req.Messages
	if n := len(ms); w.Can.NoPrefill && ms[n-1].Role == llm.RoleAssistant && len(ms[n-1].ToolCalls) == 0 && n > 1 {
		w.Drop(true, "prefill")
		return ms[:n-1]
	}
	return ms
}

// OnlySystem reports whether all messages are of the system. Formats that take these separately send them as the user's
// then, since they require a message.
func (w *Writer) OnlySystem() bool {
	for i := range w.Req.Messages {
		if w.Req.Messages[i].Role != llm.RoleSystem {
			return false
		}
	}
	return true
}

// HasContent reports whether a message has anything to send.
func HasContent(m *llm.Message) bool {
	if m.Role == llm.RoleTool || len(m.ToolCalls) > 0 {
		return true
	}
	for _, p := range m.Parts {
		if p.Text != "" || !p.IsText() {
			return true
		}
	}
	return false
}

// ToolID turns the ID of another vendor's tool call into one that strict formats accept.
func ToolID(id string) string {
	if id == "" {
		return "call"
	}
	return body.SchemaName(id)
}

// Signature returns the signature of the Thought with an ID: Gemini signs tool calls, and texts.
func Signature(m *llm.Message, id string) string {
	for i := range m.Thoughts {
		if t := &m.Thoughts[i]; t.ID == id && id != "" {
			return t.Signature
		}
	}
	return ""
}

// AppendObject appends a text that is a JSON object as it is, and any other text as the member key of an object.
func AppendObject(b []byte, text, key string) []byte {
	if raw := []byte(text); body.Valid(raw) && body.Members(raw, func(_, _ []byte) bool { return true }) {
		return append(b, raw...)
	}
	b = append(b, '{')
	if text != "" {
		b = body.Str(b, key, text)
	}
	return append(b, '}')
}

// HasTools reports whether the request has tools that the model accepts.
func (w *Writer) HasTools() bool { return len(w.Req.Tools) > 0 && !w.Can.NoTools }

// Tools appends the tools, and reports whether there are any. Each tool is written between before
// and after, with its schema under key. If explicit is set, a tool that is not strict says so.
func (w *Writer) Tools(before, key, after string, explicit bool) bool {
	if !w.HasTools() {
		w.Drop(len(w.Req.Tools) > 0, "tools")
		return false
	}
	w.B = body.Open(body.Key(w.B, "tools"), '[')
	for i := range w.Req.Tools {
		t := &w.Req.Tools[i]
		w.B = append(body.Open(w.B, '{'), before...)
		if w.B, w.Err = body.Tool(w.B, t, key); w.Err != nil {
			return false
		}
		if strict := t.Strict && body.Strict(t.Parameters); strict || explicit {
			w.B = body.Bool(w.B, "strict", strict)
		}
		w.B = append(w.B, after...)
	}
	w.B = append(w.B, ']')
	return true
}

// ToolChoice appends which tool the model must call, as OpenAI's formats do. The name of a tool is
// written between before and after.
func (w *Writer) ToolChoice(before, after string) {
	switch choice := w.Req.ToolChoice; {
	case choice == "":
	case choice == "auto" || choice == "none":
		w.B = body.Str(w.B, "tool_choice", choice)
	case w.Can.NoForce:
		w.Drop(true, "tool_choice")
	case choice == "required":
		w.B = body.Str(w.B, "tool_choice", choice)
	default:
		w.B = append(body.Key(w.B, "tool_choice"), before...)
		w.B = append(body.Str(w.B, "name", choice), after...)
	}
	switch {
	case !w.Req.OneTool:
	case w.Can.NoParallel:
		w.Drop(true, "one_tool")
	default:
		w.B = body.Bool(w.B, "parallel_tool_calls", false)
	}
}

// Schema appends the schema of the answer as OpenAI's formats do, between before and after.
func (w *Writer) Schema(key, before, after string) {
	s := w.Req.Schema
	if s == nil || !w.wantsSchema() {
		return
	}
	w.B = append(body.Key(w.B, key), before...)
	w.B = body.Str(w.B, "name", body.SchemaName(s.Name))
	if s.Description != "" {
		w.B = body.Str(w.B, "description", s.Description)
	}
	w.B = body.Bool(body.Raw(w.B, "schema", s.JSON), "strict", body.Strict(s.JSON))
	w.B = append(w.B, after...)
}

func (w *Writer) wantsSchema() bool {
	switch {
	case w.Can.NoSchema:
		w.Drop(true, "schema")
	case !body.Valid(w.Req.Schema.JSON):
		w.Err = ErrSchema
	default:
		return true
	}
	return false
}

// ErrSchema is the error of a schema that is not JSON.
var ErrSchema = errors.New("the schema is not JSON")

// Effort returns the model's name for an effort, and records that it is sent. It returns false for
// an effort that the model does not have.
func (w *Writer) Effort(e llm.Effort) (string, bool) {
	if e == "" {
		return "", false
	}
	name, ok := w.Can.Effort(e)
	if !ok {
		w.Drop(true, "effort")
		return "", false
	}
	w.effort = name
	return name, true
}

// NoSampling reports whether the model refuses sampling parameters at the effort that is sent.
func (w *Writer) NoSampling() bool {
	return w.Can.NoSampling && !(w.Can.SamplingAtEffortNone && w.effort == string(llm.EffortNone))
}

// NoLogprobs reports whether the model refuses to return log probabilities.
func (w *Writer) NoLogprobs() bool {
	return w.Can.NoLogprobs && (w.NoSampling() || !w.Can.SamplingAtEffortNone)
}

// Float appends a number if it is set, or drops it if off.
func (w *Writer) Float(name string, v *float64, off bool) {
	if off {
		w.Drop(v != nil, name)
	} else if v != nil {
		w.B = body.Float(w.B, name, *v)
	}
}

// Int appends an integer if it is set, or drops it if off.
func (w *Writer) Int(name string, v *int, off bool) {
	if off {
		w.Drop(v != nil, name)
	} else if v != nil {
		w.B = body.Int(w.B, name, int64(*v))
	}
}

// Account appends the service tier, and the key of OpenAI's prompt cache.
func (w *Writer) Account() {
	w.Tier()
	if w.Req.Session != "" && w.Can.CacheKey {
		w.B = body.Str(w.B, "prompt_cache_key", w.Req.Session)
	}
}

// Tier appends the service tier.
func (w *Writer) Tier() {
	if w.Req.Tier != "" {
		w.B = body.Str(w.B, "service_tier", w.Req.Tier)
	}
}

// Stop appends the stop sequences under key.
func (w *Writer) Stop(key string) {
	if len(w.Req.Stop) > 0 && !w.Can.NoStop {
		w.B = body.Strings(w.B, key, w.Req.Stop)
	} else {
		w.Drop(len(w.Req.Stop) > 0, "stop")
	}
}

// AppendImage appends the URL of an image, without copying its content.
func AppendImage(b []byte, im *llm.Image) []byte {
	if len(im.Data) == 0 {
		return body.String(b, im.URL)
	}
	return appendData(b, im.MediaType, im.Data)
}

func appendData(b []byte, media string, data []byte) []byte {
	b = body.String(b, "data:"+media+";base64,")
	b = base64.StdEncoding.AppendEncode(b[:len(b)-1], data)
	return append(b, '"')
}

// Turns is how a format with two alternating roles writes messages.
type Turns struct {
	Key, Content string // of all turns, and of the content of one
	Assistant    string // the role of the model; the other is user
	First        string // a turn of the user, for a conversation that the model begins
}

// Turns writes the messages that have content: those of the system only with system. Consecutive messages of one role become one
// turn, and the results of tools belong to the user. each writes the content of the message i of ms.
func (w *Writer) Turns(f Turns, system bool, each func(ms []llm.Message, i int)) {
	ms := w.Messages()
	w.B = body.Open(body.Key(w.B, f.Key), '[')
	role := ""
	for i := range ms {
		m := &ms[i]
		if m.Role == llm.RoleSystem && !system || !HasContent(m) {
			continue
		}
		r := "user"
		if m.Role == llm.RoleAssistant {
			r = f.Assistant
		}
		if r != role {
			w.turn(f, role, r)
			role = r
		}
		each(ms, i)
	}
	if role != "" {
		w.B = append(w.B, ']', '}')
	}
	w.B = append(w.B, ']')
}

// turn ends a turn and begins the next. The first must be the user's.
func (w *Writer) turn(f Turns, from, to string) {
	switch {
	case from != "":
		w.B = append(w.B, ']', '}')
	case to == f.Assistant:
		w.B = append(w.B, f.First...)
	}
	w.B = body.Str(body.Open(w.B, '{'), "role", to)
	w.B = body.Open(body.Key(w.B, f.Content), '[')
}

// CheckFiles sets Err if a message has a file that the model does not take, or not there. Call it last: nothing is sent then.
func (w *Writer) CheckFiles(dialect string) {
	if why := w.Can.Misfit(dialect, w.Req); why != "" && w.Err == nil {
		w.Err = errors.New(why)
	}
}

// DocumentName returns the name of a document, for formats that require one.
func DocumentName(f *llm.File) string { return cmp.Or(f.Name, "document.pdf") }

// AppendDocument appends the content of a file as a data: URL, or its address.
func AppendDocument(b []byte, f *llm.File) []byte {
	if len(f.Data) == 0 {
		return body.String(b, f.URL)
	}
	return appendData(b, f.MediaType, f.Data)
}

// AppendBase64 appends data as a string.
func AppendBase64(b, data []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), data), '"')
}

// document decodes a document by its data: URL or address.
func document(name, address string) (llm.Part, bool) {
	if link := strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://"); link {
		return llm.Part{File: &llm.File{Name: name, URL: address, MediaType: llm.MediaPDF}}, true
	}
	data, ok := strings.CutPrefix(address, "data:"+llm.MediaPDF+";base64,")
	b, err := base64.StdEncoding.DecodeString(data)
	return llm.Part{File: &llm.File{Name: name, MediaType: llm.MediaPDF, Data: b}}, ok && err == nil && len(b) > 0
}

// audioOf decodes a recording of OpenAI's.
func audioOf(v []byte) (llm.Part, bool) {
	data, err := base64.StdEncoding.DecodeString(Str(v, "data"))
	f := &llm.File{MediaType: "audio/" + Str(v, "format"), Data: data}
	return llm.Part{File: f}, err == nil && len(data) > 0 && f.Format() != ""
}

// FileOf decodes a file of a media type, by content or by address. It returns false for types that are not files of
// messages.
func FileOf(media, url, data string) (*llm.File, bool) {
	f := &llm.File{MediaType: media, URL: url}
	if f.Format() == "" {
		return nil, false
	}
	if data == "" {
		return f, url != ""
	}
	b, err := base64.StdEncoding.DecodeString(data)
	f.URL, f.Data = "", b
	return f, err == nil && len(b) > 0
}
