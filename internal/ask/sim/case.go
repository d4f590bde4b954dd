package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"parley/internal/ask/answer"
	"parley/internal/ask/sim/jsongen"
	"parley/llm"
)

// The numbers of tokens of an image, of a document, and of a recording.
const (
	imageTokens    = 85
	documentTokens = 800
	audioTokens    = 320
)

// addMedia adds a part that is not text to h, and returns its tokens.
func addMedia(h hash, p *llm.Part) (hash, int) {
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
	c.Digest = addParams(all, c.asked).end()
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
		c.preamble += 8 + CountTokens(t.Name) + CountTokens(t.Description) + s.tokens
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
		c.Input += CountTokens(p.Text)
		var n int
		h, n = addMedia(h, p)
		c.Input += n
		if n == audioTokens {
			c.Audio += n
		}
	}
	for _, t := range m.ToolCalls {
		h = h.str(t.Name).str(t.Arguments)
		c.Input += CountTokens(t.Name) + CountTokens(t.Arguments)
	}
	return h
}

func addParams(h hash, req *llm.Request) hash {
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
	if len(b.live) == 0 && b.cfg.Latency.kind == fixedDelay {
		return
	}
	c.nth = b.seen.next(c.Digest)
	c.Fault = drawFault(b.live, c.draw(1))
}

// draw returns a random number for the case, the try and a purpose.
func (c *Case) draw(purpose int) uint64 {
	return hash(c.Digest).num(int(c.nth)).num(purpose).end()
}

// Pace returns when an answer begins and when it ends.
func (b *Brain) Pace(c *Case) (first, total time.Duration) {
	if b.cfg.Latency.IsZero() {
		return 0, 0
	}
	total = b.cfg.Latency.Draw(c.draw(2))
	return total / 3, total
}

// LineFault draws the fault of a request in a batch, each time it is sent.
func (b *Brain) LineFault(c *Case) Fault {
	return b.drawAgain("line", c.Digest, lineFaults())
}

// BatchFault draws the fault of a batch with some content, each time it is created.
func (b *Brain) BatchFault(content []byte) Fault {
	return b.drawAgain("batch", hash(b.cfg.Seed).str(string(content)).end(), batchFaults())
}

func (b *Brain) drawAgain(what string, key uint64, names []Fault) Fault {
	chances := b.cfg.Faults.chances(names)
	if len(chances) == 0 {
		return ""
	}
	h := hash(key).str(what)
	return drawFault(chances, h.num(int(b.seen.next(h.end()))).end())
}

// canonical returns req in a form that does not depend on the wire format it came in, so that the same question gets the same answer in each.
// Some formats put the texts of the system before the conversation, some join the messages of a role to one turn, and where a schema is not
// sent natively, or not all of it, the prompt holds it. The form has the same texts in the same order, with the same schema and tools. Formats
// still differ in parameters that some of them lack.
//
// It returns req itself if nothing changes, and a request with at least one message if req has one.
func canonical(req *llm.Request) *llm.Request {
	if isCanonical(req.Messages) {
		return req
	}
	c := canon{out: *req}
	c.out.Messages = make([]llm.Message, 0, len(req.Messages)+1)
	for _, system := range []bool{true, false} {
		for i := range req.Messages {
			if m := &req.Messages[i]; (m.Role == llm.RoleSystem) == system {
				c.add(m)
			}
		}
	}
	if len(c.out.Messages) == 0 {
		return req
	}
	if len(c.schema) > 0 {
		s := llm.Schema{JSON: c.schema}
		if req.Schema != nil {
			s.Name, s.Description = req.Schema.Name, req.Schema.Description
		}
		c.out.Schema = &s
	}
	return &c.out
}

// isCanonical reports whether canonical would change nothing: the system's messages come first, each message has one text,
// and none has a schema.
func isCanonical(messages []llm.Message) bool {
	begun := false
	for i := range messages {
		m := &messages[i]
		if begun && m.Role == llm.RoleSystem || len(m.Parts) > 1 || len(m.Parts) == 0 && len(m.ToolCalls) == 0 {
			return false
		}
		begun = begun || m.Role != llm.RoleSystem
		if len(m.Parts) == 0 {
			continue
		}
		if !m.Parts[0].IsText() || m.Parts[0].Text == "" {
			return false
		}
		if _, schema := answer.Instructed(m.Parts[0].Text); m.Role == llm.RoleUser && schema != nil {
			return false
		}
	}
	return true
}

