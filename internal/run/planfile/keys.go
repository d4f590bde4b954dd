package planfile

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"parley/internal/ask/provider"
	"parley/internal/kit/yamltree"
	"parley/llm"
	"parley/world"
)

// MaxConcurrency is the largest number of calls in flight that can be set.
const MaxConcurrency = 1_000_000

// PlanShape is the table of everything a plan file may hold: names, values, defaults and what they mean. params is the shape of
// the kind's params. The order is that of the reference.
func PlanShape(kinds []string, params *Shape) *Shape {
	s := Record(
		Key{Name: "kind", Shape: textShape(kinds...), Required: true, Doc: "What is played. `parley worlds` lists the kinds.", Aliases: []string{"world", "game", "type"}},
		Key{Name: "seed", Shape: intShape(0, math.MaxUint64), Default: "1", Doc: "Determines all chance in the run: the same plan with the same seed and the same replies has the same outcomes.", Aliases: []string{"random_seed"}},
		Key{Name: "episodes", Shape: intShape(1, world.MaxEpisodes), Default: "1", Doc: "How many episodes to play with the lineup. Not together with plan.", Aliases: []string{"games", "count", "repeat", "runs"}},
		Key{Name: "plan", Shape: planKeys(params), Default: "none", Doc: "Which episodes to play, if their number alone does not say it. Not together with episodes."},
		Key{Name: "providers", Shape: mapShape("NAME", providerKeys()), Default: "the presets", Doc: "Accounts at model endpoints. The presets (" + strings.Join(provider.PresetNames(), ", ") + ") are known without being listed; listed under its name, a preset keeps what is not given.", Aliases: []string{"endpoints", "provider"}},
		Key{Name: "agents", Shape: agentsShape(), Required: true, Doc: "Who plays, by names of your choice. A text instead of the keys is the model: `quiet: sim/small`, or `me: human` for a person.", Aliases: []string{"players", "models", "agent"}},
		Key{Name: "lineup", Shape: mapShape("SEAT", nonEmptyText()), Default: "the only agent, in every seat", Doc: "Which agent sits in which seat. The seats are the kind's; a matrix fills the seats that are left out.", Aliases: []string{"seats", "roles"}},
		Key{Name: "params", Shape: params, Default: "the kind's", Doc: "The parameters of the kind. `parley init KIND` writes them all with their meaning.", Aliases: []string{"parameters", "settings", "options", "config"}},
		Key{Name: "limits", Shape: Record(
			Key{Name: "concurrency", Shape: intShape(1, MaxConcurrency), Default: "what the providers allow", Doc: "The largest number of calls in flight, over all providers.", Aliases: []string{"calls", "parallel", "workers"}},
			Key{Name: "live", Shape: intShape(1, 1_000_000), Default: "20000", Doc: "The largest number of episodes in progress."},
		), Doc: "Limits of the whole run. Limits of an account are under providers.NAME.limits."},
		Key{Name: "budget", Shape: Dollars(), Default: "none", Doc: "The most the run may cost, in US dollars. When the next call might not fit, the run stops and can be resumed. A server that gives more than it was asked for can exceed it, within the bounds that docs/how-to/providers.md states.", Aliases: []string{"max_cost", "cost"}},
		Key{Name: "episode_budget", Shape: Dollars(), Default: "none", Doc: "The most an episode may cost, in US dollars. An episode that might exceed it with its next calls fails with that reason; the others continue. It cannot change when a run is resumed.", Aliases: []string{"budget_per_episode", "cost_per_run_limit", "max_cost_per_episode"}},
		Key{Name: "cache", Shape: nonEmptyText(), Default: "off", Doc: "A folder that keeps answers, so that other runs need not pay for them again; or off. The path is relative to the plan file's folder."},
		Key{Name: "pace", Shape: textShape("free", "wave"), Default: "free", Doc: "free: each episode continues as soon as its own turn is answered. wave: calls are made together, when every episode in progress waits for one."},
		Key{Name: "batch", Shape: Record(
			Key{Name: "route", Shape: textShape("auto", "batch", "live"), Default: "auto", Doc: "auto: a wave's calls of a model use the batch API if there are many and there is time. batch: wherever there is a batch API. live: never; batches that are open are still collected."},
			Key{Name: "min", Shape: intShape(1, 1_000_000), Default: "100, and 2 with batch", Doc: "The smallest number of calls of one model for a batch; fewer are made live."},
			Key{Name: "deadline", Shape: durationShape(), Default: "the provider's, a day", Doc: "How long the batches of a wave may take. Calls that are not answered by then are cancelled and made live."},
			Key{Name: "poll", Shape: durationShape(), Default: "2s", Doc: "How long to wait before checking a batch again; later checks are further apart, up to thirty times that."},
			Key{Name: "cancel", Shape: boolShape(), Default: "false", Doc: "Whether open batches are cancelled at the provider when the run is aborted with a second Ctrl-C. What they have answered is billed and collected later."},
		), Default: "auto", Doc: "How waves use the providers' batch APIs, at half the price."},
		Key{Name: "retry", Shape: Record(
			Key{Name: "unreachable", Shape: durationOrZero(), Default: "10m", Doc: "How long to wait for a provider that cannot be reached: connections are refused, a proxy answers 502 to 504, or it is still loading its model. Calls to other providers continue. After that the run stops and can be resumed. 0s does not wait."},
		), Doc: "How failed calls are retried."},
		Key{Name: "prices", Shape: nonEmptyText(), Default: "the built-in prices", Doc: "The path of a file of prices, from the plan file's folder."},
		Key{Name: "out", Shape: nonEmptyText(), Default: "beside the plan file, named after it", Doc: "The path of the run file, from the plan file's folder.", Aliases: []string{"output", "file"}},
	)
	s.Exclusive = [2]string{"episodes", "plan"}
	return s
}

