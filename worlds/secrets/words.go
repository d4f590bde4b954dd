package secrets

import (
	_ "embed"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

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

// wordList has a category and its words a line. The words are well known, are not said by accident, and are not in the
// instructions of players.
//
//go:embed words.txt
var wordList string

// wordCategories lists the names of the categories.
func wordCategories() []string {
	names := make([]string, 0, strings.Count(wordList, "\n")+1)
	for line := range strings.Lines(wordList) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

// wordsIn returns the words of a category, with a space between two; "" if there is no such category. They are split only
// when one is drawn: every game needs one or two of hundreds.
func wordsIn(category string) string {
	for line := range strings.Lines(wordList) {
		if first, words, _ := strings.Cut(line, " "); first == category {
			return strings.TrimSpace(words)
		}
	}
	return ""
}

// countWords returns the number of words in categories.
func countWords(categories []string) int {
	n := 0
	for _, c := range categories {
		n += wordsInLine(wordsIn(c))
	}
	return n
}

func wordsInLine(words string) int {
	if words == "" {
		return 0
	}
	return strings.Count(words, " ") + 1
}

// wordAt returns a word of categories by its index, which is below countWords.
func wordAt(categories []string, i int) string {
	for _, c := range categories {
		words := wordsIn(c)
		if n := wordsInLine(words); i >= n {
			i -= n
			continue
		}
		return strings.Fields(words)[i]
	}
	return ""
}
