package relay

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"parley/internal/dialect/transport"
	"parley/internal/serve/gateway/format"
	"parley/internal/wire/body"
	"parley/internal/wire/completion"
	"parley/internal/wire/fault"
	"parley/internal/wire/sse"
	"parley/llm"
)

const (
	maxWhole   = 64 << 20
	maxRefusal = 1 << 20
)

// whole takes in an answer that comes in one piece. It is not sent yet.
func (u *Upstream) whole(ctx context.Context, f *Flight, a *transport.Answer, status int, out *outgoing) (*llm.Response, error) {
	b, err := readBody(ctx, a)
	if err != nil {
		return nil, err
	}
	if a.IsStream() { // nobody asked for one
		if b, err = unstreamed(out.api, b); err != nil {
			return nil, err
		}
		a.Header.Set("Content-Type", "application/json")
	}
	if err := a.LooksJSON(b); err != nil {
		return nil, err
	}
	resp, err := codecOf(out.api).Decode(b)
	if err != nil {
		e := llm.AsError(err)
		e.Uncertain = true
		return nil, e
	}
	if !out.translated() {
		f.answer(status, a.Header, b)
		return resp, nil
	}
	a.Hide().Response(resp) // it joins texts that the provider did not
	resp.Dropped = out.dropped
	meta := completion.Meta{ID: resp.ID, Model: f.Call.Request.Model, Created: f.Created, Usage: f.Call.Usage}
	h := backward(a.Header)
	out.tell(h)
	if f.Call.Stream { // asked for as a stream, and answered whole
		h["Content-Type"] = []string{"text/event-stream"}
		f.Status, f.Answer, f.Held = http.StatusOK, h, completion.AppendStream(nil, out.client.NewWriter(meta), resp)
		return resp, nil
	}
	h["Content-Type"] = []string{"application/json"}
	f.Status, f.Answer, f.Held = http.StatusOK, h, out.client.AppendResponse(nil, meta, resp)
	return resp, nil
}

// readBody reads the body of a success, and takes the key out.
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

// unstreamed returns the whole answer of a stream that was sent unasked. Servers exist that
// answer responses with nothing else; their last event has all of it. Of other formats
// the whole is not in the stream, and to make one up would not be the provider's answer.
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
	// The length is a server's word: it is a hint for small answers only.
	b := make([]byte, 0, min(max(a.Size()+1, 512), 1<<20))
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := a.Read(ctx, b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case int64(len(b)) > limit:
			return nil, fault.Malformed("the answer is larger than 64 MB", nil)
		}
	}
}

// refused takes in an answer that is not a success, so that the client can be told what
// the provider said, and makes the error of it.
func (u *Upstream) refused(ctx context.Context, f *Flight, a *transport.Answer, status int, translated bool) error {
	b, err := readAll(ctx, a, maxRefusal)
	if err != nil {
		b = nil // what could be read of it decides
	}
	b = a.Hide().Fault(b)
	e := fault.Classify(status, a.Header, b)
	a.Misplaced(e)
	if len(b) > 0 && !translated && status >= 400 {
		f.Status, f.Answer, f.Held = status, backward(a.Header), b
	}
	return tell(e, a)
}

// decodeEmbeddings reads of embeddings what is recorded: what they cost. The vectors are
// in what the client was sent.
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
		return nil, fault.Malformed("the answer is not of the embeddings form", err)
	}
	if !body.IsNull(v.Error) {
		return nil, fault.Classify(0, nil, b)
	}
	if v.Data == nil {
		return nil, fault.Malformed("the answer holds no embeddings", nil)
	}
	return &llm.Response{Model: v.Model, Finish: llm.FinishStop, Usage: llm.Usage{Input: v.Usage.PromptTokens}}, nil
}
