package budget

import (
	"fmt"
	"strings"
	"sync"

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

// Look returns what is known of a model.
func (t *Prices) Look(name string) *Model {
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

// unpriced returns an error for a request that may cost more than its tokens do, unless its model
// costs nothing.
func (t *Prices) unpriced(req *llm.Request) error {
	all := func(known func(p price.Price) bool) bool {
		for _, model := range append([]string{req.Model}, req.Fallbacks...) {
			if m := t.Look(model); !m.OK || !known(m.Price) {
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
	if m := t.Look(req.Model); m.OK && m.Price.Worst(1, 1, false) == 0 && len(req.Fallbacks) == 0 {
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
	return Reserved(p, req).Worst(promptOf(p, req), MaxOutput(p, req), batched)
}

// Reserved returns the price by which money is set aside for req. The server may answer in a cheaper
// tier than it was asked for, and then says so. Without a tier, the account decides which one it is.
func Reserved(p price.Price, req *llm.Request) price.Price {
	if price.MayHaveAudio(req) || req.Refers {
		p = p.Heard()
	}
	switch req.Tier {
	case dearTier, "", "auto":
		return p.In(dearTier)
	}
	return p
}

// priced returns the price of the tier that req asks for.
func priced(p price.Price, req *llm.Request) price.Price {
	if req.Tier == dearTier {
		return p.In(dearTier)
	}
	return p
}

// dearTier is the service tier that costs more than the standard one.
const dearTier = "priority"

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
