package price

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

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
