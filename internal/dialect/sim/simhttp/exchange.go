package simhttp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"parley/internal/dialect/sim"
	"parley/internal/dialect/sim/quota"
	"parley/internal/dialect/sim/simhttp/check"
	"parley/internal/wire/sse"
	"parley/llm"
)

// reply is an answer ready to be sent: all that is kept while it waits for its time.
type reply struct {
	format *format
	body   []byte
	marks  []int // where the events of a stream end; nil when it is none
	fault  sim.Fault
	flex   bool // asked for at the price of spare capacity

	start        time.Time
	first, total time.Duration

	reading sim.Reading
	cost    quota.Cost
	usage   llm.Usage
}

// answer is the endpoint of a format.
func (s *Server) answer(f *format) endpoint {
	return func(w http.ResponseWriter, r *http.Request) *check.Error {
		start := time.Now()
		account := s.accounts[f.style]
		refused, gone := account.gate.Enter(r.Context())
		switch {
		case gone != nil:
			return nil
		case refused != nil:
			return tooMany(f.style, refused)
		}
		defer account.gate.Leave()
		rep, err := s.prepare(w, r, f, start)
		s.rateHeaders(w.Header(), f.style, time.Now())
		if err != nil {
			return err
		}
		return s.play(w, r, &rep)
	}
}

// prepare reads the request and makes up its answer. Nothing of the request is
// needed afterwards, so that ten thousand waiting answers are no more than that.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, f *format, start time.Time) (reply, *check.Error) {
	rep := reply{format: f, start: start}
	ask, err := s.read(w, r, f)
	if err != nil {
		return rep, err
	}
	c, bad := s.brain.Open(ask.Request)
	if bad != nil {
		return rep, check.Invalid(schemaParam(f), "Invalid schema: %s", bad)
	}
	rep.cost = quota.Cost{Input: c.Input, Max: ask.Request.MaxTokens}
	if refused := s.accounts[f.style].quota.Admit(start, rep.cost); refused != nil {
		return rep, tooMany(f.style, refused)
	}
	s.brain.Fate(&c)
	rep.fault, rep.flex = c.Fault, ask.Request.Tier == "flex"
	s.stats.fault(c.Fault)
	rep.reading = s.brain.ReadCache(&c, f.style, ask.Breaks, start)
	x := s.exchange(ask, &c, start)
	x.Usage = c.Usage(x.Answer, rep.reading)
	rep.usage = x.Usage
	rep.first, rep.total = s.brain.Pace(&c, x.Answer.Output)
	if ask.Stream {
		rep.body = f.stream(nil, x)
		rep.marks = sse.Marks(rep.body)
	} else {
		rep.body = f.whole(make([]byte, 0, 1024+len(x.Answer.Text)), x)
	}
	return rep, nil
}

func schemaParam(f *format) string {
	if f.style == quota.OpenAI {
		return "response_format"
	}
	return ""
}

// exchange makes up the answer to a case.
func (s *Server) exchange(ask *check.Ask, c *sim.Case, now time.Time) *check.Exchange {
	var a sim.Answer
	if ask.NoOutput {
		a.Finish = llm.FinishLength
	} else {
		a = s.brain.Answer(c)
		s.stats.fault(a.Fault)
	}
	id := strconv.FormatUint(c.Digest, 36) + strconv.FormatUint(s.ids.Add(1), 36)
	return &check.Exchange{Ask: ask, Case: c, Answer: &a, ID: id, Created: now.Unix(), Chunk: s.cfg.ChunkTokens, WeightVersion: s.weightVersion()}
}

// keepBuffer is the largest buffer worth keeping.
const keepBuffer = 256 << 10

// read reads and decodes the body.
func (s *Server) read(w http.ResponseWriter, r *http.Request, f *format) (*check.Ask, *check.Error) {
	buf, ok := s.buffers.Get().(*bytes.Buffer)
	if !ok {
		buf = &bytes.Buffer{}
	}
	defer func() {
		if buf.Cap() <= keepBuffer {
			buf.Reset()
			s.buffers.Put(buf)
		}
	}()
	if err := s.body(w, r, buf, s.cfg.MaxBody, f.style); err != nil {
		return nil, err
	}
	// Everything decoded is a copy: RawMessage copies, strings copy. So buf can be used again.
	ask, err := f.decode(buf.Bytes(), s.cfg.Lax)
	if err != nil && s.cfg.BadJSON500 && !jsonObject(buf.Bytes()) {
		return nil, serverError(f.style)
	}
	return ask, err
}

// body reads the request's body into buf, up to limit.
func (s *Server) body(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, limit int64, style quota.Style) *check.Error {
	if n := r.ContentLength; n > 0 && n <= limit {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large) && style == quota.Anthropic:
		return &check.Error{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "Request exceeds the maximum size"}
	case errors.As(err, &large):
		return &check.Error{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: "Request too large."}
	default:
		return check.Invalid("", "The request body could not be read.")
	}
}

// play sends a reply in its time, or does the fault that befell it.
func (s *Server) play(w http.ResponseWriter, r *http.Request, rep *reply) *check.Error {
	ctx := r.Context()
	if !s.wait(ctx, rep.first) {
		return nil
	}
	if done, err := s.failEarly(w, r, rep); done {
		return err
	}
	s.brain.Keep(rep.reading, rep.start.Add(rep.first))
	var whole bool
	if rep.marks != nil {
		whole = s.playStream(w, r, rep)
	} else {
		if !s.wait(ctx, rep.total-rep.first) {
			return nil
		}
		if rep.fault == sim.FaultStreamErr {
			return serverError(rep.format.style)
		}
		whole = s.playWhole(w, r, rep)
	}
	s.accounts[rep.format.style].quota.Settle(time.Now(), rep.cost, rep.usage)
	if whole {
		s.stats.ok.Add(1)
		s.stats.tokens(rep.usage)
	}
	return nil
}

// playWhole sends an answer in one piece, and says whether it was sent as it should be.
func (s *Server) playWhole(w http.ResponseWriter, r *http.Request, rep *reply) bool {
	body, media := rep.body, "application/json"
	if rep.format.style == quota.OpenAI {
		w.Header()["Openai-Processing-Ms"] = []string{strconv.FormatInt(time.Since(rep.start).Milliseconds(), 10)}
	}
	switch rep.fault {
	case sim.FaultCut:
		w.Header().Set("Content-Type", media)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		reset(w, r)
		return false
	case sim.FaultTruncated, sim.FaultNoDone:
		writeBody(w, http.StatusOK, media, body[:len(body)/2])
		return false
	case sim.FaultType:
		media = "text/plain"
	case sim.FaultClose:
		return closeAfter(w, r, media, body)
	}
	writeBody(w, http.StatusOK, media, body)
	return true
}

// wait returns after d, or with false when the client goes away before.
func (s *Server) wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func writeBody(w http.ResponseWriter, status int, media string, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{media}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that went away needs no answer
}

func jsonObject(b []byte) bool {
	var v map[string]any
	return check.Decode(b, &v, true) == nil
}
