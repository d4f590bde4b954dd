package gateway

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"parley/internal/ask/redact"
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
func (u *relay) whole(ctx context.Context, f *flight, a *transport.Answer, status int, out *outgoing) (*llm.Response, error) {
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
	resp, err := decodeWhole(f, out, b)
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
	f.write(out, resp, resp.ID, answerHeaders(a.Header))
	return resp, nil
}

// write writes a whole answer in the format of the client, which does not see token ids. h is the header of the answer.
func (f *flight) write(out *outgoing, resp *llm.Response, id string, h http.Header) {
	sent := *resp
	sent.ToolCalls = slices.Clone(resp.ToolCalls)
	packIDs(&sent)
	if f.Tokens { // the client did not ask for them
		sent.TokenIDs, sent.PromptTokenIDs, sent.Logprobs = nil, nil, nil
	}
	meta := out.meta
	meta.ID = id
	out.nameDropped(h)
	if f.Call.Stream { // asked for as a stream, answered whole
		h["Content-Type"] = []string{"text/event-stream"}
		f.Status, f.Answer, f.Held = http.StatusOK, h, openai.AppendStream(nil, out.client.NewWriter(meta), &sent)
		return
	}
	h["Content-Type"] = []string{"application/json"}
	f.Status, f.Answer, f.Held = http.StatusOK, h, out.client.AppendResponse(nil, meta, &sent)
}

// decodeWhole reads a whole answer. A client that sends token ids continues an answer itself that the server cut off, so it
// gets that as it is.
func decodeWhole(f *flight, out *outgoing, b []byte) (*llm.Response, error) {
	if !out.api.Exact() {
		return out.codec.Decode(b)
	}
	resp, err := openai.DecodeGenerate(out.api.Path(), f.Call.Prompt, b)
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
	return readUntilEOF(func(p []byte) (int, error) {
		n, err := a.Read(ctx, p)
		if all += int64(n); all > limit && err == nil {
			err = fault.Malformed(fmt.Sprintf("the answer is larger than %d MB", limit>>20), nil)
		}
		if err == nil {
			err = a.Keep(ctx, int(all))
		}
		return n, err
	}, a.Size())
}

