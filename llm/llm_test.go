package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/llm"
)

func TestSplitModel(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, provider, model string }{
		{"openai/gpt-5", "openai", "gpt-5"},
		{"openrouter/openai/gpt-5", "openrouter", "openai/gpt-5"},
		{"gpt-5", "", "gpt-5"},
		{"/gpt-5", "", "gpt-5"},
		{"openai/", "openai", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		if p, m := llm.SplitModel(tt.in); p != tt.provider || m != tt.model {
			t.Errorf("%q is %q and %q", tt.in, p, m)
		}
	}
}

func TestFunc(t *testing.T) {
	t.Parallel()
	var model llm.Model = llm.Func(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		if req.Model == "" {
			return nil, &llm.Error{Kind: llm.KindBadRequest}
		}
		return &llm.Response{Text: req.Messages[0].Text()}, nil
	})
	res, err := model.Ask(t.Context(), &llm.Request{Model: "x", Messages: []llm.Message{llm.User("hi")}})
	if err != nil || res.Text != "hi" {
		t.Errorf("answer is %+v, %v", res, err)
	}
	var e *llm.Error
	if _, err := model.Ask(t.Context(), &llm.Request{}); !errors.As(err, &e) {
		t.Errorf("error is %v", err)
	}
}

func TestBegan(t *testing.T) {
	t.Parallel()
	plain := t.Context()
	if llm.WantsBegan(plain) {
		t.Error("a plain context wants Began")
	}
	llm.Began(plain) // nobody waits: nothing happens
	n := 0
	ctx := llm.OnBegan(plain, func() { n++ })
	if !llm.WantsBegan(ctx) {
		t.Error("a context of OnBegan does not want Began")
	}
	llm.Began(ctx)
	llm.Began(ctx)
	if n != 2 {
		t.Errorf("called %d times", n)
	}
}

func TestUsagePlus(t *testing.T) {
	t.Parallel()
	// By reflection, so that a field added later is not forgotten.
	var u, want llm.Usage
	for i := range reflect.TypeFor[llm.Usage]().NumField() {
		reflect.ValueOf(&u).Elem().Field(i).SetInt(int64(i + 1))
		reflect.ValueOf(&want).Elem().Field(i).SetInt(int64(2 * (i + 1)))
	}
	if got := u.Plus(u); got != want {
		t.Errorf("sum is %+v, want %+v", got, want)
	}
	if got := u.Plus(llm.Usage{}); got != u {
		t.Errorf("sum with nothing is %+v", got)
	}
}

func TestEfforts(t *testing.T) {
	t.Parallel()
	all := llm.Efforts()
	if len(all) != 7 || all[0] != llm.EffortNone || all[6] != llm.EffortMax || len(slices.Compact(slices.Sorted(slices.Values(all)))) != 7 {
		t.Errorf("efforts are %v", all)
	}
}

// TestTools: a tool is read in OpenAI's form and in the flat one. Anything else is refused with the key.
func TestTools(t *testing.T) {
	t.Parallel()
	price := llm.Tool{Name: "price", Description: "A price.", Parameters: json.RawMessage(`{"type":"object"}`), Strict: true}
	const keys = `"name":"price","description":"A price.","parameters":{"type":"object"},"strict":true`
	for _, text := range []string{`{` + keys + `}`, `{"type":"function",` + keys + `}`, `{"type":"function","function":{` + keys + `}}`} {
		var got llm.Tool
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, price) {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`{"nme":"price"}`: `unknown key "nme"; want one of description, name`,
		`{"type":"function","function":{"nme":"x"}}`: `unknown key "nme"`,
		`{"type":"web_search"}`:                      `type "web_search": want function`,
		`{"name":"a","function":{"name":"b"}}`:       "write them inside function",
		`{"name":5}`:                                 "name",
	} {
		if err := json.Unmarshal([]byte(text), &llm.Tool{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want it to say %q", text, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	number := func(x float64) *float64 { return &x }
	for want, r := range map[string]llm.Request{
		"temperature 9: use 0 to 2":   {Temperature: number(9)},
		"temperature NaN: use 0 to 2": {Temperature: number(math.NaN())},
		"top_p 1.1: use 0 to 1":       {TopP: number(1.1)},
		"max_tokens -1: use":          {MaxTokens: -1},
		`unknown effort "some"; want`: {Effort: "some"},
		"tools[1]: name is missing":   {Tools: []llm.Tool{{Name: "a"}, {}}},
	} {
		if err := r.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	fine := llm.Request{Temperature: number(2), TopP: number(0), Effort: llm.EffortLow, MaxTokens: 1, Tools: []llm.Tool{{Name: "a"}}}
	if err := fine.Check(); err != nil {
		t.Error(err)
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://x/y.png", "data:image/png;base64,AQI="} {
		img, err := llm.ImageFrom(url)
		if err != nil || img.DataURL() != url {
			t.Errorf("%s became %+v, %v", url, img, err)
		}
	}
	for _, url := range []string{"data:", "data:image/png,AQI=", "data:image/png;base64,A"} {
		if img, err := llm.ImageFrom(url); err == nil {
			t.Errorf("%s became %+v", url, img)
		}
	}
}
