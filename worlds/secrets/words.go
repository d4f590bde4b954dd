package secrets

import (
	"maps"
	"math/rand/v2"
	"slices"

	"parley/worlds/secrets/reveal"
)

// wordCount returns the number of words that secrets are drawn from.
func (p *Params) wordCount() int {
	if len(p.Words) > 0 {
		return len(p.Words)
	}
	return countWords(p.Categories)
}

// word returns the word of a number below the wordCount.
func (p *Params) word(i int) string {
	if len(p.Words) > 0 {
		return p.Words[i]
	}
	return wordAt(p.Categories, i)
}

// draw returns the words of seats: their own, or different ones that are drawn.
func (p *Params) draw(r *rand.Rand, seats []string) []string {
	order := permuted(r, p.wordCount())
	drawn := make([]string, len(seats))
	for i, seat := range seats {
		drawn[i] = p.Secrets[seat]
		for drawn[i] == "" {
			word := p.word(int(order[0]))
			if order = order[1:]; !p.fixed(word) {
				drawn[i] = word
			}
		}
	}
	return drawn
}

// permuted returns what r.Perm returns, in half the memory: there are hundreds of words, and every game draws.
func permuted(r *rand.Rand, n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// fixed reports whether a word is the secret that the plan gives a seat.
func (p *Params) fixed(word string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(p.Secrets)), func(own string) bool { return slices.Equal(reveal.Words(own), reveal.Words(word)) })
}
