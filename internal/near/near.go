// Package near finds what somebody probably meant who wrote a name that is not known.
//
// What it promises: only a name that is close enough to be a slip is returned, and the
// same one every time; a name from outside, however long or strange, costs little.
//
// It is not for searching, and not for deciding anything: what it returns is for an error
// that asks "did you mean".
package near

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// longest is the longest name that is looked at: nobody means a word by a page of text.
const longest = 200

// Name returns the one of names that is most likely meant by name, or "". Capitals and
// the signs between words do not count; about a quarter of the letters may be wrong, or
// two of a short name.
func Name(name string, names []string) string {
	if len(name) > longest {
		return ""
	}
	want := squash(name)
	letters := utf8.RuneCountInString(want)
	best, least := "", 1+max(2, letters/4)
	for _, n := range names {
		d := edits(want, squash(n))
		// One letter in common is no likeness: a is not a slip for b.
		if like := d < max(letters, utf8.RuneCountInString(n))-1; d < least && like || d == 0 && best == "" {
			best, least = n, d
		}
	}
	return best
}

// Path returns the path of the file or folder beside path whose name is most likely
// meant, or "".
func Path(path string) string {
	dir, base := filepath.Split(path)
	there, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil || base == "" {
		return ""
	}
	names := make([]string, len(there))
	for i, e := range there {
		names[i] = e.Name()
	}
	if n := Name(base, names); n != "" {
		return dir + n
	}
	return ""
}

func squash(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(s))
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that make
// b of a.
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
