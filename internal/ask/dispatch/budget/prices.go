package budget

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"parley/internal/ask/dispatch/tokens"
	"parley/internal/ask/price"
	"parley/llm"
)

// Prices is a price table that remembers the models it has looked up, and how they behave. It may
// be used from several goroutines.
type Prices struct {
	table *price.Table
	keeps func(model string) bool

	mu    sync.RWMutex
	known map[string]*Model
	rest  conduct // of all models that are not remembered
}

// maxModels is how many models are remembered. A stream of made-up names must not use up the memory.
const maxModels = 1000

// Model is what is known of a model.
type Model struct {
	Price   price.Price
	OK      bool // there is a price
	conduct *conduct
}

// NewPrices returns the prices of a table. keeps reports whether a model is known to keep the
// limits of requests before it is asked.
func NewPrices(t *price.Table, keeps func(model string) bool) *Prices {
	return &Prices{table: t, keeps: keeps, known: map[string]*Model{}}
}

// Lookup returns what is known of a model.
func (t *Prices) Lookup(name string) *Model {
	t.mu.RLock()
	m := t.known[name]
	t.mu.RUnlock()
	if m != nil {
		return m
	}
	m = &Model{conduct: &conduct{}}
	m.Price, m.OK = t.table.Find(name)
	m.conduct.keepsLimit = !m.OK || t.keeps(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.known[name]; old != nil {
		return old
	}
	if len(t.known) < maxModels {
		t.known[name] = m
	} else {
		m.conduct = &t.rest
	}
	return m
}

// Unknown returns the error for a model that has no price and needs one for a budget.
func (t *Prices) Unknown(model string) *llm.Error {
	return &llm.Error{Kind: llm.KindBadRequest, Message: fmt.Sprintf("no price is known for %s, so a budget cannot be kept: %s", t.table.Suggest(model), price.Give)}
}

// Unpriced returns the error of a request whose price is not known, because of its model or of a member.
func (t *Prices) Unpriced(req *llm.Request) error {
	if !t.Lookup(req.Model).OK {
		return t.Unknown(req.Model)
	}
	return t.unpricedError(req)
}

// unpricedError returns an error for a request that may cost more than its tokens do, unless its model
// costs nothing.
func (t *Prices) unpricedError(req *llm.Request) error {
	all := func(known func(p price.Price) bool) bool {
		for _, model := range append([]string{req.Model}, req.Fallbacks...) {
			if m := t.Lookup(model); !m.OK || !known(m.Price) {
				return false
			}
		}
		return true
	}
	member := price.Unpriced(req,
		func(tier string) bool { return all(func(p price.Price) bool { return p.Serves(tier) }) },
		!price.MayHaveAudio(req) || all(func(p price.Price) bool { return p.Audio > 0 }))
	if member == "" {
		return nil
	}
	if m := t.Lookup(req.Model); m.OK && m.Price.Worst(1, 1, false) == 0 && len(req.Fallbacks) == 0 {
		return nil
	}
	says, do := "it changes what the call costs, and the price table does not say by how much", ""
	switch strings.ToLower(member[strings.LastIndexByte(member, '.')+1:]) {
	case "cachedcontent", "cached_content":
		says, do = "the stored prompt may hold sound, and the price table does not say what that costs", "give the model a price of audio in a price file, "
	case "input_audio":
		do = "give the model a price of audio in a price file, "
	}
	return &llm.Error{
		Kind: llm.KindBadRequest, Code: "price_unknown",
		Message: fmt.Sprintf("%s: %s, so a budget cannot be kept: %sleave it out, or set no budget", member, says, do),
	}
}

// Worst returns the most that one attempt at req can cost, live or over the batch API.
func Worst(p price.Price, req *llm.Request, batched bool) llm.Money {
	return Reserved(p, req).Worst(reservedInput(p, req), MaxOutput(p, req), batched)
}

// Reserved returns the price by which money is set aside for req. The server may answer in a cheaper
// tier than it was asked for, and then says so. Without a tier, the account decides which one it is.
func Reserved(p price.Price, req *llm.Request) price.Price {
	if price.MayHaveAudio(req) || req.Refers {
		p = p.WithAudio()
	}
	switch req.Tier {
	case priorityTier, "", "auto":
		return p.In(priorityTier)
	}
	return p
}

// tierPrice returns the price of the tier that req asks for.
func tierPrice(p price.Price, req *llm.Request) price.Price {
	if req.Tier == priorityTier {
		return p.In(priorityTier)
	}
	return p
}

// priorityTier is the service tier that costs more than the standard one.
const priorityTier = "priority"

// MaxOutput returns the most output tokens of an attempt at req by a server that keeps the limit.
func MaxOutput(p price.Price, req *llm.Request) int {
	switch {
	case req.MaxTokens > 0:
		return req.MaxTokens
	case p.MaxOutput > 0:
		return p.MaxOutput
	default:
		return maxUnboundedOutput
	}
}

// maxUnboundedOutput is the most output tokens assumed of a model when neither the request nor the
// price table bounds it.
const maxUnboundedOutput = 128_000

// conduct is what is known of how a model keeps to the limit that requests set on its output. A
// server that does not know the limit answers at any length, and the cost of that is not set aside.
type conduct struct {
	keepsLimit bool // known before it was asked

	kept   atomic.Int64 // answers within the limit, from the first on that ended there
	output atomic.Int64 // of the longest answer beyond the limit; 0: no answer exceeded it
	input  atomic.Int64 // the most tokens read beyond what was set aside for a prompt
}

// Terms are what must be set aside for an attempt.
type Terms struct {
	// Worst is the most that the attempt can cost if the limit on its output is kept.
	Worst llm.Money

	exceeding  llm.Money // the most if the limit is exceeded; 0 where that is not possible
	maxTrusted int       // how many calls for which only Worst is set aside may be in flight; 0: any number

	model   *Model // whose attempt it is; nil: it is not known
	req     *llm.Request
	batched bool
}

// mayExceed reports whether the attempt may cost more than Worst.
func (t Terms) mayExceed() bool { return t.exceeding > t.Worst }

// Reserve returns what is set aside where there is room for it, and whether the server is not known to keep the limit on output.
func (t Terms) Reserve() (amount llm.Money, exceeds bool) {
	return max(t.Worst, t.exceeding), t.mayExceed()
}

// AtOnce returns for how many calls with these terms an amount of money has room at once: see Budget.room.
func (t Terms) AtOnce(money llm.Money) int {
	each, exceeds := t.Reserve()
	if each == 0 || money <= 0 {
		return 0
	}
	n := money / each
	if more := (money - n*each) / max(1, t.Worst); exceeds {
		n += min(more, cmp.Or(llm.Money(t.maxTrusted), more))
	}
	return int(n)
}

// beside returns t for a call that may continue with the terms u without waiting again.
func (t Terms) beside(u Terms) Terms {
	t.exceeding = max(t.exceeding, u.exceeding)
	if t.maxTrusted == 0 || u.maxTrusted > 0 {
		t.maxTrusted = cmp.Or(min(t.maxTrusted, u.maxTrusted), u.maxTrusted, t.maxTrusted)
	}
	return t
}

// Terms returns the terms of an attempt at req.
func (m *Model) Terms(req *llm.Request, batched bool) Terms {
	t, p := Terms{Worst: Worst(m.Price, req, batched), model: m, req: req, batched: batched}, Reserved(m.Price, req)
	output, input := int(m.conduct.output.Load()), int(m.conduct.input.Load())
	longest := MaxOutput(m.Price, req)
	if output > 0 {
		longest = max(longest, outputWithoutLimit(m.Price, output))
	}
	if output > 0 || input > 0 {
		prompt := min(MaxInput(m.Price, req), llm.AddTokens(reservedInput(m.Price, req), llm.MulTokens(input, 2)))
		t.Worst = max(t.Worst, p.Worst(prompt, longest, batched))
	}
	if t.Worst == 0 {
		return t
	}
	if m.Price.Context == 0 && (tokens.SizeOf(req).Unbounded || refers(req)) {
		limit := p.Worst(MaxInput(m.Price, req), longest, batched)
		if batched { // its lines cannot take turns
			t.Worst = max(t.Worst, limit)
		} else {
			t.exceeding, t.maxTrusted = limit, 1
		}
	}
	if !batched && output == 0 && !m.conduct.keepsLimit {
		t.exceeding = max(t.exceeding, p.Worst(MaxInput(m.Price, req), max(longest, outputWithoutLimit(m.Price, 0)), false))
		trusted := max(1, 2*int(m.conduct.kept.Load()))
		t.maxTrusted = min(trusted, cmp.Or(t.maxTrusted, trusted))
	}
	return t
}

// outputWithoutLimit returns the most output tokens to expect of a server that does not keep limits, after an
// answer of seen tokens: all of the context, where that is known.
func outputWithoutLimit(p price.Price, seen int) int {
	return max(2*seen, p.MaxOutput, cmp.Or(p.Context, maxUnboundedOutput))
}

// Observe learns from an attempt that was charged c, and from its answer, which is nil where it
// failed.
func (m *Model) Observe(req *llm.Request, resp *llm.Response, c Charge) {
	k := m.conduct
	over := c.used.Output-endTokens > MaxOutput(m.Price, req)
	input := chargedInput(c.used) - maxPrompt(m.Price, req)
	switch {
	case over:
		raise(&k.output, c.used.Output)
	case c.verdict == usageLonger:
		raise(&k.input, chargedInput(c.used)-reservedInput(m.Price, req))
	case resp == nil || c.verdict != usageOK || k.keepsLimit || input > 0:
	case k.kept.Load() > 0, resp.Finish == llm.FinishLength && resp.Usage.Output+endTokens >= req.MaxTokens && req.MaxTokens > 0:
		k.kept.Add(1)
	}
}

// raise sets n to at least v.
func raise(n *atomic.Int64, v int) {
	for {
		was := n.Load()
		if int64(v) <= was || n.CompareAndSwap(was, int64(v)) {
			return
		}
	}
}

// refers reports whether req refers to something that the provider stores or fetches.
func refers(req *llm.Request) bool {
	if req.Refers {
		return true
	}
	for key, v := range req.Extra {
		if isReference(strings.ToLower(key), v) {
			return true
		}
	}
	return false
}

// isReference reports whether a member of a request's body, in any format, makes a provider read
// more than the request: earlier messages, stored prompts and files, and results of its own tools.
func isReference(key string, v json.RawMessage) bool {
	switch key {
	case "tools":
		return price.Hosted(v) != ""
	case "previous_response_id", "conversation", "prompt", "web_search_options", "search_parameters", "enable_search", "mcp_servers",
		"container", "plugins", "data_sources", "cached_content", "cachedcontent", "extra_body", "google", "attachments", "file_ids", "tool_resources":
		return string(v) != "null"
	}
	return false
}
