package provider

import (
	"net/url"
	"slices"
	"strings"

	"parley/llm"
)

// Capability says what the models that match a pattern refuse or name differently. A zero field means the dialect's
// normal behaviour.
type Capability struct {
	// Match is a pattern over provider/model, such as openai/gpt-5* or */claude-opus-*: * is any text, ? any one
	// character; case does not matter.
	Match string `json:"match"`

	NoSampling           bool `json:"no_sampling,omitempty"`             // temperature, top_p, top_k, penalties
	SamplingAtEffortNone bool `json:"sampling_at_effort_none,omitempty"` // NoSampling does not hold at effort none
	NoPenalties          bool `json:"no_penalties,omitempty"`            // frequency and presence penalties
	NoStop               bool `json:"no_stop,omitempty"`                 // stop sequences
	NoSeed               bool `json:"no_seed,omitempty"`                 // seed
	NoPrefill            bool `json:"no_prefill,omitempty"`              // a last message of the assistant's
	Prefix               bool `json:"prefix,omitempty"`                  // wants a prefilled answer marked as prefix
	NoSchema             bool `json:"no_schema,omitempty"`               // native structured output
	Schema               bool `json:"schema,omitempty"`                  // follows native schemas: the prompt need not hold them too
	SchemaInPrompt       bool `json:"schema_in_prompt,omitempty"`        // does not see native schemas: the prompt holds them too
	NoTools              bool `json:"no_tools,omitempty"`                // tool calls
	NoForce              bool `json:"no_force,omitempty"`                // being made to call a tool
	NoParallel           bool `json:"no_parallel,omitempty"`             // being asked for at most one tool call
	ShortIDs             bool `json:"short_ids,omitempty"`               // wants ids of tool calls of nine letters and digits
	NoToolEffort         bool `json:"no_tool_effort,omitempty"`          // thinking together with tools: effort none is sent
	NoDocuments          bool `json:"no_documents,omitempty"`            // PDFs in messages
	NoAudio              bool `json:"no_audio,omitempty"`                // recordings in messages
	FileLinks            bool `json:"file_links,omitempty"`              // reads PDFs by their address, in the openai dialect
	NoLogprobs           bool `json:"no_logprobs,omitempty"`             // log probabilities
	NoSystem             bool `json:"no_system,omitempty"`               // a system message: it is put before the first user message
	NoStreamOptions      bool `json:"no_stream_options,omitempty"`       // stream_options: usage is sent without being asked for
	TokenIDs             bool `json:"token_ids,omitempty"`               // can give token ids (vLLM, SGLang)
	SGLangTokenIDs       bool `json:"sglang_token_ids,omitempty"`        // gives token ids as SGLang does, in meta_info of whole answers only
	TopK                 bool `json:"top_k,omitempty"`                   // knows top_k, in the openai dialect
	CacheKey             bool `json:"cache_key,omitempty"`               // knows prompt_cache_key: Request.Session is sent as it
	CachePoint           bool `json:"cache_point,omitempty"`             // caches prompts up to a cachePoint, in the bedrock dialect
	SendReasoningBack    bool `json:"send_reasoning_back,omitempty"`     // wants its reasoning_content back
	UseMaxTokens         bool `json:"use_max_tokens,omitempty"`          // spells it max_tokens, not max_completion_tokens

	SeedField string   `json:"seed_field,omitempty"` // what it calls the seed. Default: seed
	Thinking  Thinking `json:"thinking,omitempty"`   // how thinking is switched on and off, in the anthropic and gemini dialects
	Efforts   []string `json:"efforts,omitempty"`    // the reasoning efforts it knows; empty: none
	MaxOutput int      `json:"max_output,omitempty"` // most output tokens; used where max_tokens is mandatory
}

// Thinking is how thinking is switched on and off in the anthropic dialect. In the gemini dialect, it is budget for models
// that have a budget of tokens instead of levels.
type Thinking string

// The ways to think.
const (
	ThinkingBudget   Thinking = "budget"   // off unless given a budget of tokens
	ThinkingAdaptive Thinking = "adaptive" // off unless asked to think as needed
	ThinkingDefault  Thinking = "default"  // on unless switched off
	ThinkingAlways   Thinking = "always"   // on
)

// Continues reports whether a model can continue an answer exactly: its server takes back the token ids that it gave, as vLLM
// does.
func (p Provider) Continues(model string) bool {
	c := p.Capability(model)
	return p.Dialect == "openai" && c.TokenIDs && !c.SGLangTokenIDs
}

// Capability returns what is known about a model: the first match of p's own Capabilities, then of the table. Without
// a match, a chat completions server that is not a preset's gets max_tokens: all of them know that name, and only newer
// ones the other.
func (p Provider) Capability(model string) Capability {
	name := p.Name + "/" + model
	for _, c := range p.Capabilities {
		if match(c.Match, name) {
			return c
		}
	}
	for _, c := range capabilities() {
		if match(c.Match, name) {
			return c
		}
	}
	return Capability{UseMaxTokens: p.Dialect == "openai" && !p.atPreset()}
}

// ReturnsTokens reports whether token ids are requested of a model: its server is known to return them.
func (p Provider) ReturnsTokens(model string) bool {
	_, name := llm.SplitModel(model)
	return p.InProcess() || p.Capability(name).TokenIDs
}

// FollowsSchema reports whether a model is known to follow a schema that is sent natively. Most servers silently ignore
// an unknown field, so nothing is assumed about an unknown server: the prompt must hold the schema too. Presets are
// known at their own addresses; presets for local servers at any address.
func (p Provider) FollowsSchema(model string) bool {
	switch c := p.Capability(model); {
	case c.NoSchema, c.SchemaInPrompt:
		return false
	case c.Schema, p.Dialect == "sim":
		return true
	}
	preset, ok := Lookup(p.Name)
	if !ok || preset.Dialect != p.Dialect {
		return false
	}
	own := preset.domain()
	if own == "localhost" {
		return true
	}
	for _, one := range p.Servers() {
		if host := hostOf(one.BaseURL); host != own && !strings.HasSuffix(host, "."+own) {
			return false
		}
	}
	return true
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// match reports whether name matches pattern.
func match(pattern, name string) bool {
	p, s := strings.ToLower(pattern), strings.ToLower(name)
	i, j, star, mark := 0, 0, -1, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == s[j]):
			i++
			j++
		case star >= 0: // the last star matches one more character
			i = star + 1
			mark++
			j = mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// Effort returns the reasoning effort nearest to e that the model knows, and false if it knows none. Of two equally near
// it returns the one nearer to high, as vendors with gaps in their scale do.
func (c Capability) Effort(e llm.Effort) (string, bool) {
	all := llm.Efforts()
	want, high := slices.Index(all, e), slices.Index(all, llm.EffortHigh)
	best, least := "", 2*len(all)
	for _, known := range c.Efforts {
		i := slices.Index(all, llm.Effort(known))
		if i < 0 || want < 0 {
			continue
		}
		if d := 2*abs(i-want) + min(1, abs(i-high)); d < least {
			best, least = known, d
		}
	}
	return best, best != ""
}

func abs(n int) int { return max(n, -n) }
