package config

import (
	"math"
	"slices"
	"strings"

	"parley/internal/provider"
	"parley/internal/yamltree"
	"parley/llm"
)

// keys is the table of everything a plan file may hold. params is the shape of the kind's params.
// The order is that of the reference.
func keys(kinds []string, params *shape) *shape {
	s := record(
		key{name: "kind", shape: words(kinds...), needed: true, doc: "What is played. `parley worlds` lists the kinds.", also: []string{"world", "game", "type"}},
		key{name: "seed", shape: whole(0, math.MaxUint64), preset: "1", doc: "What all chance of the run depends on: the same plan with the same seed and the same replies comes to the same outcomes.", also: []string{"random_seed"}},
		key{name: "episodes", shape: whole(1, maxEpisodes), preset: "1", doc: "How many episodes to play with the lineup. Not together with plan.", also: []string{"games", "count", "repeat", "runs"}},
		key{name: "plan", shape: planKeys(params), preset: "none", doc: "Which episodes to play, where their number alone does not say it. Not together with episodes."},
		key{name: "providers", shape: dict("NAME", providerKeys()), preset: "the presets", doc: "Accounts at model endpoints. The presets (" + presetNames() + ") are known without being listed; listed under its name, a preset keeps what is not given.", also: []string{"endpoints", "provider"}},
		key{name: "agents", shape: agentsShape(), needed: true, doc: "Who plays, by names of your choice. A text instead of the keys is the model: `quiet: sim/small`.", also: []string{"players", "models", "agent"}},
		key{name: "lineup", shape: dict("SEAT", word()), preset: "the only agent, in every seat", doc: "Which agent sits in which seat. The seats are the kind's; a matrix fills the seats that are left out.", also: []string{"seats", "roles"}},
		key{name: "params", shape: params, preset: "the kind's", doc: "The parameters of the kind. `parley init KIND` writes them all with their meaning.", also: []string{"parameters", "settings", "options", "config"}},
		key{name: "limits", shape: record(
			key{name: "concurrency", shape: whole(1, 1_000_000), preset: "what the providers bear", doc: "The most calls in flight over all providers.", also: []string{"calls", "parallel", "workers"}},
			key{name: "live", shape: whole(1, 1_000_000), preset: "20000", doc: "The most episodes begun and not ended."},
		), doc: "Bounds of the whole run. Those of an account stand under providers.NAME.limits."},
		key{name: "budget", shape: ratio(0.0001, 1e9), preset: "none", doc: "The most the run may cost, in US dollars. When the next call might not fit, the run stops and can be resumed. A server that gives more than it was asked for can exceed it, within the bounds that docs/how-to/providers.md states.", also: []string{"max_cost", "cost"}},
		key{name: "episode_budget", shape: ratio(0.0001, 1e9), preset: "none", doc: "The most an episode may cost, in US dollars. One that might cost more with its next calls ends as failed, and says so; the others go on. It cannot change when a run is played on.", also: []string{"budget_per_episode", "cost_per_run_limit", "max_cost_per_episode"}},
		key{name: "cache", shape: word(), preset: "off", doc: "The path of a file that keeps answers for other runs, from the plan file's folder, or off."},
		key{name: "pace", shape: words("free", "wave"), preset: "free", doc: "free: each episode goes on as soon as its own turn is answered. wave: calls are made only when every live episode waits for one, all of them together."},
		key{name: "batch", shape: record(
			key{name: "lane", shape: words("auto", "batch", "live"), preset: "auto", doc: "auto: a wave's calls of a model go over the batch API where there are many and there is time. batch: wherever there is a batch API. live: never; batches that are open are still collected."},
			key{name: "min", shape: whole(1, 1_000_000), preset: "100, and 2 with batch", doc: "The least calls of one model that are worth a batch; fewer are asked live."},
			key{name: "deadline", shape: span(), preset: "the provider's, a day", doc: "How long a wave may take over its batches. What is not answered by then is cancelled and asked live."},
			key{name: "poll", shape: span(), preset: "2s", doc: "How long to wait before looking at a batch again; later looks are further apart, up to thirty times that."},
			key{name: "cancel", shape: truth(), preset: "false", doc: "Whether open batches are cancelled at the provider when the run is aborted with a second Ctrl-C. What they have answered is billed and collected later."},
		), preset: "auto", doc: "How waves go over the providers' batch APIs, at half the price."},
		key{name: "retry", shape: record(
			key{name: "unreachable", shape: spanOrNone(), preset: "10m", doc: "How long a provider that cannot be reached is waited for: connections are refused, a proxy answers 502 to 504 in its place, or it is still loading its model. The other providers go on; after that the run stops and can be resumed. 0s does not wait."},
		), doc: "How failures are tried again."},
		key{name: "prices", shape: word(), preset: "the built-in prices", doc: "The path of a file of prices, from the plan file's folder."},
		key{name: "out", shape: word(), preset: "beside the plan file, named after it", doc: "The path of the run file, from the plan file's folder.", also: []string{"output", "file"}},
	)
	s.apart = [2]string{"episodes", "plan"}
	return s
}

