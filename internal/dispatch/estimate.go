package dispatch

import (
	"math"
	"sync"

	"parley/internal/provider"
	"parley/llm"
)

// estimator guesses the tokens of a call before it is sent, and gets better with
// every answer: tokens a byte of input, and tokens of output, per model.
type estimator struct {
	mu     sync.Mutex
	models map[string]*guess
}

type guess struct {
	perByte float64
	output  float64
}

const (
	guessPerByte = 0.27 // tokens a byte before anything was seen
	guessOutput  = 300  // tokens of output before anything was seen
	guessWeight  = 0.05 // of the newest answer
	perMessage   = 4    // tokens of framing
	perImage     = 1200 // tokens of a picture, about
)

func newEstimator() *estimator { return &estimator{models: map[string]*guess{}} }

func (e *estimator) of(model string) *guess {
	g := e.models[model]
	if g == nil {
		g = &guess{perByte: guessPerByte, output: guessOutput}
		e.models[model] = g
	}
	return g
}

// tokens returns the likely input and output tokens of req.
func (e *estimator) tokens(req *llm.Request, s size) (input, output float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.of(req.Model)
	input = float64(s.bytes)*g.perByte + float64(s.messages*perMessage+s.images*perImage)
	output = g.output
	if req.MaxTokens > 0 {
		output = math.Min(output, float64(req.MaxTokens))
	}
	return input, output
}

// learn takes in what a call really used.
func (e *estimator) learn(req *llm.Request, s size, u llm.Usage) {
	if u.Input <= 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.of(req.Model)
	if text := float64(u.Input - s.messages*perMessage); s.images == 0 && s.bytes > 0 && text > 0 {
		g.perByte += guessWeight * (text/float64(s.bytes) - g.perByte)
	}
	g.output += guessWeight * (float64(u.Output) - g.output)
}

// size is what of a request weighs on the wire.
type size struct{ bytes, messages, images int }

func sizeOf(req *llm.Request) size {
	s := size{messages: len(req.Messages)}
	for i := range req.Messages {
		m := &req.Messages[i]
		for _, p := range m.Parts {
			s.bytes += len(p.Text)
			if p.Image != nil {
				s.images++
			}
		}
		for _, t := range m.Thoughts {
			s.bytes += len(t.Text) + len(t.Opaque) + len(t.Signature)
		}
		for _, c := range m.ToolCalls {
			s.bytes += len(c.Name) + len(c.Arguments) + len(c.ID)
		}
	}
	for _, t := range req.Tools {
		s.bytes += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	if req.Schema != nil {
		s.bytes += len(req.Schema.JSON) + len(req.Schema.Name) + len(req.Schema.Description)
	}
	for _, x := range req.Extra {
		s.bytes += len(x)
	}
	return s
}

const (
	boundPerMessage = 16    // tokens of framing at most
	boundPerImage   = 8_000 // tokens of a picture at most
	boundPerCall    = 512   // tokens of what providers add unasked, such as a tool preamble
)

// bound returns more input tokens than any tokenizer makes of a request: none makes
// more than one token of a byte.
func (s size) bound() int {
	return s.bytes + s.messages*boundPerMessage + s.images*boundPerImage + boundPerCall
}

// need is what a call takes of each bucket.
type need [buckets]float64

// The buckets of a limiter, in order of need.
const (
	requests = iota
	tokens   // input and output together
	inputs
	outputs
	buckets
)

// needOf returns what the server will charge req by its way of counting.
func needOf(c provider.Counting, maxTokens int, input, output float64) need {
	if c == provider.CountUsed {
		return need{requests: 1, tokens: input + output, inputs: input, outputs: output}
	}
	all := math.Max(float64(maxTokens), input)
	return need{requests: 1, tokens: all, inputs: input, outputs: output}
}

// realOf returns what a call with usage u was charged in the end, given what was
// reserved for it.
func realOf(c provider.Counting, reserved need, u llm.Usage) need {
	real := need{requests: 1, tokens: reserved[tokens], inputs: float64(u.Input), outputs: float64(u.Output)}
	if c == provider.CountUsed {
		real[inputs] = float64(u.Input - u.Cached)
		real[tokens] = real[inputs] + real[outputs]
	}
	return real
}
