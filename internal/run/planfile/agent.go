package planfile

import (
	"regexp"
	"slices"

	"parley/internal/ask/provider"
	"parley/internal/kit/text"
	"parley/internal/kit/yamltree"
	"parley/llm"
	"parley/world"
)

// accountAgent reports to c what the providers of an agent's models do not have: its service tier, or its cached content. find returns a
// provider of the plan.
func accountAgent(c *Checker, a world.Agent, find func(name string) (provider.Provider, bool)) {
	if a.Bot != "" || a.Human() {
		return
	}
	here := yamltree.Path{"agents", a.Name}
	if a.CachedContent != "" && !cacheName.MatchString(a.CachedContent) {
		c.Complain(here.To("cached_content"), "must be the name that Google gave the cache: cachedContents/ID, or projects/PROJECT/locations/REGION/cachedContents/ID on Vertex AI")
	}
	if a.CachedContent != "" && len(a.Fallbacks) > 0 {
		c.Complain(here.To("cached_content"), "belongs to one model: leave fallbacks out")
	}
	for _, m := range append([]string{a.Model}, a.Fallbacks...) {
		name, _ := llm.SplitModel(m)
		p, known := find(name)
		if known && !(served(c, a, name, p, here) && stored(c, a, name, p, here)) {
			return
		}
	}
}

// cacheName matches the name of a cache.
var cacheName = regexp.MustCompile(`^(projects/[^/\s]+/locations/[^/\s]+/)?cachedContents/[A-Za-z0-9_-]{1,100}$`)

// served reports whether p has the service tier of a.
func served(c *Checker, a world.Agent, name string, p provider.Provider, here yamltree.Path) bool {
	tiers, ok := p.Tiers()
	switch {
	case a.Tier == "" || !ok || slices.Contains(tiers, a.Tier):
		return true
	case len(tiers) == 0:
		c.Complain(here.To("tier"), "%s has no service tiers: leave tier out", name)
	default:
		c.Complain(here.To("tier"), "%s has no service tier %s%s it has: %s", name, c.Quote(a.Tier), schemaHint(text.Suggest(a.Tier, tiers)), documentListed(tiers))
	}
	return false
}

// stored reports whether p can have the cached content of a.
func stored(c *Checker, a world.Agent, name string, p provider.Provider, here yamltree.Path) bool {
	if a.CachedContent == "" || p.Dialect == "gemini" {
		return true
	}
	c.Complain(here.To("cached_content"), "is Gemini's, and %s speaks the dialect %s: leave it out", name, p.Dialect)
	return false
}
