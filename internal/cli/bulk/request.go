package bulk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"parley/internal/ask/answer"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/internal/cli/terminal"
	"parley/llm"
	"parley/world"
)

// RequestLine is a line of a JSONL file of requests: the JSON fields of llm.Request, and short forms for common
// questions.
type RequestLine struct {
	ID     json.RawMessage `json:"id"`     // a string or a number. Default: the line's number.
	Prompt *string         `json:"prompt"` // a single user message; replaces messages
	System *string         `json:"system"` // put before the messages
	Files  []string        `json:"files"`  // added to the last message, by content
	Schema json.RawMessage `json:"schema"` // an llm.Schema, or just its JSON Schema

	llm.Request
}

// Question is a parsed line: what to ask, and its id.
type Question struct {
	ID  json.RawMessage
	Req *llm.Request

	name string // of the input
	Line int    // line number in the input

	Unnamed bool // it names no model: that of Defaults answers
}

// Defaults are the values of the flags for requests that do not set them.
type Defaults struct {
	System  string
	Req     llm.Request
	Schemas *answer.Compiler // caches the schemas that many lines share
	Open    Opener           // reads the files that lines name
}

// parse parses line number n. On an error, the question holds only the id, if it could be read.
func (d Defaults) parse(line []byte, n int) (Question, error) {
	if !utf8.Valid(line) {
		return Question{}, errors.New("the line is not valid UTF-8")
	}
	in, decodeErr := decodeLine(line)
	id, err := parseID(in.ID, n)
	if decodeErr != nil && !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
		decodeErr = errors.New(`the line is not a JSON object: want one such as {"prompt": "…"}`)
	}
	if decodeErr != nil || err != nil {
		return Question{ID: id}, errors.Join(decodeErr, err)
	}
	req := in.Request
	if err := in.PutMessages(&req, d.System, d.Open); err != nil {
		return Question{ID: id}, err
	}
	if req.Schema, err = ParseSchema(in.Schema, d.Schemas); err != nil {
		return Question{ID: id}, err
	}
	d.apply(&req)
	if err := CheckRequest(&req); err != nil {
		return Question{ID: id}, err
	}
	return Question{ID: id, Req: &req, Unnamed: in.Model == ""}, nil
}

// decodeLine decodes a line. A line with only the most common fields is read without reflection.
func decodeLine(line []byte) (RequestLine, error) {
	var in RequestLine
	if in.scan(line) {
		return in, nil
	}
	in = RequestLine{}
	err := world.DecodeStrict(line, &in)
	return in, err
}

// scan reads the most common fields. It returns false if there are others, or an error.
func (in *RequestLine) scan(line []byte) bool {
	return body.Object(line, func(key, v []byte) bool {
		switch string(key) {
		case "id":
			in.ID = request.Raw(v)
			return true
		case "prompt":
			in.Prompt = new(string)
			return request.Text(v, in.Prompt)
		case "system":
			in.System = new(string)
			return request.Text(v, in.System)
		case "messages":
			return in.Messages == nil && json.Unmarshal(v, &in.Messages) == nil
		case "model":
			return request.Text(v, &in.Model)
		case "max_tokens":
			return request.Whole(v, &in.MaxTokens)
		case "temperature":
			return request.Number(v, &in.Temperature)
		}
		return false
	})
}

// PutMessages converts the short forms into messages, and reads their files.
func (in *RequestLine) PutMessages(req *llm.Request, system string, open Opener) error {
	switch {
	case in.Prompt != nil && len(req.Messages) > 0:
		return errors.New("prompt and messages: give one of them")
	case in.Prompt != nil:
		req.Messages = []llm.Message{llm.User(*in.Prompt)}
	case len(req.Messages) == 0:
		return errors.New("nothing is asked: give prompt or messages")
	}
	if in.System != nil {
		system = *in.System
	} else if slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return m.Role == llm.RoleSystem }) {
		system = ""
	}
	if system != "" {
		req.Messages = append([]llm.Message{llm.System(system)}, req.Messages...)
	}
	return in.attach(req, open)
}

// apply fills the fields that req leaves empty.
func (d Defaults) apply(req *llm.Request) {
	if req.Model == "" {
		req.Model = d.Req.Model
	}
	if req.Schema == nil {
		req.Schema = d.Req.Schema
	}
	if req.Effort == "" {
		req.Effort = d.Req.Effort
	}
	if req.Tier == "" {
		req.Tier = d.Req.Tier
	}
	if req.MaxTokens == 0 {
		req.MaxTokens = d.Req.MaxTokens
	}
	if req.Temperature == nil {
		req.Temperature = d.Req.Temperature
	}
	if req.Seed == nil {
		req.Seed = d.Req.Seed
	}
	req.Deadline, req.Fallbacks = d.Req.Deadline, d.Req.Fallbacks
}

// CheckRequest refuses a request that no provider can answer, before it costs anything.
func CheckRequest(req *llm.Request) error {
	if req.Model == world.Human {
		return errors.New("model human: only a run can ask a person; in a plan, give an agent `model: human`, and answer with parley sit")
	}
	if p, m := llm.SplitModel(req.Model); p == "" || m == "" {
		return fmt.Errorf("model %q: write it provider/model", req.Model)
	}
	if req.Effort != "" && !slices.Contains(llm.Efforts(), req.Effort) {
		return fmt.Errorf("unknown effort %q; want one of %v", req.Effort, llm.Efforts())
	}
	if req.MaxTokens < 0 {
		return fmt.Errorf("max_tokens %d: use a number above zero", req.MaxTokens)
	}
	if t := req.Temperature; t != nil && !(*t >= 0 && *t <= 2) { // as in a plan
		return fmt.Errorf("temperature %v: use 0 to 2", *t)
	}
	if req.Sample < 0 {
		return fmt.Errorf("sample %d: use zero or more", req.Sample)
	}
	for i, t := range req.Tools {
		if err := llm.CheckSchema(t.Parameters); err != nil {
			return fmt.Errorf("tools[%d] %q: parameters: %w", i, t.Name, err)
		}
	}
	return nil
}

// parseID returns the id for the record: a string or a number.
func parseID(raw json.RawMessage, n int) (json.RawMessage, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return fmt.Appendf(nil, "%d", n), nil
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("id: %w", err)
		}
		return terminal.Marshal(s)
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return raw, nil
	default:
		return nil, errors.New("id: use a string or a number")
	}
}

// ParseSchema parses the schema of an answer: {"name", "schema"}, or only a JSON Schema.
func ParseSchema(raw json.RawMessage, c *answer.Compiler) (*llm.Schema, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // a schema is optional
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, errors.New("schema: use a JSON Schema, which is an object")
	}
	if inner, ok := fields["schema"]; !ok || inner[0] != '{' {
		return checkSchema(&llm.Schema{Name: "answer", JSON: raw}, c)
	}
	s := &llm.Schema{}
	if err := world.DecodeStrict(raw, s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if s.Name == "" {
		s.Name = "answer"
	}
	return checkSchema(s, c)
}

// checkSchema refuses a schema that answers cannot be checked against.
func checkSchema(s *llm.Schema, c *answer.Compiler) (*llm.Schema, error) {
	if _, err := c.Compile(s.JSON); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}
