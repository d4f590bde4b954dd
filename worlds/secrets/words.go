package secrets

import (
	_ "embed"
	"math/rand/v2"
	"strings"
)

// wordList has a category and its words a line. The words are well known, are not said by
// accident, and are not in the instructions of players.
//
//go:embed words.txt
var wordList string

// Categories lists the names of the categories of words.
func Categories() []string {
	var names []string
	for line := range strings.Lines(wordList) {
		names = append(names, strings.Fields(line)[0])
	}
	return names
}

// category returns the words of a category.
func category(name string) []string {
	for line := range strings.Lines(wordList) {
		if words := strings.Fields(line); words[0] == name {
			return words[1:]
		}
	}
	return nil
}

// deal draws n different words.
func deal(r *rand.Rand, from []string, n int) []string {
	dealt := make([]string, 0, n)
	for _, i := range r.Perm(len(from))[:min(n, len(from))] {
		dealt = append(dealt, from[i])
	}
	return dealt
}
