// Package price computes the cost of calls: a dated table of model prices, and exact arithmetic over it.
//
// What it promises: Cost is exact and rounded up once, to the next billionth of a dollar, except that recordings which were
// cached count as if they were not. Worst is never below any Cost with at most that many tokens, none of them of sound, so the
// reserve for a call covers its cost; WithAudio is for those with sound. A model that is not in the table is unknown;
// its price is never guessed. A Table never changes and is safe for concurrent use.
//
// If a provider's price depends on the hour, or is temporarily lower, the embedded table has the higher one, so that a
// budget errs on the safe side. A user's own file overrides it.
//
// The package keeps no budget (package dispatch does) and asks no server.
package price

import (
	"math"
	"math/bits"
	"slices"

	"parley/llm"
)

// Price is the price of one model.
type Price struct {
	Rates
	// Batch is the price of the batch API. The zero value means no discount.
	Batch Rates
	// Flex and Priority are the prices of these service tiers. The zero value means that they are not known.
	Flex, Priority Rates
	// Above holds the rates for long prompts, by rising Over. The whole call is charged at the rates of the last tier
	// whose Over its prompt exceeds.
	Above []Tier
	// MaxOutput and Context are the largest output and the context window, in tokens; 0 if not known.
	MaxOutput, Context int
	// Retired says that the vendor does not serve the model any more.
	Retired bool
}

// Rates are prices in dollars per million tokens.
type Rates struct {
	Input          llm.Money
	Cached         llm.Money // read from the provider's prompt cache
	CacheWrite     llm.Money // written to it for minutes
	CacheWriteLong llm.Money // written to it for an hour
	Output         llm.Money
	Audio          llm.Money // of recordings in the prompt; 0 if it is not known
}

// Tier holds the rates for prompts of more than Over tokens.
type Tier struct {
	Over int
	Rates
	Batch, Flex, Priority Rates
}

// Cost returns the cost of a call with usage u, live or through the batch API. Negative counts are taken as zero.
func (p Price) Cost(u llm.Usage, batch bool) llm.Money {
	cached, write, long := max(u.Cached, 0), max(u.CacheWrite, 0), max(u.CacheWriteLong, 0)
	parts := llm.AddTokens(llm.AddTokens(cached, write), long)
	// A server that counts the parts in addition to the prompt is charged for both.
	input := max(u.Input, parts)
	r := p.ratesAt(input, batch)
	var t total
	t.add(input-parts, r.Input)
	// What sound costs more than text. Servers do not say how much of it was cached, so none counts as cheaper.
	t.add(min(u.Audio, input), r.Audio-r.Input)
	t.add(cached, r.Cached)
	t.add(write, r.CacheWrite)
	t.add(long, r.CacheWriteLong)
	t.add(u.Output, r.Output)
	return t.money()
}

// Saved returns how much more a call with usage u would cost without the provider's prompt cache. It is negative if
// writing to the cache cost more than reading from it saved.
func (p Price) Saved(u llm.Usage, batch bool) llm.Money {
	parts := llm.AddTokens(llm.AddTokens(max(u.Cached, 0), max(u.CacheWrite, 0)), max(u.CacheWriteLong, 0))
	if parts == 0 {
		return 0
	}
	return p.Cost(llm.Usage{Input: max(u.Input, parts), Audio: u.Audio, Output: u.Output}, batch).Minus(p.Cost(u, batch))
}

// Worst returns the highest cost of a call with at most so many tokens of input and output: everything at the highest
// rate that may apply.
func (p Price) Worst(inputTokens, outputTokens int, batch bool) llm.Money {
	worst := p.base(batch).worst(inputTokens, outputTokens)
	for _, tier := range p.Above {
		if inputTokens > tier.Over {
			worst = max(worst, tier.rates(batch).worst(inputTokens, outputTokens))
		}
	}
	return worst
}

// WithAudio returns p for prompts with recordings: every token of a prompt may be one of sound. It is for Worst.
func (p Price) WithAudio() Price {
	p.Rates, p.Batch, p.Flex, p.Priority = p.Rates.withAudio(), p.Batch.withAudio(), p.Flex.withAudio(), p.Priority.withAudio()
	p.Above = slices.Clone(p.Above)
	for i := range p.Above {
		t := &p.Above[i]
		t.Rates, t.Batch, t.Flex, t.Priority = t.Rates.withAudio(), t.Batch.withAudio(), t.Flex.withAudio(), t.Priority.withAudio()
	}
	return p
}

func (r Rates) withAudio() Rates {
	more := max(0, r.Audio-r.Input)
	r.Input, r.Cached, r.CacheWrite, r.CacheWriteLong = r.Input+more, r.Cached+more, r.CacheWrite+more, r.CacheWriteLong+more
	return r
}

// ratesAt returns the rates for a prompt of so many tokens.
func (p Price) ratesAt(input int, batch bool) Rates {
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

// Serves reports whether the price of a service tier is known.
func (p Price) Serves(tier string) bool { return p.tier().ratesOf(tier) != Rates{} }

// In returns p at the rates of a service tier, or p itself if they are not known. A long prompt whose rates in the tier
// are not known costs at least what it costs otherwise, and at least what a short one costs in the tier.
func (p Price) In(tier string) Price {
	short := p.tier().ratesOf(tier)
	if short == (Rates{}) {
		return p
	}
	p.Rates = short
	p.Above = slices.Clone(p.Above)
	for i := range p.Above {
		t := &p.Above[i]
		if own := t.ratesOf(tier); own != (Rates{}) {
			t.Rates = own
		} else {
			t.Rates = t.Rates.atLeast(short)
		}
	}
	return p
}

func (p Price) tier() Tier { return Tier{Flex: p.Flex, Priority: p.Priority} }

// ratesOf returns the rates of a service tier, or none.
func (t Tier) ratesOf(tier string) Rates {
	switch tier {
	case "flex":
		return t.Flex
	case "priority":
		return t.Priority
	default:
		return Rates{}
	}
}

// atLeast returns the higher of each rate.
func (r Rates) atLeast(o Rates) Rates {
	return Rates{
		Input: max(r.Input, o.Input), Cached: max(r.Cached, o.Cached), CacheWrite: max(r.CacheWrite, o.CacheWrite),
		CacheWriteLong: max(r.CacheWriteLong, o.CacheWriteLong), Output: max(r.Output, o.Output), Audio: max(r.Audio, o.Audio),
	}
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
		CacheWriteLong: by(r.CacheWriteLong), Output: by(r.Output), Audio: by(r.Audio),
	}
}

const million = 1_000_000

// total sums tokens times rates in 128 bits: hostile counts must not wrap around to a low cost.
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

// money returns the sum for rates per million, rounded up.
func (t total) money() llm.Money {
	lo, carry := bits.Add64(t.lo, million-1, 0)
	hi := t.hi + carry
	if hi >= million || hi < t.hi {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, million)
	return llm.Money(min(q, math.MaxInt64))
}
