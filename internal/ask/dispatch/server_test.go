package dispatch

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/internal/ask/dispatch/tokens"
	"parley/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a provider with real rate limits, for use in a synctest bubble: token buckets that are
// refilled continuously, and refusals that say when to retry.
type server struct {
	rules

	mu           sync.Mutex
	at           time.Time
	levels       need
	asked        int
	answered     int
	refused      int
	inFlight     int
	peakInFlight int
}

// rules are what a server allows, and how.
type rules struct {
	rpm, tpm, itpm, otpm float64
	burst                time.Duration // how much of each limit it holds; 0: a minute
	latency              time.Duration
	output               int  // tokens of each answer
	silent               bool // no headers
	used                 bool // counts as Anthropic does
	perByte              float64
}

// need is how much of each limit a call takes.
type need [4]float64

const (
	requests = iota
	both
	inputs
	outputs
)

func (s *server) limits() need { return need{s.rpm, s.tpm, s.itpm, s.otpm} }

func (s *server) full(i int) float64 {
	b := s.burst
	if b == 0 {
		b = time.Minute
	}
	return s.limits()[i] * b.Minutes()
}

func (s *server) refill() {
	now := time.Now()
	for i, l := range s.limits() {
		if s.at.IsZero() {
			s.levels[i] = s.full(i)
			continue
		}
		s.levels[i] = math.Min(s.full(i), s.levels[i]+l*now.Sub(s.at).Minutes())
	}
	s.at = now
}

func (s *server) rate() *llm.Rate {
	if s.silent {
		return nil
	}
	w := func(i int) llm.Window {
		l := s.limits()[i]
		if l == 0 {
			return llm.Window{}
		}
		missing := s.full(i) - s.levels[i]
		return llm.Window{Limit: l, Remaining: math.Max(0, math.Floor(s.levels[i])), Reset: time.Duration(missing / l * float64(time.Minute)), Known: true}
	}
	return &llm.Rate{Requests: w(requests), Tokens: w(both), Input: w(inputs), Output: w(outputs)}
}

// Ask admits or refuses, waits, answers.
func (s *server) Ask(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	input := float64(tokens.SizeOf(req).Bytes) * s.perByte
	s.mu.Lock()
	s.refill()
	s.asked++
	charge := need{1, math.Max(input, float64(req.MaxTokens)), input, 0}
	short := time.Duration(0)
	for i, l := range s.limits() {
		need := charge[i]
		if i == outputs {
			need = 1 // there must be something left
		}
		if l > 0 && s.levels[i] < need {
			short = max(short, time.Duration((need-s.levels[i])/l*float64(time.Minute)))
		}
	}
	if short > 0 {
		s.refused++
		r := s.rate()
		s.mu.Unlock()
		return nil, &llm.Error{Kind: llm.KindRateLimited, Status: 429, RetryAfter: short.Round(time.Millisecond), Rate: r}
	}
	for i := range charge {
		s.levels[i] -= charge[i]
	}
	r := s.rate()
	s.inFlight++
	s.peakInFlight = max(s.peakInFlight, s.inFlight)
	s.mu.Unlock()

	t := time.NewTimer(s.latency * time.Duration(70+10*(req.Sample*5%7)) / 100) // so that answers come back out of order
	defer t.Stop()
	var err error
	select {
	case <-t.C:
	case <-ctx.Done():
		err = llm.ContextError(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if err != nil {
		return nil, err
	}
	if s.used {
		s.refill()
		s.levels[outputs] -= float64(s.output)
		r = s.rate()
	}
	s.answered++
	return &llm.Response{Text: "yes", Finish: llm.FinishStop, Rate: r, Usage: llm.Usage{Input: int(input), Output: s.output}}, nil
}
