// Package words has the words that secrets are drawn from, by category.
package words

import (
	_ "embed"
	"strings"
)

// list has a category and its words a line. The words are well known, are not said by accident, and are not in the
// instructions of players.
//
//go:embed words.txt
var list string

// Categories lists the names of the categories.
func Categories() []string {
	names := make([]string, 0, strings.Count(list, "\n")+1)
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

// In returns the words of a category, with a space between two; "" if there is no such category. They are split only
// when one is drawn: every game needs one or two of hundreds.
func In(category string) string {
	for line := range strings.Lines(list) {
		if first, words, _ := strings.Cut(line, " "); first == category {
			return strings.TrimSpace(words)
		}
	}
	return ""
}

// Count returns the number of words in categories.
func Count(categories []string) int {
	n := 0
	for _, c := range categories {
		n += count(In(c))
	}
	return n
}

func count(words string) int {
	if words == "" {
		return 0
	}
	return strings.Count(words, " ") + 1
}

// At returns a word of categories by its index, which is below Count.
func At(categories []string, i int) string {
	for _, c := range categories {
		words := In(c)
		if n := count(words); i >= n {
			i -= n
			continue
		}
		return strings.Fields(words)[i]
	}
	return ""
}
