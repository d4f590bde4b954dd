package openai

import (
	"strings"
	"testing"

	"parley/internal/ask/wire/body"
	"parley/internal/ask/wire/request"
)

// TestDecodeRefuses: an answer whose tokens are not certain is an error.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                        "is not of",
		`{"choices":[{"index":0}]}`: "no token_ids",
		`{"choices":[{"token_ids":[1,2],"logprobs":{"content":[{"token":"a","logprob":-1}]}}]}`: "2 tokens and 1 log probabilities",
		`{"error":{"message":"out of memory"}}`:                                                 "out of memory",
	} {
		if _, err := DecodeGenerate(VLLMGeneratePath, []int{1}, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"text":"a"}`: "no meta_info",
		`{"output_ids":[1],"meta_info":{"output_token_logprobs":[[-1,2,null]]}}`:   "different tokens",
		`{"output_ids":[1,2],"meta_info":{"output_token_logprobs":[[-1,1,null]]}}`: "2 tokens and 1 log probabilities",
		`{"output_ids":[1],"meta_info":{"output_token_logprobs":[[-1]]}}`:          "a token has no id",
	} {
		if _, err := DecodeGenerate(SGLangGeneratePath, []int{1}, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestOlderSGLang: a server that sends no output_ids sends the ids with the log probabilities, and the version may be a number.
func TestOlderSGLang(t *testing.T) {
	t.Parallel()
	r, err := DecodeGenerate(SGLangGeneratePath, []int{1, 2}, []byte(`{"text":"a b","meta_info":{"finish_reason":{"type":"length"},"weight_version":3,"output_token_logprobs":[[-1,5,"a"],[-2,6," b"]]}}`))
	if err != nil || len(r.TokenIDs) != 2 || r.TokenIDs[1] != 6 || r.Logprobs[1].Token != " b" || r.WeightVersion != "3" || r.Usage.Input != 2 || r.Usage.Output != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzGenerate(f *testing.F) {
	for _, s := range []string{`{"token_ids":[1],"sampling_params":{"n":1}}`, `{"input_ids":[1,2],"stream":false}`, `{"choices":[{"token_ids":[]}]}`, `{"meta_info":{"output_token_logprobs":[[null,null]]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, path := range []string{VLLMGeneratePath, SGLangGeneratePath} {
			var r request.Reader
			body.Members(b, func(key, v []byte) bool {
				ReadGenerate(&r, path, string(key), v)
				return true
			})
			if CheckGenerate(&r) == nil && len(r.Prompt) == 0 {
				t.Error("a request without a prompt passes")
			}
			if a, err := DecodeGenerate(path, []int{1}, b); err == nil && len(a.Logprobs) > 0 && len(a.Logprobs) != len(a.TokenIDs) {
				t.Errorf("%d tokens, %d log probabilities", len(a.TokenIDs), len(a.Logprobs))
			}
		}
	})
}
