package openai

import (
	"encoding/json"
	"reflect"
	"testing"

	"parley/internal/ask/provider"
	"parley/llm"
)

// TestTokenFields checks that token IDs are requested as the server wants it.
func TestTokenFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		c    provider.Capability
		want []string
	}{
		{provider.Capability{TokenIDs: true}, []string{"return_token_ids"}},
		{provider.Capability{TokenIDs: true, SGLangTokenIDs: true}, []string{"logprobs", "return_prompt_token_ids", "return_meta_info"}},
		{provider.Capability{SGLangTokenIDs: true}, nil},
		{provider.Capability{}, nil},
	} {
		req := &llm.Request{Model: "lab/m", Messages: []llm.Message{llm.User("x")}, TokenIDs: true}
		b, dropped, err := AppendRequest(nil, req, c.c, false)
		var got map[string]json.RawMessage
		if err != nil || json.Unmarshal(b, &got) != nil {
			t.Fatalf("%s, %v", b, err)
		}
		for _, name := range []string{"logprobs", "return_token_ids", "return_prompt_token_ids", "return_meta_info"} {
			wanted := false
			for _, w := range c.want {
				wanted = wanted || w == name
			}
			if (string(got[name]) == "true") != wanted {
				t.Errorf("%+v: %s is %s", c.c, name, got[name])
			}
		}
		if (c.want == nil) != reflect.DeepEqual(dropped, []string{"token_ids"}) {
			t.Errorf("%+v: dropped %q", c.c, dropped)
		}
	}
}

// TestTokens checks that tokens, log probabilities and the version of the weights are read exactly, in
// every form.
func TestTokens(t *testing.T) {
	t.Parallel()
	const head = `{"choices":[{"message":{"content":"ab"},"finish_reason":"stop"`
	for _, c := range []struct {
		name, body string
		want       llm.Response
	}{
		{
			"sglang", head + `,"prompt_token_ids":[1,2],"meta_info":{"weight_version":"w8","output_token_logprobs":[[-0.12345678901234567,3,"a"],[-2,0,null]]},"logprobs":{"content":[{"token":"a","logprob":-0.1234},{"token":"b","logprob":-2}]}}]}`,
			llm.Response{PromptTokenIDs: []int{1, 2}, TokenIDs: []int{3, 0}, WeightVersion: "w8", Logprobs: []llm.Logprob{{Token: "a", ID: 3, Logprob: -0.12345678901234567}, {Token: "b", Logprob: -2}}},
		},
		{
			"sglang without texts", head + `,"meta_info":{"output_token_logprobs":[[-1,3],[-2,4]]}}]}`,
			llm.Response{TokenIDs: []int{3, 4}, Logprobs: []llm.Logprob{{ID: 3, Logprob: -1}, {ID: 4, Logprob: -2}}},
		},
		{
			"both ways", head + `,"token_ids":[3,4],"meta_info":{"output_token_logprobs":[[-1,3],[-2,4]]}}]}`,
			llm.Response{TokenIDs: []int{3, 4}},
		},
		{"version as a number", head + `}],"metadata":{"weight_version":17}}`, llm.Response{WeightVersion: "17"}},
		{"version at the top", head + `}],"weight_version":"default"}`, llm.Response{WeightVersion: "default"}},
		{"no version", head + `}],"weight_version":null,"metadata":{"weight_version":null,"x":[1]}}`, llm.Response{}},
		{"metadata of another sort", head + `}],"weight_version":{"a":1},"metadata":"hello"}`, llm.Response{}},
		{"metadata as a list", head + `}],"metadata":[1,2]}`, llm.Response{}},
	} {
		c.want.Text, c.want.Finish = "ab", llm.FinishStop
		got, err := DecodeResponse([]byte(c.body))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
	for _, bad := range []string{`[[-1]]`, `[["x",3]]`, `[[-1,"3"]]`, `[[-1,3.5]]`, `[-1,3]`} {
		if r, err := DecodeResponse([]byte(head + `,"meta_info":{"output_token_logprobs":` + bad + `}}]}`)); llm.KindOf(err) != llm.KindMalformed {
			t.Errorf("%s: tokens that cannot be read became %+v, %v", bad, r, err)
		}
	}
}
