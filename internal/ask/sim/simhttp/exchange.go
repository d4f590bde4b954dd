package simhttp

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"parley/internal/ask/sim"
	"parley/internal/ask/wire/eventstream"
	"parley/internal/kit/sse"
	"parley/llm"
)

// prepared is an answer that waits until it is due. Nothing else of the request is kept.
type prepared struct {
	format *format
	body   []byte
	ends   []int // ends of the events; nil if it is not a stream
	fault  sim.Fault
	flex   bool // in OpenAI's flex tier

	start        time.Time
	first, total time.Duration

	reading sim.Reading
	cost    sim.Cost
	usage   llm.Usage
}

// answer returns the endpoint of a format.
func (s *Server) answer(f *format) Func {
	return func(w http.ResponseWriter, r *http.Request) *Error {
		start := time.Now()
		account := s.accounts[f.style]
		if refused := account.gate.Enter(); refused != nil {
			return tooMany(f.style, refused)
		}
		defer account.gate.Leave()
		rep, err := s.prepare(w, r, f, start)
		s.rateHeaders(w.Header(), f.style, time.Now())
		if err != nil {
			return err
		}
		return s.send(w, r, &rep)
	}
}

// prepare reads the request and makes up its answer. The request itself is not kept, so that ten
// thousand waiting answers take little memory.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, f *format, start time.Time) (prepared, *Error) {
	rep := prepared{format: f, start: start}
	ask, err := s.read(w, r, f)
	if err != nil {
		return rep, err
	}
	c, bad := s.brain.Open(&ask.Request)
	if bad != nil {
		return rep, invalid("", "Invalid schema: %s", bad)
	}
	rep.cost = sim.Cost{Input: c.Input, Max: ask.Request.MaxTokens}
	if refused := s.accounts[f.style].quota.Admit(start, rep.cost); refused != nil {
		return rep, tooMany(f.style, refused)
	}
	s.brain.DrawFault(&c)
	rep.fault, rep.flex = c.Fault, ask.Request.Tier == "flex"
	s.stats.fault(c.Fault)
	rep.reading = s.brain.ReadCache(&c, start)
	x := s.exchange(ask, &c, start)
	x.Usage = c.Usage(x.Answer, rep.reading)
	rep.usage = x.Usage
	rep.first, rep.total = s.brain.Pace(&c)
	if ask.Stream {
		rep.body = f.stream(nil, x)
		if rep.ends = sse.Ends(rep.body); f.style == sim.Amazon {
			rep.ends = eventstream.Ends(rep.body)
		}
	} else {
		rep.body = f.whole(make([]byte, 0, 1024+len(x.Answer.Text)), x)
	}
	return rep, nil
}

// exchange makes up the answer to a request.
func (s *Server) exchange(ask *ask, c *sim.Case, now time.Time) *exchange {
	a := s.brain.Answer(c)
	s.stats.fault(a.Fault)
	id := strconv.FormatUint(c.Digest, 36) + strconv.FormatUint(s.ids.Add(1), 36)
	return &exchange{ask: ask, Case: c, Answer: &a, ID: id, Created: now.Unix(), Chunk: s.cfg.ChunkTokens}
}

// keepBuffer is the size of the largest buffer that is used again.
const keepBuffer = 256 << 10

// read reads and checks a request.
func (s *Server) read(w http.ResponseWriter, r *http.Request, f *format) (*ask, *Error) {
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
	if err := readBody(w, r, buf, s.cfg.MaxBody, f.style); err != nil {
		return nil, err
	}
	ask, err := f.decode(buf.Bytes()) // it copies what it keeps, so that buf can be used again
	if err == nil && f.address != nil {
		err = f.address(r, ask)
	}
	return ask, err
}

// send sends an answer when it is due, or carries out its fault.
func (s *Server) send(w http.ResponseWriter, r *http.Request, rep *prepared) *Error {
	ctx := r.Context()
	if !sim.Wait(ctx, rep.first) {
		return nil
	}
	if done, err := s.failEarly(w, r, rep); done {
		return err
	}
	s.brain.Keep(rep.reading, rep.start.Add(rep.first))
	var whole bool
	if rep.ends != nil {
		whole = s.sendStream(w, r, rep)
	} else {
		if !sim.Wait(ctx, rep.total-rep.first) {
			return nil
		}
		if rep.fault == sim.FaultStreamErr {
			return serverError(rep.format.vendor())
		}
		whole = s.sendWhole(w, r, rep)
	}
	s.accounts[rep.format.style].quota.Settle(time.Now(), rep.cost, rep.usage)
	if whole {
		s.stats.ok()
		s.stats.tokens(rep.usage)
	}
	return nil
}

// sendWhole sends an answer that is not streamed, and reports whether it sent all of it.
func (s *Server) sendWhole(w http.ResponseWriter, r *http.Request, rep *prepared) bool {
	body, mediaType := rep.body, "application/json"
	if rep.format.style == sim.OpenAI {
		w.Header()["Openai-Processing-Ms"] = []string{strconv.FormatInt(time.Since(rep.start).Milliseconds(), 10)}
	}
	switch rep.fault {
	case sim.FaultCut:
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		reset(w, r)
		return false
	case sim.FaultTruncated:
		writeBody(w, http.StatusOK, mediaType, body[:len(body)/2])
		return false
	}
	writeBody(w, http.StatusOK, mediaType, body)
	return true
}
