package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"parley/internal/ask/transport"
	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/openai"
	"parley/internal/kit/sse"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

const (
	maxWhole   = 64 << 20
	maxRefusal = 1 << 20
)

// whole reads an answer that comes in one piece. It does not send it.
func (u *relayUpstream) whole(ctx context.Context, f *relayFlight, a *transport.Answer, status int, out *outgoing) (*llm.Response, error) {
	b, err := readBody(ctx, a)
	if err != nil {
		return nil, err
	}
	if a.IsStream() { // it was not asked for
		if b, err = unstreamed(out.api, b); err != nil {
			return nil, err
		}
		a.Header.Set("Content-Type", "application/json")
	}
	if err := a.LooksJSON(b); err != nil {
		return nil, err
	}
	resp, err := decode(f, out, b)
	if err != nil {
		e := llm.AsError(err)
		e.Uncertain = true
		return nil, e
	}
	if !out.translated() {
		f.answer(status, a.Header, b)
		return resp, nil
	}
	a.Hide().Response(resp) // it joins texts of the provider
	resp.Dropped = out.dropped
	sent := *resp
	sent.ToolCalls = slices.Clone(resp.ToolCalls)
	pack(&sent)
	meta := openai.Meta{ID: resp.ID, Model: f.Call.Request.Model, Created: f.Created, Usage: f.Call.Usage}
	h := backward(a.Header)
	out.tell(h)
	if f.Call.Stream { // asked for as a stream, answered whole
		h["Content-Type"] = []string{"text/event-stream"}
		f.Status, f.Answer, f.Held = http.StatusOK, h, openai.AppendStream(nil, out.client.NewWriter(meta), &sent)
		return resp, nil
	}
	h["Content-Type"] = []string{"application/json"}
	f.Status, f.Answer, f.Held = http.StatusOK, h, out.client.AppendResponse(nil, meta, &sent)
	return resp, nil
}

// decode reads a whole answer. A client that sends token ids continues an answer itself that the server cut off, so it
// gets that as it is.
func decode(f *relayFlight, out *outgoing, b []byte) (*llm.Response, error) {
	if !out.api.Exact() {
		return out.codec.Decode(b)
	}
	resp, err := openai.Decode(out.api.Path(), f.Call.Prompt, b)
	if err == nil && resp.Finish == llm.FinishAborted {
		resp.Finish, f.aborted = llm.FinishStop, true // dispatch would ask again
	}
	return resp, err
}

// readBody reads the body of a success and removes the key.
func readBody(ctx context.Context, a *transport.Answer) ([]byte, error) {
	b, err := readAll(ctx, a, maxWhole)
	if err != nil {
		return nil, err
	}
	if b, err = a.Hide().Body(b, a.IsStream()); err != nil {
		return nil, fault.Malformed(err.Error(), err)
	}
	return b, nil
}

// unstreamed returns the whole answer in a stream that was not asked for. Some servers answer responses only
// that way; their last event holds the whole answer. Streams of other formats do not hold it.
func unstreamed(api format.API, stream []byte) ([]byte, error) {
	for raw := range sse.Split(stream) {
		if whole := api.Whole(sse.Parse(raw)); whole != nil {
			return whole, nil
		}
	}
	e := fault.Malformed("the server answered with a stream of events, which was not asked for: ask for one with \"stream\": true", nil)
	e.Uncertain = true
	return nil, e
}

// readAll reads a body of at most limit bytes.
func readAll(ctx context.Context, a *transport.Answer, limit int64) ([]byte, error) {
	var all int64
	return readRelayAll(func(p []byte) (int, error) {
		n, err := a.Read(ctx, p)
		if all += int64(n); all > limit && err == nil {
			err = fault.Malformed("the answer is larger than 64 MB", nil)
		}
		if err == nil {
			err = a.Keep(ctx, int(all))
		}
		return n, err
	}, a.Size())
}

// readRelayAll reads a body until io.EOF. size is what the sender claims, or negative.
func readRelayAll(read func([]byte) (int, error), size int64) ([]byte, error) {
	if size < 0 {
		size = 511
	}
	b := make([]byte, 0, min(size, 1<<20)+1)
	for {
		n, err := read(b[len(b):cap(b)])
		if b = b[:len(b)+n]; err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// refused reads an answer that is not a success and returns its error.
func (u *relayUpstream) refused(ctx context.Context, f *relayFlight, a *transport.Answer, status int, translated bool) error {
	b, err := readAll(ctx, a, maxRefusal)
	if err != nil {
		b = nil // the status decides
	}
	b = a.Hide().Fault(b)
	e := fault.Classify(status, a.Header, b)
	a.Misplaced(e)
	if len(b) > 0 && !translated && status >= 400 {
		f.Status, f.Answer, f.Held = status, backward(a.Header), b
	}
	return tell(e, a)
}

// decodeEmbeddings reads the usage of embeddings. The vectors are in the bytes that the client gets.
func decodeEmbeddings(b []byte) (*llm.Response, error) {
	var v struct {
		Model string            `json:"model"`
		Data  []json.RawMessage `json:"data"`
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fault.Malformed("the answer is not in the format of embeddings", err)
	}
	if !body.IsNull(v.Error) {
		return nil, fault.Classify(0, nil, b)
	}
	if v.Data == nil {
		return nil, fault.Malformed("the answer has no embeddings", nil)
	}
	return &llm.Response{Model: v.Model, Finish: llm.FinishStop, Usage: llm.Usage{Input: v.Usage.PromptTokens}}, nil
}