func planKeys(params *Shape) *Shape {
	s := Record(
		Key{Name: "matrix", Shape: matrixKeys(params), Doc: "Every way to put agents into seats, with every setting of params."},
		Key{Name: "until", Shape: untilKeys(), Doc: "Plays more episodes until a score is known precisely enough. Together with matrix: in each of its cells."},
	)
	s.MinLen = 1
	return s
}

func matrixKeys(params *Shape) *Shape {
	names := &Shape{Form: yamltree.List, Elem: nonEmptyText(), MinLen: 1}
	return Record(
		Key{Name: "agents", Shape: names, Default: "none; the lineup does not change", Doc: "The agents to put into the seats, in every way."},
		Key{Name: "seats", Shape: names, Default: "those that lineup leaves empty", Doc: "The seats to put them into. All other seats are filled by lineup."},
		Key{Name: "lineup", Shape: mapShape("SEAT", names), Default: "none", Doc: "Agents to try in a seat, a list for each seat: every combination of them is played."},
		Key{Name: "lineups", Shape: &Shape{Form: yamltree.List, Elem: mapShape("SEAT", nonEmptyText()), MinLen: 1}, Default: "none", Doc: "The lineups to play, one by one, each a mapping of seats to agents. Not together with agents."},
		Key{Name: "self", Shape: boolShape(), Default: "false", Doc: "Whether an agent may sit in several of the seats, and so play itself."},
		Key{Name: "swap", Shape: boolShape(), Default: "true", Doc: "Whether the same agents are also played in other seats: with two, both ways round."},
		Key{Name: "rotate", Shape: textShape("latin", "williams"), Default: "none: as swap says", Doc: "Moves agents round the seats with few lineups, so that every agent sits in every seat equally often. latin: as many lineups as agents (a Latin square). williams: each agent also follows each other one equally often; twice as many lineups for an odd number of agents. With lineups, each of these is moved round its seats."},
		Key{Name: "params", Shape: grid(params), Default: "none", Doc: "Values to try, a list for each param or for a value within one, as `set.turns`. Every combination is played."},
		Key{Name: "variations", Shape: mapShape("NAME", variationKeys(params)), Default: "none", Doc: "Settings that belong together, by names of your choice: each is played with every lineup and every combination of params.", Aliases: []string{"variants", "conditions", "arms"}},
		Key{Name: "repeat", Shape: intShape(1, world.MaxEpisodes), Default: "1", Doc: "How many episodes to play of each cell. Not together with until.", Aliases: []string{"episodes", "repetitions"}},
	)
}

func variationKeys(params *Shape) *Shape {
	own := *params
	own.Keys = slices.Clone(params.Keys)
	for i := range own.Keys {
		own.Keys[i].Required, own.Keys[i].Default = false, "the plan's"
	}
	return Record(
		Key{Name: "params", Shape: &own, Default: "none", Doc: "What differs from the plan's params. Mappings are merged; lists are replaced."},
		Key{Name: "lineup", Shape: mapShape("SEAT", nonEmptyText()), Default: "none", Doc: "Who sits in seats that the matrix does not fill, instead of the plan's lineup."},
		Key{Name: "tags", Shape: mapShape("TAG", nonEmptyText()), Default: "none", Doc: "Names and values of your choice to group scores by, as for agents."},
	)
}

