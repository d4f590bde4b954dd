// Part words has the words that secrets are drawn from, by category.

package secrets

import (
	_ "embed"
	"strings"
)

// list has a category and its words a line. The words are well known, are not said by accident, and are not in the
// instructions of players.
//
//go:embed words.txt
var list string

// wordCategories lists the names of the categories.
func wordCategories() []string {
	names := make([]string, 0, strings.Count(list, "\n")+1)
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

// wordsIn returns the words of a category, with a space between two; "" if there is no such category. They are split only
// when one is drawn: every game needs one or two of hundreds.
func wordsIn(category string) string {
	for line := range strings.Lines(list) {
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
		n += wordsCount(wordsIn(c))
	}
	return n
}

func wordsCount(words string) int {
	if words == "" {
		return 0
	}
	return strings.Count(words, " ") + 1
}

// wordAt returns a word of categories by its index, which is below Count.
func wordAt(categories []string, i int) string {
	for _, c := range categories {
		words := wordsIn(c)
		if n := wordsCount(words); i >= n {
			i -= n
			continue
		}
		return strings.Fields(words)[i]
	}
	return ""
}
