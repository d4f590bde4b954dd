package limiter

import (
	"math"

	"parley/internal/ask/provider"
	"parley/llm"
)

// need is what a call takes from each bucket.
type need [buckets]float64

// The buckets of a limiter, in the order of need.
const (
	requests = iota
	tokens   // input and output together
	inputs
	outputs
	buckets
)

// needOf returns what the server will charge for a call, by its way of counting.
func needOf(c provider.Counting, maxTokens int, input, output float64) need {
	all := input + output
	if c != provider.CountUsed {
		all = math.Max(float64(maxTokens), input)
	}
	return need{requests: 1, tokens: all, inputs: input, outputs: output}
}

// realOf returns what a call with usage u was charged in the end, given what was taken for it.
func realOf(c provider.Counting, taken need, u llm.Usage) need {
	real := need{requests: 1, tokens: taken[tokens], inputs: float64(u.Input), outputs: float64(u.Output)}
	if c == provider.CountUsed {
		real[inputs] = float64(u.Input - u.Cached)
		real[tokens] = real[inputs] + real[outputs]
	}
	return real
}
