package genome

import (
	"slices"
	"strings"
)

// Distance is how different two prompts are, from 0 (the same words in the same order) to 1
// (no two words of one stand beside each other in the other): one less the share of pairs of
// neighbouring words that both have.
func Distance(a, b Genome) float64 {
	if a.String() == b.String() {
		return 0
	}
	return apart(a.pairs(), b.pairs())
}

// Diversity is the mean distance between any two of some prompts; 0 for fewer than two.
func Diversity(all []Genome) float64 {
	pairs := make([]map[string]bool, len(all))
	for i, g := range all {
		pairs[i] = g.pairs()
	}
	sum, n := 0.0, 0
	for i := range pairs {
		for j := range i {
			sum += apart(pairs[i], pairs[j])
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func apart(a, b map[string]bool) float64 {
	common := 0
	for p := range a {
		if b[p] {
			common++
		}
	}
	all := len(a) + len(b) - common
	if all == 0 {
		return 0
	}
	return 1 - float64(common)/float64(all)
}

// pairs are the neighbouring words, with the first and the last beside nothing.
func (g Genome) pairs() map[string]bool {
	out := map[string]bool{}
	before := ""
	for word := range strings.FieldsSeq(strings.ToLower(g.String())) {
		out[before+" "+word] = true
		before = word
	}
	if before != "" {
		out[before+" "] = true
	}
	return out
}

// Diff shows how one prompt became another, span by span: a line for each, which begins
// with + where it came in, - where it went out, and a space where it stayed.
func Diff(from, to Genome) string {
	// length[i][j] is how much from[i:] and to[j:] have in common.
	length := make([][]int, len(from)+1)
	for i := range length {
		length[i] = make([]int, len(to)+1)
	}
	for i, a := range slices.Backward(from) {
		for j, b := range slices.Backward(to) {
			if a.Text == b.Text {
				length[i][j] = 1 + length[i+1][j+1]
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var b strings.Builder
	line := func(sign, text string) {
		b.WriteString(sign + " " + strings.ReplaceAll(text, "\n", "\n"+sign+" ") + "\n")
	}
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		switch {
		case i < len(from) && j < len(to) && from[i].Text == to[j].Text:
			line(" ", from[i].Text)
			i, j = i+1, j+1
		case j == len(to) || i < len(from) && length[i+1][j] >= length[i][j+1]:
			line("-", from[i].Text)
			i++
		default:
			line("+", to[j].Text)
			j++
		}
	}
	return b.String()
}
