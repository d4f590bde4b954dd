package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"parley/llm"
)

// The numbers of tokens of an image, of a document, and of a recording.
const (
	imageTokens    = 85
	documentTokens = 800
	audioTokens    = 320
)

// media adds a part that is not text to h, and returns its tokens.
func media(h hash, p *llm.Part) (hash, int) {
	switch im, f := p.Image, p.File; {
	case im != nil:
		return h.str(im.URL).str(string(im.Data)), imageTokens
	case f != nil && f.IsAudio():
		return h.str(f.URL).str(string(f.Data)), audioTokens
	case f != nil:
		return h.str(f.URL).str(string(f.Data)), documentTokens
	}
	return h, 0
}

// Case is a request with what the simulation derives from it.
type Case struct {
	Request *llm.Request
	Model   string // without the provider
	Digest  uint64 // of everything that can change the answer
	Input   int    // tokens of the prompt
	Audio   int    // those of recordings among them

	// Fault is the fault of this try, or empty. DrawFault sets it.
	Fault Fault

	asked    *llm.Request // Request as every wire format has it
	nth      uint32       // number of earlier tries
	preamble int          // tokens of tools and schema, before the messages
	top      hash         // of the tools and schema
	schema   *compiled    // of the answer, or nil
	tools    []*compiled  // of each tool's arguments
}

// Open returns the Case of req. It fails if a schema is invalid.
func (b *Brain) Open(req *llm.Request) (Case, error) {
	_, model := llm.SplitModel(req.Model)
	c := Case{Request: req, Model: model, asked: canonical(req)}
	h, err := b.openTools(&c, hash(b.cfg.Seed).str(model))
	if err == nil {
		c.top, err = b.openSchema(&c, h, req.Schema)
	}
	if err != nil {
		return c, err
	}
	c.Input = c.preamble + 1
	all := c.top
	for i := range req.Messages {
		all = c.message(all, &req.Messages[i])
	}
	if c.asked != req {
		all = b.reopen(&c, h, all)
	}
	c.Digest = params(all, c.asked).end()
	return c, nil
}

// reopen returns the digest of the canonical request, or all if the schema in its prompt is invalid: then that is text.
func (b *Brain) reopen(c *Case, top, all hash) hash {
	other := *c // counts its own tokens
	h, err := b.openSchema(&other, top, c.asked.Schema)
	if err != nil {
		c.asked = c.Request
		return all
	}
	c.schema = other.schema
	for i := range c.asked.Messages {
		h = other.message(h, &c.asked.Messages[i])
	}
	return h
}

// openTools compiles the schemas of the tools, and adds them to h.
func (b *Brain) openTools(c *Case, h hash) (hash, error) {
	for i := range c.Request.Tools {
		t := &c.Request.Tools[i]
		form := t.Parameters
		if s := string(form); s == `{"type":"object","properties":{}}` || s == `{"type":"object"}` {
			form = nil // how formats that want a schema write none
		}
		s, err := b.schemas.compile(form)
		if err != nil {
			return h, fmt.Errorf("sim: tool %s: %w", t.Name, err)
		}
		c.tools = append(c.tools, s)
		c.preamble += 8 + Count(t.Name) + Count(t.Description) + s.tokens
		h = h.str(t.Name).str(t.Description).mix(s.digest)
	}
	return h, nil
}

// openSchema compiles the schema of the answer, if there is one, and adds it to h.
func (b *Brain) openSchema(c *Case, h hash, schema *llm.Schema) (hash, error) {
	if schema == nil {
		return h, nil
	}
	s, err := b.schemas.compile(schema.JSON)
	if err != nil {
		return h, fmt.Errorf("sim: schema %s: %w", schema.Name, err)
	}
	c.schema = s
	c.preamble += 8 + s.tokens
	return h.mix(s.digest), nil
}

// message adds m to h and counts its tokens, including one for the role and one for the end. It
// ignores the IDs of tool calls, which differ between formats.
func (c *Case) message(h hash, m *llm.Message) hash {
	h = h.str(string(m.Role)).num(len(m.Parts))
	c.Input += 2
	for i := range m.Parts {
		p := &m.Parts[i]
		h = h.str(p.Text)
		c.Input += Count(p.Text)
		var n int
		h, n = media(h, p)
		c.Input += n
		if n == audioTokens {
			c.Audio += n
		}
	}
	for _, t := range m.ToolCalls {
		h = h.str(t.Name).str(t.Arguments)
		c.Input += Count(t.Name) + Count(t.Arguments)
	}
	return h
}

func params(h hash, req *llm.Request) hash {
	h = h.num(len(req.Messages)).str(req.ToolChoice).str(string(req.Effort)).num(req.Sample)
	h = h.float(req.Temperature).float(req.TopP).float(req.FrequencyPenalty).float(req.PresencePenalty)
	if req.OneTool {
		h = h.mix(1)
	}
	if req.TopK != nil {
		h = h.mix(2).num(*req.TopK)
	}
	if req.Seed != nil {
		h = h.mix(3).num(int(*req.Seed))
	}
	return h
}

// rand returns a generator for one purpose.
func (c *Case) rand(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(c.Digest, purpose)) }

// DrawFault draws the fault of this try. Call it once for each try that the limits admit, since it
// counts tries.
func (b *Brain) DrawFault(c *Case) {
	if len(b.live) == 0 && b.cfg.Latency.kind == fixed && b.cfg.FirstToken.kind == fixed {
		return
	}
	c.nth = b.seen.next(c.Digest)
	c.Fault = draw(b.live, c.draw(1))
}

// draw returns a random number for the case, the try and a purpose.
func (c *Case) draw(purpose int) uint64 {
	return hash(c.Digest).num(int(c.nth)).num(purpose).end()
}

// Pace returns when an answer with so many tokens begins and when it ends.
func (b *Brain) Pace(c *Case, tokens int) (first, total time.Duration) {
	if b.cfg.Latency.IsZero() && b.cfg.FirstToken.IsZero() && b.cfg.TokensPerSecond <= 0 {
		return 0, 0
	}
	total = b.cfg.Latency.Draw(c.draw(2))
	switch {
	case !b.cfg.FirstToken.IsZero():
		first = b.cfg.FirstToken.Draw(c.draw(3))
	case b.cfg.TokensPerSecond > 0:
		first = total
	default:
		first = total / 3
	}
	if b.cfg.TokensPerSecond > 0 {
		total = first + time.Duration(float64(tokens)/b.cfg.TokensPerSecond*float64(time.Second))
	}
	if c.Fault == faultSlow {
		first, total = 10*first, 10*total
	}
	return first, max(first, total)
}

// LineFault draws the fault of a request in a batch, each time it is sent.
func (b *Brain) LineFault(c *Case) Fault {
	return b.again("line", c.Digest, lineFaults())
}

// BatchFault draws the fault of a batch with some content, each time it is created.
func (b *Brain) BatchFault(content []byte) Fault {
	return b.again("batch", hash(b.cfg.Seed).str(string(content)).end(), batchFaults())
}

func (b *Brain) again(what string, key uint64, names []Fault) Fault {
	chances := b.cfg.Faults.chances(names)
	if len(chances) == 0 {
		return ""
	}
	h := hash(key).str(what)
	return draw(chances, h.num(int(b.seen.next(h.end()))).end())
}