func untilKeys() *Shape {
	s := Record(
		Key{Name: "score", Shape: nonEmptyText(), Required: true, Doc: "The name of the score."},
		Key{Name: "seat", Shape: nonEmptyText(), Default: "the score of the whole episode", Doc: "Whose score. Not together with agent."},
		Key{Name: "agent", Shape: nonEmptyText(), Default: "the score of the whole episode", Doc: "Whose score, wherever it sits. Not together with seat."},
		Key{Name: "width", Shape: &Shape{Form: yamltree.Number, Min: 0, Max: math.MaxFloat64, Above: true}, Required: true, Doc: "Half the width of the interval to reach: 0.05 for ±0.05."},
		Key{Name: "confidence", Shape: &Shape{Form: yamltree.Number, Min: 0, Max: 1, Above: true, Below: true}, Default: "0.95", Doc: "The confidence of the interval."},
		Key{Name: "min", Shape: intShape(2, world.MaxEpisodes), Default: "30", Doc: "The smallest number of episodes of a cell that have the score."},
		Key{Name: "max", Shape: intShape(2, world.MaxEpisodes), Default: "1000", Doc: "The largest number of episodes of a cell."},
		Key{Name: "step", Shape: intShape(1, world.MaxEpisodes), Default: "min", Doc: "How many more episodes to play at a time."},
	)
	s.Exclusive = [2]string{"seat", "agent"}
	return s
}

func agentsShape() *Shape {
	agent := Record(
		Key{Name: "model", Shape: nonEmptyText(), Doc: "The model, written provider/model, or `human` for a person: see docs/how-to/play-a-seat.md. An agent has a model or a bot."},
		Key{Name: "bot", Shape: nonEmptyText(), Doc: "One of the kind's bots: an agent without a model behind it."},
		Key{Name: "system", Shape: textShape(), Default: "none", Doc: "A system prompt, put before all messages of the world.", Aliases: []string{"prompt", "system_prompt", "instructions"}},
		Key{Name: "temperature", Shape: numberShape(0, 2), Default: "the provider's", Doc: "The sampling temperature.", Aliases: []string{"temp"}},
		Key{Name: "top_p", Shape: &Shape{Form: yamltree.Number, Min: 0, Max: 1}, Default: "the provider's", Doc: "Nucleus sampling: the share of probability that is drawn from."},
		Key{Name: "max_tokens", Shape: countShape(), Default: "the world's, or the provider's", Doc: "The most tokens of an answer, reasoning included.", Aliases: []string{"max_output_tokens", "max_completion_tokens"}},
		Key{Name: "effort", Shape: textShape(efforts()...), Default: "the provider's", Doc: "How long a reasoning model may think.", Aliases: []string{"reasoning_effort", "reasoning", "thinking"}},
		Key{Name: "tier", Shape: nonEmptyText(), Default: "the account's", Doc: "The service tier, by the provider's own name: flex is cheaper and slower, priority dearer and faster. See docs/how-to/providers.md.", Aliases: []string{"service_tier"}},
		Key{Name: "cached_content", Shape: nonEmptyText(), Default: "none", Doc: "A prompt that you stored at Gemini, by the name that Google gave it: cachedContents/ID. It is read before all messages, at the price of cached tokens. See docs/how-to/providers.md."},
		Key{Name: "seed", Shape: intShape(math.MinInt64, math.MaxInt64), Default: "none", Doc: "A seed that is sent to providers that take one."},
		Key{Name: "stop", Shape: listShape(nonEmptyText()), Default: "none", Doc: "Texts at which an answer ends."},
		Key{Name: "fallbacks", Shape: listShape(nonEmptyText()), Default: "none", Doc: "Models to ask in turn if this one cannot answer."},
		Key{Name: "deadline", Shape: durationShape(), Default: "none: the run waits", Doc: "How long a person may take to answer a question, for `model: human`."},
		Key{Name: "fallback", Shape: nonEmptyText(), Default: "none: the call fails", Doc: "The agent whose model answers for a person after the deadline, for `model: human`."},
		Key{Name: "trainable", Shape: boolShape(), Default: "false", Doc: "Whether the agent's turns are wanted as training data.", Aliases: []string{"train"}},
		Key{Name: "tags", Shape: mapShape("TAG", nonEmptyText()), Default: "none", Doc: "Names and values of your choice to group scores by, as `prompt: terse`: see `--by` of report and compare. They do not change how the agent plays.", Aliases: []string{"tag", "labels", "factors"}},
	)
	agent.Shorthand, agent.Exclusive, agent.OneRequired = "model", [2]string{"model", "bot"}, true
	all := mapShape("NAME", agent)
	all.MinLen = 1
	return all
}

