package price

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
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
		return nil, err
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
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("%s: is larger than %s", name, files.Size(maxFile))
	}
	t, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
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
		p.Above[i].addAudio(below)
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
	t.addAudio(t.Audio)
	return t, nil
}

// addAudio sets the rates of audio that are not given: those of batches and service tiers are the live one.
func (t *Tier) addAudio(audio llm.Money) {
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

// object is a JSON object read key by key, so that errors can name the key.
type object map[string]json.RawMessage

func decode(b []byte) (object, error) {
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	return o, nil
}

// only refuses unknown keys, since a misspelled price is a wrong bill.
func (o object) only(known ...string) error {
	for _, k := range o.keys() {
		if !slices.Contains(known, k) {
			return fmt.Errorf("%s: unknown key; want one of %s", k, strings.Join(known, ", "))
		}
	}
	return nil
}

// Scales convert the numbers of a file to Money per million tokens.
const (
	perMillion = float64(llm.Dollar)
	perToken   = float64(llm.Dollar) * million
)

// maxRate is higher than any price, and low enough for exact arithmetic.
const maxRate = million * llm.Dollar

// rates reads the rates under the given keys, in the order of rateKeys. Input and output are required; those of caches
// default to the more expensive one before them, and that of audio is 0 if it is not known.
func (o object) rates(keys []string, scale float64) (Rates, error) {
	var r Rates
	to := []*llm.Money{&r.Input, &r.Cached, &r.CacheWrite, &r.CacheWriteLong, &r.Output, &r.Audio}
	for i, key := range keys {
		m, found, err := o.money(key, scale)
		if err != nil {
			return r, err
		}
		switch {
		case found:
			*to[i] = m
		case to[i] == &r.Input || to[i] == &r.Output:
			return r, fmt.Errorf("%s: missing", key)
		case to[i] == &r.CacheWriteLong:
			*to[i] = max(r.Input, r.CacheWrite)
		case to[i] != &r.Audio:
			*to[i] = r.Input
		}
	}
	return r, nil
}

func (o object) money(key string, scale float64) (llm.Money, bool, error) {
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return 0, false, nil
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil {
		return 0, false, fmt.Errorf("%s: want a price in dollars, not %s", key, text.Excerpt(raw, 40))
	}
	m := math.Round(f * scale)
	if m < 0 || m > float64(maxRate) {
		return 0, false, fmt.Errorf("%s: %s is not a price", key, text.Excerpt(raw, 40))
	}
	return llm.Money(m), true, nil
}

// count reads a whole number of tokens; 0 if it is missing.
func (o object) count(key string) (int, error) {
	raw, ok := o[key]
	if !ok {
		return 0, nil
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || f < 1 || f > 1e12 {
		return 0, fmt.Errorf("%s: want a number of tokens, not %s", key, text.Excerpt(raw, 40))
	}
	return int(f), nil
}

// parseLiteLLM reads LiteLLM's price list. The list covers everything from chat to speech: entries that are not text
// models priced by the token are skipped.
func parseLiteLLM(top object) (*Table, error) {
	prices := map[string]Price{}
	for _, key := range top.keys() {
		if key == "sample_spec" {
			continue // LiteLLM's own explanation of the fields
		}
		o, err := decode(top[key])
		if err != nil {
			return nil, fmt.Errorf("%q: %w; want our own format (a key \"models\") or LiteLLM's", key, err)
		}
		if !o.isText() {
			continue
		}
		p, err := o.liteLLM()
		if err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		prices[o.liteLLMName(key)] = p
	}
	if len(prices) == 0 {
		return nil, fmt.Errorf("no prices: want our own format (a key \"models\") or LiteLLM's (input_cost_per_token, …)")
	}
	return newTable("", prices), nil
}

// isText reports whether the entry is a model that answers in text and is priced by the token.
func (o object) isText() bool {
	var mode string
	_ = json.Unmarshal(o["mode"], &mode)
	_, in := o["input_cost_per_token"]
	_, out := o["output_cost_per_token"]
	return in && out && (mode == "" || mode == "chat" || mode == "completion" || mode == "responses")
}

// liteLLMName returns provider/model: LiteLLM omits the provider in some keys.
func (o object) liteLLMName(key string) string {
	var provider string
	_ = json.Unmarshal(o["litellm_provider"], &provider)
	switch provider {
	case "":
		return key
	case "text-completion-openai":
		provider = "openai"
	}
	name := strings.TrimPrefix(key, provider+"/")
	for _, own := range presets() {
		if provider == own.provider {
			return own.preset + "/" + strings.TrimPrefix(name, own.before)
		}
	}
	return provider + "/" + name
}

// presets lists LiteLLM's providers that are presets here under another name, and what its keys have before the model.
func presets() []struct{ provider, preset, before string } {
	return []struct{ provider, preset, before string }{
		{"bedrock_converse", "bedrock", "bedrock/"}, {"bedrock", "bedrock", "bedrock/"}, {"cohere_chat", "cohere", "cohere/"}, {"fireworks_ai", "fireworks", "fireworks_ai/"},
		{"vertex_ai-language-models", "vertex", "vertex_ai/"}, {"vertex_ai-anthropic_models", "vertex-anthropic", "vertex_ai/"},
	}
}

// liteLLMKeys returns LiteLLM's names for the rates, in the order of rateKeys.
func liteLLMKeys() []string {
	return []string{
		"input_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost",
		"cache_creation_input_token_cost_above_1hr", "output_cost_per_token", "input_cost_per_audio_token",
	}
}

func (o object) liteLLM() (Price, error) {
	tiers, err := o.liteLLMTiers()
	if err != nil {
		return Price{}, err
	}
	p := Price{Rates: tiers[0].Rates, Batch: tiers[0].Batch, Flex: tiers[0].Flex, Priority: tiers[0].Priority}
	if len(tiers) > 1 {
		p.Above = tiers[1:]
	}
	p.MaxOutput, _ = o.count("max_output_tokens") // some entries hold words here
	p.Context, _ = o.count("max_input_tokens")
	return p, nil
}

// liteLLMTiers returns the base rates and those for long prompts. A missing rate of a long tier is that of the tier
// below, and a missing rate of a batch or a service tier is the live one.
func (o object) liteLLMTiers() ([]Tier, error) {
	all := map[string]map[int]object{"": {0: {}}, "batches": {}, "flex": {}, "priority": {}}
	for _, key := range o.keys() {
		name, over, kind := splitLiteLLM(key)
		if !slices.Contains(liteLLMKeys(), name) {
			continue
		}
		into := all[kind]
		if into[over] == nil {
			into[over] = object{}
		}
		into[over][name] = o[key]
	}
	var tiers []Tier
	below := object{}
	for _, over := range rising(all) {
		below = below.over(all[""][over])
		t := Tier{Over: over}
		var err error
		if t.Rates, err = below.rates(liteLLMKeys(), perToken); err != nil {
			return nil, err
		}
		for kind, into := range map[string]*Rates{"batches": &t.Batch, "flex": &t.Flex, "priority": &t.Priority} {
			b := all[kind][over]
			if b == nil {
				continue
			}
			if *into, err = below.over(b).rates(liteLLMKeys(), perToken); err != nil {
				return nil, err
			}
		}
		tiers = append(tiers, t)
	}
	return tiers, nil
}

// splitLiteLLM splits keys such as input_cost_per_token_above_272k_tokens_batches. The kind is batches, flex, priority or
// "".
func splitLiteLLM(key string) (name string, over int, kind string) {
	name = key
	for _, k := range []string{"batches", "flex", "priority"} {
		if short, ok := strings.CutSuffix(key, "_"+k); ok {
			name, kind = short, k
		}
	}
	short, ok := strings.CutSuffix(name, "k_tokens")
	at := strings.LastIndex(short, "_above_")
	if !ok || at < 0 {
		return name, 0, kind
	}
	n, err := strconv.Atoi(short[at+len("_above_"):])
	if err != nil || n <= 0 || n > million {
		return name, 0, kind
	}
	return short[:at], n * 1000, kind
}

// over returns o with the keys of top on top.
func (o object) over(top object) object {
	out := make(object, len(o)+len(top))
	maps.Copy(out, o)
	maps.Copy(out, top)
	return out
}

// rising returns the keys of all maps in order, without duplicates.
func rising(all map[string]map[int]object) (keys []int) {
	for _, m := range all {
		keys = slices.AppendSeq(keys, maps.Keys(m))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