func planKeys(params *shape) *shape {
	s := record(
		key{name: "matrix", shape: matrixKeys(params), doc: "Every way to put agents into seats, with every setting of params."},
		key{name: "until", shape: untilKeys(), doc: "Plays on until a score is known well enough. Together with matrix: in each of its cells."},
	)
	s.least = 1
	return s
}

func matrixKeys(params *shape) *shape {
	names := &shape{form: yamltree.List, elem: word(), least: 1}
	return record(
		key{name: "agents", shape: names, preset: "none; the lineup stays as it is", doc: "The agents to put into the seats, in every way."},
		key{name: "seats", shape: names, preset: "those that lineup leaves empty", doc: "The seats to put them into. All other seats are filled by lineup."},
		key{name: "lineup", shape: dict("SEAT", names), preset: "none", doc: "Agents to try in a seat, a list for each seat: every combination of them is played."},
		key{name: "lineups", shape: &shape{form: yamltree.List, elem: dict("SEAT", word()), least: 1}, preset: "none", doc: "The lineups to play, one by one, each a mapping of seats to agents. Not together with agents."},
		key{name: "self", shape: truth(), preset: "false", doc: "Whether an agent may sit in several of the seats, and so play itself."},
		key{name: "swap", shape: truth(), preset: "true", doc: "Whether the same agents are also played in other seats: both ways round, with two."},
		key{name: "rotate", shape: words("latin", "williams"), preset: "none: as swap says", doc: "Moves agents round the seats with few lineups, so that every agent sits in every seat equally often. latin: as many lineups as agents (a Latin square). williams: each agent also follows each other one equally often; twice as many lineups for an odd number of agents. With lineups, each of these is moved round its seats."},
		key{name: "params", shape: grid(params), preset: "none", doc: "Values to try, a list for each param, or for what stands within one, as `set.turns`: every combination of them is played."},
		key{name: "variations", shape: dict("NAME", variationKeys(params)), preset: "none", doc: "Settings that belong together, by names of your choice: each is played with every lineup and every combination of params.", also: []string{"variants", "conditions", "arms"}},
		key{name: "repeat", shape: whole(1, maxEpisodes), preset: "1", doc: "How many episodes to play of each cell. Not together with until.", also: []string{"episodes", "repetitions"}},
	)
}

func variationKeys(params *shape) *shape {
	own := *params
	own.keys = slices.Clone(params.keys)
	for i := range own.keys {
		own.keys[i].needed, own.keys[i].preset = false, "the plan's"
	}
	return record(
		key{name: "params", shape: &own, preset: "none", doc: "What differs from the plan's params. Mappings are merged; lists are replaced."},
		key{name: "lineup", shape: dict("SEAT", word()), preset: "none", doc: "Who sits in seats that the matrix does not fill otherwise, in place of the plan's lineup."},
		key{name: "tags", shape: dict("TAG", word()), preset: "none", doc: "Names and values of your choice to group scores by, as for agents."},
	)
}

func untilKeys() *shape {
	s := record(
		key{name: "score", shape: word(), needed: true, doc: "The name of the score."},
		key{name: "seat", shape: word(), preset: "the score of the whole episode", doc: "Whose score. Not together with agent."},
		key{name: "agent", shape: word(), preset: "the score of the whole episode", doc: "Whose score, wherever it sits. Not together with seat."},
		key{name: "width", shape: &shape{form: yamltree.Number, min: 0, max: math.MaxFloat64, above: true}, needed: true, doc: "Half the width of the interval to reach: 0.05 for ±0.05."},
		key{name: "confidence", shape: &shape{form: yamltree.Number, min: 0, max: 1, above: true, below: true}, preset: "0.95", doc: "The confidence of the interval."},
		key{name: "min", shape: whole(2, maxEpisodes), preset: "30", doc: "The least episodes of a cell."},
		key{name: "max", shape: whole(2, maxEpisodes), preset: "1000", doc: "The most episodes of a cell."},
		key{name: "step", shape: whole(1, maxEpisodes), preset: "min", doc: "How many more to play at a time."},
	)
	s.apart = [2]string{"seat", "agent"}
	return s
}

