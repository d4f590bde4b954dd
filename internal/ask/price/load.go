package price

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"parley/internal/kit/files"
	"parley/internal/kit/text"
	"parley/llm"
)

//go:embed prices.json
var embedded []byte

// Embedded returns the prices that are built into the program, as of AsOf.
func Embedded() *Table { return embeddedOnce() }

// embeddedOnce parses the table once for all.
var embeddedOnce = sync.OnceValue(func() *Table {
	t, err := parse(embedded)
	if err != nil {
		panic("price: the embedded table: " + err.Error()) // our own data, checked by a test
	}
	return t
})

// Load reads a file of prices in our own format or in LiteLLM's (model_prices_and_context_window.json), and detects
// which. Errors name the file and the key.
//
// Our own format is that of the embedded table, in dollars per million tokens:
//
//	{"as_of": "2026-11-15", "models": {
//	  "lab/any-*": {"input": 1, "cached": 0.1, "cache_write": 1.25, "cache_write_long": 2, "output": 5, "audio": 3,
//	    "batch": 0.5, "above": [{"over": 200000, "input": 2, "output": 7.5}], "max_output": 8192, "context": 128000}}}
//
// Only input and output are required. The other rates default to that of input, except audio, which is that of recordings in
// prompts: without it, what they cost is not known. batch is a factor for all rates, or
// separate rates.
func Load(path string) (*Table, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, fmt.Errorf("price: %w", err)
	}
	defer f.Close()
	return Read(f, path)
}

// maxFile limits the size of a file: LiteLLM's has about two megabytes.
const maxFile = 16 << 20

// Read is Load from a reader; name is for errors.
func Read(r io.Reader, name string) (*Table, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("price: %s: %w", name, err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("price: %s: is larger than %s", name, files.Size(maxFile))
	}
	t, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("price: %s: %w", name, err)
	}
	return t, nil
}

func parse(b []byte) (*Table, error) {
	top, err := decode(b)
	if err != nil {
		return nil, err
	}
	if _, ours := top["models"]; ours {
		return parseOwn(top)
	}
	return parseLiteLLM(top)
}

func parseOwn(top object) (*Table, error) {
	if err := top.only("as_of", "source", "models"); err != nil {
		return nil, err
	}
	var asOf string
	if raw, ok := top["as_of"]; ok {
		if err := json.Unmarshal(raw, &asOf); err != nil {
			return nil, fmt.Errorf("as_of: want a day as \"2026-11-15\", not %s", text.Excerpt(raw, 40))
		}
	}
	models, err := decode(top["models"])
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	prices := make(map[string]Price, len(models))
	for _, name := range models.keys() {
		p, err := parseModel(name, models[name])
		if err != nil {
			return nil, fmt.Errorf("models.%q: %w", name, err)
		}
		prices[name] = p
	}
	return newTable(asOf, prices), nil
}

func parseModel(name string, raw json.RawMessage) (Price, error) {
	if !strings.Contains(name, "/") {
		return Price{}, fmt.Errorf("a model is written provider/model, or provider/*")
	}
	o, err := decode(raw)
	if err != nil {
		return Price{}, err
	}
	if err := o.only(append(rateKeys(), "batch", "flex", "priority", "above", "max_output", "context", "retired", "note")...); err != nil {
		return Price{}, err
	}
	t, err := parseRates(o)
	if err != nil {
		return Price{}, err
	}
	p := Price{Rates: t.Rates, Batch: t.Batch, Flex: t.Flex, Priority: t.Priority}
	if p.MaxOutput, err = o.count("max_output"); err != nil {
		return Price{}, err
	}
	if p.Context, err = o.count("context"); err != nil {
		return Price{}, err
	}
	if raw, ok := o["retired"]; ok && json.Unmarshal(raw, &p.Retired) != nil {
		return Price{}, fmt.Errorf("retired: want true or false, not %s", text.Excerpt(raw, 40))
	}
	p.Above, err = parseAbove(o["above"])
	below := p.Audio
	for i := range p.Above {
		p.Above[i].hear(below)
		below = p.Above[i].Audio
	}
	return p, err
}

func parseAbove(raw json.RawMessage) ([]Tier, error) {
	if raw == nil {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("above: want a list of tiers, not %s", text.Excerpt(raw, 40))
	}
	var tiers []Tier
	for i, raw := range list {
		t, err := parseTier(raw)
		if err == nil && i > 0 && t.Over <= tiers[i-1].Over {
			err = fmt.Errorf("over: %d is not more than the tier before", t.Over)
		}
		if err != nil {
			return nil, fmt.Errorf("above[%d].%w", i, err)
		}
		tiers = append(tiers, t)
	}
	return tiers, nil
}

func parseTier(raw json.RawMessage) (t Tier, err error) {
	o, err := decode(raw)
	if err != nil {
		return t, err
	}
	if err = o.only(append(rateKeys(), "batch", "flex", "priority", "over")...); err != nil {
		return t, err
	}
	if t.Over, err = o.count("over"); err != nil {
		return t, err
	}
	if t.Over == 0 {
		return t, fmt.Errorf("over: want a number of input tokens")
	}
	over := t.Over
	t, err = parseRates(o)
	t.Over = over
	return t, err
}

func rateKeys() []string {
	return []string{"input", "cached", "cache_write", "cache_write_long", "output", "audio"}
}

// parseRates reads the rates in o, and those of its batch and its service tiers.
func parseRates(o object) (t Tier, err error) {
	if t.Rates, err = o.rates(rateKeys(), perMillion); err != nil {
		return t, err
	}
	for _, other := range []struct {
		key       string
		into      *Rates
		low, high float64
		example   string
	}{
		{"batch", &t.Batch, 0, 1, "0.5"}, {"flex", &t.Flex, 0, 1, "0.5"}, {"priority", &t.Priority, 1, 20, "2"},
	} {
		if *other.into, err = o.parsePart(other.key, t.Rates, other.low, other.high, other.example); err != nil {
			return t, err
		}
	}
	t.hear(t.Audio)
	return t, nil
}

// hear sets the rates of audio that are not given: those of batches and service tiers are the live one.
func (t *Tier) hear(audio llm.Money) {
	t.Audio = cmp.Or(t.Audio, audio)
	for _, r := range []*Rates{&t.Batch, &t.Flex, &t.Priority} {
		if *r != (Rates{}) {
			r.Audio = cmp.Or(r.Audio, t.Audio)
		}
	}
}

// parsePart reads rates that are a part of the live ones, or are given themselves.
func (o object) parsePart(key string, live Rates, low, high float64, example string) (r Rates, err error) {
	raw, ok := o[key]
	if !ok {
		return r, nil
	}
	var part float64
	if json.Unmarshal(raw, &part) == nil {
		if part <= 0 || part < low || part > high {
			return r, fmt.Errorf("%s: %v is not a part of the live price, such as %s", key, part, example)
		}
		return live.times(part), nil
	}
	b, err := decode(raw)
	if err == nil {
		err = b.only(rateKeys()...)
	}
	if err == nil {
		r, err = b.rates(rateKeys(), perMillion)
	}
	if err != nil {
		return r, fmt.Errorf("%s: want a part such as %s, or rates: %w", key, example, err)
	}
	return r, nil
}

func (o object) keys() []string { return slices.Sorted(maps.Keys(o)) }
