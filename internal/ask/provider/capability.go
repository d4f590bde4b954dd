package provider

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"parley/llm"
)

// Capability says what the models that match a pattern refuse or name differently. A zero field means the dialect's
// normal behaviour.
type Capability struct {
	Match string `json:"match" doc:"A pattern over provider/model: * is any text, ? any one character." required:"true" filled:"true"`

	NoSampling           bool `json:"no_sampling,omitempty" doc:"Refuses temperature, top_p, top_k and penalties." default:"false"`
	SamplingAtEffortNone bool `json:"sampling_at_effort_none,omitempty" doc:"no_sampling does not hold at effort none." default:"false"`
	NoPenalties          bool `json:"no_penalties,omitempty" doc:"Refuses frequency and presence penalties." default:"false"`
	NoStop               bool `json:"no_stop,omitempty" doc:"Refuses stop texts." default:"false"`
	NoSeed               bool `json:"no_seed,omitempty" doc:"Refuses a seed." default:"false"`
	NoPrefill            bool `json:"no_prefill,omitempty" doc:"Refuses an assistant message at the end." default:"false"`
	NoSchema             bool `json:"no_schema,omitempty" doc:"Has no native structured output." default:"false"`
	Schema               bool `json:"schema,omitempty" doc:"Follows the JSON Schema of a request (vLLM, SGLang and llama.cpp do), so that the prompt need not hold it too. Known of the presets." default:"false"`
	SchemaInPrompt       bool `json:"schema_in_prompt,omitempty" doc:"Enforces a schema that is sent natively, but does not see it: the prompt has it too." default:"false"`
	NoTools              bool `json:"no_tools,omitempty" doc:"Refuses tools." default:"false"`
	NoForce              bool `json:"no_force,omitempty" doc:"Refuses a forced tool call." default:"false"`
	NoParallel           bool `json:"no_parallel,omitempty" doc:"Refuses parallel_tool_calls." default:"false"`
	NoToolEffort         bool `json:"no_tool_effort,omitempty" doc:"Thinks without tools only: with tools, effort none is sent." default:"false"`
	NoDocuments          bool `json:"no_documents,omitempty" doc:"Takes no PDFs in messages." default:"false"`
	NoAudio              bool `json:"no_audio,omitempty" doc:"Takes no audio in messages." default:"false"`
	FileLinks            bool `json:"file_links,omitempty" doc:"Reads PDFs by their address, in the openai dialect." default:"false"`
	NoLogprobs           bool `json:"no_logprobs,omitempty" doc:"Reports no log probabilities." default:"false"`
	NoSystem             bool `json:"no_system,omitempty" doc:"Refuses a system message: it is put before the first message of the user." default:"false"`
	NoStreamOptions      bool `json:"no_stream_options,omitempty" doc:"Refuses stream_options." default:"false"`
	TokenIDs             bool `json:"token_ids,omitempty" doc:"Can report token ids (vLLM, SGLang)." default:"false"`
	SGLangTokenIDs       bool `json:"sglang_token_ids,omitempty" doc:"Reports token ids as SGLang does, only in answers that are not streamed." default:"false"`
	TopK                 bool `json:"top_k,omitempty" doc:"Knows top_k, in the openai dialect." default:"false"`
	CacheKey             bool `json:"cache_key,omitempty" doc:"Knows prompt_cache_key." default:"false"`
	CachePoint           bool `json:"cache_point,omitempty" doc:"Caches the prompt up to a cachePoint, in the dialect 'bedrock'." default:"false"`
	SendReasoningBack    bool `json:"send_reasoning_back,omitempty" doc:"Wants its reasoning_content back." default:"false"`
	UseMaxTokens         bool `json:"use_max_tokens,omitempty" doc:"Uses max_tokens, not max_completion_tokens." default:"false"`

	SeedField string   `json:"seed_field,omitempty" doc:"Its name for the seed." default:"seed"`
	Thinking  Thinking `json:"thinking,omitempty" doc:"How thinking is switched on and off, in the anthropic dialect." default:"by dialect" oneof:"adaptive,always,budget,default"`
	Efforts   []string `json:"efforts,omitempty" doc:"The reasoning efforts it knows." default:"none"`
	MaxOutput int      `json:"max_output,omitempty" doc:"The largest number of output tokens." default:"not known" range:"0..2147483647"`
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
		if Matches(c.Match, name) {
			return c
		}
	}
	for _, c := range capabilities() {
		if Matches(c.Match, name) {
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

// Matches reports whether a name matches a pattern, in which * is any text and ? any one byte. Case does not matter.
func Matches(pattern, name string) bool {
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

// capabilities is the table of what models refuse, as their vendors documented it in November 2026. The first match
// counts, so narrow patterns come before wide ones. OpenRouter, a gateway that hides differences, comes first.
var capabilities = sync.OnceValue(func() []Capability {
	return slices.Concat(
		openRouterTable(), openAITable(), azureTable(), anthropicTable(),
		geminiTable("gemini/"), geminiTable("vertex/"), compatibleTable(),
	)
})

// openRouterTable: OpenRouter drops what the model behind it refuses.
func openRouterTable() []Capability {
	return []Capability{{
		Match: "openrouter/*", UseMaxTokens: true, TopK: true, FileLinks: true,
		Efforts: []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"},
	}}
}

// openAITable: from GPT-5.4 on, chat completions accept tools only without thinking. Models that always think accept no
// tools there, and need the responses dialect. PDFs are read by models with vision, and recordings only by those named after
// audio ("File inputs" and "Audio and speech", November 2026).
func openAITable() []Capability {
	family := func(match string, efforts ...string) Capability {
		return Capability{
			Match: match, NoSampling: true, NoStop: true, NoSeed: true, NoLogprobs: true, CacheKey: true, NoAudio: true,
			Efforts: efforts, MaxOutput: 128_000,
		}
	}
	atNone := func(c Capability) Capability { c.SamplingAtEffortNone = true; return c }
	noTools := func(c Capability) Capability { c.NoTools = true; return c }
	noDocuments := func(c Capability) Capability { c.NoDocuments = true; return c }
	noToolEffort := func(c Capability) Capability { c.NoToolEffort = true; return c }

	return []Capability{
		family("openai-responses/gpt-6-astra*", "low", "medium", "high", "xhigh", "max"),
		family("openai-responses/gpt-6.1-sol*", "low", "medium", "high", "xhigh", "max"),
		atNone(family("openai-responses/gpt-6*", "none", "low", "medium", "high", "xhigh", "max")),
		atNone(family("openai-responses/gpt-5.6*", "none", "low", "medium", "high", "xhigh", "max")),

		noTools(family("openai/gpt-6-astra*", "low", "medium", "high", "xhigh")),
		noTools(family("openai/gpt-6.1-sol*", "low", "medium", "high", "xhigh")),
		atNone(noToolEffort(family("openai/gpt-6*", "none", "low", "medium", "high", "xhigh"))),
		atNone(noToolEffort(family("openai/gpt-5.6*", "none", "low", "medium", "high", "xhigh"))),
		atNone(noToolEffort(family("openai/gpt-5.5*", "none", "low", "medium", "high", "xhigh"))),
		atNone(noToolEffort(family("openai/gpt-5.4*", "none", "low", "medium", "high", "xhigh"))),

		{Match: "openai*/gpt-5*-chat-latest", NoSampling: true, NoStop: true, CacheKey: true, NoAudio: true, MaxOutput: 16_384},
		family("openai*/gpt-5*-pro*", "medium", "high", "xhigh"),
		atNone(family("openai*/gpt-5.5*", "none", "low", "medium", "high", "xhigh")),
		atNone(family("openai*/gpt-5.4*", "none", "low", "medium", "high", "xhigh")),
		atNone(family("openai*/gpt-5.3*", "none", "low", "medium", "high", "xhigh")),
		atNone(family("openai*/gpt-5.2*", "none", "low", "medium", "high", "xhigh")),
		atNone(family("openai*/gpt-5.1*", "none", "low", "medium", "high")),
		family("openai*/gpt-5*", "minimal", "low", "medium", "high"),
		{Match: "openai*/o1-mini*", NoSampling: true, NoStop: true, NoSeed: true, NoLogprobs: true, NoSystem: true, NoSchema: true, NoTools: true, NoDocuments: true, NoAudio: true},
		family("openai*/o1*", "low", "medium", "high"),
		noDocuments(family("openai*/o3-mini*", "low", "medium", "high")),
		family("openai*/o3*", "low", "medium", "high"),
		family("openai*/o4*", "low", "medium", "high"),
		{Match: "openai*/gpt-audio*", CacheKey: true, NoDocuments: true},
		{Match: "openai*/*-audio-preview*", CacheKey: true, NoDocuments: true},
		{Match: "openai*/gpt-3.5*", CacheKey: true, NoDocuments: true, NoAudio: true},
		{Match: "openai*/gpt-4", CacheKey: true, NoDocuments: true, NoAudio: true},
		{Match: "openai*/gpt-4-*", CacheKey: true, NoDocuments: true, NoAudio: true},
		{Match: "openai*/*", CacheKey: true, NoAudio: true},
	}
}

// azureTable is that of OpenAI for deployments that are named as their models. Whether each version of Azure's API knows
// prompt_cache_key is not documented, so it is not sent.
func azureTable() []Capability {
	t := openAITable()
	for i := range t {
		t[i].Match, t[i].CacheKey = "azure"+strings.TrimPrefix(t[i].Match, "openai"), false
	}
	return t
}

// anthropicTable: models from Opus 4.7 and Sonnet 5 on refuse sampling parameters, those from 4.6 on a prefilled answer.
// The newest always think, and so refuse a forced tool call.
func anthropicTable() []Capability {
	five := []string{"low", "medium", "high", "xhigh", "max"}
	newest := func(match string, t Thinking) Capability {
		return Capability{
			Match: match, NoSampling: true, NoPrefill: true, NoForce: t == ThinkingAlways,
			Thinking: t, Efforts: five, MaxOutput: 128_000,
		}
	}
	return []Capability{
		newest("*/claude-fable-*", ThinkingAlways),
		newest("*/claude-mythos-*", ThinkingAlways),
		newest("*/claude-opus-5?5*", ThinkingAlways),
		newest("*/claude-sonnet-5?5*", ThinkingAlways),
		newest("*/claude-haiku-5*", ThinkingDefault),
		newest("*/claude-opus-5*", ThinkingDefault),
		newest("*/claude-sonnet-5*", ThinkingDefault),
		newest("*/claude-opus-4?7*", ThinkingAdaptive),
		newest("*/claude-opus-4?8*", ThinkingAdaptive),
		{Match: "*/claude-opus-4?6*", NoPrefill: true, Thinking: ThinkingAdaptive, Efforts: []string{"low", "medium", "high", "max"}, MaxOutput: 128_000},
		{Match: "*/claude-sonnet-4?6*", NoPrefill: true, Thinking: ThinkingAdaptive, Efforts: []string{"low", "medium", "high", "max"}, MaxOutput: 64_000},
		{Match: "*/claude-opus-4?5*", Thinking: ThinkingBudget, Efforts: []string{"low", "medium", "high"}, MaxOutput: 64_000},
		{Match: "*/claude-sonnet-4?5*", Thinking: ThinkingBudget, MaxOutput: 64_000},
		{Match: "*/claude-haiku-4?5*", Thinking: ThinkingBudget, MaxOutput: 64_000},
		{Match: "*/claude-opus-4?1*", Thinking: ThinkingBudget, MaxOutput: 32_000},
		{Match: "*/claude-opus-4*", NoSchema: true, Thinking: ThinkingBudget, MaxOutput: 32_000},
		{Match: "*/claude-sonnet-4*", NoSchema: true, Thinking: ThinkingBudget, MaxOutput: 64_000},
		{Match: "*/claude-3?7*", NoSchema: true, Thinking: ThinkingBudget, MaxOutput: 64_000},
		{Match: "*/claude-3?5*", NoSchema: true, MaxOutput: 8_192},
		{Match: "*/claude-3*", NoSchema: true, NoDocuments: true, MaxOutput: 4_096},
	}
}

// geminiTable lists Google's models, at providers that begin with prefix.
func geminiTable(prefix string) []Capability {
	return []Capability{
		{Match: prefix + "gemini-2.5-pro*", NoPenalties: true, NoSeed: true, NoLogprobs: true, Thinking: ThinkingBudget, Efforts: []string{"low", "medium", "high"}, MaxOutput: 65_536},
		{Match: prefix + "gemini-2.5*", NoPenalties: true, NoSeed: true, NoLogprobs: true, Thinking: ThinkingBudget, Efforts: []string{"none", "low", "medium", "high"}, MaxOutput: 65_536},
		{Match: prefix + "gemini-3*-pro*", NoPenalties: true, NoSeed: true, NoLogprobs: true, Efforts: []string{"low", "medium", "high"}, MaxOutput: 65_536},
		{Match: prefix + "*", NoPenalties: true, NoSeed: true, NoLogprobs: true, Efforts: []string{"minimal", "low", "medium", "high"}, MaxOutput: 65_536},
	}
}

// compatibleTable lists the other providers, which speak OpenAI's chat completions, each with gaps. Of files in messages,
// most of their documents say nothing: none are sent to them.
func compatibleTable() []Capability {
	t := []Capability{
		// Which models of Bedrock follow a schema differs: say it with capabilities.
		// Which cache prompts is from the page "Prompt caching for faster model inference" of Amazon Bedrock; a model that does
		// not refuses a cache point.
		{Match: "bedrock/*anthropic.claude-3-5-haiku*", NoSchema: true, CachePoint: true, NoAudio: true},
		{Match: "bedrock/*anthropic.claude-3-7*", NoSchema: true, CachePoint: true, NoAudio: true},
		{Match: "bedrock/*anthropic.claude-3*", NoSchema: true, NoAudio: true},
		{Match: "bedrock/*anthropic.claude-opus*", NoSchema: true, CachePoint: true, NoAudio: true},
		{Match: "bedrock/*anthropic.claude-sonnet*", NoSchema: true, CachePoint: true, NoAudio: true},
		{Match: "bedrock/*anthropic.claude-haiku*", NoSchema: true, CachePoint: true, NoAudio: true},
		{Match: "bedrock/*amazon.nova-*", NoSchema: true, CachePoint: true, NoAudio: true},
		{Match: "bedrock/*voxtral*", NoSchema: true, NoDocuments: true},
		{Match: "bedrock/*", NoSchema: true, NoAudio: true},

		// DeepSeek thinks by default, then ignores sampling, and knows JSON but no schema.
		{Match: "deepseek/*", NoSeed: true, NoSchema: true, NoPenalties: true, UseMaxTokens: true, SendReasoningBack: true, Efforts: []string{"low", "high", "max"}},

		{Match: "groq/openai/gpt-oss*", NoLogprobs: true, Efforts: []string{"low", "medium", "high"}, MaxOutput: 65_536},
		{Match: "groq/qwen/*", NoLogprobs: true, NoSchema: true, Efforts: []string{"none"}},
		{Match: "groq/moonshotai/*", NoLogprobs: true},
		{Match: "groq/*", NoLogprobs: true, NoSchema: true},

		// Ollama ignores tool_choice.
		{Match: "ollama/*", UseMaxTokens: true, NoForce: true, Efforts: []string{"none", "low", "medium", "high"}},
		{Match: "vllm/*", NoDocuments: true, TopK: true, TokenIDs: true, Efforts: []string{"none", "low", "medium", "high"}},
		{Match: "sglang/*", TopK: true, TokenIDs: true, SGLangTokenIDs: true, Efforts: []string{"none", "low", "medium", "high"}},
	}
	for i := range t {
		if name, _ := llm.SplitModel(t[i].Match); name != "bedrock" && name != "vllm" {
			t[i].NoDocuments, t[i].NoAudio = true, true
		}
	}
	return t
}

// maxBedrockBytes is how large a document of Bedrock's Converse API may be: 4.5 MB, as AWS documents.
const maxBedrockBytes = 4_500_000

// Unfit says why a model that is asked in a dialect cannot take a file, and what to do about it. It returns "" if it can,
// or if nothing is known against it. What the formats hold is from the vendors' references and SDKs of November 2026: chat
// completions take PDFs and recordings as content, responses take PDFs by content or address, messages of Anthropic too,
// Gemini takes everything, and Bedrock only content.
func (c Capability) Unfit(dialect string, f *llm.File) string {
	if err := f.Check(); err != nil {
		return err.Error()
	}
	link := len(f.Data) == 0
	switch {
	case f.IsAudio() && (c.NoAudio || dialect == "anthropic" || dialect == "responses"):
		return "the model takes no audio: send a transcript as text, or ask one that does, such as gemini/gemini-2.5-flash or openai/gpt-audio"
	case !f.IsAudio() && c.NoDocuments:
		return "the model takes no PDFs: send its text, or its pages as images, or ask one that does, such as gemini/gemini-2.5-flash"
	case link && f.IsAudio() && dialect != "gemini" && dialect != "sim":
		return "audio is taken only by content: give its data instead of its address"
	case link && (dialect == "openai" && !c.FileLinks || dialect == "bedrock"):
		return "a PDF is taken only by content: give it as a data: URL instead of its address"
	case dialect == "bedrock" && len(f.Data) > maxBedrockBytes && !f.IsAudio():
		return fmt.Sprintf("Bedrock takes documents of at most %d bytes: split it", maxBedrockBytes)
	}
	return ""
}

// Misfit says which file of a request cannot be sent to its model in a dialect, and why. It returns "" if there is none.
func (c Capability) Misfit(dialect string, req *llm.Request) string {
	for i := range req.Messages {
		m := &req.Messages[i]
		for k := range m.Parts {
			f := m.Parts[k].File
			if f == nil {
				continue
			}
			if why := cmp.Or(c.Unfit(dialect, f), misplaced(dialect, m, f)); why != "" {
				return fmt.Sprintf("messages[%d].content[%d], %v, cannot be sent to %s: %s", i, k, f, req.Model, why)
			}
		}
	}
	return ""
}

// Misfit does the same for a model of p.
func (p Provider) Misfit(req *llm.Request) string {
	_, model := llm.SplitModel(req.Model)
	return p.Capability(model).Misfit(p.Dialect, req)
}

// misplaced says why a file cannot be in a message.
func misplaced(dialect string, m *llm.Message, f *llm.File) string {
	switch {
	case dialect == "sim" || dialect == "go":
		return "" // no format says where files may be
	case dialect == "bedrock" && m.Role == llm.RoleUser && !f.IsAudio() && m.Text() == "":
		return "add a text to the message: Bedrock wants one beside a document"
	case m.Role == llm.RoleUser:
		return ""
	case m.Role != llm.RoleTool:
		return "put it into a message of the user: those of the " + string(m.Role) + " have only text"
	case dialect == "openai" || dialect == "bedrock" && f.IsAudio():
		return "put it into a message of the user after the result of the tool: results have no such files in this format"
	}
	return ""
}
