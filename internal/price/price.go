// Package price says what calls cost: a dated table of model prices, and exact
// arithmetic over it.
//
// What it promises: Cost is exact and rounded up once, to the next billionth of a
// dollar; Worst is never below any Cost with at most that many tokens, so what is
// reserved before a call covers what the call comes to. A model that is not in the
// table is reported as unknown; its price is never guessed from another family's.
// A Table never changes and may be shared between goroutines.
//
// Where a provider's price depends on the hour, or is lowered for a while, the
// embedded table holds the dearer one: a budget then errs on the safe side. A
// user's own file overrides it.
//
// What it is not for: it keeps no budget (package dispatch) and asks no server.
package price

import (
	"math"
	"math/bits"

	"parley/llm"
)

// Price is what one model costs.
type Price struct {
	Rates
	// Batch is what the batch API charges. The zero value means no discount.
	Batch Rates
	// Above holds the rates for long prompts, by rising Over. The whole call is
	// charged at the rates of the last tier that its prompt is over.
	Above []Tier
	// MaxOutput and Context are the most output tokens and the context window; 0 when
	// not known.
	MaxOutput, Context int
}

// Rates are prices in dollars for a million tokens of each sort.
type Rates struct {
	Input          llm.Money
	Cached         llm.Money // read from the provider's prompt cache
	CacheWrite     llm.Money // written to it for minutes
	CacheWriteLong llm.Money // written to it for an hour
	Output         llm.Money
}

// Tier holds the rates for prompts of more than Over tokens.
type Tier struct {
	Over int
	Rates
	Batch Rates
}

// Cost returns what a call with usage u costs, live or through the batch API. Counts
// below zero are taken for zero.
func (p Price) Cost(u llm.Usage, batch bool) llm.Money {
	cached, write, long := max(u.Cached, 0), max(u.CacheWrite, 0), max(u.CacheWriteLong, 0)
	parts := llm.AddTokens(llm.AddTokens(cached, write), long)
	// A server that counts the parts beside the prompt, not in it, is charged for both.
	input := max(u.Input, parts)
	r := p.at(input, batch)
	var t total
	t.add(input-parts, r.Input)
	t.add(cached, r.Cached)
	t.add(write, r.CacheWrite)
	t.add(long, r.CacheWriteLong)
	t.add(u.Output, r.Output)
	return t.money()
}

// Worst returns the most that a call with at most so many tokens of input and output
// can cost: everything at the dearest rate it may fall under.
func (p Price) Worst(inputTokens, outputTokens int, batch bool) llm.Money {
	most := p.base(batch).worst(inputTokens, outputTokens)
	for _, tier := range p.Above {
		if inputTokens > tier.Over {
			most = max(most, tier.rates(batch).worst(inputTokens, outputTokens))
		}
	}
	return most
}

// at returns the rates for a prompt of so many tokens.
func (p Price) at(input int, batch bool) Rates {
	r := p.base(batch)
	for _, tier := range p.Above {
		if input > tier.Over {
			r = tier.rates(batch)
		}
	}
	return r
}

func (p Price) base(batch bool) Rates { return Tier{Rates: p.Rates, Batch: p.Batch}.rates(batch) }

func (t Tier) rates(batch bool) Rates {
	if batch && t.Batch != (Rates{}) {
		return t.Batch
	}
	return t.Rates
}

func (r Rates) worst(input, output int) llm.Money {
	var t total
	t.add(input, max(r.Input, r.Cached, r.CacheWrite, r.CacheWriteLong))
	t.add(output, r.Output)
	return t.money()
}

// times returns r with every rate multiplied by f and rounded up.
func (r Rates) times(f float64) Rates {
	by := func(m llm.Money) llm.Money { return llm.Money(math.Ceil(float64(m) * f)) }
	return Rates{
		Input: by(r.Input), Cached: by(r.Cached), CacheWrite: by(r.CacheWrite),
		CacheWriteLong: by(r.CacheWriteLong), Output: by(r.Output),
	}
}

const million = 1_000_000

// total sums tokens times rates in 128 bits: hostile counts must not wrap around to
// something cheap.
type total struct{ hi, lo uint64 }

func (t *total) add(tokens int, rate llm.Money) {
	if tokens <= 0 || rate <= 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(tokens), uint64(rate))
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, lo, 0)
	t.hi, carry = bits.Add64(t.hi, hi, carry)
	if carry != 0 {
		t.hi = math.MaxUint64
	}
}

// money returns the sum for rates by the million, rounded up.
func (t total) money() llm.Money {
	lo, carry := bits.Add64(t.lo, million-1, 0)
	hi := t.hi + carry
	if hi >= million || hi < t.hi {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, million)
	return llm.Money(min(q, math.MaxInt64))
}
