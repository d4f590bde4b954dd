package config

import (
	"strings"
	"unicode/utf8"
)

// nearest returns the one of names that is most likely meant by name, or "".
func nearest(name string, names []string) string {
	squash := func(s string) string {
		return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(s))
	}
	if len(name) > 64 {
		return ""
	}
	want := squash(name)
	best, least := "", 1+max(2, utf8.RuneCountInString(want)/3)
	for _, n := range names {
		d := edits(want, squash(n))
		if d < least && d < max(utf8.RuneCountInString(want), utf8.RuneCountInString(n))-1 || d == 0 && best == "" {
			best, least = n, d
		}
	}
	return best
}

// meant returns ", did you mean x?" for the nearest of names, or "".
func meant(name string, names []string) string {
	if n := nearest(name, names); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that
// make b of a.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

// anyOf lists names for an error: all of them up to a number that can be read.
func anyOf(names []string) string {
	const most = 30
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
