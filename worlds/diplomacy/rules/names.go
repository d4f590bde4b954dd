package rules

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// aliases are other names in use: a code and its names, separated by commas.
//
//go:embed names.txt
var aliases string

// index fills the lookup of names: codes, full names, and other names.
func (b *Board) index() {
	for p, code := range b.codes[:Provinces] {
		b.name(Province(p), code)
		b.name(Province(p), b.names[p])
	}
	for line := range strings.Lines(aliases) {
		code, names, _ := strings.Cut(strings.TrimSpace(line), " ")
		p, _ := b.ByCode(code)
		for name := range strings.SplitSeq(names, ",") {
			b.name(Province(p), strings.TrimSpace(name))
		}
	}
}

// name adds a name of p, unless it is taken.
func (b *Board) name(p Province, name string) {
	key := fold(name)
	if _, taken := b.lookup[key]; !taken {
		b.lookup[key] = Location(p)
		b.spellings[p] = append(b.spellings[p], name)
	}
}

// Spellings lists the names that Find knows for a province: its code, its full name, and
// other names in use.
func (b *Board) Spellings(p Province) []string { return slices.Clone(b.spellings[p]) }

// fold removes from a name what people write differently. It keeps small letters, without
// accents, and digits.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		r = plain(unicode.ToLower(r))
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

// plain returns a letter without its accent.
func plain(r rune) rune {
	if r < 128 {
		return r
	}
	from := []rune("àáâãäåāăąçćčďđèéêëēėęěğìíîïīįıłñńňòóôõöøōőřśşšťţùúûüūůűųýÿźżž")
	to := "aaaaaaaaacccddeeeeeeeegiiiiiiilnnnoooooooorssstttuuuuuuuuyyzzz"
	if i := slices.Index(from, r); i >= 0 && i < len(to) {
		return rune(to[i])
	}
	return r
}

// Find finds a province by its code or any of its names, in any spelling that Fold makes equal.
func (b *Board) Find(name string) (Province, bool) {
	p, ok := b.lookup[fold(name)]
	return Province(p), ok
}

// Guess finds the provinces that a misspelled name may mean, in the order of codes: those with
// a name that begins with it, or else those with the nearest name.
func (b *Board) Guess(name string) []Province {
	word := fold(name)
	if len(word) < 4 || len(word) > 40 {
		return nil
	}
	var begins, near Set[Province]
	best := 1 // mistakes that are accepted
	if len(word) >= 10 {
		best = 2
	}
	for key, p := range b.lookup {
		if strings.HasPrefix(key, word) {
			begins.Add(Province(p))
		}
		if len(key) < 4 {
			continue // a code has three letters: any mistake may make another one
		}
		switch d := slips(word, key, best); {
		case d < best:
			best, near = d, Set[Province]{}
			near.Add(Province(p))
		case d == best:
			near.Add(Province(p))
		}
	}
	if !begins.Empty() {
		near = begins
	}
	return slices.Collect(near.All())
}

// slips counts the letters that are wrong, missing, extra or swapped between a and b. Above
// limit it returns limit+1.
func slips(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit + 1
	}
	var rows [3][64]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := last[j-1]
			if a[i-1] != b[j-1] {
				wrong++
			}
			row[j] = min(wrong, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
