// Package tokens guesses how many tokens a request takes before it is sent, and bounds them.
//
// It is not for prices: package price knows what tokens cost.
package tokens

import (
	"math"
	"sync"

	"parley/llm"
)

// Estimator guesses the tokens of calls and learns from every answer: tokens per byte of input,
// and tokens of output, by model. It may be used from several goroutines.
type Estimator struct {
	mu     sync.Mutex
	models map[string]*guess
}

// guess is what answers have shown. Before the first, it is what most models do.
type guess struct {
	perByte float64
	output  float64
	seen    float64 // answers that it was learned from
	open    int     // calls without an answer yet
}

// known returns a figure that answers have shown. While they are few, it is partly what it was before them.
func (g *guess) known(shown, before float64) float64 {
	return before + math.Min(1, g.seen*guessWeight)*(shown-before)
}

// length returns how long answers are. Short ones come first, so those that are still open count as what was guessed before them, if that
// is more.
func (g *guess) length() float64 {
	shown := g.known(g.output, guessOutput)
	if open := 0.4 * float64(g.open); shown < guessOutput && open > 0 {
		return (g.seen*shown + open*guessOutput) / (g.seen + open)
	}
	return shown
}

const (
	guessPerByte = 0.27 // tokens per byte before anything was seen
	guessOutput  = 300  // tokens of output before anything was seen
	guessWeight  = 0.05 // of the newest answer, when there were many
	perMessage   = 4    // tokens of framing
	perImage     = 1200 // tokens of a picture, about

	maxModels   = 1000 // that are guessed separately; made-up names must not use up the memory
	otherModels = ""
)

// NewEstimator returns an Estimator that has seen nothing.
func NewEstimator() *Estimator { return &Estimator{models: map[string]*guess{}} }

func (e *Estimator) forModel(model string) *guess {
	g := e.models[model]
	if g == nil && len(e.models) >= maxModels {
		model = otherModels
		g = e.models[model]
	}
	if g == nil {
		g = &guess{perByte: guessPerByte, output: guessOutput}
		e.models[model] = g
	}
	return g
}

// Guess returns the likely input and output tokens of req, whose size is s.
func (e *Estimator) Guess(req *llm.Request, s Size) (input, output float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.forModel(req.Model)
	input = float64(s.Bytes)*g.known(g.perByte, guessPerByte) + float64(s.messages*perMessage+s.images*perImage+s.pages*perPage+s.seconds*perSecond)
	output = g.length()
	if req.MaxTokens > 0 {
		output = math.Min(output, float64(req.MaxTokens))
	}
	return input, output
}

// Learn takes the usage of an answered call into account.
func (e *Estimator) Learn(req *llm.Request, s Size, u llm.Usage) {
	if u.Input <= 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.forModel(req.Model)
	weight := math.Max(guessWeight, 1/(g.seen+1)) // the mean of the first answers, then of the newest
	if text := float64(u.Input - s.messages*perMessage); !s.media() && s.Bytes > 0 && text > 0 {
		g.perByte += weight * (text/float64(s.Bytes) - g.perByte)
	}
	g.output += weight * (float64(u.Output) - g.output)
	g.seen++
}

// Open counts a call that is sent.
func (e *Estimator) Open(model string) { e.count(model, 1) }

// Close counts a call that has ended.
func (e *Estimator) Close(model string) { e.count(model, -1) }

func (e *Estimator) count(model string, by int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forModel(model).open += by
}

// Size is how large a request is on the wire.
type Size struct {
	Bytes int
	// Unbounded means that there are files whose length is not known.
	Unbounded bool

	messages, images, pages, seconds int
	files                            int // the most tokens of documents and recordings
}

// media reports whether there is more than text.
func (s Size) media() bool { return s.images+s.pages+s.seconds > 0 || s.Unbounded }

// SizeOf returns the size of req.
func SizeOf(req *llm.Request) Size {
	s := Size{messages: len(req.Messages)}
	for i := range req.Messages {
		m := &req.Messages[i]
		for _, p := range m.Parts {
			s.Bytes += len(p.Text)
			if p.Image != nil {
				s.images++
			}
			if p.File != nil {
				s.addFile(p.File)
			}
		}
		for _, t := range m.Thoughts {
			s.Bytes += len(t.Text) + len(t.Opaque) + len(t.Signature)
		}
		for _, c := range m.ToolCalls {
			s.Bytes += len(c.Name) + len(c.Arguments) + len(c.ID)
		}
	}
	for _, t := range req.Tools {
		s.Bytes += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	if req.Schema != nil {
		s.Bytes += len(req.Schema.JSON) + len(req.Schema.Name) + len(req.Schema.Description)
	}
	if req.Begun != nil {
		s.Bytes += len(req.Begun.TokenIDs) // a token has at least a byte
	}
	for _, x := range req.Extra {
		s.Bytes += len(x)
	}
	return s
}

const (
	maxPerMessage = 16    // tokens of framing
	maxPerImage   = 8_000 // tokens of a picture
	maxPerCall    = 512   // tokens that providers add unasked, such as a tool preamble
)

// Bound returns more input tokens than any tokenizer makes of a request: none makes more than one
// token of a byte. It does not hold for what is Unbounded. A context above 0 is what a model reads at most: files do not count
// beyond it.
func (s Size) Bound(context int) int {
	n := s.Bytes + s.messages*maxPerMessage + s.images*maxPerImage + maxPerCall
	all := llm.AddTokens(n, s.files)
	if context > 0 {
		all = min(all, max(n, context))
	}
	return all
}

// HasFiles reports whether there are documents or recordings. How many tokens a model makes of them is less certain than
// for text.
func (s Size) HasFiles() bool { return s.pages+s.seconds > 0 || s.Unbounded }
