// Package text writes texts for people, on terminals, on pages and in errors: the name that was probably meant by an unknown
// one, numbers, excerpts, and the differences between two JSON values.
package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxCompared is the longest name that is compared.
const maxCompared = 200

// Nearest returns the one of names that name most likely means, or "". Case and separators do not count. About a quarter
// of the letters may be wrong, or two of a short name. It always returns the same one, and a name from outside, however long
// or strange, takes little time.
func Nearest(name string, names []string) string {
	if len(name) > maxCompared {
		return ""
	}
	want := normalize(name)
	letters := utf8.RuneCountInString(want)
	best, least := "", 1+max(2, letters/4)
	for _, n := range names {
		d := editDistance(want, normalize(n))
		// One letter in common is not enough: a is not a typo for b.
		if like := d < max(letters, utf8.RuneCountInString(n))-1; d < least && like || d == 0 && best == "" {
			best, least = n, d
		}
	}
	return best
}

// Suggest returns "; did you mean x?" for the nearest of names, or "".
func Suggest(name string, names []string) string { return didYouMean("", Nearest(name, names)) }

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
	var names []string
	owner := "-"
	for _, e := range there { // in alphabetical order
		// A program keeps files such as x.db-wal beside x.db, and hidden ones: nobody means them.
		name := e.Name()
		if strings.HasPrefix(name, owner+"-") || strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") {
			continue
		}
		names = append(names, name)
		if filepath.Ext(name) != "" {
			owner = name
		}
	}
	return didYouMean(dir, Nearest(base, names))
}

func didYouMean(dir, name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + dir + name + "?"
}

// normalize uses no Replacer: to make one costs more than to use it once, and a name is compared with hundreds.
func normalize(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func editDistance(a, b string) int {
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

// Excerpt returns the first characters of a text, at most limit, and "…" if there are more.
func Excerpt[T ~string | ~[]byte](text T, limit int) string {
	n := 0
	for i := range string(text) {
		if n == limit {
			return string(text[:i]) + "…"
		}
		n++
	}
	return string(text)
}

// GroupDigits formats 1234567 as 1,234,567.
func GroupDigits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Decimals formats a number with so many decimals, or a very large one with an exponent. Halves go away from 0, also 0.725, which is a little less
// in binary: a mean is the same wherever it was added up.
func Decimals(x float64, decimals int) string {
	if math.Abs(x) >= 1e12 {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	x += x * 1e-12
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// Ranges formats numbers in ascending order as "1, 2, 5 to 9". It writes at most limit ranges, and how many numbers are left out; 0: all.
func Ranges(all []int, limit int) string {
	var parts []string
	for i := 0; i < len(all); {
		if limit > 0 && len(parts) == limit {
			parts = append(parts, fmt.Sprintf("and %s more", GroupDigits(len(all)-i)))
			break
		}
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if j > i+1 {
			parts = append(parts, fmt.Sprintf("%d to %d", all[i], all[j]))
			i = j + 1
			continue
		}
		parts = append(parts, strconv.Itoa(all[i]))
		i++
	}
	return strings.Join(parts, ", ")
}

// Difference is a key under which two values differ, and both values.
type Difference struct {
	Key  string // as params.messages
	A, B json.RawMessage
}

// FirstJSONDifference returns the first difference between two values under key, or nil.
func FirstJSONDifference(key string, a, b any) *Difference {
	if all := JSONDifferences(key, a, b); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// JSONDifferences returns the differences between two values under key. Values that JSON cannot hold differ from all others.
func JSONDifferences(key string, a, b any) []Difference {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	if errA == nil && errB == nil && bytes.Equal(x, y) {
		return nil
	}
	return jsonDifferences(key, x, y)
}

func jsonDifferences(key string, a, b json.RawMessage) (all []Difference) {
	var as, bs map[string]json.RawMessage
	if json.Unmarshal(a, &as) != nil || json.Unmarshal(b, &bs) != nil || as == nil || bs == nil {
		return []Difference{{key, a, b}}
	}
	keys := slices.Sorted(maps.Keys(as))
	for _, k := range slices.Sorted(maps.Keys(bs)) {
		if _, ok := as[k]; !ok {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		if !bytes.Equal(as[k], bs[k]) {
			all = append(all, jsonDifferences(key+"."+k, as[k], bs[k])...)
		}
	}
	if len(all) == 0 {
		return []Difference{{key, a, b}} // the order of keys or white space
	}
	return all
}

// BriefJSON writes a value for an error, at most 80 characters of it.
func BriefJSON(v json.RawMessage) string {
	if len(v) == 0 || string(v) == "null" {
		return "not set"
	}
	return Excerpt(v, 80)
}