func limitKeys() *Shape {
	rate := &Shape{Form: yamltree.Number, Min: 0, Max: math.MaxFloat64}
	return Record(
		Key{Name: "rpm", Shape: rate, Default: "learned from the server", Doc: "Requests a minute."},
		Key{Name: "tpm", Shape: rate, Default: "learned from the server", Doc: "Tokens a minute, input and output together."},
		Key{Name: "itpm", Shape: rate, Default: "learned from the server", Doc: "Input tokens a minute."},
		Key{Name: "otpm", Shape: rate, Default: "learned from the server", Doc: "Output tokens a minute."},
		Key{Name: "concurrency", Shape: intShape(0, MaxConcurrency), Default: "found by trying, from 16 up", Doc: "The most calls in flight.", Aliases: []string{"parallel", "workers"}},
	)
}

func providerKeys() *Shape {
	return Record(
		Key{Name: "dialect", Shape: textShape(provider.Dialects()...), Default: "the preset's", Doc: "The wire format; go is for models that a Go program brings as values. Needed unless NAME is a preset.", Aliases: []string{"type", "format", "api"}},
		Key{Name: "base_url", Shape: textShape(), Default: "the preset's", Doc: "The address before /chat/completions, /responses or /messages: it ends in /v1 for most. Needed unless NAME is a preset or the dialect sim.", Aliases: []string{"url", "endpoint", "api_base", "host", "address"}},
		Key{Name: "base_urls", Shape: listShape(nonEmptyText()), Default: "none", Doc: "The addresses of several servers with the same models, instead of base_url. The calls of an episode stay on one of them; limits hold for each.", Aliases: []string{"urls", "replicas", "servers"}},
		Key{Name: "api_version", Shape: textShape(), Default: "none", Doc: "A version of Azure OpenAI, for its older paths: base_url/deployments/MODEL/chat/completions?api-version=VERSION. vertex-2023-10-16 is for Anthropic's models on Vertex AI."},
		Key{Name: "session", Shape: textShape("none", "header", "path"), Default: "none", Doc: "How a server learns which calls belong to one episode: header sends X-Session-Id, path puts the name into the address (base_url/SESSION/chat/completions)."},
		Key{Name: "close_session", Shape: boolShape(), Default: "false", Doc: "Whether to notify a server of the end of an episode, with a POST to base_url/SESSION/close. Requires session: path."},
		Key{Name: "metrics", Shape: textShape(), Default: "none", Doc: "The path of a server's page for Prometheus (vLLM, SGLang: /metrics). The number of calls in flight then follows the server's queue and cache."},
		Key{Name: "key_env", Shape: textShape(), Default: "the preset's, or no key is sent", Doc: "The name of the environment variable that holds the key; never the key itself.", Aliases: []string{"api_key", "key", "token", "apikey", "api_key_env", "secret"}},
		Key{Name: "key_command", Shape: listShape(textShape()), Default: "none", Doc: "A program that prints the key, with its arguments: for keys that expire. No shell reads it. Instead of key_env."},
		Key{Name: "credentials", Shape: textShape(provider.CredentialNames()...), Default: "none", Doc: "google for tokens from Google's Application Default Credentials, for Vertex AI only. Instead of key_env."},
		Key{Name: "key_header", Shape: textShape(provider.KeyHeaders()...), Default: "by dialect", Doc: "The header that carries the key. In authorization, it follows the word Bearer."},
		Key{Name: "headers", Shape: mapShape("HEADER", textShape()), Default: "none", Doc: "Sent with every request. No secrets: use key_env for these."},
		Key{Name: "limits", Shape: limitKeys(), Default: "learned from the server", Doc: "What the account allows, so that calls are paced before the server refuses them."},
		Key{Name: "model_limits", Shape: mapShape("PATTERN", limitKeys()), Default: "none", Doc: "Separate limits for the models that match a pattern (gpt-5*). All other models share limits."},
		Key{Name: "counting", Shape: textShape("max", "used"), Default: "by dialect", Doc: "How the server counts tokens against its limits: max counts max_tokens when a request arrives, used counts the tokens that are used."},
		Key{Name: "stream", Shape: textShape("auto", "always", "never"), Default: "auto", Doc: "Whether answers are streamed: auto streams long ones."},
		Key{Name: "http2", Shape: boolShape(), Default: "false", Doc: "Whether to multiplex calls over HTTP/2."},
		Key{Name: "timeout", Shape: durationShape(), Default: "10m", Doc: "How long one attempt may take until its answer begins, and then until its end, or until the next line of a stream. No stream lasts longer than an hour, or this."},
		Key{Name: "warm", Shape: boolShape(), Default: "the preset's, or false", Doc: "Whether to send equal long prefixes once before the other calls, so that these can use the prompt cache."},
		Key{Name: "batch", Shape: batchKeys(), Default: "the preset's, or none", Doc: "The account's batch API, at half the price, for waves. `batch: {}` is one with the usual limits."},
		Key{Name: "capabilities", Shape: listShape(capabilityKeys()), Default: "the built-in table", Doc: "What models of this provider refuse or name differently. The first match counts."},
	)
}

