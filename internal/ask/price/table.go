package price

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/kit/text"
	"parley/llm"
)

// Table is a list of prices by model. It never changes.
type Table struct {
	layers []layer // the first one has priority
}

// layer is one file of prices.
type layer struct {
	asOf   string
	names  []string         // as written in the file, sorted
	prices map[string]Price // by canonical name
}

// With returns a table in which over has priority over t.
func (t *Table) With(over *Table) *Table {
	return &Table{layers: slices.Concat(over.layers, t.layers)}
}

// AsOf returns the day on which the prices were collected, as 2026-11-15: of the first file that says so.
func (t *Table) AsOf() string {
	for _, l := range t.layers {
		if l.asOf != "" {
			return l.asOf
		}
	}
	return ""
}

// Models lists the names in the table, sorted, including patterns such as ollama/*.
func (t *Table) Models() []string {
	var all []string
	for _, l := range t.layers {
		all = append(all, l.names...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Find returns the price of a model written provider/model. Case does not matter. A release date at the end
// (gpt-5-2025-08-07), and Anthropic's -latest, is dropped if only the name without it is known. A model of openrouter is
// also looked up as its vendor's. A name ending in * matches all names with that prefix.
func (t *Table) Find(model string) (Price, bool) {
	names := spellings(model)
	for _, l := range t.layers {
		for _, name := range names {
			if p, ok := l.prices[name]; ok {
				return p, true
			}
		}
		if p, ok := l.pattern(names[0]); ok {
			return p, true
		}
	}
	return Price{}, false
}

// pattern returns the price of the longest pattern that matches name.
func (l layer) pattern(name string) (Price, bool) {
	for i := len(name); i >= 0; i-- {
		if p, ok := l.prices[name[:i]+"*"]; ok {
			return p, true
		}
	}
	return Price{}, false
}

// spellings returns the canonical names that a model may be listed under, best first.
func spellings(model string) []string {
	name := canonical(model)
	names := []string{name}
	if vendors, ok := strings.CutPrefix(name, "openrouter/"); ok && strings.Contains(vendors, "/") {
		names = append(names, canonical(vendors))
	}
	for _, n := range names {
		// OpenRouter writes claude-opus-5.5 where Anthropic writes claude-opus-5-5.
		if strings.HasPrefix(n, "anthropic/") && strings.Contains(n, ".") {
			names = append(names, strings.ReplaceAll(n, ".", "-"))
		}
	}
	for _, n := range names {
		if undated, ok := cutDate(n); ok {
			names = append(names, undated)
		} else if newest, ok := strings.CutSuffix(n, "-latest"); ok && strings.HasPrefix(n, "anthropic/") {
			names = append(names, newest) // its dated versions have the same price
		}
	}
	return names
}

// canonical returns a name in lower case with the usual name of its provider.
func canonical(model string) string {
	provider, name := llm.SplitModel(strings.ToLower(model))
	switch provider {
	case "":
		return name
	case "google", "gemini-openai": // the same models and bill over another dialect
		provider = "gemini"
	case "openai-responses":
		provider = "openai"
	case "azure-responses":
		provider = "azure"
	case "mistralai":
		provider = "mistral"
	case "together_ai", "togetherai":
		provider = "together"
	case "x-ai":
		provider = "xai"
	}
	return provider + "/" + name
}

// cutDate drops a release date: -2025-08-07, -20250929 or @20250929. Four digits are not one: mistral-large-2411 and
// mistral-large-2512 are two models with different prices.
func cutDate(name string) (string, bool) {
	for _, form := range []string{"-2000-00-00", "-20000000", "@20000000"} {
		if at := len(name) - len(form); at > 0 && isDate(name[at:], form) {
			return name[:at], true
		}
	}
	return name, false
}

func isDate(s, form string) bool {
	for i := range len(form) {
		digit := s[i] >= '0' && s[i] <= '9'
		switch {
		case form[i] == '0' && !digit, form[i] != '0' && s[i] != form[i]:
			return false
		}
	}
	return true
}

// Give says what to do about a model without a price.
const Give = "give its price in a file, and name the file under prices in a plan, or with --prices in ask"

// Suggest returns an unknown name for a message, with the known name that it may mean.
func (t *Table) Suggest(model string) string {
	if near, ok := t.Nearest(model); ok {
		return model + " (did you mean " + near + "?)"
	}
	return model
}

// Nearest returns the known name most similar to an unknown one, as a suggestion.
func (t *Table) Nearest(model string) (string, bool) {
	want := canonical(model)
	known := map[string]string{} // canonical name to written name
	for _, name := range t.Models() {
		plain := canonical(name)
		if !strings.Contains(want, "/") {
			_, plain = llm.SplitModel(plain)
		}
		if !strings.HasSuffix(name, "*") && (known[plain] == "" || strings.HasPrefix(known[plain], "azure/")) { // a vendor before who sells its models
			known[plain] = name
		}
	}
	best := text.Nearest(want, slices.Sorted(maps.Keys(known)))
	return known[best], best != ""
}

func newTable(asOf string, prices map[string]Price) *Table {
	l := layer{asOf: asOf, names: slices.Sorted(maps.Keys(prices)), prices: make(map[string]Price, len(prices))}
	for name, p := range prices {
		l.prices[canonical(name)] = p
	}
	return &Table{layers: []layer{l}}
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

// Of returns the price of each model, for Recorded. That of a model without a price is null.
func (t *Table) Of(models []string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, len(models))
	for _, model := range models {
		all[model] = json.RawMessage("null")
		if p, ok := t.Find(model); ok {
			if b, err := json.Marshal(p); err == nil { // it is a plain struct
				all[model] = b
			}
		}
	}
	return all
}

// Recorded returns a table with what Of returned, and nothing else.
func Recorded(prices map[string]json.RawMessage) (*Table, error) {
	known := make(map[string]Price, len(prices))
	for model, raw := range prices {
		var p *Price
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, fmt.Errorf("the price of %s: %w", model, err)
		}
		if p == nil {
			continue
		}
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("the price of %s: %w", model, err)
		}
		known[model] = *p
	}
	return newTable("", known), nil
}

// check refuses what Load never makes.
func (p *Price) check() error {
	tiers := append([]Tier{{Rates: p.Rates, Batch: p.Batch, Flex: p.Flex, Priority: p.Priority}}, p.Above...)
	for i, t := range tiers {
		for _, r := range []Rates{t.Rates, t.Batch, t.Flex, t.Priority} {
			for _, m := range []llm.Money{r.Input, r.Cached, r.CacheWrite, r.CacheWriteLong, r.Output, r.Audio} {
				if m < 0 || m > maxRate {
					return fmt.Errorf("%v is not a price", m)
				}
			}
		}
		if i > 0 && t.Over <= tiers[i-1].Over {
			return fmt.Errorf("over: %d is not more than the tier before", t.Over)
		}
	}
	if p.MaxOutput < 0 || p.Context < 0 {
		return fmt.Errorf("max_output %d, context %d: want numbers of tokens", p.MaxOutput, p.Context)
	}
	return nil
}

// Repriced returns the models, sorted, that cost something else than what Of returned then.
func (t *Table) Repriced(models []string, then map[string]json.RawMessage) (changed []string) {
	for _, model := range models {
		raw, known := then[model]
		if !known {
			continue
		}
		old, err := Recorded(map[string]json.RawMessage{model: raw})
		if err != nil {
			changed = append(changed, model)
			continue
		}
		was, had := old.Find(model)
		is, has := t.Find(model)
		if had != has || was.Rates != is.Rates || was.Batch != is.Batch || was.Flex != is.Flex || was.Priority != is.Priority || !slices.Equal(was.Above, is.Above) {
			changed = append(changed, model)
		}
	}
	slices.Sort(changed)
	return changed
}

// Savings says what the providers' prompt caches saved of a run, or is "" if they held nothing. used is the usage by model. A
// run records what calls cost, and not the prices, so it is worked out from the tokens at the table's prices, without those
// of batches and long prompts.
func (t *Table) Savings(used map[string]llm.Usage) string {
	var with, without llm.Money
	tokens := 0
	for _, model := range slices.Sorted(maps.Keys(used)) {
		all := used[model]
		u := llm.Usage{Cached: all.Cached, CacheWrite: all.CacheWrite, CacheWriteLong: all.CacheWriteLong}
		p, ok := t.Find(model)
		if !ok || u == (llm.Usage{}) {
			continue
		}
		p.Above = nil // the usage is of many calls
		cost := p.Cost(u, false)
		with, without = with.Plus(cost), without.Plus(cost.Plus(p.Saved(u, false)))
		tokens = llm.AddTokens(tokens, u.Cached)
	}
	if tokens == 0 {
		return ""
	}
	verdict := fmt.Sprintf("%v less", without.Minus(with))
	if with > without {
		verdict = fmt.Sprintf("%v more, since writing to a cache costs more than reading from it saved", with.Minus(without))
	}
	return fmt.Sprintf("The providers' prompt caches held %d tokens of the prompts. At the list prices of %s, what was read from and written to them cost %v, and would have cost %v otherwise: %s.",
		tokens, t.AsOf(), with, without, verdict)
}
