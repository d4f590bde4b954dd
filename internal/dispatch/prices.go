package dispatch

import (
	"fmt"
	"sync"

	"parley/internal/price"
	"parley/llm"
)

// priceList is a price table that remembers what it found, since every call looks up a name.
type priceList struct {
	table *price.Table
	// keeps says whether a model is known to keep the limits of requests before it was asked.
	keeps func(model string) bool

	mu    sync.RWMutex
	known map[string]*entry
	rest  conduct // of all models that are not remembered
}

// entry is what is known of a model.
type entry struct {
	price   price.Price
	ok      bool // there is a price
	conduct *conduct
}

func newPriceList(t *price.Table) *priceList { return &priceList{table: t, known: map[string]*entry{}} }

// find returns the price of a model.
func (t *priceList) find(model string) (price.Price, bool) {
	e := t.look(model)
	return e.price, e.ok
}

// look returns what is known of a model.
func (t *priceList) look(model string) *entry {
	t.mu.RLock()
	e := t.known[model]
	t.mu.RUnlock()
	if e != nil {
		return e
	}
	e = &entry{conduct: &conduct{}}
	e.price, e.ok = t.table.Find(model)
	e.conduct.trusted = !e.ok || t.keeps(model)
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.known[model]; old != nil {
		return old
	}
	if len(t.known) < maxModels {
		t.known[model] = e
	} else {
		e.conduct = &t.rest
	}
	return e
}

// unknown is the error of a model without a price where a budget is to be kept.
func (t *priceList) unknown(model string) *llm.Error {
	msg := fmt.Sprintf("no price is known for %s, so a budget cannot be kept: give one in a price file", model)
	if near, ok := t.table.Nearest(model); ok {
		msg += fmt.Sprintf(" (did you mean %s?)", near)
	}
	return &llm.Error{Kind: llm.KindBadRequest, Message: msg}
}

// unpriced is the error of a request that may cost more than its tokens do, where a budget is to
// be kept, unless whoever is asked costs nothing.
func (t *priceList) unpriced(req *llm.Request) error {
	member := price.Unpriced(req)
	free := func(model string) bool { p, ok := t.find(model); return ok && p.Worst(1, 1, false) == 0 }
	if member == "" || free(req.Model) && len(req.Fallbacks) == 0 {
		return nil
	}
	return &llm.Error{
		Kind: llm.KindBadRequest, Code: "price_unknown", Message: fmt.Sprintf(
			"%s: it changes what the call costs, and the price table does not say by how much, so a budget cannot be kept: leave it out, or set no budget", member),
	}
}

// worstOf is the most that one attempt at req can cost, live or over the batch API.
func worstOf(p price.Price, req *llm.Request, batched bool) llm.Money {
	return p.Worst(promptOf(p, req), outputOf(p, req), batched)
}

// outputOf is the most output tokens of an attempt at req by a server that keeps the limit.
func outputOf(p price.Price, req *llm.Request) int {
	switch {
	case req.MaxTokens > 0:
		return req.MaxTokens
	case p.MaxOutput > 0:
		return p.MaxOutput
	default:
		return MaxUnboundedOutput
	}
}

// MaxUnboundedOutput is the most output tokens assumed of a model when neither the request nor
// the price table bounds it.
const MaxUnboundedOutput = 128_000