func agentsShape() *shape {
	agent := record(
		key{name: "model", shape: word(), doc: "The model, written provider/model. An agent has a model or a bot."},
		key{name: "bot", shape: word(), doc: "One of the kind's bots: an agent without a model behind it."},
		key{name: "system", shape: words(), preset: "none", doc: "A system prompt, put before everything the world says.", also: []string{"prompt", "system_prompt", "instructions"}},
		key{name: "temperature", shape: ratio(0, 2), preset: "the provider's", doc: "The sampling temperature.", also: []string{"temp"}},
		key{name: "top_p", shape: &shape{form: yamltree.Number, min: 0, max: 1}, preset: "the provider's", doc: "Nucleus sampling: the share of probability that is drawn from."},
		key{name: "max_tokens", shape: count(), preset: "the world's, or the provider's", doc: "The most tokens of an answer, reasoning included.", also: []string{"max_output_tokens", "max_completion_tokens"}},
		key{name: "effort", shape: words(efforts()...), preset: "the provider's", doc: "How long a reasoning model may think.", also: []string{"reasoning_effort", "reasoning", "thinking"}},
		key{name: "seed", shape: whole(math.MinInt64, math.MaxInt64), preset: "none", doc: "A seed that is sent to providers that take one."},
		key{name: "stop", shape: listOf(word()), preset: "none", doc: "Texts at which an answer ends."},
		key{name: "fallbacks", shape: listOf(word()), preset: "none", doc: "Models asked in turn when this one cannot answer.", also: []string{"fallback"}},
		key{name: "trainable", shape: truth(), preset: "false", doc: "Whether the agent's turns are wanted as training data.", also: []string{"train"}},
		key{name: "tags", shape: dict("TAG", word()), preset: "none", doc: "Names and values of your choice to group scores by, as `prompt: terse`: see `--by` of report and compare. They do not change how the agent plays.", also: []string{"tag", "labels", "factors"}},
	)
	agent.short, agent.apart, agent.either = "model", [2]string{"model", "bot"}, true
	all := dict("NAME", agent)
	all.least = 1
	return all
}

func limitKeys() *shape {
	rate := &shape{form: yamltree.Number, min: 0, max: math.MaxFloat64}
	return record(
		key{name: "rpm", shape: rate, preset: "learned from the server", doc: "Requests a minute."},
		key{name: "tpm", shape: rate, preset: "learned from the server", doc: "Tokens a minute, input and output together."},
		key{name: "itpm", shape: rate, preset: "learned from the server", doc: "Input tokens a minute."},
		key{name: "otpm", shape: rate, preset: "learned from the server", doc: "Output tokens a minute."},
		key{name: "concurrency", shape: whole(0, 1_000_000), preset: "found by trying, from 16 up", doc: "The most calls in flight.", also: []string{"parallel", "workers"}},
	)
}

func providerKeys() *shape {
	return record(
		key{name: "dialect", shape: words(provider.Dialects()...), preset: "the preset's", doc: "The wire format; go is for models that a Go program brings as values. Needed unless NAME is a preset.", also: []string{"type", "format", "api"}},
		key{name: "base_url", shape: words(), preset: "the preset's", doc: "The address before /chat/completions, /responses or /messages: it ends in /v1 for most. Needed unless NAME is a preset or the dialect sim.", also: []string{"url", "endpoint", "api_base", "host", "address"}},
		key{name: "base_urls", shape: listOf(word()), preset: "none", doc: "The addresses of several servers that serve the same models, in the place of base_url. The calls of an episode stay on one of them; limits hold for each.", also: []string{"urls", "replicas", "servers"}},
		key{name: "session", shape: words("none", "header", "path"), preset: "none", doc: "How a server is told which calls belong to one episode: header sends X-Session-Id, path puts the name into the address (base_url/SESSION/chat/completions)."},
		key{name: "close_session", shape: truth(), preset: "false", doc: "Whether a server is told when an episode is over, with a POST to base_url/SESSION/close. Wants session: path."},
		key{name: "metrics", shape: words(), preset: "none", doc: "The path of a server's page for Prometheus (vLLM, SGLang: /metrics). The number of calls in flight then follows what the server says of its queue and its cache."},
		key{name: "key_env", shape: words(), preset: "the preset's, or no key is sent", doc: "The name of the environment variable that holds the key; never the key itself.", also: []string{"api_key", "key", "token", "apikey", "api_key_env", "secret"}},
		key{name: "headers", shape: dict("HEADER", words()), preset: "none", doc: "Sent with every request. No secrets: those go by key_env."},
		key{name: "limits", shape: limitKeys(), preset: "learned from the server", doc: "What the account allows, so that calls are paced before the server refuses them."},
		key{name: "model_limits", shape: dict("PATTERN", limitKeys()), preset: "none", doc: "Limits of the models that match a pattern (gpt-5*) of their own; all other models share limits."},
		key{name: "counting", shape: words("max", "used"), preset: "by dialect", doc: "How the server counts tokens against its limits: max charges max_tokens when a request arrives, used charges what is used."},
		key{name: "stream", shape: words("auto", "always", "never"), preset: "auto", doc: "Whether answers are streamed: auto streams long ones."},
		key{name: "http2", shape: truth(), preset: "false", doc: "Whether to multiplex calls over HTTP/2."},
		key{name: "timeout", shape: span(), preset: "10m", doc: "How long one attempt may take until its answer begins, and then until all of it came, or the next line of a stream. No stream lasts longer than an hour, or this."},
		key{name: "warm", shape: truth(), preset: "the preset's, or false", doc: "Whether equal long prefixes are sent once before they fan out, so that the prompt cache pays."},
		key{name: "batch", shape: batchKeys(), preset: "the preset's, or none", doc: "Says that the account has a batch API, at half the price, which waves can go over. `batch: {}` is one with the usual limits."},
		key{name: "capabilities", shape: listOf(capabilityKeys()), preset: "the built-in table", doc: "What models of this provider refuse or call differently, first match first."},
	)
}

