package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/config/document"
	"parley/internal/provider"
	"parley/internal/yamltree"
)

// adviseVersion adds advice about base URLs that name no API version.
func (r *resolver) adviseVersion(p provider.Provider) {
	here := yamltree.Path{"providers", p.Name}
	at := map[string]yamltree.Path{p.BaseURL: here.To("base_url")}
	for i, u := range p.BaseURLs {
		at[u] = here.To("base_urls").To(yamltree.Index(i))
	}
	for _, u := range slices.Sorted(maps.Keys(at)) {
		if r.tree.Has(at[u]) && provider.Unversioned(u) {
			r.plan.Advice = append(r.plan.Advice, fmt.Sprintf("%s: the address names no API version: most servers answer at %s", r.placeOf(at[u]), document.OneLine(r.Source.Hide(strings.TrimRight(u, "/")+"/v1"), 200)))
		}
	}
}