// canon is a request that is being made canonical.
type canon struct {
	out    llm.Request
	schema []byte // the last in the prompt
}

// add adds a message: its parts to the message before, if that is of the same role, but a text that follows a text as a message of its
// own. A message without content is left out.
func (c *canon) add(m *llm.Message) {
	if m.Role == llm.RoleTool {
		c.out.Messages = append(c.out.Messages, *m)
		return
	}
	for _, p := range m.Parts {
		if m.Role == llm.RoleUser && p.IsText() {
			if rest, schema := answer.Instructed(p.Text); schema != nil {
				p.Text, c.schema = rest, schema
			}
		}
		if p.IsText() && p.Text == "" {
			continue
		}
		last := c.last(m.Role)
		if last == nil || p.IsText() && last.Parts[len(last.Parts)-1].IsText() {
			c.out.Messages = append(c.out.Messages, llm.Message{Role: m.Role, Parts: []llm.Part{p}})
			continue
		}
		last.Parts = append(slices.Clip(last.Parts), p)
	}
	if len(m.ToolCalls) == 0 {
		return
	}
	if last := c.last(m.Role); last != nil && len(m.Parts) > 0 {
		last.ToolCalls = m.ToolCalls
		return
	}
	c.out.Messages = append(c.out.Messages, llm.Message{Role: m.Role, ToolCalls: m.ToolCalls})
}

// last returns the last message if it is of a role and ends with a part.
func (c *canon) last(role llm.Role) *llm.Message {
	n := len(c.out.Messages)
	if n == 0 || c.out.Messages[n-1].Role != role || len(c.out.Messages[n-1].ToolCalls) > 0 {
		return nil
	}
	return &c.out.Messages[n-1]
}

// maxSchemas is the maximum number of compiled schemas that are kept.
const maxSchemas = 1024

// compiled is a compiled schema, with a digest and the token count of its text.
type compiled struct {
	schema *jsongen.Schema // nil for a tool without parameters
	digest uint64          // of the text without white space
	tokens int
}

// schemas compiles each schema once.
type schemas struct {
	mu   sync.RWMutex
	seen map[string]*compiled
}

func (s *schemas) compile(raw json.RawMessage) (*compiled, error) {
	if len(raw) == 0 {
		return &compiled{}, nil
	}
	s.mu.RLock()
	c := s.seen[string(raw)]
	s.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	schema, err := jsongen.Compile(raw)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, err
	}
	c = &compiled{schema: schema, digest: hash(0).str(b.String()).end(), tokens: CountTokens(b.String())}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= maxSchemas {
		s.seen = map[string]*compiled{}
	}
	s.seen[string(raw)] = c
	return c, nil
}

// hash is a fast 64-bit hash that is the same on every machine. It is not cryptographic.
type hash uint64

func (h hash) mix(v uint64) hash {
	hi, lo := bits.Mul64(uint64(h)^0x9e3779b97f4a7c15, v^0xd1b54a32d192ed03)
	return hash(hi ^ lo ^ bits.RotateLeft64(uint64(h), 23))
}

func (h hash) str(s string) hash {
	h = h.mix(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h = h.mix(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	var tail uint64
	for i := range len(s) {
		tail |= uint64(s[i]) << (8 * i)
	}
	return h.mix(tail)
}

func (h hash) num(n int) hash { return h.mix(uint64(n)) }

func (h hash) float(f *float64) hash {
	if f == nil {
		return h.mix(0)
	}
	return h.mix(1).mix(math.Float64bits(*f))
}

// end returns the final hash.
func (h hash) end() uint64 {
	x := uint64(h)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// counter counts how often it saw each key.
type counter struct {
	mu sync.Mutex
	n  map[uint64]uint32
}

// next returns how often it saw key before.
func (c *counter) next(key uint64) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[uint64]uint32{}
	}
	c.n[key]++
	return c.n[key] - 1
}
