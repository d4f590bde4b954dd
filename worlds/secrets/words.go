package secrets

import (
	_ "embed"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/worlds/secrets/reveal"
)

// wordList has a category and its words a line. The words are well known, are not said by
// accident, and are not in the instructions of players.
//
//go:embed words.txt
var wordList string

// Categories lists the names of the categories of words.
func Categories() []string {
	names := make([]string, 0, strings.Count(wordList, "\n")+1)
	for line := range strings.Lines(wordList) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

// category returns the words of a category, with a space between two. They are split only when one
// is drawn: every game needs one or two of hundreds.
func category(name string) string {
	for line := range strings.Lines(wordList) {
		if first, words, _ := strings.Cut(line, " "); first == name {
			return strings.TrimSpace(words)
		}
	}
	return ""
}

// wordCount returns the number of words that secrets are drawn from.
func (p *Params) wordCount() int {
	if len(p.Words) > 0 {
		return len(p.Words)
	}
	n := 0
	for _, c := range p.Categories {
		n += countWords(category(c))
	}
	return n
}

func countWords(words string) int {
	if words == "" {
		return 0
	}
	return strings.Count(words, " ") + 1
}

// word returns the word of a number below the wordCount.
func (p *Params) word(i int) string {
	if len(p.Words) > 0 {
		return p.Words[i]
	}
	for _, c := range p.Categories {
		words := category(c)
		if n := countWords(words); i >= n {
			i -= n
			continue
		}
		return strings.Fields(words)[i]
	}
	return ""
}

// draw returns the words of seats: their own, or different ones that are drawn.
func (p *Params) draw(r *rand.Rand, seats []string) []string {
	order := permuted(r, p.wordCount())
	words := make([]string, len(seats))
	for i, seat := range seats {
		words[i] = p.Secrets[seat]
		for words[i] == "" {
			word := p.word(int(order[0]))
			if order = order[1:]; !p.fixed(word) {
				words[i] = word
			}
		}
	}
	return words
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
	for _, own := range p.Secrets {
		if slices.Equal(reveal.Words(own), reveal.Words(word)) {
			return true
		}
	}
	return false
}
