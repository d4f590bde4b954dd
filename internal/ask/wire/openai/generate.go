package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/fault"
	"parley/internal/ask/wire/request"
	"parley/llm"
)

// The endpoints that take the ids of a prompt's tokens and return those of an answer, at the root of a server's address.
// Trainers use them, since no text is split into tokens again. One answer to one prompt is read, whole. Batches, several
// answers, streams, prompts as text and pictures are refused by name. Requests are not written here: the bytes of a client
// are passed on.
const (
	VLLMGeneratePath   = "/inference/v1/generate"
	SGLangGeneratePath = "/generate"
)

// maxPromptTokens is the maximum number of tokens in a prompt.
const maxPromptTokens = 16 << 20

// ReadGenerate reads a member of a request to the endpoint at path into r, and reports whether r holds all of it. The tokens of the
// prompt are in r.Prompt, and as text in a message, so that their number is bounded by its size.
func ReadGenerate(r *request.Reader, path, key string, v []byte) bool {
	prompt, other := "token_ids", []string{"features", "kv_transfer_params"}
	if path == SGLangGeneratePath {
		prompt, other = "input_ids", []string{"text", "input_embeds", "image_data", "audio_data", "video_data", "session_params"}
	}
	r.Request.TokenIDs = true
	switch {
	case key == prompt:
		readPrompt(r, key, v)
		return true
	case key == "sampling_params":
		return readSampling(r, v)
	case key == "return_logprob" && path == SGLangGeneratePath:
		return request.Flag(v, &r.Request.Logprobs)
	case key == "stream":
		if string(v) != "false" {
			refuseGenerate(r, "stream is %.20s: this endpoint is recorded whole: leave stream out", v)
		}
		return true
	case key == "model":
		return r.ReadModel(v)
	case slices.Contains(other, key):
		refuseGenerate(r, "%s is not supported: send the prompt as %s, a list of token ids", key, prompt)
	}
	return false
}

// CheckGenerate refuses a request without a prompt.
func CheckGenerate(r *request.Reader) error {
	if r.Err == nil && len(r.Prompt) == 0 {
		return errors.New("the request has no prompt: send token_ids to " + VLLMGeneratePath + ", and input_ids to " + SGLangGeneratePath)
	}
	return r.Err
}

func refuseGenerate(r *request.Reader, format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
	}
}

func readPrompt(r *request.Reader, key string, v []byte) {
	ok := body.Elements(v, func(e []byte) bool {
		var id int
		good := request.Whole(e, &id) && id >= 0 && len(r.Prompt) < maxPromptTokens
		r.Prompt = append(r.Prompt, id)
		return good
	})
	if !ok || len(r.Prompt) == 0 {
		refuseGenerate(r, "%s is %.40s: want one list of token ids, and no batch of lists", key, v)
	}
	r.Request.Messages = []llm.Message{llm.User(string(v))}
}

// readSampling reads the parameters that llm.Request has. The others stay in Extra with the rest of the object.
func readSampling(r *request.Reader, v []byte) bool {
	q := &r.Request
	whole := body.Members(v, func(key, v []byte) bool {
		switch string(key) {
		case "max_tokens", "max_new_tokens":
			if string(v) != "null" {
				r.Tokens(string(key), v)
			}
		case "temperature":
			request.Number(v, &q.Temperature)
		case "top_p":
			request.Number(v, &q.TopP)
		case "top_k":
			request.Integer(v, &q.TopK)
		case "n", "best_of":
			if s := string(v); s != "1" && s != "null" {
				refuseGenerate(r, "sampling_params.%s is %.20s: one answer is recorded for each call: leave it out", key, v)
			}
		case "logprobs":
			q.Logprobs = string(v) != "null"
		}
		return true
	})
	if !whole {
		refuseGenerate(r, "sampling_params is %.40s: want an object", v)
	}
	return false // Extra keeps the object
}

