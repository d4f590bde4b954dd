package genome

import (
	"slices"
	"strings"
)

// Diversity returns the mean distance between any two of the prompts, from 0 to 1. It is 0 for fewer than two prompts.
func Diversity(all []Genome) float64 {
	pairs := make([]map[string]bool, len(all))
	for i, g := range all {
		pairs[i] = g.pairs()
	}
	sum, n := 0.0, 0
	for i := range pairs {
		for j := range i {
			sum += distance(pairs[i], pairs[j])
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// distance returns 1 less the share of pairs that both have.
func distance(a, b map[string]bool) float64 {
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

// pairs returns the pairs of neighbouring words. The first and the last word are also paired with nothing.
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

// Diff returns the difference of two prompts, with a line for each span. A line begins with + if the span is new, with -
// if it is gone, and with a space if it stayed.
func Diff(from, to Genome) string {
	// length[i][j] is the number of spans that from[i:] and to[j:] have in common, in order.
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
