package telemetry

import (
	"net/url"
	"strconv"

	"parley/internal/ask/provider"
	"parley/internal/serve/gateway/format"
	"parley/llm"
)

// All names of the GenAI conventions.
const (
	operationName   = "gen_ai.operation.name"
	providerName    = "gen_ai.provider.name"
	conversationID  = "gen_ai.conversation.id"
	requestModel    = "gen_ai.request.model"
	requestMax      = "gen_ai.request.max_tokens"
	requestHeat     = "gen_ai.request.temperature"
	requestTopP     = "gen_ai.request.top_p"
	requestTopK     = "gen_ai.request.top_k"
	requestSeed     = "gen_ai.request.seed"
	requestStop     = "gen_ai.request.stop_sequences"
	requestFreq     = "gen_ai.request.frequency_penalty"
	requestPres     = "gen_ai.request.presence_penalty"
	requestChoices  = "gen_ai.request.choice.count"
	requestStream   = "gen_ai.request.stream"
	responseID      = "gen_ai.response.id"
	responseModel   = "gen_ai.response.model"
	responseFinish  = "gen_ai.response.finish_reasons"
	responseFirst   = "gen_ai.response.time_to_first_chunk"
	usageInput      = "gen_ai.usage.input_tokens"
	usageOutput     = "gen_ai.usage.output_tokens"
	usageCacheRead  = "gen_ai.usage.cache_read.input_tokens"
	usageCacheWrite = "gen_ai.usage.cache_creation.input_tokens"
	usageReasoning  = "gen_ai.usage.reasoning.output_tokens"
	tokenType       = "gen_ai.token.type"
	errorType       = "error.type"
	serverAddress   = "server.address"
	serverPort      = "server.port"

	// Parley's own names.
	retries  = "parley.retries"
	fromOurs = "parley.cached"
	dollars  = "parley.cost_usd"

	runID         = "parley.run"
	runState      = "parley.state"
	episodeNumber = "parley.episode"
	seatName      = "parley.seat"
	agentName     = "parley.agent"
	callLabel     = "parley.label"
	score         = "parley.score." // and its name
)

func operationOf(api format.API) string {
	if api == format.Embeddings {
		return "embeddings"
	}
	return "chat"
}

// vendor returns the conventions' name of a provider, or ours if they have none.
func vendor(name string) string {
	switch name {
	case "gemini", "gemini-openai":
		return "gcp.gemini"
	case "azure", "azure-responses":
		return "azure.ai.openai"
	case "vertex", "vertex-anthropic":
		return "gcp.vertex_ai"
	case "bedrock":
		return "aws.bedrock"
	case "mistral":
		return "mistral_ai"
	case "openai-responses":
		return "openai"
	case "xai":
		return "x_ai"
	default:
		return name
	}
}

func asked(of operation, p *provider.Provider, session string, c *format.Call) []message {
	out := append(requested(of, session, &c.Request), boolOf(requestStream, c.Stream))
	if u, err := url.Parse(p.BaseURL); err == nil {
		out = append(out, textOf(serverAddress, u.Hostname()))
		if port, err := strconv.Atoi(u.Port()); err == nil {
			out = append(out, intOf(serverPort, port))
		}
	}
	if c.Choices > 1 {
		out = append(out, intOf(requestChoices, c.Choices))
	}
	return out
}

// requested describes the request of an operation.
func requested(of operation, session string, q *llm.Request) []message {
	out := []message{
		textOf(operationName, of.name), textOf(providerName, of.provider),
		textOf(conversationID, session), textOf(requestModel, of.model),
	}
	if q.MaxTokens > 0 {
		out = append(out, intOf(requestMax, q.MaxTokens))
	}
	if len(q.Stop) > 0 {
		out = append(out, listOf(requestStop, q.Stop))
	}
	if q.Seed != nil {
		out = append(out, intOf(requestSeed, *q.Seed))
	}
	if q.TopK != nil {
		out = append(out, intOf(requestTopK, *q.TopK))
	}
	for name, v := range map[string]*float64{requestHeat: q.Temperature, requestTopP: q.TopP, requestFreq: q.FrequencyPenalty, requestPres: q.PresencePenalty} {
		if v != nil {
			out = append(out, floatOf(name, *v))
		}
	}
	return out
}

func answered(r *llm.Response) []message {
	u := r.Usage
	return []message{
		textOf(responseID, r.ID), textOf(responseModel, r.Model),
		listOf(responseFinish, []string{string(r.Finish)}),
		floatOf(responseFirst, r.Metadata.FirstByte.Seconds()),
		intOf(usageInput, u.Input), intOf(usageOutput, u.Output),
		intOf(usageCacheRead, u.Cached), intOf(usageCacheWrite, u.CacheWrite+u.CacheWriteLong),
		intOf(usageReasoning, u.Reasoning),
		intOf(retries, max(0, r.Metadata.Attempts-1)), boolOf(fromOurs, r.Metadata.Cached),
		floatOf(dollars, r.Metadata.Cost.Dollars()),
	}
}