// DecodeGenerate reads an answer of the endpoint at path to a prompt, exactly as the server wrote it, token by token.
func DecodeGenerate(path string, prompt []int, b []byte) (*llm.Response, error) {
	read := decodeVLLM
	if path == SGLangGeneratePath {
		read = decodeSGLang
	}
	r, err := read(b)
	if err != nil {
		return nil, err
	}
	if len(r.Logprobs) > 0 && len(r.Logprobs) != len(r.TokenIDs) {
		return nil, fault.Malformed(fmt.Sprintf("the answer has %d tokens and %d log probabilities", len(r.TokenIDs), len(r.Logprobs)), nil)
	}
	for i := range r.Logprobs {
		r.Logprobs[i].ID = r.TokenIDs[i]
	}
	r.PromptTokenIDs = prompt
	r.Usage.Input, r.Usage.Output = max(r.Usage.Input, len(prompt)), max(r.Usage.Output, len(r.TokenIDs))
	return r, nil
}

// vllmAnswer is the answer of vLLM.
type vllmAnswer struct {
	RequestID string `json:"request_id"`
	Choices   []struct {
		FinishReason string `json:"finish_reason"`
		TokenIDs     []int  `json:"token_ids"`
		Text         string `json:"text"` // with output_mode text
		Logprobs     struct {
			Content []Logprob `json:"content"`
		} `json:"logprobs"`
	} `json:"choices"`
	WeightVersion version         `json:"weight_version"`
	Error         json.RawMessage `json:"error"`
}

func decodeVLLM(b []byte) (*llm.Response, error) {
	var w vllmAnswer
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fault.Malformed("the answer is not of "+VLLMGeneratePath, err)
	}
	switch {
	case !body.IsNull(w.Error):
		return nil, fault.Classify(0, nil, b)
	case len(w.Choices) != 1 || w.Choices[0].TokenIDs == nil:
		return nil, fault.Malformed("the answer has no token_ids, or not one choice", nil)
	}
	c := w.Choices[0]
	return &llm.Response{
		ID: w.RequestID, Text: c.Text, Finish: finishOf(c.FinishReason), TokenIDs: c.TokenIDs,
		Logprobs: Logprobs(nil, c.Logprobs.Content), WeightVersion: string(w.WeightVersion),
	}, nil
}

// sglangAnswer is the answer of SGLang.
type sglangAnswer struct {
	Text      string `json:"text"`
	OutputIDs []int  `json:"output_ids"`
	Meta      *struct {
		ID           string `json:"id"`
		FinishReason struct {
			Type string `json:"type"`
		} `json:"finish_reason"`
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		CachedTokens     int `json:"cached_tokens"`
		metaInfo
	} `json:"meta_info"`
	Error json.RawMessage `json:"error"`
}

func decodeSGLang(b []byte) (*llm.Response, error) {
	var w sglangAnswer
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fault.Malformed("the answer is not of SGLang's "+SGLangGeneratePath, err)
	}
	switch {
	case !body.IsNull(w.Error):
		return nil, fault.Classify(0, nil, b)
	case w.Meta == nil:
		return nil, fault.Malformed("the answer has no meta_info", nil)
	}
	m := w.Meta
	r := &llm.Response{
		ID: m.ID, Text: w.Text, Finish: finishOf(m.FinishReason.Type), TokenIDs: w.OutputIDs, WeightVersion: string(m.WeightVersion),
		Usage: llm.Usage{Input: m.PromptTokens, Cached: m.CachedTokens, Output: m.CompletionTokens},
	}
	for i, t := range m.Tokens {
		if len(w.OutputIDs) == 0 { // older servers send only these
			r.TokenIDs = append(r.TokenIDs, t.id)
		} else if i < len(w.OutputIDs) && w.OutputIDs[i] != t.id {
			return nil, fault.Malformed("output_ids and output_token_logprobs have different tokens", nil)
		}
		r.Logprobs = append(r.Logprobs, llm.Logprob{Token: t.text, ID: t.id, Logprob: t.logprob})
	}
	return r, nil
}
