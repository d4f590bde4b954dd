package dialect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"parley/internal/ask/batch"
	"parley/internal/ask/credential"
	"parley/internal/ask/provider"
	"parley/internal/ask/transport"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// OpenBatches returns the batch API of a provider, which takes its keys from a source, or from the environment if that is nil. It opens no
// connection. The result is also an io.Closer, which closes idle connections.
//
// There are three kinds: OpenAI's and Azure's, which take a file of requests; Gemini's, which takes a file too; and Anthropic's,
// which takes one long request. A draft is written while it is sent, and
// results are read as they arrive, so that neither is whole in memory. A creation is sent once, and its error says whether
// the batch may exist. A result that cannot be read does not affect the others.
func OpenBatches(p provider.Provider, keys *credential.Source) (batch.API, error) {
	codec, ok := Codec(p.Dialect)
	api := p.BatchAPI()
	if !ok || api == "" {
		return nil, fmt.Errorf("provider %s: the dialect %q has no batch API", p.Name, p.Dialect)
	}
	p.HTTP2 = false // few exchanges, some of them long
	c, err := transport.New(p, codec.Config, keys)
	if err != nil {
		return nil, err
	}
	b := batchConn{p: p, c: c, codec: codec, caps: &sync.Map{}}
	switch api {
	case "anthropic":
		return &messageAPI{b}, nil
	case "gemini":
		return newGeminiAPI(b)
	}
	return &fileAPI{batchConn: b, azure: api == "azure", endpoint: "/v1" + codec.Path}, nil
}

const (
	sendTime  = time.Hour       // for an upload, if the provider's timeout is shorter
	smallTime = 2 * time.Minute // for a small exchange

	discardTime = 5 * time.Second // for what nobody waits for
)

// batchConn is the part that all batch APIs share.
type batchConn struct {
	p     provider.Provider
	c     *transport.Client
	codec transport.Codec
	caps  *sync.Map // of provider.Capability, by model
}

// Close closes the connections that no call is using.
func (b *batchConn) Close() error { return b.c.Close() }

// Weigh implements batch.API.
func (b *batchConn) Weigh(req *llm.Request) (batch.Weight, error) {
	_, model := llm.SplitModel(req.Model)
	switch {
	case model == "":
		return batch.Weight{}, b.c.Fail(fault.BadRequest("the request names no model"), model, nil)
	case len(req.Messages) == 0:
		return batch.Weight{}, b.c.Fail(fault.BadRequest("the request has no messages"), model, nil)
	}
	body, dropped, err := b.body(nil, req)
	if err != nil {
		return batch.Weight{}, b.c.Fail(fault.BadRequest("%v", err), model, nil)
	}
	return batch.Weight{Bytes: len(body), Dropped: dropped}, nil
}

// body appends the body of req, on one line.
func (b *batchConn) body(dst []byte, req *llm.Request) ([]byte, []string, error) {
	_, model := llm.SplitModel(req.Model)
	known, ok := b.caps.Load(model)
	if !ok {
		known, _ = b.caps.LoadOrStore(model, b.p.Capability(model))
	}
	tiered := req.Tier != "" // a batch is a tier of its own
	if tiered {
		c := *req
		c.Tier, req = "", &c
	}
	from := len(dst)
	dst, dropped, err := b.codec.Append(dst, req, known.(provider.Capability), false)
	if err != nil {
		return dst, nil, err
	}
	if tiered {
		dropped = append(dropped, "tier")
	}
	// A schema that the user wrote may have several lines. Strings cannot hold line ends, so
	// every line end is white space.
	for i := from; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return dst, dropped, nil
}

// askSmall makes a small exchange and reads its JSON into v.
func (b *batchConn) askSmall(ctx context.Context, call transport.Request, v any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, smallTime)
	defer cancel()
	return b.exchange(ctx, call, v)
}

func (b *batchConn) exchange(ctx context.Context, call transport.Request, v any) (http.Header, error) {
	a, err := b.c.Do(ctx, call)
	if err != nil {
		return nil, b.c.Fail(err, "", nil)
	}
	defer a.Close()
	body, err := a.Bytes(ctx)
	if err == nil && json.Unmarshal(body, v) != nil {
		err = fault.Malformed("the answer is not of the batch API's form: "+fault.Clean(string(body[:min(len(body), 200)]), 200), nil)
	}
	if err != nil {
		return nil, b.c.Fail(err, "", a)
	}
	return a.Header, nil
}

// markUncertain marks the error of a creation that may have succeeded: a server that fails may have
// created the batch before.
func markUncertain(err error) error {
	e := *llm.AsError(err)
	e.Uncertain = e.Uncertain || e.Status >= http.StatusInternalServerError
	return &e
}

// created returns the name of a batch that was asked for. It is an error if the answer names none.
func (b *batchConn) created(id string, err error) (string, error) {
	switch {
	case err != nil:
		return "", markUncertain(err)
	case id == "":
		return "", b.c.Fail(fault.Malformed("the answer to a creation names no batch", nil), "", nil)
	}
	return id, nil
}