func batchKeys() *Shape {
	return Record(
		Key{Name: "api", Shape: textShape(provider.BatchAPIs()...), Default: "the preset's, or the dialect's", Doc: "The vendor whose batch API it is."},
		Key{Name: "requests", Shape: intShape(1, 1_000_000), Default: "the API's: 50000 for openai, 100000 for anthropic", Doc: "The most requests of one batch."},
		Key{Name: "bytes", Shape: intShape(10_000, 1<<40), Default: "the API's: 200 MB for openai, 256 MB for anthropic", Doc: "The most bytes of one batch."},
		Key{Name: "per_hour", Shape: intShape(1, 1_000_000), Default: "2000", Doc: "The most batches created in an hour."},
		Key{Name: "tokens", Shape: intShape(1, 1<<50), Default: "learned when a batch is refused", Doc: "The most prompt tokens of one model that may wait in batches.", Aliases: []string{"enqueued_tokens"}},
	)
}

func capabilityKeys() *Shape {
	yes := func(name, doc string) Key {
		return Key{Name: name, Shape: boolShape(), Default: "false", Doc: doc}
	}
	return Record(
		Key{Name: "match", Shape: nonEmptyText(), Required: true, Doc: "A pattern over provider/model: * is any text, ? any one character."},
		yes("no_sampling", "Refuses temperature, top_p, top_k and penalties."),
		yes("sampling_at_effort_none", "no_sampling does not hold at effort none."),
		yes("no_penalties", "Refuses frequency and presence penalties."),
		yes("no_stop", "Refuses stop texts."),
		yes("no_seed", "Refuses a seed."),
		yes("no_prefill", "Refuses an assistant message at the end."),
		yes("no_schema", "Has no native structured output."),
		yes("schema", "Follows the JSON Schema of a request (vLLM, SGLang and llama.cpp do), so that the prompt need not hold it too. Known of the presets."),
		yes("no_tools", "Refuses tools."),
		yes("no_force", "Refuses a forced tool call."),
		yes("no_parallel", "Refuses parallel_tool_calls."),
		yes("schema_in_prompt", "Enforces a schema that is sent natively, but does not see it: the prompt has it too."),
		yes("no_tool_effort", "Thinks without tools only: with tools, effort none is sent."),
		yes("no_logprobs", "Reports no log probabilities."),
		yes("no_documents", "Takes no PDFs in messages."),
		yes("no_audio", "Takes no audio in messages."),
		yes("file_links", "Reads PDFs by their address, in the openai dialect."),
		yes("no_system", "Refuses a system message: it is put before the first message of the user."),
		yes("no_stream_options", "Refuses stream_options."),
		yes("token_ids", "Can report token ids (vLLM, SGLang)."),
		yes("sglang_token_ids", "Reports token ids as SGLang does, only in answers that are not streamed."),
		yes("top_k", "Knows top_k, in the openai dialect."),
		yes("cache_key", "Knows prompt_cache_key."),
		yes("cache_point", "Caches the prompt up to a cachePoint, in the dialect `bedrock`."),
		yes("send_reasoning_back", "Wants its reasoning_content back."),
		yes("use_max_tokens", "Uses max_tokens, not max_completion_tokens."),
		Key{Name: "seed_field", Shape: textShape(), Default: "seed", Doc: "Its name for the seed."},
		Key{Name: "thinking", Shape: textShape("adaptive", "always", "budget", "default"), Default: "by dialect", Doc: "How thinking is switched on and off, in the anthropic dialect."},
		Key{Name: "efforts", Shape: listShape(textShape(efforts()...)), Default: "none", Doc: "The reasoning efforts it knows."},
		Key{Name: "max_output", Shape: intShape(0, math.MaxInt32), Default: "not known", Doc: "The largest number of output tokens."},
	)
}

