// Package batchapi speaks to the providers' batch APIs: OpenAI's, which takes a file of lines,
// and Anthropic's, which takes one long request.
//
// It promises that a draft is written as it is sent and results are read as they come, so
// that neither is ever whole in memory; that a creation goes out once, and an error says
// whether it may have been done; and that a line that cannot be read does not end the
// others.
//
// It is not for following batches (package batcher), nor does it know how a request or an
// answer is written: each format has a package of internal/wire.
package batchapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"parley/internal/batch"
	"parley/internal/dialect"
	"parley/internal/dialect/transport"
	"parley/internal/provider"
	"parley/internal/wire/fault"
	"parley/llm"
)

// Open makes the batch API of a provider. It reads the provider's key from the environment, and
// opens no connection. The result is an io.Closer too, which closes idle connections.
func Open(p provider.Provider) (batch.API, error) {
	codec, ok := dialect.Codec(p.Dialect)
	if !ok {
		return nil, fmt.Errorf("batchapi: provider %s: the dialect %q has no batch API", p.Name, p.Dialect)
	}
	p.HTTP2 = false // few exchanges, some of them long
	c, err := transport.New(p, codec.Config)
	if err != nil {
		return nil, fmt.Errorf("batchapi: %w", err)
	}
	b := connection{p: p, c: c, codec: codec, caps: &sync.Map{}}
	if p.Dialect == "anthropic" {
		return &messageAPI{b}, nil
	}
	return &fileAPI{connection: b, endpoint: "/v1" + codec.Path}, nil
}

const (
	sendTime  = time.Hour       // an upload may take, or the timeout of the provider
	smallTime = 2 * time.Minute // a small exchange may take
)

// connection is what both APIs have in common.
type connection struct {
	p     provider.Provider
	c     *transport.Client
	codec transport.Codec
	caps  *sync.Map // of provider.Capability, by model
}

// Close closes the connections that no call is using.
func (b *connection) Close() error { return b.c.Close() }

// Weigh implements batch.Writer.
func (b *connection) Weigh(req *llm.Request) (batch.Weight, error) {
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

// body appends what asks req, on one line.
func (b *connection) body(dst []byte, req *llm.Request) ([]byte, []string, error) {
	_, model := llm.SplitModel(req.Model)
	known, ok := b.caps.Load(model)
	if !ok {
		known, _ = b.caps.LoadOrStore(model, b.p.Capability(model))
	}
	from := len(dst)
	dst, dropped, err := b.codec.Append(dst, req, known.(provider.Capability), false)
	if err != nil {
		return dst, nil, err
	}
	// A schema of the user's may stand on several lines. Within strings there are no bare
	// line ends, so those that are there mean nothing.
	for i := from; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return dst, dropped, nil
}

// ask makes a small exchange and reads its JSON into v.
func (b *connection) ask(ctx context.Context, call transport.Call, v any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, smallTime)
	defer cancel()
	return b.exchange(ctx, call, v)
}

func (b *connection) exchange(ctx context.Context, call transport.Call, v any) (http.Header, error) {
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

// unsure marks an error of a creation that may have been done all the same: a server that
// failed, or whose answer was lost, may have done it first.
func unsure(err error) error {
	e := *llm.AsError(err)
	e.Uncertain = e.Uncertain || e.Status >= http.StatusInternalServerError
	return &e
}

// gone is the error of a batch that an answer does not have.
func (b *connection) gone(id string, body json.RawMessage) error {
	what := "the provider answers without a batch"
	if len(body) > 0 {
		what = fault.Classify(0, nil, body).Message
	}
	return b.c.Fail(&llm.Error{Kind: llm.KindBadRequest, Status: http.StatusNotFound, Message: id + ": " + what}, "", nil)
}

var errStop = errors.New("enough")

// lines reads a body of lines, and hands what each comes to over until more says false.
func (b *connection) lines(ctx context.Context, path string, header http.Header, read func(line []byte) batch.Result, more func(batch.Result) bool) error {
	a, err := b.c.Do(ctx, transport.Call{Method: http.MethodGet, Path: path, Header: header})
	if err != nil {
		return b.c.Fail(err, "", nil)
	}
	defer a.Close()
	err = a.Lines(ctx, func(line []byte) error {
		if line = bytes.TrimSpace(line); len(line) > 0 && !more(read(line)) {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return b.c.Fail(err, "", a)
	}
	return err
}

// answered makes a result of an answer's body.
func (b *connection) answered(id string, body []byte, requestID string) batch.Result {
	resp, err := b.codec.Decode(body)
	if err != nil {
		return batch.Result{CustomID: id, Err: b.finish(llm.AsError(err), requestID)}
	}
	resp.Provider, resp.RequestID = b.p.Name, fault.Clean(requestID, 200)
	resp.Tier = "batch"
	return batch.Result{CustomID: id, Response: resp}
}

// finish names the provider in an error and takes the key out of it.
func (b *connection) finish(e *llm.Error, requestID string) *llm.Error {
	if e.RequestID == "" {
		e.RequestID = requestID
	}
	return llm.AsError(b.c.Fail(e, "", nil))
}

// skew is how far the moment at which a batch was intended may be off what the provider
// says of its creation, clocks set to each other.
const skew = 5 * time.Minute

// since is the earliest that a batch may have been created which was intended at began, by
// the clock of the server that sent h.
func since(began time.Time, h http.Header) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		began = began.Add(time.Until(t))
	}
	return began.Add(-skew)
}

// pageMost bounds how far back a search goes.
const pageMost = 500
