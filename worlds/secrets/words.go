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

// categories are the lines of the list, each split into its words. Every game needs them.
var categories = splitLines(wordList)

func splitLines(text string) (lines [][]string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// Categories lists the names of the categories of words.
func Categories() []string {
	names := make([]string, 0, len(categories))
	for _, c := range categories {
		names = append(names, c[0])
	}
	return names
}

// category returns the words of a category. Do not change them.
func category(name string) []string {
	for _, c := range categories {
		if c[0] == name {
			return c[1:]
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
