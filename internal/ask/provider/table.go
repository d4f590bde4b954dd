package provider

import (
	"slices"
	"strings"
	"sync"

	"parley/llm"
)

// capabilities is the table of what models refuse, as their vendors documented it in November 2026. The first match
// counts, so narrow patterns come before wide ones. OpenRouter, a gateway that hides differences, comes first.
var capabilities = sync.OnceValue(func() []Capability {
	return slices.Concat(
		openRouterTable(), openAITable(), azureTable(), anthropicTable(),
		overChat(geminiTable("gemini-openai/")), geminiTable("gemini*/"), geminiTable("vertex/"), compatibleTable(),
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

// overChat returns a table of Google's models for its endpoint of chat completions, whose documents have audio but no PDFs.
func overChat(t []Capability) []Capability {
	for i := range t {
		t[i].NoDocuments = true
	}
	return t
}

// compatibleTable lists the other providers, which speak OpenAI's chat completions, each with gaps. Of files in messages,
// most of their documents say nothing, or have a form of their own, as Mistral's document_url has: none are sent to them.
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

		// Cohere: "Using Cohere models via the OpenAI SDK", whose lists name what is supported and what is not. They have no
		// tool_choice, logprobs or stream_options. Only models that reason know an effort.
		{Match: "cohere/*reasoning*", UseMaxTokens: true, NoStreamOptions: true, NoLogprobs: true, NoForce: true, NoParallel: true, Efforts: []string{"none", "high"}},
		{Match: "cohere/*", UseMaxTokens: true, NoStreamOptions: true, NoLogprobs: true, NoForce: true, NoParallel: true},

		// Fireworks: the types of fireworks-ai 1.2.30, and its pages "OpenAI compatibility" and "Structured response formatting":
		// usage is in every stream, and models do not see a schema that is enforced. Efforts differ by model.
		{Match: "fireworks/*gpt-oss*", UseMaxTokens: true, NoStreamOptions: true, SchemaInPrompt: true, TopK: true, CacheKey: true, Efforts: []string{"low", "medium", "high"}},
		{Match: "fireworks/*minimax*", UseMaxTokens: true, NoStreamOptions: true, SchemaInPrompt: true, TopK: true, CacheKey: true, Efforts: []string{"low", "medium", "high"}},
		{Match: "fireworks/*", UseMaxTokens: true, NoStreamOptions: true, SchemaInPrompt: true, TopK: true, CacheKey: true, Efforts: []string{"none", "low", "medium", "high"}},

		// DeepSeek thinks by default, then ignores sampling, and knows JSON but no schema.
		{Match: "deepseek/*", NoSeed: true, NoSchema: true, NoPenalties: true, UseMaxTokens: true, SendReasoningBack: true, Efforts: []string{"low", "high", "max"}},

		mistral("magistral*", "none", "high"),
		mistral("mistral-small*", "none", "high"),
		mistral("mistral-medium*", "none", "high"),
		mistral("*"),

		{Match: "groq/openai/gpt-oss*", NoLogprobs: true, Efforts: []string{"low", "medium", "high"}, MaxOutput: 65_536},
		{Match: "groq/qwen/*", NoLogprobs: true, NoSchema: true, Efforts: []string{"none"}},
		{Match: "groq/moonshotai/*", NoLogprobs: true},
		{Match: "groq/*", NoLogprobs: true, NoSchema: true},

		{Match: "together/*", UseMaxTokens: true, TopK: true, Efforts: []string{"low", "medium", "high"}},

		{Match: "xai/*non-reasoning*"},
		{Match: "xai/grok-4.3*", NoPenalties: true, NoStop: true, NoLogprobs: true, Efforts: []string{"none", "low", "medium", "high"}},
		{Match: "xai/grok-4.5*", NoPenalties: true, NoStop: true, NoLogprobs: true, Efforts: []string{"low", "medium", "high"}},
		{Match: "xai/grok-3-mini*", NoPenalties: true, NoStop: true, Efforts: []string{"low", "high"}},
		{Match: "xai/grok-3*"},
		{Match: "xai/*", NoPenalties: true, NoStop: true, NoLogprobs: true},

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

// mistral describes models of Mistral, which answers 422 to any field that it does not know. The fields are those of the types of
// mistralai 3.7.0. It refuses ids of tool calls that other vendors gave.
func mistral(match string, efforts ...string) Capability {
	return Capability{
		Match: "mistral/" + match, UseMaxTokens: true, SeedField: "random_seed", NoStreamOptions: true, TopK: true, CacheKey: true,
		Prefix: true, ShortIDs: true, Efforts: efforts,
	}
}
