package secrets

import (
	_ "embed"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/worlds/secrets/reveal"
)

// pool returns the words that secrets are drawn from.
func (p *Params) pool() []string {
	if len(p.Words) > 0 {
		return p.Words
	}
	all := make([]string, 0, strings.Count(wordList, " "))
	for _, c := range p.Categories {
		all = slices.AppendSeq(all, strings.FieldsSeq(wordsIn(c)))
	}
	return all
}

// draw returns the words of seats: their own, or different ones that are drawn.
func (p *Params) draw(r *rand.Rand, seats []string) []string {
	pool := p.pool()
	order := r.Perm(len(pool))
	drawn := make([]string, len(seats))
	for i, seat := range seats {
		drawn[i] = p.Secrets[seat]
		for drawn[i] == "" {
			word := pool[order[0]]
			if order = order[1:]; !p.fixed(word) {
				drawn[i] = word
			}
		}
	}
	return drawn
}

// fixed reports whether a word is the secret that the plan gives a seat.
func (p *Params) fixed(word string) bool {
	for _, own := range p.Secrets {
		if slices.Equal(reveal.Words(own), reveal.Words(word)) {
			return true
		}
	}
	return false
}

// wordList has a category and its words a line. The words are well known, are not said by accident, and are not in the
// instructions of players.
//
//go:embed words.txt
var wordList string

// wordCategories lists the names of the categories.
func wordCategories() (names []string) {
	for line := range strings.Lines(wordList) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

// wordsIn returns the words of a category, with a space between two; "" if there is no such category.
func wordsIn(category string) string {
	for line := range strings.Lines(wordList) {
		if name, words, _ := strings.Cut(line, " "); name == category {
			return strings.TrimSpace(words)
		}
	}
	return ""
}
