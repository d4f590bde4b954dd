package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/llm"
)

// wireResponse is a whole answer, or a chunk of one.
type wireResponse struct {
	ID             string          `json:"id"`
	Model          string          `json:"model"`
	ServiceTier    string          `json:"service_tier"`
	Choices        []wireChoice    `json:"choices"`
	Usage          *wireUsage      `json:"usage"`
	PromptTokenIDs []int           `json:"prompt_token_ids"` // vLLM
	Error          json.RawMessage `json:"error"`
	WeightVersion  version         `json:"weight_version"`
	Metadata       versioned       `json:"metadata"` // SGLang
	XGroq          struct {
		Usage *wireUsage `json:"usage"`
	} `json:"x_groq"`
}

type wireChoice struct {
	Index        int             `json:"index"`
	Message      wireMessage     `json:"message"`
	Delta        wireMessage     `json:"delta"`
	Text         string          `json:"text"` // of a text completion
	FinishReason string          `json:"finish_reason"`
	Logprobs     *wireLogprobs   `json:"logprobs"`
	TokenIDs     []int           `json:"token_ids"`        // vLLM
	PromptIDs    []int           `json:"prompt_token_ids"` // SGLang
	MetaInfo     *metaInfo       `json:"meta_info"`        // SGLang
	Error        json.RawMessage `json:"error"`            // OpenRouter
}

type wireMessage struct {
	Content          content        `json:"content"`
	Refusal          string         `json:"refusal"`
	ReasoningContent string         `json:"reasoning_content"` // DeepSeek, vLLM, SGLang, xAI
	Reasoning        string         `json:"reasoning"`         // OpenRouter, Groq, Ollama, newer vLLM
	ToolCalls        []wireToolCall `json:"tool_calls"`
}

type wireToolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
	ExtraContent struct {
		Google struct {
			ThoughtSignature string `json:"thought_signature"`
		} `json:"google"`
	} `json:"extra_content"` // Gemini
}

type wireLogprobs struct {
	Content []Logprob `json:"content"`
	Refusal []Logprob `json:"refusal"`
	oldLogprobs
}

type wireUsage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	TotalTokens         int `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens"`
		AudioTokens      int `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	PromptCacheHitTokens int `json:"prompt_cache_hit_tokens"` // DeepSeek
	ReasoningTokens      int `json:"reasoning_tokens"`        // SGLang
}

// DecodeResponse reads a whole answer. If the body reports an error with status 200, it returns
// that error.
//
// Gemini signs its tool calls. The signature becomes a Thought with the ID of the call, so that it
// is sent back with the message.
func DecodeResponse(b []byte) (*llm.Response, error) {
	w, err := body.Decode[wireResponse](b)
	if err != nil {
		return nil, fault.Malformed("the answer is not a chat completion", err)
	}
	if !body.IsNull(w.Error) {
		return nil, fault.Classify(0, nil, b)
	}
	if len(w.Choices) == 0 {
		return nil, fault.Malformed("the answer has no choices", nil)
	}
	var a Assembler
	a.envelope(w)
	c := &w.Choices[0]
	a.choice(c, &c.Message)
	a.done = true
	return a.Response()
}

func (u *wireUsage) usage() llm.Usage {
	out := llm.Usage{
		Input:      u.PromptTokens,
		Cached:     llm.LargerTokens(u.PromptTokensDetails.CachedTokens, u.PromptCacheHitTokens),
		CacheWrite: u.PromptTokensDetails.CacheWriteTokens,
		Audio:      u.PromptTokensDetails.AudioTokens,
		Output:     u.CompletionTokens,
		Reasoning:  llm.LargerTokens(u.CompletionTokensDetails.ReasoningTokens, u.ReasoningTokens),
	}
	// Gemini and xAI bill thinking as output, but count it only in the total.
	if rest := u.TotalTokens - max(out.Total(), 0); rest > 0 && u.PromptTokens > 0 && u.CompletionTokens >= 0 {
		out.Output = llm.AddTokens(out.Output, rest)
		out.Reasoning = max(out.Reasoning, rest)
	}
	return out
}

func finishOf(reason string) llm.Finish {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length":
		return llm.FinishLength
	case "tool_calls", "function_call", "tool_use":
		return llm.FinishTools
	case "content_filter", "refusal", "safety":
		return llm.FinishRefused
	case "abort", "aborted", "cancelled":
		return llm.FinishAborted
	}
	return llm.FinishStop
}

// content is the content of a message: a string, null, or a list of parts. Mistral's parts may be
// thoughts.
type content struct{ text, thought string }

// UnmarshalJSON accepts all three forms.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, &c.text)
	}
	var parts []struct {
		Text     string  `json:"text"`
		Thinking thought `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var text, thoughts strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
		thoughts.WriteString(string(p.Thinking))
	}
	c.text, c.thought = text.String(), thoughts.String()
	return nil
}

// thought is the thinking in a part: a string, or a list of texts.
type thought string

// UnmarshalJSON accepts both forms.
func (t *thought) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return json.Unmarshal(b, (*string)(t))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	*t = thought(text.String())
	return nil
}

// arguments are the arguments of a tool call: a string that holds JSON or, with some servers, the
// JSON itself.
type arguments string

// UnmarshalJSON accepts both forms.
func (a *arguments) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(a))
	}
	if !bytes.Equal(b, []byte("null")) {
		*a = arguments(b)
	}
	return nil
}
