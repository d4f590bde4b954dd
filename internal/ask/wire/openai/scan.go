package openai

import (
	"encoding/json"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// The functions below read the usual members of answers. They leave the others to json.Unmarshal, and
// return false if it must read the whole answer.

func (w *wireResponse) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "id":
			return request.Text(v, &w.ID)
		case "model":
			return request.Text(v, &w.Model)
		case "service_tier":
			return request.Text(v, &w.ServiceTier)
		case "choices":
			return body.List(v, &w.Choices)
		case "usage":
			return body.Optional(v, &w.Usage)
		case "prompt_token_ids":
			return json.Unmarshal(v, &w.PromptTokenIDs) == nil
		case "error":
			return json.Unmarshal(v, &w.Error) == nil
		case "weight_version":
			return json.Unmarshal(v, &w.WeightVersion) == nil
		case "metadata":
			return json.Unmarshal(v, &w.Metadata) == nil
		case "x_groq":
			return json.Unmarshal(v, &w.XGroq) == nil
		}
		return true
	})
}

func (c *wireChoice) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "index":
			return request.Whole(v, &c.Index)
		case "message":
			return c.Message.Scan(v)
		case "delta":
			return c.Delta.Scan(v)
		case "text":
			return request.Text(v, &c.Text)
		case "finish_reason":
			return request.Text(v, &c.FinishReason)
		case "logprobs":
			return json.Unmarshal(v, &c.Logprobs) == nil
		case "token_ids":
			return json.Unmarshal(v, &c.TokenIDs) == nil
		case "prompt_token_ids":
			return json.Unmarshal(v, &c.PromptIDs) == nil
		case "meta_info":
			return json.Unmarshal(v, &c.MetaInfo) == nil
		case "error":
			return json.Unmarshal(v, &c.Error) == nil
		}
		return true
	})
}

func (m *wireMessage) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "content":
			return request.Text(v, &m.Content.text) || json.Unmarshal(v, &m.Content) == nil
		case "refusal":
			return request.Text(v, &m.Refusal)
		case "reasoning_content":
			return request.Text(v, &m.ReasoningContent)
		case "reasoning":
			return request.Text(v, &m.Reasoning)
		case "tool_calls":
			return json.Unmarshal(v, &m.ToolCalls) == nil
		}
		return true
	})
}

func (u *wireUsage) Scan(b []byte) bool {
	return body.Values(b, func(key, v []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return request.Whole(v, &u.PromptTokens)
		case "completion_tokens":
			return request.Whole(v, &u.CompletionTokens)
		case "total_tokens":
			return request.Whole(v, &u.TotalTokens)
		case "prompt_cache_hit_tokens":
			return request.Whole(v, &u.PromptCacheHitTokens)
		case "reasoning_tokens":
			return request.Whole(v, &u.ReasoningTokens)
		case "prompt_tokens_details":
			return body.Values(v, func(key, v []byte) bool {
				switch string(key) {
				case "cached_tokens":
					return request.Whole(v, &u.PromptTokensDetails.CachedTokens)
				case "cache_write_tokens":
					return request.Whole(v, &u.PromptTokensDetails.CacheWriteTokens)
				case "audio_tokens":
					return request.Whole(v, &u.PromptTokensDetails.AudioTokens)
				}
				return true
			})
		case "completion_tokens_details":
			return body.Values(v, func(key, v []byte) bool {
				return string(key) != "reasoning_tokens" || request.Whole(v, &u.CompletionTokensDetails.ReasoningTokens)
			})
		}
		return true
	})
}
