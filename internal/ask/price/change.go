package price

import (
	"fmt"
	"slices"
	"strings"
)

// Change is a model whose price differs between two tables. One of them is the zero value for a model that is new or gone.
type Change struct {
	Model     string
	Old, New  Price
	Was, Here bool // in the old table, in the new one
}

// Changes returns what a newer table changes about t, sorted by model: prices of the models in both, models of a provider
// that only one of them has. Providers that newer does not have at all are left alone, and of new providers only those that
// known reports.
func (t *Table) Changes(newer *Table, known func(provider string) bool) (all []Change) {
	covers := map[string]bool{}
	for _, name := range newer.Models() {
		covers[providerOf(name)] = true
	}
	names := append(t.Models(), newer.Models()...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if strings.Contains(name, "*") || !covers[providerOf(name)] {
			continue
		}
		c := Change{Model: name}
		c.Old, c.Was = t.exact(name)
		c.New, c.Here = newer.exact(name)
		switch {
		case c.Was && c.Here && c.Old.same(c.New):
		case !c.Was && !known(providerOf(name)):
		default:
			all = append(all, c)
		}
	}
	return all
}

func providerOf(model string) string {
	name, _, _ := strings.Cut(model, "/")
	return name
}

// exact returns the price under that very name.
func (t *Table) exact(name string) (Price, bool) {
	for _, l := range t.layers {
		if p, ok := l.prices[name]; ok {
			return p, true
		}
	}
	return Price{}, false
}

// same reports whether two prices charge the same for live calls and batches.
func (p Price) same(q Price) bool {
	return p.Rates == q.Rates && p.base(true) == q.base(true) && p.Retired == q.Retired
}

// FindIn is Find at the rates of a service tier, where these are known.
func (t *Table) FindIn(model, tier string) (Price, bool) {
	p, ok := t.Find(model)
	return p.In(tier), ok
}

// Retired returns a sentence for each of the models that is retired.
func (t *Table) Retired(models ...string) (says []string) {
	for _, m := range models {
		if p, ok := t.Find(m); ok && p.Retired {
			says = append(says, fmt.Sprintf("%s is retired by the prices of %s: its vendor does not serve it any more; use another model", m, t.AsOf()))
		}
	}
	return says
}
