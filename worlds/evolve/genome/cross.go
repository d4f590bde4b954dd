package genome

import (
	"math/rand/v2"
	"slices"
)

// Crossovers lists the ways to cross two prompts.
func Crossovers() []string { return []string{"section", "single_point", "two_point", "uniform"} }

// Cross returns two children of two prompts. Together they have exactly the spans of their parents.
//
//   - single_point: the beginning of one and the end of the other;
//   - two_point: one with the middle of the other;
//   - uniform: each position from one or the other;
//   - section: all instructions from one or the other, all steps, all examples, all words
//     about the form.
//
// If a parent is too short to be cut, the children are copies.
func Cross(method string, a, b Genome, r *rand.Rand) (Genome, Genome) {
	short := min(len(a), len(b))
	switch {
	case method == "section":
		return bySection(a, b, r)
	case short < 2:
		return slices.Clone(a), slices.Clone(b)
	case method == "uniform":
		return uniform(a, b, r)
	case method == "two_point" && short > 2:
		i := 1 + r.IntN(short-2)
		j := i + 1 + r.IntN(short-i-1)
		return join(a[:i], b[i:j], a[j:]), join(b[:i], a[i:j], b[j:])
	default:
		i := 1 + r.IntN(short-1)
		return join(a[:i], b[i:]), join(b[:i], a[i:])
	}
}

// join joins pieces. A span keeps the white space after it only if it still has the same neighbour.
func join(pieces ...Genome) Genome {
	var out Genome
	for _, p := range pieces {
		out = append(out, p...)
		if n := len(out); n > 0 {
			out[n-1].sep = ""
		}
	}
	return out
}

// uniform draws position by position. The rest of the longer parent goes to one child.
func uniform(a, b Genome, r *rand.Rand) (Genome, Genome) {
	var one, two Genome
	short := min(len(a), len(b))
	for i := range short {
		x, y := a[i], b[i]
		if r.IntN(2) == 0 {
			x, y = y, x
		}
		one, two = append(one, x), append(two, y)
	}
	tail := append(slices.Clone(a[short:]), b[short:]...)
	if r.IntN(2) == 0 {
		one = append(one, tail...)
	} else {
		two = append(two, tail...)
	}
	return one.loose(), two.loose()
}

func bySection(a, b Genome, r *rand.Rand) (Genome, Genome) {
	var one, two Genome
	for _, role := range Roles() {
		x, y := a.with(role), b.with(role)
		if r.IntN(2) == 0 {
			x, y = y, x
		}
		one, two = join(one, x), join(two, y)
	}
	return one, two
}

// with returns the spans of a role.
func (g Genome) with(role Role) Genome {
	var out Genome
	for _, s := range g {
		if s.Role == role {
			out = append(out, s)
		}
	}
	return out.loose()
}