// readUntilEOF reads a body until io.EOF. size is what the sender claims, or negative.
func readUntilEOF(read func([]byte) (int, error), size int64) ([]byte, error) {
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
func (u *relay) refused(ctx context.Context, f *flight, a *transport.Answer, status int, translated bool) error {
	b, err := readAll(ctx, a, maxRefusal)
	if err != nil {
		b = nil // the status decides
	}
	b = a.Hide().Fault(b)
	e := fault.Classify(status, a.Header, b)
	if a.Misplaced(e) && !translated && f.Call.API == format.Responses {
		u.noResponses.Store(true)
	}
	if len(b) > 0 && !translated && status >= 400 {
		f.Status, f.Answer, f.Held = status, answerHeaders(a.Header), b
	}
	return addHeaderInfo(e, a)
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

const (
	maxEvent  = 16 << 20 // of a stream
	maxStream = 64 << 20
)

// stream sends a stream to the client as it arrives. It holds the event that ends the answer, and what
// follows, until the call is recorded.
//
// A stream that is not translated is decoded only at its end: an open stream costs mostly its stack, and a
// decoder needs a deep one.
func (u *relay) stream(ctx context.Context, f *flight, a *transport.Answer, out *outgoing) (*llm.Response, error) {
	s, follow := newStreamer(f, a, out), u.follow
	if out.api == "" {
		follow = followEvents
	}
	resp, err := follow(ctx, s)
	if err != nil {
		return nil, transport.WithReceived(err, s.received())
	}
	return resp, nil
}

// follow sends the events of a stream until it ends.
func (u *relay) follow(ctx context.Context, s *streamer) (*llm.Response, error) {
	for !s.done {
		err := u.readSome(ctx, s)
		if e := s.events(err == io.EOF); e != nil {
			return nil, e
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if s.done {
		s.a.Drain()
	}
	return s.end()
}

// followEvents is follow for a stream that none of the gateway's endpoints has the format of: it may not even be one of server-sent
// events.
func followEvents(ctx context.Context, s *streamer) (*llm.Response, error) {
	err := s.a.Events(ctx, func(e sse.Event) (bool, error) {
		if s.read += int64(len(e.Data)); s.read > maxStream {
			return false, fault.Malformed("the stream is larger than 64 MB", nil)
		}
		s.piece = s.piece[:0]
		done, err := s.assemble.Event(e)
		if err != nil {
			failed := llm.AsError(err)
			failed.Uncertain = true
			return false, failed
		}
		if err := s.rewritten(); err != nil {
			return false, err
		}
		return done, s.send()
	})
	if err != nil {
		return nil, err
	}
	return s.end()
}

// readSome reads a part of the stream. An open stream mostly waits, so it waits with a small buffer. If the
// last read filled its buffer, there is more to read with a large one.
func (u *relay) readSome(ctx context.Context, s *streamer) error {
	into := s.first[:]
	if s.full {
		buf := u.bufs.Get().(*[]byte)
		defer u.bufs.Put(buf)
		into = *buf
	}
	n, err := s.a.Read(ctx, into)
	s.full = n == len(into)
	s.split.Add(into[:n])
	return err
}

// streamer is one stream on its way.
type streamer struct {
	f      *flight
	a      *transport.Answer
	out    *outgoing
	first  [256]byte
	full   bool // the last read filled its buffer
	split  sse.Splitter
	piece  []byte // to be sent next
	kept   []byte // not sent, but a part of the answer
	read   int64
	hide   *redact.Stream
	ended  int  // answers that are over
	finish bool // all answers are over: the rest is held
	done   bool // the last event arrived

	assemble transport.Assembler
	// Only for a stream that is translated: its events are decoded as they arrive.
	writer  openai.CompletionWriter
	written []byte         // events that are not yet in piece
	rehide  *redact.Stream // a translation joins texts of the provider
}

func newStreamer(f *flight, a *transport.Answer, out *outgoing) *streamer {
	s := &streamer{f: f, a: a, out: out, hide: a.Hide().Stream()}
	if out.translated() {
		s.assemble = out.codec.Assemble()
		if steps, ok := s.assemble.(stepper); ok {
			steps.Each(s.add)
		}
		s.rehide = a.Hide().Stream()
	}
	return s
}

// events handles every complete event and sends the result. last means that nothing follows.
func (s *streamer) events(last bool) error {
	s.piece = s.piece[:0]
	var failed error
	ended := last
	for !s.done && failed == nil {
		raw, ok := s.split.Next()
		if !ok && last && s.split.Len() > 0 {
			raw, ok, last = s.split.Rest(), true, false
			s.split = sse.Splitter{}
		}
		if !ok {
			break
		}
		s.a.Alive()
		failed = s.take(raw)
	}
	if ended && failed == nil && !s.done {
		failed = s.hide.Flush(s.event)
	}
	switch {
	case s.split.Len() > maxEvent:
		return fault.Malformed("an event of the stream is larger than 16 MB", nil)
	case failed != nil && !s.f.begun && len(s.piece) == 0:
		s.f.Held, s.f.ProviderError = nil, false // nothing was sent, so the call can be retried
		return failed
	}
	if err := s.send(); err != nil {
		return err
	}
	return failed
}

// take handles the next event, which is held back if it may be a part of a key.
func (s *streamer) take(raw []byte) error {
	if s.read += int64(len(raw)); s.read > maxStream {
		return fault.Malformed("the stream is larger than 64 MB", nil)
	}
	if err := s.hide.Add(raw, s.event); err != nil || !s.hide.Holds() {
		return err
	}
	if e := sse.Parse(raw); s.out.api.Last(e) || s.out.api.Fails(e) { // it is not continued
		return s.hide.Flush(s.event)
	}
	return nil
}

// event handles one event.
func (s *streamer) event(raw []byte) error {
	e := sse.Parse(raw)
	if e.Data == nil {
		s.pass(raw)
		return nil
	}
	if s.out.api.Fails(e) {
		return s.fails(raw, e)
	}
	s.done = s.out.api.Last(e)
	if s.out.api.Ends(e) {
		s.ended++
	}
	s.finish = s.finish || s.done || s.ended >= s.f.Call.Choices
	switch {
	case s.out.translated():
		return s.translate(e)
	case s.out.usage && format.OnlyUsage(e):
		s.unasked(raw, e)
	default:
		s.pass(raw)
	}
	return nil
}

// unasked handles the event with the usage that the client did not ask for. Other members, such as timings,
// move to the event that ends the answer, where the provider would have put them.
func (s *streamer) unasked(raw []byte, e sse.Event) {
	s.kept = append(s.kept, raw...)
	if held, ok := format.MoveMembers(s.f.Held, e); ok {
		s.f.Held = held
	}
}

// fails returns the error of an event that reports one. The provider's own words end a stream that is not
// translated.
func (s *streamer) fails(raw []byte, e sse.Event) error {
	failed := fault.Classify(0, nil, bytes.Clone(e.Data))
	failed.Uncertain = true
	if !s.out.translated() {
		s.finish, s.f.ProviderError = true, true
		s.f.Held = bytes.Clone(raw)
	}
	return failed
}

// pass adds raw to what is sent, or to what is held.
func (s *streamer) pass(raw []byte) {
	if s.finish {
		s.f.Held = append(s.f.Held, raw...)
		return
	}
	s.piece = append(s.piece, raw...)
}

func (s *streamer) translate(e sse.Event) error {
	if _, err := s.assemble.Event(e); err != nil {
		return err
	}
	return s.rewritten()
}

// stepper is an assembler that passes on each step.
type stepper interface {
	Each(func(openai.Delta))
}

// add writes a step of the answer.
func (s *streamer) add(d openai.Delta) {
	s.begin()
	if d.IsCall() {
		d.ID, d.Signature = packID(d.ID, d.Signature), ""
	}
	s.written = s.writer.Add(s.written, d)
}

// rewritten adds what was written to what is sent, and holds back what may be a part of a key.
func (s *streamer) rewritten() error {
	for raw := range sse.Split(s.written) {
		if err := s.rehide.Add(raw, s.append); err != nil {
			return err
		}
	}
	s.written = s.written[:0]
	return nil
}

func (s *streamer) append(b []byte) error {
	s.piece = append(s.piece, b...)
	return nil
}

func (s *streamer) begin() {
	if s.writer == nil {
		meta := s.out.meta
		meta.ID = answerID(s.a.Header, s.f)
		s.writer = s.out.client.NewWriter(meta)
		s.written = s.writer.Begin(s.written)
	}
}

// end assembles the answer.
func (s *streamer) end() (*llm.Response, error) {
	if !s.out.translated() {
		if err := s.gather(); err != nil {
			return nil, err
		}
	}
	resp, err := s.assemble.Response()
	if err != nil {
		return nil, err
	}
	if s.out.translated() {
		s.a.Hide().Response(resp)
		s.piece = s.piece[:0]
		s.begin()
		s.written = s.writer.End(s.written, resp)
		if err := s.rewritten(); err != nil {
			return nil, err
		}
		_ = s.rehide.Flush(s.append) // append does not fail
		s.f.Held = append(s.f.Held, s.piece...)
	}
	if !s.f.begun {
		s.open()
	}
	resp.Dropped = s.out.dropped
	return resp, nil
}

// received returns how many bytes of an incomplete answer arrived.
func (s *streamer) received() int {
	if !s.out.translated() {
		_ = s.gather() // the readable part counts
	}
	return s.assemble.Received()
}

// gather decodes the events of a stream that was not translated.
func (s *streamer) gather() error {
	s.assemble = s.out.codec.Assemble()
	for _, part := range [][]byte{s.f.Sent, s.kept, s.f.Held} {
		for raw := range sse.Split(part) {
			if e := sse.Parse(raw); e.Data != nil {
				if _, err := s.assemble.Event(e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// send sends the piece.
func (s *streamer) send() error {
	if len(s.piece) == 0 {
		return nil
	}
	if !s.f.begun {
		s.a.FirstByte = s.a.Latency()
		s.open()
	}
	if _, err := s.f.Out.Write(s.piece); err != nil {
		return &llm.Error{Kind: llm.KindCanceled, Message: "the client went away in the middle of the answer", Uncertain: true, Err: err}
	}
	s.f.Sent = append(s.f.Sent, s.piece...)
	return nil
}

// open begins the answer.
func (s *streamer) open() {
	s.f.begun = true
	s.f.Status, s.f.Type = http.StatusOK, s.a.Header.Get("Content-Type")
	if s.out.translated() {
		s.f.Type = "text/event-stream; charset=utf-8"
	}
	h := answerHeaders(s.a.Header)
	h["Content-Type"] = []string{s.f.Type}
	s.out.nameDropped(h)
	s.f.Out.Begin(s.f.Status, h)
}

// answerID returns the id of a translated answer.
func answerID(h http.Header, f *flight) string {
	if id := fault.RequestID(h); id != "" {
		return id
	}
	return "parley-" + hex.EncodeToString(f.Call.Digest[:6])
}
