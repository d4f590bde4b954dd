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
		out := g.loose()
		i := r.IntN(len(g))
		j := (i + 1 + r.IntN(len(g)-1)) % len(g)
		out[i], out[j] = out[j], out[i]
		return out
	case "duplicate":
		if len(g) == 0 || len(g) >= limits.Max {
			return g
		}
		return put(g, g[r.IntN(len(g))], r.IntN(len(g)+1))
	}
	return g
}

// edit replaces a span.
func edit(g Genome, pool []Span, r *rand.Rand) Genome {
	if len(g) == 0 {
		return g
	}
	i := r.IntN(len(g))
	other := g.missing(pool)
	if same := other.with(g[i].Role); len(same) > 0 {
		other = same
	}
	if len(other) == 0 {
		return g
	}
	out := slices.Clone(g)
	out[i].Role, out[i].Text = pick(other, r)
	return out
}

// insert inserts a span that g does not have.
func insert(g Genome, pool []Span, limits Limits, r *rand.Rand) Genome {
	other := g.missing(pool)
	if len(other) == 0 || len(g) >= limits.Max {
		return g
	}
	role, text := pick(other, r)
	at := 0
	for i, s := range g {
		if slices.Index(Roles(), s.Role) <= slices.Index(Roles(), role) {
			at = i + 1
		}
	}
	return put(g, Span{Role: role, Text: text}, at)
}

func pick(spans []Span, r *rand.Rand) (Role, string) {
	s := spans[r.IntN(len(spans))]
	return s.Role, s.Text
}

// put returns g with s at a position.
func put(g Genome, s Span, at int) Genome {
	s.sep = ""
	return join(g[:at:at], Genome{s}, g[at:])
}

// missing returns the spans of pool that g does not have.
func (g Genome) missing(pool []Span) Genome {
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
	return out.loose()
}
