// Package request is what the formats have in common when they write a request, such as what is
// left out since a model refuses it, and when they read one.
//
// It promises that a Writer names what it leaves out, and that a Reader loses nothing: what it
// has no word for it keeps as it stands. It is not for whole requests: each format has a package
// for these.
package request

import (
	"encoding/base64"
	"errors"

	"parley/internal/provider"
	"parley/internal/wire/body"
	"parley/llm"
)

// Writer appends a request part by part, from Begin to End. Req and Can are set by its user.
type Writer struct {
	B       []byte
	Req     *llm.Request
	Can     provider.Capability
	Dropped []string // what was asked for and is not sent
	Err     error

	effort string // that was sent
}

// Begin begins the request after dst, with the name of its model.
func (w *Writer) Begin(dst []byte) {
	_, model := llm.SplitModel(w.Req.Model)
	w.B = body.Str(append(dst, '{'), "model", model)
}

// End returns the request. Members of its Extra that are the format's own are an error; dst is
// then returned as it was.
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

// Drop notes a parameter that was asked for and is not sent.
func (w *Writer) Drop(asked bool, name string) {
	if asked {
		w.Dropped = append(w.Dropped, name)
	}
}

// Messages returns the conversation, without the beginning of an answer that a model refuses to
// go on from.
func (w *Writer) Messages() []llm.Message {
	ms := w.Req.Messages
	if n := len(ms); w.Can.NoPrefill && ms[n-1].Role == llm.RoleAssistant && len(ms[n-1].ToolCalls) == 0 && n > 1 {
		w.Drop(true, "prefill")
		return ms[:n-1]
	}
	return ms
}

// HasTools says whether tools go out.
func (w *Writer) HasTools() bool { return len(w.Req.Tools) > 0 && !w.Can.NoTools }

// Tools appends the tools, and says whether there are any. Each is written between before and
// after, its schema under key. explicit means that a tool which is not strict says so.
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

// ToolChoice appends which tool is to be called as OpenAI's formats do: a tool's name is written
// between before and after.
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
	if w.Req.OneTool {
		w.B = body.Bool(w.B, "parallel_tool_calls", false)
	}
}

// Schema appends the form of the answer as OpenAI's formats do, between before and after.
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

// ErrSchema is the error of a schema that cannot be written.
var ErrSchema = errors.New("the schema is not JSON")

// Effort returns the model's own name for an effort, and notes that it is sent. A model that has
// none for it is asked for no effort.
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

// NoSampling says whether the model refuses temperature and the like, given the effort it was
// asked for.
func (w *Writer) NoSampling() bool {
	return w.Can.NoSampling && !(w.Can.SampleAtNone && w.effort == string(llm.EffortNone))
}

// NoLogprobs says whether the model refuses to tell log probabilities.
func (w *Writer) NoLogprobs() bool {
	return w.Can.NoLogprobs && (w.NoSampling() || !w.Can.SampleAtNone)
}

// Float appends a number that was asked for, unless it is off.
func (w *Writer) Float(name string, v *float64, off bool) {
	if off {
		w.Drop(v != nil, name)
	} else if v != nil {
		w.B = body.Float(w.B, name, *v)
	}
}

// Int appends a whole number that was asked for, unless it is off.
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

// AppendImage appends the address of an image, without a copy of its content.
func AppendImage(b []byte, im *llm.Image) []byte {
	if len(im.Data) == 0 {
		return body.String(b, im.URL)
	}
	b = body.String(b, "data:"+im.MediaType+";base64,")
	b = base64.StdEncoding.AppendEncode(b[:len(b)-1], im.Data)
	return append(b, '"')
}