func efforts() []string {
	var names []string
	for _, e := range llm.Efforts() {
		names = append(names, string(e))
	}
	return names
}

// paramsShape makes the shape of a kind's params from their struct: names from json tags, defaults
// from the values that Defaults sets. The tag doc describes a field, and oneof lists the texts it
// allows, separated by commas.
func paramsShape(k world.Kind) *Shape {
	v := reflect.ValueOf(k.Defaults().Pointer())
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return mapShape("PARAM", anyShape())
	}
	return shapeOf(v.Type(), v, 0)
}

// grid returns the shape of a mapping from params, or paths within params, to lists of values.
func grid(params *Shape) *Shape {
	if params.Free != "" {
		return mapShape("PARAM", &Shape{Form: yamltree.List, Elem: params.Elem, MinLen: 1})
	}
	s := Record()
	s.Within = params
	for _, k := range params.Keys {
		k.Shape, k.Default, k.Required = &Shape{Form: yamltree.List, Elem: k.Shape, MinLen: 1}, "", false
		s.Keys = append(s.Keys, k)
	}
	return s
}

// Schema returns a JSON Schema (2020-12) of plan files for these kinds, made from the table that
// decodes them.
func Schema(kinds []world.Kind) ([]byte, error) {
	names := make([]string, len(kinds))
	var docs strings.Builder
	var each []any
	for i, k := range kinds {
		names[i] = k.Name
		fmt.Fprintf(&docs, "\n- %s: %s", k.Name, k.Doc)
		params := paramsShape(k)
		then := object{"properties": object{
			"params": params.JSONSchema(),
			"plan": object{"properties": object{"matrix": object{"properties": object{
				"params":     grid(params).JSONSchema(),
				"variations": object{"additionalProperties": object{"properties": object{"params": variationKeys(params).Key("params").Shape.JSONSchema()}}},
			}}}},
		}}
		if !k.ChoosesModels() {
			then["required"] = []string{"agents"}
			then["properties"].(object)["agents"] = object{"minProperties": 1}
		}
		each = append(each, object{"if": object{"properties": object{"kind": object{"const": k.Name}}, "required": []string{"kind"}}, "then": then})
	}
	all := PlanShape(names, mapShape("PARAM", anyShape()))
	if agents := all.Key("agents"); slices.ContainsFunc(kinds, func(k world.Kind) bool { return k.ChoosesModels() }) {
		agents.Required, agents.Shape.MinLen = false, 0 // only some kinds need agents: see each
	}
	root := all.JSONSchema()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "A Parley plan file"
	if len(each) > 0 {
		root["allOf"] = each
		kind := root["properties"].(object)["kind"].(object)
		kind["description"] = fmt.Sprint(kind["description"], docs.String())
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(b, '\n'), nil
}

// Param is a param of a kind.
type Param struct {
	Name string `json:"name"`
	// Holds describes the allowed values, as "a whole number".
	Holds   string          `json:"holds"`
	Default json.RawMessage `json:"default,omitempty"`
	Doc     string          `json:"doc,omitempty"`
}

// Params lists the params of a kind in their order.
func Params(k world.Kind) []Param {
	preset := map[string]json.RawMessage{}
	_ = remarshal(k.Defaults().Pointer(), &preset) // a kind without defaults in JSON has none to show
	all := []Param{}
	for _, key := range paramsShape(k).Keys {
		all = append(all, Param{Name: key.Name, Holds: key.Shape.Describe(), Default: preset[key.Name], Doc: key.Doc})
	}
	return all
}

// SchemaName is the name of the schema file that the first line of a plan made by Init refers to. Write
// Schema beside the plan under this name.
const SchemaName = "plan.schema.json"

// Init returns a plan file that names its schema.
func Init(plan string) []byte {
	return []byte("# yaml-language-server: $schema=" + SchemaName + "\n" + strings.TrimLeft(plan, "\n"))
}
