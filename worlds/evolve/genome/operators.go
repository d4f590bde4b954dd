package genome

import (
	"math/rand/v2"
	"slices"
)

// Mutations lists the ways to change a prompt without a model.
func Mutations() []string { return []string{"edit", "insert", "delete", "swap", "duplicate"} }

// Limits bound the results of mutations, in spans.
type Limits struct {
	Min, Max int
	// Insertions is the maximum number of spans that one insertion adds. Default: 1.
	Insertions int
}

// Mutate returns g with one change. It draws new spans from pool. It returns g unchanged if the change is not possible:
// nothing to swap, no room to insert, an empty pool.
//
//   - edit: replace a span with another, of the same role if there is one;
//   - insert: insert one or more spans, each after those of its role;
//   - delete: remove a span;
//   - swap: exchange two spans;
//   - duplicate: copy a span to another position.
func Mutate(method string, g Genome, pool []Span, limits Limits, r *rand.Rand) Genome {
	switch method {
	case "edit":
		return edit(g, pool, r)
	case "insert":
		for range 1 + r.IntN(max(1, limits.Insertions)) {
			g = insert(g, pool, limits, r)
		}
		return g
	case "delete":
		if len(g) <= max(1, limits.Min) {
			return g
		}
		i := r.IntN(len(g))
		return join(g[:i], g[i+1:])
	case "swap":
		if len(g) < 2 {
			return g
		}
		out := g.withoutSpacing()
		i := r.IntN(len(g))
		j := (i + 1 + r.IntN(len(g)-1)) % len(g)
		out[i], out[j] = out[j], out[i]
		return out
	case "duplicate":
		if len(g) == 0 || len(g) >= limits.Max {
			return g
		}
		return insertAt(g, g[r.IntN(len(g))], r.IntN(len(g)+1))
	}
	return g
}

// edit replaces a span.
func edit(g Genome, pool []Span, r *rand.Rand) Genome {
	if len(g) == 0 {
		return g
	}
	i := r.IntN(len(g))
	other := g.missingFrom(pool)
	if same := other.withRole(g[i].Role); len(same) > 0 {
		other = same
	}
	if len(other) == 0 {
		return g
	}
	out := slices.Clone(g)
	out[i].Role, out[i].Text = pickSpan(other, r)
	return out
}

// insert inserts a span that g does not have.
func insert(g Genome, pool []Span, limits Limits, r *rand.Rand) Genome {
	other := g.missingFrom(pool)
	if len(other) == 0 || len(g) >= limits.Max {
		return g
	}
	role, text := pickSpan(other, r)
	at := 0
	for i, s := range g {
		if slices.Index(Roles(), s.Role) <= slices.Index(Roles(), role) {
			at = i + 1
		}
	}
	return insertAt(g, Span{Role: role, Text: text}, at)
}

func pickSpan(spans []Span, r *rand.Rand) (Role, string) {
	s := spans[r.IntN(len(spans))]
	return s.Role, s.Text
}

// insertAt returns g with s at a position.
func insertAt(g Genome, s Span, at int) Genome {
	s.sep = ""
	return join(g[:at:at], Genome{s}, g[at:])
}

// missingFrom returns the spans of pool that g does not have.
func (g Genome) missingFrom(pool []Span) Genome {
	have := map[string]bool{}
	for _, s := range g {
		have[s.Text] = true
	}
	var out Genome
	for _, s := range pool {
		if !have[s.Text] {
			out = append(out, s)
		}
	}
	return out.withoutSpacing()
}

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
	return one.withoutSpacing(), two.withoutSpacing()
}

func bySection(a, b Genome, r *rand.Rand) (Genome, Genome) {
	var one, two Genome
	for _, role := range Roles() {
		x, y := a.withRole(role), b.withRole(role)
		if r.IntN(2) == 0 {
			x, y = y, x
		}
		one, two = join(one, x), join(two, y)
	}
	return one, two
}

// withRole returns the spans of a role.
func (g Genome) withRole(role Role) Genome {
	var out Genome
	for _, s := range g {
		if s.Role == role {
			out = append(out, s)
		}
	}
	return out.withoutSpacing()
}