// noBatch returns the error of an answer without a batch.
func (b *batchConn) noBatch(id string, body json.RawMessage) error {
	what := "the provider answers without a batch"
	if len(body) > 0 {
		what = fault.Classify(0, nil, body).Message
	}
	return b.c.Fail(&llm.Error{Kind: llm.KindBadRequest, Status: http.StatusNotFound, Message: id + ": " + what}, "", nil)
}

var errStop = errors.New("enough")

// lineReader reads a line of results. decode reads the answer in it.
type lineReader func(line []byte, decode func([]byte) (*llm.Response, error)) batch.Result

// yieldLines yields what read makes of each line of a body. It returns false if nothing may follow.
func (b *batchConn) yieldLines(ctx context.Context, call transport.Request, read lineReader, yield func(batch.Result, error) bool) bool {
	call.Method = http.MethodGet
	a, err := b.c.Do(ctx, call)
	if err != nil {
		yield(batch.Result{}, b.c.Fail(err, "", nil))
		return false
	}
	defer a.Close()
	err = a.Lines(ctx, func(line []byte) error {
		if line = bytes.TrimSpace(line); len(line) > 0 && !yield(b.result(line, read), nil) {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		yield(batch.Result{}, b.c.Fail(err, "", a))
	}
	return err == nil
}

// answerResult returns the result with an answer.
func answerResult(id string, body []byte, requestID string, decode func([]byte) (*llm.Response, error)) batch.Result {
	requestID = fault.Clean(requestID, 200)
	resp, err := decode(body)
	if err != nil {
		e := *llm.AsError(err)
		e.RequestID = cmp.Or(e.RequestID, requestID)
		return batch.Result{CustomID: id, Err: &e}
	}
	resp.RequestID, resp.Tier = requestID, "batch"
	return batch.Result{CustomID: id, Response: resp}
}

// result reads a line, adds the provider, and removes the key from an error.
func (b *batchConn) result(line []byte, read lineReader) batch.Result {
	r := read(line, b.codec.Decode)
	if r.Response != nil {
		r.Response.Provider = b.p.Name
	}
	if r.Err != nil {
		r.Err = llm.AsError(b.c.Fail(r.Err, "", nil))
	}
	return r
}

// lineFault reads the error of a line that has no status, and adds the one that a live call would have: without it, a
// bad request is our own and stops the run.
func lineFault(body json.RawMessage) *llm.Error {
	e := fault.Classify(0, nil, body)
	if e.Kind == llm.KindBadRequest {
		e.Status = http.StatusBadRequest
		if e.Code == "not_found_error" {
			e.Status = http.StatusNotFound
		}
	}
	return e
}

// skew is the tolerance for the creation time of a batch, after the clocks are compared.
const skew = 5 * time.Minute

// earliestCreation returns the earliest creation time of a batch that was requested at began, by the clock of
// the server that sent h.
func earliestCreation(began time.Time, h http.Header) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		began = began.Add(time.Until(t))
	}
	return began.Add(-skew)
}

// maxBatchPages bounds how far back a search goes.
const maxBatchPages = 500

// draftStream writes a draft while it is read: a head, the lines, and a tail.
type draftStream struct {
	head, tail string
	between    string // lines
	key        string
	lines      []batch.Request
	write      func(dst []byte, l *batch.Request) ([]byte, error) // appends a line
	extra      int                                                // bytes of a line without its ID and body

	next  int // line; len(lines): the tail; beyond: the end
	begun bool
	buf   []byte // written and not read
	at    int
}

// size returns the number of bytes in all.
func (s *draftStream) size() int64 {
	n := int64(len(s.head) + len(s.tail) + len(s.between)*max(0, len(s.lines)-1))
	for i := range s.lines {
		n += int64(len(batch.CustomID(s.key, s.lines[i].ID)) + s.lines[i].Bytes + s.extra)
	}
	return n
}

// request returns the request that sends the stream.
func (s *draftStream) request(path string, header http.Header) transport.Request {
	open := func() (io.ReadCloser, error) {
		c := *s
		return io.NopCloser(&c), nil
	}
	return transport.Request{Path: path, Header: header, Open: open, Size: s.size(), Timeout: sendTime}
}

// Read implements io.Reader.
func (s *draftStream) Read(p []byte) (int, error) {
	for s.at == len(s.buf) {
		if s.begun && s.next > len(s.lines) {
			return 0, io.EOF
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.buf[s.at:])
	s.at += n
	return n, nil
}

func (s *draftStream) fill() error {
	s.buf, s.at = s.buf[:0], 0
	if !s.begun {
		s.begun = true
		s.buf = append(s.buf, s.head...)
	}
	// Several lines at once: a write to a connection costs more than a line.
	for ; s.next < len(s.lines) && len(s.buf) < 32<<10; s.next++ {
		if s.next > 0 {
			s.buf = append(s.buf, s.between...)
		}
		var err error
		if s.buf, err = s.write(s.buf, &s.lines[s.next]); err != nil {
			return err
		}
	}
	if s.next == len(s.lines) && len(s.buf) < 32<<10 {
		s.next++
		s.buf = append(s.buf, s.tail...)
	}
	return nil
}
