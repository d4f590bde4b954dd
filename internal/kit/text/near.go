// Package text finds the name that was probably meant by an unknown one, for errors that ask "did you mean".
//
// What it promises: it returns only a name that is close enough to be a typo, and always the same one. A name from
// outside, however long or strange, takes little time.
package text

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// longest is the longest name that is compared.
const longest = 200

// Nearest returns the one of names that name most likely means, or "". Case and separators do not count. About a quarter
// of the letters may be wrong, or two of a short name.
func Nearest(name string, names []string) string {
	if len(name) > longest {
		return ""
	}
	want := squash(name)
	letters := utf8.RuneCountInString(want)
	best, least := "", 1+max(2, letters/4)
	for _, n := range names {
		d := edits(want, squash(n))
		// One letter in common is not enough: a is not a typo for b.
		if like := d < max(letters, utf8.RuneCountInString(n))-1; d < least && like || d == 0 && best == "" {
			best, least = n, d
		}
	}
	return best
}

// Suggest returns "; did you mean x?" for the nearest of names, or "".
func Suggest(name string, names []string) string { return ask("", Nearest(name, names)) }

// Want returns the end of an error about an unknown name: "; want one of x, y", after Suggest's question.
func Want(name string, names []string) string {
	lead := Suggest(name, names)
	if lead == "" {
		lead = ";"
	}
	return lead + " want one of " + strings.Join(names, ", ")
}

// SuggestPath suggests the file or folder beside path with the most similar name, as Suggest does.
func SuggestPath(path string) string {
	dir, base := filepath.Split(path)
	there, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil || base == "" {
		return ""
	}
	names := make([]string, len(there))
	for i, e := range there {
		names[i] = e.Name()
	}
	return ask(dir, Nearest(base, names))
}

func ask(dir, name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + dir + name + "?"
}

func squash(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(s))
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
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
