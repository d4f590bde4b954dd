package dispatch

import (
	"fmt"
	"sync"

	"parley/internal/price"
	"parley/llm"
)

// tariff is a price table with a memory, since a name is looked up for every call.
type tariff struct {
	table *price.Table

	mu    sync.RWMutex
	known map[string]entry
}

type entry struct {
	price price.Price
	ok    bool
}

func newTariff(t *price.Table) *tariff { return &tariff{table: t, known: map[string]entry{}} }

// find returns the price of a model.
func (t *tariff) find(model string) (price.Price, bool) {
	t.mu.RLock()
	e, seen := t.known[model]
	t.mu.RUnlock()
	if !seen {
		e.price, e.ok = t.table.Find(model)
		t.mu.Lock()
		if len(t.known) < maxModels {
			t.known[model] = e
		}
		t.mu.Unlock()
	}
	return e.price, e.ok
}

// unknown is the error of a model without a price where a budget is to be kept.
func (t *tariff) unknown(model string) *llm.Error {
	msg := fmt.Sprintf("no price is known for %s, so a budget cannot be kept: give one in a price file", model)
	if near, ok := t.table.Nearest(model); ok {
		msg += fmt.Sprintf(" (did you mean %s?)", near)
	}
	return &llm.Error{Kind: llm.KindBadRequest, Message: msg}
}

// worstOf is the most that one attempt at req can cost, live or over the batch API.
func worstOf(p price.Price, req *llm.Request, batched bool) llm.Money {
	output := req.MaxTokens
	if output <= 0 {
		output = p.MaxOutput
	}
	if output <= 0 {
		output = outputUnknown
	}
	return p.Worst(sizeOf(req).bound(), output, batched)
}

// outputUnknown is the most output assumed of a model when neither the request nor
// the price table bounds it.
const outputUnknown = 128_000