func batchKeys() *shape {
	return record(
		key{name: "requests", shape: whole(1, 1_000_000), preset: "50000, and 100000 in the anthropic dialect", doc: "The most requests of one batch."},
		key{name: "bytes", shape: whole(10_000, 1<<40), preset: "200 MB, and 256 MB in the anthropic dialect", doc: "The most bytes of one batch."},
		key{name: "per_hour", shape: whole(1, 1_000_000), preset: "2000", doc: "The most batches created in an hour."},
		key{name: "tokens", shape: whole(1, 1<<50), preset: "learned when a batch is refused", doc: "The most prompt tokens of one model that may wait in batches.", also: []string{"enqueued_tokens"}},
	)
}

func capabilityKeys() *shape {
	yes := func(name, doc string) key { return key{name: name, shape: truth(), preset: "false", doc: doc} }
	return record(
		key{name: "match", shape: word(), needed: true, doc: "A pattern over provider/model: * is any text, ? any one character."},
		yes("no_sampling", "Refuses temperature, top_p, top_k and penalties."),
		yes("sample_at_none", "no_sampling does not hold at effort none."),
		yes("no_penalties", "Refuses frequency and presence penalties."),
		yes("no_stop", "Refuses stop texts."),
		yes("no_seed", "Refuses a seed."),
		yes("no_prefill", "Refuses a last message of the assistant's."),
		yes("no_schema", "Has no structured output of its own."),
		yes("schema", "Follows the JSON Schema of a request (vLLM, SGLang and llama.cpp do), so that the prompt need not hold it too. Known of the presets."),
		yes("no_tools", "Takes no tools."),
		yes("no_force", "Cannot be made to call a tool."),
		yes("no_tool_effort", "Thinks without tools only: with tools, effort none is sent."),
		yes("no_logprobs", "Gives no log probabilities."),
		yes("no_system", "Takes no system message: it is put before the first message of the user."),
		yes("no_stream_options", "Refuses stream_options."),
		yes("token_ids", "Can give token ids (vLLM, SGLang)."),
		yes("meta_info", "Gives token ids as SGLang does, and only in answers that are not streamed."),
		yes("top_k", "Knows top_k, in the openai dialect."),
		yes("cache_key", "Knows prompt_cache_key."),
		yes("thoughts", "Wants its reasoning_content back."),
		yes("old_max_field", "Spells it max_tokens, not max_completion_tokens."),
		key{name: "seed_field", shape: words(), preset: "seed", doc: "What it calls the seed."},
		key{name: "thinking", shape: words("adaptive", "always", "budget", "default"), preset: "by dialect", doc: "How thinking is switched on and off, in the anthropic dialect."},
		key{name: "efforts", shape: listOf(words(efforts()...)), preset: "none", doc: "The reasoning efforts it knows."},
		key{name: "max_output", shape: whole(0, math.MaxInt32), preset: "not known", doc: "The most output tokens."},
	)
}

func efforts() []string {
	var names []string
	for _, e := range llm.Efforts() {
		names = append(names, string(e))
	}
	return names
}

func presetNames() string {
	var names []string
	for _, p := range provider.Presets() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
