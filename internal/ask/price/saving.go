package price

import (
	"fmt"
	"maps"
	"slices"

	"parley/llm"
)

// Savings says what the providers' prompt caches saved of a run, or is "" if they held nothing. used is the usage by model. A
// run records what calls cost, and not the prices, so it is worked out from the tokens at the table's prices, without those
// of batches and long prompts.
func (t *Table) Savings(used map[string]llm.Usage) string {
	var with, without llm.Money
	tokens := 0
	for _, model := range slices.Sorted(maps.Keys(used)) {
		all := used[model]
		u := llm.Usage{Cached: all.Cached, CacheWrite: all.CacheWrite, CacheWriteLong: all.CacheWriteLong}
		p, ok := t.Find(model)
		if !ok || u == (llm.Usage{}) {
			continue
		}
		p.Above = nil // the usage is of many calls
		cost := p.Cost(u, false)
		with, without = with.Plus(cost), without.Plus(cost.Plus(p.Saved(u, false)))
		tokens = llm.AddTokens(tokens, u.Cached)
	}
	if tokens == 0 {
		return ""
	}
	verdict := fmt.Sprintf("%v less", without.Minus(with))
	if with > without {
		verdict = fmt.Sprintf("%v more, since writing to a cache costs more than reading from it saved", with.Minus(without))
	}
	return fmt.Sprintf("The providers' prompt caches held %d tokens of the prompts. At the list prices of %s, what was read from and written to them cost %v, and would have cost %v otherwise: %s.",
		tokens, t.AsOf(), with, without, verdict)
}
