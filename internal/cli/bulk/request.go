package bulk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"parley/internal/ask/answer"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
	"parley/internal/cli/exit"
	"parley/internal/cli/terminal"
	"parley/internal/kit/files"
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
	req.Model = cmp.Or(req.Model, d.Req.Model)
	req.Schema = cmp.Or(req.Schema, d.Req.Schema)
	req.Effort = cmp.Or(req.Effort, d.Req.Effort)
	req.Tier = cmp.Or(req.Tier, d.Req.Tier)
	req.MaxTokens = cmp.Or(req.MaxTokens, d.Req.MaxTokens)
	req.Temperature = cmp.Or(req.Temperature, d.Req.Temperature)
	req.Seed = cmp.Or(req.Seed, d.Req.Seed)
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
	if req.Sample < 0 {
		return fmt.Errorf("sample %d: use zero or more", req.Sample)
	}
	return req.Check()
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
	s.Name = cmp.Or(s.Name, "answer")
	return checkSchema(s, c)
}

// checkSchema refuses a schema that answers cannot be checked against.
func checkSchema(s *llm.Schema, c *answer.Compiler) (*llm.Schema, error) {
	if _, err := c.Compile(s.JSON); err != nil {
		return nil, err
	}
	return s, nil
}

// lineError is about one line of the input. The other lines are still read.
type lineError struct {
	name string // of the input
	line int
	id   json.RawMessage // nil if the line has no readable id
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.name, e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// MaxLine is the maximum length of a line. A request may contain pictures, but no file may exhaust the memory.
const MaxLine = 64 << 20

// File is a source that reads one request per line.
type File struct {
	Name  string
	Lines *files.LineReader
	Defs  Defaults
	Close func() error

	size int64        // in bytes; 0 if not known
	read atomic.Int64 // bytes read so far, for the progress line
}

// OpenJSONL opens a file of requests, or stdin for "-".
func OpenJSONL(stdin io.Reader, path string, defs Defaults, stop <-chan struct{}) (*File, error) {
	if path == "-" {
		r := exit.NewReader(stdin, stop)
		return &File{
			Name: "stdin", Lines: files.NewLineReader(r, MaxLine), Defs: defs,
			Close: func() error { return nil },
		}, nil
	}
	f, err := files.Open(path)
	if errors.Is(err, files.ErrNotRegular) {
		return nil, exit.Usagef("%w: for requests from a pipe use --jsonl - and standard input", err)
	}
	if err != nil {
		return nil, exit.AsUsage(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, exit.AsUsage(errors.Join(err, f.Close()))
	}
	return &File{Name: path, Lines: files.NewLineReader(f, MaxLine), Defs: defs, Close: f.Close, size: info.Size()}, nil
}

// Next returns the next question of the file, or io.EOF.
func (j *File) Next() (Question, error) {
	for {
		line, err := j.Lines.Next()
		j.read.Store(j.Lines.At)
		n := j.Lines.Number
		if errors.Is(err, files.ErrLongLine) {
			return Question{}, &lineError{name: j.Name, line: n, err: fmt.Errorf("%w: at most %d MiB", files.ErrLongLine, j.Lines.Max>>20)}
		}
		if err != nil {
			return Question{}, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		q, err := j.Defs.parse(line, n)
		if err != nil {
			return Question{}, &lineError{name: j.Name, line: n, id: q.ID, err: err}
		}
		q.name, q.Line = j.Name, n
		return q, nil
	}
}

// Share returns the fraction of the input that was read, from 0 to 1, or a negative number if the size is not
// known.
func (j *File) Share() float64 {
	if j.size <= 0 {
		return -1
	}
	return float64(j.read.Load()) / float64(j.size)
}

// Opener reads a file that a request names, and makes a part of a message of it.
type Opener func(path string) (llm.Part, error)

// OpenAny returns an Opener of all files, for those that the user names.
func OpenAny(ctx context.Context) Opener {
	return func(path string) (llm.Part, error) {
		b, err := files.Read(ctx, path, llm.MaxFileBytes)
		if err != nil {
			return llm.Part{}, err
		}
		media, image := llm.MediaOf(b), http.DetectContentType(b)
		switch {
		case media == llm.MediaPDF:
			return llm.Part{File: &llm.File{Name: filepath.Base(path), MediaType: media, Data: b}}, nil
		case media != "":
			return llm.Part{File: &llm.File{MediaType: media, Data: b}}, nil
		case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, image):
			return llm.Part{Image: &llm.Image{MediaType: image, Data: b}}, nil
		}
		return llm.Part{}, fmt.Errorf("%s: its content is no PDF, no picture (png, jpeg, gif, webp) and no audio (wav, mp3)", path)
	}
}

// OpenIn returns an Opener of the files in a folder, for those that a file in it names: it may come from others.
func OpenIn(ctx context.Context, folder string) Opener {
	var in files.Folders
	err := in.Add(folder)
	open := OpenAny(ctx)
	return func(path string) (llm.Part, error) {
		if err != nil {
			return llm.Part{}, err
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		real, held := in.Hold(path)
		if !held {
			return llm.Part{}, fmt.Errorf("%s is not in the folder of the requests, %s: put it there, or give its content in messages", path, folder)
		}
		return open(real)
	}
}

// attach adds the files of a line to its last message. Together they are bounded as one file is.
func (in *RequestLine) attach(req *llm.Request, open Opener) error {
	total := 0
	for i, path := range in.Files {
		last := &req.Messages[len(req.Messages)-1]
		if last.Role != llm.RoleUser {
			return fmt.Errorf("files: the last message must be the user's, and is the %s's", last.Role)
		}
		part, err := open(path)
		if err != nil {
			return fmt.Errorf("files[%d]: %w", i, err)
		}
		if part.File != nil {
			total += len(part.File.Data)
		} else if part.Image != nil {
			total += len(part.Image.Data)
		}
		if total > llm.MaxFileBytes {
			return fmt.Errorf("files[%d]: with %s, the files of the request have more than %d bytes: split the request", i, path, llm.MaxFileBytes)
		}
		last.Parts = append(last.Parts, part)
	}
	return nil
}
